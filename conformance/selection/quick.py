"""The quick set: few case runs that still catch every seeded bug (`numaproof check --quick`).

``quick.yaml`` holds it. `numaproof gauntlet --quick-set` makes that file anew.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.execution import runner
from numaproof.fakesys import documents
from numaproof.protocol.messages import Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


def bundled() -> tuple[QuickRun, ...]:
    """The quick set of the bundled cases.

    Raises:
        documents.DocumentError: the file is damaged.
    """
    file = resources.files("numaproof.conformance") / FILE
    document = documents.load(file.read_text(encoding="utf-8"), file=f"conformance/{FILE}")
    return documents.convert(document, QuickSet).runs


def select(
    cases: Iterable[Case], machines: Sequence[ProfileMachine], target: Target
) -> list[SelectedCase]:
    """The runs of the quick set of these cases on these machines, as far as they apply."""
    names: dict[str, set[str]] = {}
    for one in bundled():
        names.setdefault(one.case, set()).add(one.machine)
    return [
        run
        for case in cases
        if case.id in names
        for run in runner.select(
            [case], [one for one in machines if one.name in names[case.id]], target
        )
    ]
