"""What is said of wrong answers: of every seeded bug, whatever it makes of an answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run
from numaproof.conformance.execution.runner import SelectedCase
from numaproof.conformance.selection import quick
from quality import suite
from quality.catalogue import BUGS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PYTHON = re.compile(
    r"\b(?:None|True|False)\b|\b(?:CPUSet|NUMASet|MemoryBlock|Hint|Container)[.(]"
    r"|[\[({]'|'[\])}]|', '|': |\(\d+,\)|frozenset\("
)
"""What Python writes of its own values."""

NO_PYTHON = re.compile(r'"(?:[^"\\]|\\.)*"|\bpolicy None\b|refused with \w+ \(.*\)')
"""Texts in JSON, a policy of the Memory Manager, and the kubelet's own words."""


def said(bugs: dict[str, set[str]], folder: Path) -> Iterator[tuple[str, str]]:
    """What is said of each of these runs of the quick set, with the bug: by case and machine."""
    cases = {case.id: case for case in loading.bundled_cases()}
    machines: dict[str, ProfileMachine] = {}
    known = {bug.id: bug for bug in BUGS}
    number = 0
    for one in quick.bundled():
        wanted = {bug for found in one.catches.values() for bug in found} & bugs.keys()
        for name in sorted(wanted):
            machine = machines.get(one.machine) or ProfileMachine(
                fakesys.load_profile(one.machine), folder
            )
            machines[one.machine] = machine
            selected = SelectedCase.on(machine, cases[one.case])
            for compared in (False, True):
                number += 1
                target = suite.target(
                    known[name].implementation(), one.kubernetes, compared=compared
                )
                run = Run(
                    target,
                    selected.case,
                    selected.info,
                    machine.tree,
                    folder / f"run-{number}",
                )
                run.play()
                sentences = [*map(str, run.player.problems)]
                bugs[name].update(sentences)
                yield from ((name, sentence) for sentence in sentences)


@pytest.mark.parametrize("part", [BUGS[::2], BUGS[1::2]], ids=["even", "odd"])
def test_no_message_shows_a_value_as_python_writes_it(part: tuple, tmp_path: Path) -> None:  # type: ignore[type-arg]
    found: dict[str, set[str]] = {bug.id: set() for bug in part}
    wrong = [
        (name, text)
        for name, text in said(found, tmp_path)
        if PYTHON.search(NO_PYTHON.sub("", text))
    ]
    assert wrong == []
    assert sum(map(bool, found.values())) > len(part) * 0.8
