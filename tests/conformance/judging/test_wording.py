"""What is said of wrong answers shows no value as Python writes it, in any table of tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[1]
TABLES = ("judging/[!ps]*.yaml", "execution/runs.yaml", "diagnosis/programs.yaml")
PYTHON = re.compile(
    r"\b(?:None|True|False)\b|\b(?:CPUSet|NUMASet|MemoryBlock|Hint|Container)[.(]"
    r"|[\[({]'|'[\])}]|', '|': |\(\d+,\)|frozenset\("
)
"""What Python writes of its own values."""
NO_PYTHON = re.compile(
    r'"(?:[^"\\]|\\.)*(?:"|…)|\bpolicy None\b|refused with \w+ \(.*\)|\': line 1|a line \'.*\''
)
"""Texts in JSON, a policy of the Memory Manager, and words of kubelets and of programs."""


def sentences(said: object) -> Iterator[str]:
    """Every text in what a table says."""
    if isinstance(said, str):
        yield said
    elif isinstance(said, dict | list):
        for one in said.values() if isinstance(said, dict) else said:
            yield from sentences(one)


@pytest.mark.parametrize(
    "table", [file for one in TABLES for file in sorted(FOLDER.glob(one))], ids=lambda one: one.name
)
def test_no_message_shows_a_value_as_python_writes_it(table: Path) -> None:
    rows = [*yaml.load_all(table.read_text("utf-8"), yaml.CSafeLoader)]
    said = [text for row in rows for text in sentences(row["says"])]
    assert [one for one in said if PYTHON.search(NO_PYTHON.sub("", one))] == []
    assert len(said) > len(rows) / 4
