"""What bugs are looked for with: cases and machines, those first that are near to the bug."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.implementation import handshake
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Target, reference
from numaproof.conformance.requirements import load_registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.implementation import Implementation
    from numaproof.conformance.execution.runner import SelectedCase
    from numaproof.conformance.requirements import Registry
    from quality.seeding import Bug

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


def bundled_suite(folder: Path) -> Suite:
    """All cases, and all machines, the quick ones first; `folder` is for their trees."""
    others = [name for name in fakesys.bundled_profiles() if name not in MACHINES]
    machines = [ProfileMachine(fakesys.load_profile(name), folder) for name in (*MACHINES, *others)]
    return Suite(loading.bundled_cases(), machines, load_registry())


def in_turn(
    cases: Iterable[Case], catalogue: Sequence[ProfileMachine], run_target: Target
) -> Iterator[SelectedCase]:
    """Each case once, on the first of its machines, then each on its second, and so on."""
    left: list[Iterator[SelectedCase]] = [
        iter(runner.select([case], catalogue, run_target)) for case in cases
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
    cases: Iterable[Case], catalogue: Sequence[ProfileMachine], run_target: Target
) -> Iterator[SelectedCase]:
    """Each case on the first of its machines; none of a case that has none."""
    for case in cases:
        yield from runner.select([case], catalogue, run_target)[:1]


def others(
    cases: Iterable[Case], catalogue: Sequence[ProfileMachine], run_target: Target
) -> Iterator[SelectedCase]:
    """Each case on the second of its machines, then each on its third, and so on."""
    seen: set[str] = set()
    for run in in_turn(cases, catalogue, run_target):
        if run.case.id in seen:
            yield run
        seen.add(run.case.id)


def target(
    implementation: Implementation, kubernetes: str | None = None, *, with_oracle: bool = False
) -> Target:
    """An implementation as what it says it is, in the newest release where none is given.

    `with_oracle` holds its answers against a healthy reference's.
    """
    hello = handshake(implementation, "numaproof")
    return Target(
        implementation,
        hello,
        kubernetes or hello.kubernetes[-1],
        hello.level,
        oracle=reference if with_oracle else None,
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
