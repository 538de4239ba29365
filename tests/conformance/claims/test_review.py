"""What a run says of the claims of an implementation: `review.yaml` has case runs."""

from __future__ import annotations

from typing import Any

import msgspec

from builders.tables import Table
from numaproof.conformance.claims.review import ClaimsTally
from numaproof.protocol import codec, messages
from numaproof.protocol.events import CaseFinished

REVIEWS = Table(__file__, "review.yaml")
HELLO = messages.Hello(
    protocol=1,
    name="toy",
    version="1",
    language="C",
    kubernetes=("1.36",),
    level="invariants",
    operations=("start", "admit", "state"),
    policies=messages.Policies(cpu=("static",)),
    options=messages.Options(),
    features=("sidecars",),
)
PLAIN = {
    "event": "case finished",
    "at": 0.0,
    "case": "a",
    "title": "",
    "machine": "m",
    "outcome": "pass",
    "seconds": 0.0,
    "requirements": (),
}


@REVIEWS
def test_runs_bear_claims_out_or_not(row: dict[str, Any]) -> None:
    tally = ClaimsTally(msgspec.structs.replace(HELLO, **row.get("hello", {})))
    for one in row["runs"]:
        tally.count_case(msgspec.convert({**PLAIN, **one}, CaseFinished))
    said = codec.to_plain(tally.review())
    REVIEWS.check(row, {name: value for name, value in said.items() if value})
