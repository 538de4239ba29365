"""Whoever breaks a requirement, and only it, is caught by a case that cites it, at its level.

A violator lives for the whole run, harness included, and its answers are compared with nothing:
only what the case expects and the invariants count. Cases that a kubelet fails by a named defect
are played on a reference that keeps to the documents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from numaproof.conformance.execution.parallel import ProcessWorker, spread
from numaproof.conformance.execution.run import Run, reference_target
from numaproof.conformance.judging.sides import DOCUMENTED, KUBELET
from numaproof.conformance.seeded_bugs import hunting
from numaproof.conformance.seeded_bugs.catalogue import BUGS
from numaproof.conformance.seeded_bugs.kill_matrix import bundled_suite
from numaproof.conformance.seeded_bugs.violator_catalogue import VIOLATORS
from numaproof.folders.scratch import scratch_folder
from numaproof.protocol.releases import RELEASES
from numaproof.protocol.requirement_proofs import Catch, Proof

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numaproof.conformance.execution.run import Target
    from numaproof.conformance.execution.runner import SelectedCase
    from numaproof.conformance.requirements import Registry, Requirement
    from numaproof.conformance.seeded_bugs.hunting import Suite
    from numaproof.conformance.seeded_bugs.seeding import Bug
    from numaproof.protocol.messages import Level

MOST = 300
"""Case runs for a violator in the release that it is looked for in first, at the most."""

Pair = tuple[str, str]
"""The id of a requirement, and that of a bug that breaks it."""


def pairs(registry: Registry) -> tuple[Pair, ...]:
    """Every tested requirement with each bug that is modelled on it, in the registry's order."""
    return tuple(
        (row.id, bug.id)
        for row in registry.requirements
        if row.tested
        for bug in (*VIOLATORS, *BUGS)
        if row.id in bug.models
    )


def without_violator(registry: Registry) -> tuple[str, ...]:
    """The tested requirements that no bug breaks."""
    broken = {requirement for requirement, _ in pairs(registry)}
    return tuple(row.id for row in registry.requirements if row.tested and row.id not in broken)


@dataclass
class RequirementHunt:
    """Plays the cases of requirements against their violators.

    Attributes:
        suite: the cases, the machines in the order in which a case is tried on them, the registry.
        scratch: an empty place for state directories.
    """

    suite: Suite
    scratch: Path
    _number: int = 0

    def proof(self, pair: Pair) -> Proof:
        """What caught a violator of a requirement."""
        requirement = self.suite.registry.by_id()[pair[0]]
        bug = next(bug for bug in (*VIOLATORS, *BUGS) if bug.id == pair[1])
        runs = 0
        for release, selected in self._runs(requirement, bug):
            runs += 1
            if self._fails(requirement, release, selected, bug):
                catch = Catch(selected.case.id, selected.machine.name, release)
                return Proof(requirement.id, requirement.level, bug.id, runs, catch)
        return Proof(requirement.id, requirement.level, bug.id, runs)

    def _runs(self, requirement: Requirement, bug: Bug) -> Iterator[tuple[str, SelectedCase]]:
        """The runs of the cases that cite it.

        First on all machines in the bug's own release, which is the newest where it has none; then
        in each other release on the first machine of each case.
        """
        cases = [case for case in self.suite.cases if requirement.id in case.requirements]
        own = bug.kubernetes or RELEASES[-1]
        turns = hunting.in_turn(cases, self.suite.catalogue, _target(own, requirement.level))
        yield from ((own, selected) for selected in islice(turns, MOST))
        for release in reversed(RELEASES):
            if release != own:
                one = _target(release, requirement.level)
                for selected in hunting.firsts(cases, self.suite.catalogue, one):
                    yield release, selected

    def _fails(
        self, requirement: Requirement, release: str, selected: SelectedCase, bug: Bug
    ) -> bool:
        """Whether the violator fails a run that a healthy reference passes."""
        try:
            with bug.seeded():
                outcome = self._outcome(requirement, release, selected)
        except Exception as error:
            error.add_note(f"the violator {bug.id} broke the harness in {selected.case.id}")
            raise
        return outcome == "fail" and self._outcome(requirement, release, selected) == "pass"

    def _outcome(self, requirement: Requirement, release: str, selected: SelectedCase) -> str:
        documented = selected.case.defect is not None
        target = _target(release, requirement.level, documented=documented)
        self._number += 1
        folder = self.scratch / f"run-{self._number}"
        run = Run(target, selected.case, selected.info, selected.machine.tree, folder)
        return run.play().outcome


def _target(release: str, level: Level, *, documented: bool = False) -> Target:
    side = DOCUMENTED if documented else KUBELET
    return replace(reference_target(release, side), level=level, oracle=None)


def proofs(wanted: Sequence[Pair], jobs: int) -> Iterator[Proof]:
    """The proof of each pair, as they come, made by so many processes."""
    with scratch_folder() as scratch:
        workers = [
            ProcessWorker(_prover, scratch / str(number))
            for number in range(min(jobs, len(wanted)))
        ]
        yield from spread(wanted, workers)


def _prover(scratch: Path) -> Callable[[Pair], Proof]:
    """Makes the function that proves a pair, in a process of its own."""
    return RequirementHunt(bundled_suite(scratch), scratch / "runs").proof


def in_order(found: Iterable[Proof], registry: Registry) -> tuple[Proof, ...]:
    """The proofs in the order of the registry, whatever order they came in."""
    place = {pair: number for number, pair in enumerate(pairs(registry))}
    return tuple(sorted(found, key=lambda proof: place[proof.requirement, proof.violator]))
