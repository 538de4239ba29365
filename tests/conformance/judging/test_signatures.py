"""What is one failure and what are two: `signatures.yaml` has findings and ends of programs."""

from __future__ import annotations

from typing import Any

import pytest

from builders.tables import Table
from numaproof.conformance.judging.finding import Finding
from numaproof.conformance.judging.signatures import Ended, signature
from numaproof.protocol.events import GOOD

SIGNATURES = Table(__file__, "signatures.yaml")


@SIGNATURES
def test_a_failure_has_a_sentence_and_a_signature_of_its_fields(row: dict[str, Any]) -> None:
    finding = Finding(**row["finding"]) if "finding" in row else None
    ended = Ended(**{"outcome": "fail", **row.get("ended", {})}, finding=finding)
    name = signature(ended, row.get("operation", "admit"), row.get("invariants", ()))
    assert len(name) <= 160
    SIGNATURES.check(row, {"signature": name, **({"sentence": str(finding)} if finding else {})})


@pytest.mark.parametrize("outcome", sorted(GOOD))
def test_what_is_no_failure_has_none(outcome: str) -> None:
    assert signature(Ended(outcome), "admit") == ""  # type: ignore[arg-type]
