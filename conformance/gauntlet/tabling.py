"""The table of cases against a seeded bug: every case once, or until one catches it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING

from numaproof.conformance.gauntlet import hunting, rehearsing
from numaproof.conformance.gauntlet.rehearsing import Noting, Rehearsal
from numaproof.conformance.implementation import InProcess
from numaproof.conformance.playing import Playing
from numaproof.protocol.machine import MachineInfo
from numaproof.reference.node import Reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numaproof.conformance.gauntlet.hunting import Suite
    from numaproof.conformance.gauntlet.seeding import Bug
    from numaproof.conformance.playing import Target
    from numaproof.conformance.runner import CaseRun

MOST = 3000
"""Case runs for a bug at the most."""


@dataclass(frozen=True)
class Caught:
    """How the table ended.

    Attributes:
        runs: case runs that were made.
        cases: the ids of those that failed, in the order of the table.
        invariants: that broke in them, by name.
        seconds: that it took.
    """

    runs: int
    cases: tuple[str, ...]
    invariants: tuple[str, ...]
    seconds: float


@dataclass
class Table:
    """Plays the cases of a suite against references with bugs.

    Attributes:
        suite: the cases, and the machines in the order in which a case is tried on them.
        scratch: an empty place for state directories.
    """

    suite: Suite
    scratch: Path
    _kept: dict[str, list[tuple[CaseRun, Rehearsal]]] = field(default_factory=dict)
    _number: int = 0

    def played(self) -> tuple[str, ...]:
        """The ids of the cases that are played: those that apply to a machine."""
        target = hunting.target(InProcess(Reference))
        runs = hunting.firsts(self.suite.cases, self.suite.catalogue, target)
        return tuple(run.case.id for run in runs)

    def hunt(self, bug: Bug, *, whole: bool) -> Caught:
        """Looks for a bug with every case on its first machine; then, until it is caught, on more.

        Without `whole` the first case that catches it is the last; the nearest come first.
        """
        began = time.monotonic()
        target = hunting.target(bug.implementation(), bug.kubernetes)
        firsts = self._firsts(bug.kubernetes)
        if not whole:
            near = {case.id: at for at, case in enumerate(hunting.nearest(bug, self.suite.cases))}
            firsts = sorted(firsts, key=lambda one: near[one[0].case.id])
        cases: list[str] = []
        broken: dict[str, None] = {}
        runs = 0
        for run, rehearsal in islice(chain(firsts, self._others(bug, target)), MOST):
            if runs >= len(firsts) and cases:
                break
            runs += 1
            if not rehearsal.good or not rehearsal.differs(bug):
                continue
            playing = self._playing(target, run)
            if playing.play().good:
                continue
            cases.append(run.case.id)
            broken.update((one.invariant, None) for one in playing.player.violations)
            if not whole:
                break
        return Caught(runs, tuple(cases), tuple(sorted(broken)), time.monotonic() - began)

    def _firsts(self, kubernetes: str | None) -> list[tuple[CaseRun, Rehearsal]]:
        """Every case on the first machine that it applies to, played on a healthy reference."""
        target = hunting.target(InProcess(Reference), kubernetes)
        kept = self._kept.get(target.kubernetes)
        if kept is None:
            runs = hunting.firsts(self.suite.cases, self.suite.catalogue, target)
            kept = list(self._rehearsed(runs, target))
            self._kept[target.kubernetes] = kept
        return kept

    def _others(self, bug: Bug, target: Target) -> Iterator[tuple[CaseRun, Rehearsal]]:
        """The cases on their other machines, the nearest first."""
        cases = hunting.nearest(bug, self.suite.cases)
        runs = hunting.others(cases, self.suite.catalogue, target)
        yield from self._rehearsed(runs, hunting.target(InProcess(Reference), bug.kubernetes))

    def _rehearsed(
        self, runs: Iterable[CaseRun], target: Target
    ) -> Iterator[tuple[CaseRun, Rehearsal]]:
        for run in runs:
            noting = Noting(InProcess(Reference))
            info = run.machine.info or MachineInfo()
            yield (
                run,
                rehearsing.of_case(
                    target, noting, run.case, info, run.machine.tree, self._folder()
                ),
            )

    def _playing(self, target: Target, run: CaseRun) -> Playing:
        info = run.machine.info or MachineInfo()
        return Playing(target, run.case, info, run.machine.tree, self._folder())

    def _folder(self) -> Path:
        self._number += 1
        return self.scratch / f"case-{self._number}"
