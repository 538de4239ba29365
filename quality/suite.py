"""The cases and machines that are used to find bugs, sorted by how close they are to the bug."""

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
    "lifecycle": (
        *("dev-remove-", "dev-restart-", "mem-remove-", "mem-restart-"),
        *("node-end-", "node-restart-", "remove-", "restart-"),
    ),
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
"""The prefixes of the ids of cases that are most likely to catch a bug, by its subject."""


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
"""A few fast machines of different shapes. Nearly every case applies to one of them."""


@dataclass(frozen=True)
class Suite:
    """The cases, the machines they run on, and the requirements."""

    cases: Sequence[Case]
    catalogue: Sequence[ProfileMachine]
    registry: Registry


def bundled_suite(folder: Path) -> Suite:
    """Returns all cases and all machines, fast ones first, with their trees in `folder`."""
    others = [name for name in fakesys.bundled_profiles() if name not in MACHINES]
    machines = [ProfileMachine(fakesys.load_profile(name), folder) for name in (*MACHINES, *others)]
    return Suite(loading.bundled_cases(), machines, load_registry())


def in_turn(
    cases: Iterable[Case], catalogue: Sequence[ProfileMachine], run_target: Target
) -> Iterator[SelectedCase]:
    """Yields each case on its first machine, then each on its second, and so on."""
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
    """Yields each case on its first machine; skips cases that apply to none."""
    for case in cases:
        yield from runner.select([case], catalogue, run_target)[:1]


def others(
    cases: Iterable[Case], catalogue: Sequence[ProfileMachine], run_target: Target
) -> Iterator[SelectedCase]:
    """Yields each case on its second machine, then on its third, and so on."""
    seen: set[str] = set()
    for run in in_turn(cases, catalogue, run_target):
        if run.case.id in seen:
            yield run
        seen.add(run.case.id)


def target(
    implementation: Implementation, kubernetes: str | None = None, *, with_oracle: bool = False
) -> Target:
    """Returns an implementation as a target, by default with its newest release.

    With `with_oracle`, its answers are compared with those of a healthy reference.
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
    """Sorts the cases: first those that name the broken requirements, then those of the subject."""
    return sorted(cases, key=lambda case: _distance(bug, case))


def far_from(bug: Bug, cases: Iterable[Case]) -> set[str]:
    """Returns the ids of cases that neither cite what the bug breaks nor belong to its subject."""
    return {case.id for case in cases if _distance(bug, case) == _FAR}


_FAR = 2


def _distance(bug: Bug, case: Case) -> int:
    if {*case.requirements, *case.bugs} & set(bug.models):
        return 0
    return 1 if case.id.startswith(_AREAS[bug.subject]) else _FAR
