"""Looking for a seeded bug: with the table of cases, or by fuzzing with a fixed budget."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from numaproof.conformance.execution import runner
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.execution.implementation import handshake
from numaproof.conformance.execution.run import Target, reference
from numaproof.conformance.fuzzing.fuzz import fuzz
from numaproof.conformance.fuzzing.fuzz_options import Budget
from numaproof.folders.scratch import scratch_folder
from numaproof.protocol.events import GOOD, CaseFinished, DivergenceFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.implementation import Implementation
    from numaproof.conformance.execution.machines import ProfileMachine
    from numaproof.conformance.execution.runner import SelectedCase
    from numaproof.conformance.requirements import Registry
    from numaproof.conformance.seeded_bugs.seeding import Bug

_AREAS = {
    "discovery": ("discover", "machine"),
    "configuration": ("config", "mem-config", "mem-reserve", "gate", "topo-error", "static"),
    "refusals": ("config", "mem-config", "reserve", "error", "gate", "topo-error", "topo-order"),
    "none": ("none", "mem-none", "config", "mem-checkpoint"),
    "cpus": ("cpu", "static", "pool", "init", "opt"),
    "memory": ("mem", "node", "error"),
    "devices": ("dev", "node"),
    "topology": ("topo", "node", "hint"),
    "merging": ("topo-merge", "topo", "node"),
    "readings": ("static", "init", "hint", "topo-scope"),
    "restart": ("check", "restart", "mem-check", "mem-restart", "dev", "node"),
    "pod-level": ("podlevel-", "static-"),
}
"""How the ids of cases begin in which a bug of a subject shows first."""


MACHINES = (
    "laptop-4c8t",
    "xeon-gold-6230-2s",
    "xeon-gold-6230-2s-snc2",
    "hugepages-2s",
    "epyc-12-nodes",
    "core-i7-9700",
    "epyc-7402p-nosmt",
    "offline-half-cores",
    "offline-node",
    "memoryless-node",
    "pentium-4-i386",
    "sparse-nodes",
    "xeon-x5650-2s-1-node",
    "kunpeng-920-2s",
    "xeon-phi-7250-snc4",
)
"""Machines of different shapes, few enough to be quick; nearly every case applies to one."""


@dataclass(frozen=True)
class Suite:
    """What bugs are looked for with: the cases, the machines they run on, the requirements."""

    cases: Sequence[Case]
    catalogue: Sequence[ProfileMachine]
    registry: Registry

    def by_table(self, bug: Bug, most: int | None = None) -> CaseFinished | None:
        """The first run of a case that fails by a bug; None where all of them stay green.

        Cases that name what the bug breaks come first, then those of its subject; and each on
        one machine before any on another. The reference is not compared with. `most` is how many
        runs are made at the most.
        """
        with closing(bug.implementation()) as implementation, scratch_folder() as scratch:
            harness_run = self._harness_run(target(implementation, bug.kubernetes))
            runs = in_turn(nearest(bug, self.cases), self.catalogue, harness_run.target)
            for number, run in enumerate(islice(runs, most)):
                finished = runner.run_case(run, harness_run, scratch / str(number))
                if finished.outcome not in GOOD:
                    return finished
        return None

    def by_fuzzing(self, bug: Bug, examples: int, seed: int = 0) -> DivergenceFound | None:
        """What fuzzing finds of a bug within so many examples, shrunk; None where it finds nothing.

        Every answer is compared with that of a healthy reference.
        """
        with closing(bug.implementation()) as implementation, scratch_folder() as scratch:
            harness_run = self._harness_run(target(implementation, bug.kubernetes, compared=True))
            for event in fuzz(harness_run, Budget(examples, None), seed, scratch):
                if isinstance(event, DivergenceFound):
                    return event
        return None

    def _harness_run(self, one: Target) -> HarnessRun:
        return HarnessRun(one, self.registry, "numaproof gauntlet", one.hello.version)


def in_turn(
    cases: Iterable[Case], catalogue: Sequence[ProfileMachine], one: Target
) -> Iterator[SelectedCase]:
    """Each case once, on the first of its machines, then each on its second, and so on."""
    left: list[Iterator[SelectedCase]] = [
        iter(runner.select([case], catalogue, one)) for case in cases
    ]
    while left:
        going = []
        for runs in left:
            run = next(runs, None)
            if run is not None:
                going.append(runs)
                yield run
        left = going


def firsts(
    cases: Iterable[Case], catalogue: Sequence[ProfileMachine], one: Target
) -> Iterator[SelectedCase]:
    """Each case on the first of its machines; none of a case that has none."""
    for case in cases:
        yield from runner.select([case], catalogue, one)[:1]


def others(
    cases: Iterable[Case], catalogue: Sequence[ProfileMachine], one: Target
) -> Iterator[SelectedCase]:
    """Each case on the second of its machines, then each on its third, and so on."""
    seen: set[str] = set()
    for run in in_turn(cases, catalogue, one):
        if run.case.id in seen:
            yield run
        seen.add(run.case.id)


def target(
    implementation: Implementation, kubernetes: str | None = None, *, compared: bool = False
) -> Target:
    """An implementation as what it says it is, in the newest release where none is given.

    `compared` holds its answers against a healthy reference's.
    """
    hello = handshake(implementation, "numaproof")
    return Target(
        implementation,
        hello,
        kubernetes or hello.kubernetes[-1],
        hello.level,
        oracle=reference if compared else None,
    )


def nearest(bug: Bug, cases: Iterable[Case]) -> list[Case]:
    """The cases, those first that name what the bug breaks, then those of its subject."""
    return sorted(cases, key=lambda case: _distance(bug, case))


def far_from(bug: Bug, cases: Iterable[Case]) -> set[str]:
    """The ids of the cases that neither name what the bug breaks nor are of its subject."""
    return {case.id for case in cases if _distance(bug, case) == _FAR}


_FAR = 2


def _distance(bug: Bug, case: Case) -> int:
    if {*case.requirements, *case.bugs} & set(bug.models):
        return 0
    return 1 if case.id.startswith(_AREAS[bug.subject]) else _FAR
