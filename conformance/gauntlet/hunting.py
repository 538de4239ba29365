"""Looking for a seeded bug: with the table of cases, or by fuzzing with a fixed budget."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from numaproof.conformance import runner
from numaproof.conformance.campaign import Campaign
from numaproof.conformance.fuzz import Budget, fuzz
from numaproof.conformance.implementation import InProcess, introduce
from numaproof.conformance.playing import Target
from numaproof.conformance.scratch import scratch_folder
from numaproof.protocol.events import GOOD, CaseFinished, DivergenceFound
from numaproof.reference.node import Reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numaproof.conformance.cases import Case
    from numaproof.conformance.gauntlet.seeding import Bug
    from numaproof.conformance.implementation import Implementation
    from numaproof.conformance.machines import Machine
    from numaproof.conformance.registry import Registry
    from numaproof.conformance.runner import CaseRun

_AREAS = {
    "discovery": ("discover", "machine"),
    "cpus": ("cpu", "static", "pool", "init", "opt"),
    "memory": ("mem", "node", "error"),
    "devices": ("dev", "node"),
    "topology": ("topo", "node", "hint"),
    "restart": ("check", "restart", "mem-check", "mem-restart", "dev", "node"),
}
"""How the ids of cases begin in which a bug of a subject shows first."""


@dataclass(frozen=True)
class Suite:
    """What bugs are looked for with: the cases, the machines they run on, the requirements."""

    cases: Sequence[Case]
    catalogue: Sequence[Machine]
    registry: Registry

    def by_table(self, bug: Bug, most: int | None = None) -> CaseFinished | None:
        """The first run of a case that fails by a bug; None where all of them stay green.

        Cases that name what the bug breaks come first, then those of its subject; and each on
        one machine before any on another. The reference is not compared with. `most` is how many
        runs are made at the most.
        """
        with closing(bug.implementation()) as implementation, scratch_folder() as scratch:
            campaign = self._campaign(target(implementation, bug.kubernetes))
            runs = self.in_turn(_nearest(bug, self.cases), campaign.target)
            for number, run in enumerate(islice(runs, most)):
                finished = runner.run_case(run, campaign, scratch / str(number))
                if finished.outcome not in GOOD:
                    return finished
        return None

    def by_fuzzing(self, bug: Bug, examples: int, seed: int = 0) -> DivergenceFound | None:
        """What fuzzing finds of a bug within so many examples, shrunk; None where it finds nothing.

        Every answer is compared with that of a healthy reference.
        """
        with closing(bug.implementation()) as implementation, scratch_folder() as scratch:
            campaign = self._campaign(target(implementation, bug.kubernetes, compared=True))
            for event in fuzz(campaign, Budget(examples, None), seed, scratch):
                if isinstance(event, DivergenceFound):
                    return event
        return None

    def _campaign(self, one: Target) -> Campaign:
        return Campaign(one, self.registry, "numaproof gauntlet", one.hello.version)

    def in_turn(self, cases: Iterable[Case], one: Target) -> Iterator[CaseRun]:
        """Each case once, on the first of its machines, then each on its second, and so on."""
        left: list[Iterator[CaseRun]] = [self._runs(case, one) for case in cases]
        while left:
            going = []
            for runs in left:
                run = next(runs, None)
                if run is not None:
                    going.append(runs)
                    yield run
            left = going

    def _runs(self, case: Case, one: Target) -> Iterator[CaseRun]:
        yield from runner.select([case], self.catalogue, one)


def target(
    implementation: Implementation, kubernetes: str | None = None, *, compared: bool = False
) -> Target:
    """An implementation as what it says it is, in the newest release where none is given.

    `compared` holds its answers against a healthy reference's.
    """
    hello = introduce(implementation, "numaproof")
    return Target(
        implementation,
        hello,
        kubernetes or hello.kubernetes[-1],
        hello.level,
        mirror=(lambda: InProcess(Reference)) if compared else None,
    )


def _nearest(bug: Bug, cases: Iterable[Case]) -> list[Case]:
    """The cases, those first that name what the bug breaks, then those of its subject."""

    def distance(case: Case) -> int:
        if {*case.requirements, *case.bugs} & set(bug.models):
            return 0
        return 1 if case.id.startswith(_AREAS[bug.subject]) else 2

    return sorted(cases, key=distance)
