"""Equal and different failures: `signatures.yaml` has findings and ends of programs.

No message in any table of tests shows a value as Python writes it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from builders.tables import Table
from numaproof.conformance.judging.finding import Finding
from numaproof.conformance.judging.signatures import EndResult, signature
from numaproof.protocol.events import GOOD

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNATURES = Table(__file__, "signatures.yaml")


@SIGNATURES
def test_a_failure_has_a_message_and_a_signature(row: dict[str, Any]) -> None:
    finding = Finding(**row["finding"]) if "finding" in row else None
    ended = EndResult(**{"outcome": "fail", **row.get("ended", {})}, finding=finding)
    name = signature(ended, row.get("operation", "admit"), row.get("invariants", ()))
    assert len(name) <= 160
    SIGNATURES.check(row, {"signature": name, **({"sentence": str(finding)} if finding else {})})


@pytest.mark.parametrize("outcome", sorted(GOOD))
def test_other_results_have_no_signature(outcome: str) -> None:
    assert signature(EndResult(outcome), "admit") == ""  # type: ignore[arg-type]


FOLDER = Path(__file__).parents[1]
TABLES = ("judging/[!ps]*.yaml", "execution/runs.yaml", "doctor/programs.yaml")
PYTHON = re.compile(
    r"\b(?:None|True|False)\b|\b(?:CPUSet|NUMASet|MemoryBlock|Hint|Container)[.(]"
    r"|[\[({]'|'[\])}]|', '|': |\(\d+,\)|frozenset\("
)
"""Python's notation for its own values."""
NO_PYTHON = re.compile(
    r'"(?:[^"\\]|\\.)*(?:"|…)|\bpolicy None\b|\bNone policy\b|refused with \w+ \(.*\)'
    r"|': line 1|a line '.*'"
)
"""Exceptions: JSON, a policy of the Memory Manager, and messages of kubelets and programs."""


def sentences(value: object) -> Iterator[str]:
    """Yields every text in the results of a table."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from sentences(one)


@pytest.mark.parametrize(
    "table",
    [file for one in TABLES for file in sorted(FOLDER.glob(one))],
    ids=lambda path: path.name,
)
def test_no_message_shows_python_reprs(table: Path) -> None:
    rows = [*yaml.load_all(table.read_text("utf-8"), yaml.CSafeLoader)]
    said = [text for row in rows for text in sentences(row["says"])]
    assert [one for one in said if PYTHON.search(NO_PYTHON.sub("", one))] == []
    assert len(said) > len(rows) / 4
