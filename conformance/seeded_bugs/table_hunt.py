"""The table of cases against a seeded bug: every case once, or until one catches it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run
from numaproof.conformance.seeded_bugs import baseline, hunting
from numaproof.conformance.seeded_bugs.baseline import Baseline, Noting
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.messages import LEVELS
from numaproof.protocol.releases import RELEASES
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.execution.run import Target
    from numaproof.conformance.execution.runner import SelectedCase
    from numaproof.conformance.seeded_bugs.hunting import Suite
    from numaproof.conformance.seeded_bugs.seeding import Bug
    from numaproof.protocol.messages import Level

MOST = 3000
"""Case runs for a bug at the most."""


@dataclass(frozen=True)
class Kill:
    """A case run that catches a bug.

    Attributes:
        case: the id of the case.
        machine: the name of the machine.
        kubernetes: the release.
        levels: the levels of comparison at which it does; never empty.
        calls: how many calls it makes.
    """

    case: str
    machine: str
    kubernetes: str
    levels: tuple[Level, ...]
    calls: int


@dataclass(frozen=True)
class TableHuntResult:
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
class TableHunt:
    """Plays the cases of a suite against references with bugs.

    Attributes:
        suite: the cases, and the machines in the order in which a case is tried on them.
        scratch: an empty place for state directories.
    """

    suite: Suite
    scratch: Path
    _kept: dict[tuple[str, str], Baseline] = field(default_factory=dict)
    _runs: dict[str, list[tuple[str, SelectedCase]]] = field(default_factory=dict)
    _number: int = 0

    def played(self) -> tuple[str, ...]:
        """The ids of the cases that are played and could catch a bug.

        A case that a kubelet fails by a named defect could not: that defect is its bug.
        """
        runs = self._firsts(hunting.target(InProcess(Reference)).kubernetes)
        return tuple(selected.case.id for _, selected in runs if selected.case.defect is None)

    def hunt(self, bug: Bug, *, whole: bool) -> TableHuntResult:
        """Looks for a bug with every case on its first machine; then, until it is caught, on more.

        Without `whole` the first case that catches it is the last; the nearest come first.
        """
        began = time.monotonic()
        target = hunting.target(bug.implementation(), bug.kubernetes)
        near = hunting.nearest(bug, self.suite.cases)
        firsts = self._firsts(target.kubernetes)
        if not whole:
            place = {case.id: number for number, case in enumerate(near)}
            firsts = sorted(firsts, key=lambda turn: place[turn[1].case.id])
        more = hunting.others(near, self.suite.catalogue, target)
        others = ((target.kubernetes, selected) for selected in more)
        cases: list[str] = []
        broken: dict[str, None] = {}
        runs = 0
        for release, selected in islice(chain(firsts, others), MOST):
            if cases and (runs >= len(firsts) or not whole):
                break
            healthy = self._baseline(selected, release, keep=runs < len(firsts))
            runs += 1
            if not healthy.good or not healthy.differs(bug):
                continue
            seeded = self._run(replace(target, kubernetes=release), selected)
            if not seeded.play().good:
                cases.append(selected.case.id)
                broken.update((one.invariant, None) for one in seeded.player.violations)
        return TableHuntResult(runs, tuple(cases), tuple(sorted(broken)), time.monotonic() - began)

    def kills(self, bug: Bug) -> tuple[Kill, ...]:
        """The case runs that catch a bug, each at every level of comparison.

        Every case that is near to the bug is played on its first machine. Where none of them
        catches it, others are played until one does.
        """
        target = hunting.target(bug.implementation(), bug.kubernetes)
        firsts = self._firsts(target.kubernetes)
        far = hunting.far_from(bug, self.suite.cases)
        near = [one for one in firsts if one[1].case.id not in far]
        rest = [one for one in firsts if one[1].case.id in far]
        more = hunting.others(hunting.nearest(bug, self.suite.cases), self.suite.catalogue, target)
        others = ((target.kubernetes, selected) for selected in more)
        found: list[Kill] = []
        for number, (release, selected) in enumerate(chain(near, rest, islice(others, MOST))):
            if found and number >= len(near):
                break
            keep = number < len(firsts)
            found += self._kill(bug, replace(target, kubernetes=release), selected, keep=keep)
        return tuple(found)

    def _kill(self, bug: Bug, target: Target, selected: SelectedCase, *, keep: bool) -> list[Kill]:
        healthy = self._baseline(selected, target.kubernetes, keep=keep)
        if not healthy.good or not healthy.differs(bug):
            return []
        seeded = self._run(target, selected)
        if seeded.play().good:
            return []
        below = (
            level
            for level in LEVELS[: LEVELS.index(target.level)]
            if applies(selected.case.level, level)
            and not self._run(replace(target, level=level), selected).play().good
        )
        calls = len(seeded.player.session.calls)
        levels = (*below, target.level)
        return [Kill(selected.case.id, selected.machine.name, target.kubernetes, levels, calls)]

    def _firsts(self, kubernetes: str) -> list[tuple[str, SelectedCase]]:
        """Every case on the first machine that it applies to, with the release.

        Those that do not apply to `kubernetes` are played in the newest release that they do.
        """
        known = self._runs.get(kubernetes)
        if known is None:
            found: dict[str, tuple[str, SelectedCase]] = {}
            for release in (kubernetes, *reversed(RELEASES)):
                left = [case for case in self.suite.cases if case.id not in found]
                target = hunting.target(InProcess(Reference), release)
                for selected in hunting.firsts(left, self.suite.catalogue, target):
                    found[selected.case.id] = release, selected
            known = [found[case.id] for case in self.suite.cases if case.id in found]
            self._runs[kubernetes] = known
        return known

    def _baseline(self, selected: SelectedCase, kubernetes: str, *, keep: bool) -> Baseline:
        """What a healthy reference answers; kept where other bugs will need it too."""
        place = (kubernetes, selected.case.id)
        if keep and place in self._kept:
            return self._kept[place]
        target = hunting.target(InProcess(Reference), kubernetes)
        noting = Noting(InProcess(Reference))
        info = selected.machine.info or MachineInfo()
        made = baseline.of_case(
            target, noting, selected.case, info, selected.machine.tree, self._folder()
        )
        if keep:
            self._kept[place] = made
        return made

    def _run(self, target: Target, selected: SelectedCase) -> Run:
        info = selected.machine.info or MachineInfo()
        return Run(target, selected.case, info, selected.machine.tree, self._folder())

    def _folder(self) -> Path:
        self._number += 1
        return self.scratch / f"case-{self._number}"
