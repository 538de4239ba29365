"""The quick set: a few case runs that catch every seeded bug (`numaproof check --quick`).

It is in ``quick.yaml``, which is written by `python -m quality quick-set`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.execution import runner
from numaproof.conformance.execution.capabilities import NotSupportedError
from numaproof.conformance.selection.needs import of_case
from numaproof.inputs import documents, typed
from numaproof.protocol.messages import Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.machines import ProfileMachine
    from numaproof.conformance.execution.run import Target
    from numaproof.conformance.execution.runner import SelectedCase

FILE = "quick.yaml"


class QuickRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A case run of the quick set.

    Attributes:
        case: the id of the case.
        machine: the name of the machine.
        kubernetes: the release in which the run catches the bugs.
        catches: the seeded bugs for which the run was chosen, by level of comparison. A run chosen
            for a lower level is also part of every higher level.
    """

    case: str
    machine: str
    kubernetes: str
    catches: dict[Level, tuple[str, ...]]


class QuickSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The schema of ``quick.yaml``."""

    runs: tuple[QuickRun, ...]


@cache
def bundled_runs() -> tuple[QuickRun, ...]:
    """The quick set of the bundled cases.

    Raises:
        documents.DocumentError: the file is damaged.
    """
    file = resources.files("numaproof.conformance") / FILE
    document = documents.load(file.read_text(encoding="utf-8"), file=f"conformance/{FILE}")
    return typed.convert(document, QuickSet).runs


def select(
    cases: Sequence[Case], machines: Sequence[ProfileMachine], target: Target
) -> list[SelectedCase]:
    """The applicable runs of the quick set among these cases and machines.

    If the target doesn't make the claims that a run needs, runs on small machines replace it:
    first, one for each untested requirement, and then the longest cases. Claims that no seeded bug
    needs, such as what only a whole kubelet does, add a run for each of their requirements.
    """
    names: dict[str, set[str]] = {}
    for one in bundled_runs():
        names.setdefault(one.case, set()).add(one.machine)
    asked = [
        run
        for case in cases
        if case.id in names and _is_askable(case, target)
        for run in runner.select(
            [case], [one for one in machines if one.name in names[case.id]], target
        )
    ]
    asked += _substitutes(asked, cases, machines, target)
    return asked + _of_unseeded_claims(asked, cases, machines, target)


def _substitutes(
    selected_runs: Sequence[SelectedCase],
    cases: Sequence[Case],
    machines: Sequence[ProfileMachine],
    target: Target,
) -> list[SelectedCase]:
    """Replaces runs whose claims the target doesn't make."""
    free = len(bundled_runs()) - len(selected_runs)
    found: dict[str, SelectedCase] = {}
    shown = {row for run in selected_runs for row in run.case.requirements}
    left = {case.id: case for case in cases} if free else {}
    for run in selected_runs:
        left.pop(run.case.id, None)

    def take(case: Case) -> None:
        if len(found) < free and _is_askable(case, target):
            small = _small(case, machines, target)
            if small is not None:
                found[case.id] = small
                shown.update(case.requirements)

    by_length = sorted(left.values(), key=lambda case: (len(case.steps), case.id))
    for case in by_length:
        if not shown.issuperset(case.requirements):
            take(case)
    for case in reversed(by_length):
        if case.id not in found:
            take(case)
    return list(found.values())


def _of_unseeded_claims(
    selected_runs: Sequence[SelectedCase],
    cases: Sequence[Case],
    machines: Sequence[ProfileMachine],
    target: Target,
) -> list[SelectedCase]:
    """Returns runs for the untested requirements of claims that no bundled run needs."""
    unseeded = target.capabilities.claims - {
        need for run in bundled_runs() for need in of_case(run.case) or ()
    }
    if not unseeded:
        return []
    shown = {row for run in selected_runs for row in run.case.requirements}
    found = []
    for case in sorted(cases, key=lambda case: (len(case.steps), case.id)):
        if shown.issuperset(case.requirements) or unseeded.isdisjoint(of_case(case.id) or ()):
            continue
        small = _small(case, machines, target) if _is_askable(case, target) else None
        if small is not None:
            found.append(small)
            shown.update(case.requirements)
    return found


_ROOM = range(8, 65)
"""CPU counts of a small machine. Little can go wrong on smaller ones; larger ones are hard to read.
"""


def _small(case: Case, machines: Sequence[ProfileMachine], target: Target) -> SelectedCase | None:
    """The case on the smallest applicable machine, preferably one within `_ROOM`."""
    by_size = sorted(machines, key=lambda machine: (machine.cpus not in _ROOM, machine.cpus))
    runs = (run for one in by_size for run in runner.select([case], [one], target))
    return next(runs, None)


def _is_askable(case: Case, target: Target) -> bool:
    """Whether the target makes all claims that a case needs."""
    needs = of_case(case.id)
    if needs is None:
        return not target.command
    try:
        target.capabilities.require(needs)
    except NotSupportedError:
        return False
    return True
