"""The quick set: few case runs that still catch every seeded bug (`numaproof check --quick`).

``quick.yaml`` holds it. `python -m quality quick-set` makes that file anew.
"""

from __future__ import annotations

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
        kubernetes: the release in which it catches what `catches` names.
        catches: seeded bugs, by the level of comparison at which this run was chosen for them. A
            run of a lower level is also a run of every level above it.
    """

    case: str
    machine: str
    kubernetes: str
    catches: dict[Level, tuple[str, ...]]


class QuickSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form of the file."""

    runs: tuple[QuickRun, ...]


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
    """The runs of the quick set of these cases on these machines, as far as they apply.

    Where the target does not claim what runs of the set need, others take their places, each on a
    small machine: first one for each requirement that is left without a run, then the longest.
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
    return asked + _substitutes(asked, cases, machines, target)


def _substitutes(
    selected_runs: Sequence[SelectedCase],
    cases: Sequence[Case],
    machines: Sequence[ProfileMachine],
    target: Target,
) -> list[SelectedCase]:
    """What takes the places of runs that cannot be asked."""
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


_ROOM = range(8, 65)
"""CPUs of a small machine: fewer leave no room for much to go wrong, more take long to read."""


def _small(case: Case, machines: Sequence[ProfileMachine], target: Target) -> SelectedCase | None:
    """A case on a small machine that it applies to, which still has some room if one has."""
    by_size = sorted(machines, key=lambda machine: (machine.cpus not in _ROOM, machine.cpus))
    runs = (run for one in by_size for run in runner.select([case], [one], target))
    return next(runs, None)


def _is_askable(case: Case, target: Target) -> bool:
    """Whether the target claims all that a case needs."""
    needs = of_case(case.id)
    if needs is None:
        return not target.command
    try:
        target.capabilities.require(needs)
    except NotSupportedError:
        return False
    return True
