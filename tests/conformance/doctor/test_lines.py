"""Diagnosis of lines: every mistake is named, and none raises an exception.

`lines.yaml` has lines or bodies of answers, with the diagnosis: message → remedy, and the intended
answer.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.tables import Table
from numaproof.conformance.doctor.lines import read
from numaproof.protocol import codec
from numaproof.protocol.diagnosis import Finding
from numaproof.protocol.operations import OPERATIONS

LINES = Table(__file__, "lines.yaml")
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.sampled_from(["0-3", "9-1"])
)
NAMES = st.sampled_from(
    ["cpus", "all", "memory", "numa", "containers", "affinity", "name", "level", "pods", "stage"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@LINES
def test_every_mistake_in_a_line_is_reported(row: dict[str, Any]) -> None:
    kinds = {kind: row[kind] for kind in ("ok", "refused") if kind in row}
    line = row.get("line", json.dumps({"id": 1, **kinds})).encode()
    if "latin-1" in row:
        line = row["latin-1"].encode("latin-1")
    found = read(line, 1, row["operation"])
    said = [
        " → ".join(filter(None, (one.wrong + " (advice)" * one.advice, one.right)))
        for one in found.findings
    ]
    meant = None if found.answer is None else codec.to_plain(found.answer)
    LINES.check(row, {"wrong": said, "meant": meant})


@settings(deadline=None, max_examples=80)
@given(st.sampled_from([*OPERATIONS]), st.sampled_from(["ok", "refused", "fault", "x"]), VALUES)
def test_any_value_can_be_described(operation: str, kind: str, value: Any) -> None:
    line = json.dumps({"id": 1, kind: value}).encode()
    found = read(line, 1, operation)
    try:
        answer = codec.decode_answer(line, 1, operation)
    except codec.ProtocolError:
        assert any(not one.advice for one in found.findings)
    else:
        assert found.findings == []
        assert found.answer == answer


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=60))
def test_any_bytes_can_be_described(line: bytes) -> None:
    assert read(line, 1, "state").findings


@pytest.mark.parametrize("depth", [200, 900, 990, 1000, 5000, 100_000])
def test_deep_nesting_is_handled(depth: int) -> None:
    line = b'{"id": 1, "ok": ' + b"[" * depth + b"]" * depth + b"}"
    findings = read(line, 1, "state").findings
    assert "nested too deeply" in findings[0].wrong or depth < 100_000


def test_one_mistake_in_two_places_is_one_cause() -> None:
    one = Finding("`pods.uid-web.app.cpus` is a list ([1, 2]); it must be a CPU set")
    other = Finding("`containers.app.cpus` is a list ([3]); it must be a CPU set")
    assert one.cause == other.cause
    assert Finding("`id` is 8: another's").cause == Finding("`id` is 28: another's").cause
