"""Claims in `hello`: `names.yaml` has claims, `review.yaml` case runs that confirm them.

Unknown or inconsistent claims fail the handshake.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders.tables import Table
from numaproof.conformance.claims.review import ClaimsTally
from numaproof.conformance.execution.implementation import (
    BrokeProtocol,
    InProcess,
    handshake,
    hello_args,
)
from numaproof.protocol import codec, features, messages
from numaproof.protocol.events import CaseFinished
from numaproof.reference.implementation import Reference

NAMES = Table(__file__, "names.yaml")
REVIEWS = Table(__file__, "review.yaml")
HELLO = Reference().hello(hello_args("tests"))
UNNAMED = msgspec.structs.replace(HELLO, features=None)


@NAMES
def test_an_unknown_claim_fails_the_handshake(row: dict[str, Any]) -> None:
    line = codec.encode({"id": 1, "ok": {**codec.to_plain(HELLO), **row["claims"]}})

    class Claiming(Reference):
        def hello(self, _: messages.HelloArgs) -> messages.Hello:
            answer = codec.decode_answer(line, 1, "hello")
            assert isinstance(answer, messages.Hello)
            return answer

    try:
        codec.decode_answer(line, 1, "hello")
        handshake(InProcess(Claiming), "tests")
    except (codec.ProtocolError, BrokeProtocol) as error:
        NAMES.check(row, str(error))
    else:
        NAMES.check(row, "fine")


TOY = messages.Hello(
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
def test_runs_confirm_claims_or_not(row: dict[str, Any]) -> None:
    tally = ClaimsTally(msgspec.structs.replace(TOY, **row.get("hello", {})))
    for one in row["runs"]:
        tally.count_case(msgspec.convert({**PLAIN, **one}, CaseFinished))
    said = codec.to_plain(tally.review())
    REVIEWS.check(row, {name: value for name, value in said.items() if value})


OF_VERSION_1 = tuple(name for name in features.NAMED if features.FEATURES[name].since == "1")


def test_all_version_1_features_are_assumed_of_a_kubelet() -> None:
    assert features.assumed_features(UNNAMED) == OF_VERSION_1
    assert {*features.NAMED} - {*OF_VERSION_1} == {
        "quota",
        "effective-configuration",
        "refused-pods",
        "flags",
        "preferred-devices",
        "running-restart",
        "failing-plugins",
        "static-pods",
        "metrics",
        "node-allocatable",
    }


@pytest.mark.parametrize("level", ["invariants", "admission", "placement"])
def test_checkpoint_files_are_assumed_only_of_a_kubelet(level: str) -> None:
    other = msgspec.structs.replace(UNNAMED, level=level)
    assert {*OF_VERSION_1} - {*features.assumed_features(other)} == {"checkpoint-files"}


def test_features_without_their_operations_are_not_assumed() -> None:
    small = msgspec.structs.replace(
        UNNAMED, level="invariants", operations=("start", "state"), policies=messages.Policies()
    )
    assert features.assumed_features(small) == (
        "restart",
        "configuration-validation",
        "reconfiguration",
        "feature-gates",
    )


def test_listed_features_are_claimed_unchanged() -> None:
    assert features.claimed_features(msgspec.structs.replace(UNNAMED, features=())) == ()
