"""How large the enumerated cases get, and the parts of what is enumerated.

Parts come in ascending order of size, so the first counterexample of a cause is the smallest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from numaproof.conformance.exhaustion.kinds import ASSIGNMENTS, LIVES, MERGES
from numaproof.conformance.exhaustion.lives import Lives, plain_shapes
from numaproof.conformance.exhaustion.setups import (
    CPU_SETUPS,
    DEVICE_SETUPS,
    FEW_CPU_SETUPS,
    FEW_DEVICE_SETUPS,
    FEW_MEMORY_SETUPS,
    MEMORY_SETUPS,
)
from numaproof.conformance.exhaustion.shapes import shapes
from numaproof.conformance.exhaustion.stateless import MachineAssignments, Merges, merges
from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numaproof.conformance.exhaustion.setups import Setup
    from numaproof.reference.deviations.releases import Release

Part = MachineAssignments | Merges | Lives
"""What is enumerated together: all assignments on a machine, merges of a policy, or lives."""


class MergesSize(NamedTuple):
    """Merges with this number of nodes and providers, and up to this number of hints each."""

    nodes: int
    providers: int
    hints: int

    def __str__(self) -> str:
        return (
            f"{plural(self.nodes, 'node')}, {plural(self.providers, 'provider')},"
            f" up to {plural(self.hints, 'hint')} each"
        )


class LivesSize(NamedTuple):
    """Lives with these setups, and the most CPUs of a machine and actions after the first start."""

    subject: str
    setups: tuple[Setup, ...]
    cpus: int
    actions: int

    def __str__(self) -> str:
        return (
            f"{self.subject}: {plural(len(self.setups), 'configuration')}, up to"
            f" {plural(self.cpus, 'CPU')} and {plural(self.actions, 'action')}"
        )


@dataclass(frozen=True)
class Bound:
    """The size of what is enumerated.

    Attributes:
        name: its name in options and reports.
        cpus: the most CPUs of a machine, for assignments.
        merges: the sizes of merges.
        lives: the sizes of lives.
    """

    name: str
    cpus: int
    merges: tuple[MergesSize, ...]
    lives: tuple[LivesSize, ...]

    def sentence(self, kind: str) -> str:
        """What a kind covers, such as "every assignment on machines of up to 4 CPUs"."""
        if kind == ASSIGNMENTS:
            return f"every assignment on machines of up to {plural(self.cpus, 'CPU')}"
        singular, sizes = ("merge", self.merges) if kind == MERGES else ("life", self.lives)
        return f"every {singular} ({'; '.join(map(str, sizes))})"

    def parts(self, kind: str, rules: Release) -> Iterator[Part]:
        """Yields the parts of a kind, in ascending order of size.

        Args:
            kind: one of `KINDS`.
            rules: the release whose options, policies and rules apply.
        """
        return _PARTS[kind](self, rules)


_MIRRORED = 10
"""One in this many machines is also enumerated with its parts in reverse order."""


def _assignments(bound: Bound, rules: Release) -> Iterator[Part]:
    for cpus in range(1, bound.cpus + 1):
        for number, shape in enumerate(shapes(cpus)):
            yield MachineAssignments(shape, rules)
            if number % _MIRRORED == 0 and shape.mirror != shape:
                yield MachineAssignments(shape.mirror, rules)


def _merges(bound: Bound, rules: Release) -> Iterator[Part]:
    for size in bound.merges:
        yield from merges(*size, rules)


def _lives(bound: Bound, _: Release) -> Iterator[Part]:
    for size in bound.lives:
        for cpus in range(1, size.cpus + 1):
            for shape in plain_shapes(cpus):
                for setup in size.setups:
                    yield Lives(shape, setup, size.actions)


_PARTS: Mapping[str, Callable[[Bound, Release], Iterator[Part]]] = {
    ASSIGNMENTS: _assignments,
    MERGES: _merges,
    LIVES: _lives,
}


def _sizes(
    cpus: tuple[int, int], memory: tuple[int, int], devices: tuple[int, int], *, few: bool = False
) -> tuple[LivesSize, ...]:
    """The sizes of lives: for each manager, the most CPUs and actions."""
    return (
        LivesSize("Memory Manager", FEW_MEMORY_SETUPS if few else MEMORY_SETUPS, *memory),
        LivesSize("Device Manager", FEW_DEVICE_SETUPS if few else DEVICE_SETUPS, *devices),
        LivesSize("CPU Manager", FEW_CPU_SETUPS if few else CPU_SETUPS, *cpus),
    )


_SMALL = Bound(
    "small",
    4,
    (MergesSize(2, 2, 8), MergesSize(3, 2, 2)),
    _sizes(cpus=(3, 3), memory=(2, 3), devices=(1, 4), few=True),
)
_MEDIUM = Bound(
    "medium",
    5,
    (MergesSize(2, 2, 8), MergesSize(2, 3, 2), MergesSize(3, 2, 3)),
    _sizes(cpus=(4, 3), memory=(3, 3), devices=(2, 4)),
)
_LARGE = Bound(
    "large",
    6,
    (MergesSize(2, 3, 3), MergesSize(3, 2, 4), MergesSize(4, 2, 2)),
    _sizes(cpus=(4, 4), memory=(3, 4), devices=(2, 5)),
)
BOUNDS = {bound.name: bound for bound in (_SMALL, _MEDIUM, _LARGE)}
"""The bounds that commands offer."""
