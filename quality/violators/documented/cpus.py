"""Violators of what the documents say of the static policy, its options and its feature gates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import operations
from numaproof.reference.config import gates
from numaproof.reference.cpu import assignment, options
from numaproof.reference.cpu.assignment import Assignment, NotEnoughCPUsError
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.cpu.topology import touching
from numaproof.reference.deviations import assignment as deviations
from numaproof.reference.errors import AdmissionError
from numaproof.reference.pods import quantity
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("documented-cpus")


# The static policy


@seeds("CPU-STATIC-027")
def no_cpus_of_an_empty_set_are_too_many(changes: Changes) -> None:
    """Refuses every request where no CPU is available, before it looks at the request."""

    def assign(original: Any, args: Any, release: Any) -> Any:
        if not args.available:
            raise AdmissionError("UnexpectedAdmissionError", "no CPUs are available")
        return original(args, release)

    changes.around(operations, "assign", assign)


@seeds("CPU-STATIC-028")
def exclusive_cpus_are_added_to_the_shared_pool(changes: Changes) -> None:
    """Lets a container use its own CPUs first, and the shared pool when these are busy."""

    def where(original: Any, self: Any, uid: str, container: str) -> Any:
        return original(self, uid, container) | self.shared

    changes.around(CPUState, "where", where)


@seeds("CPU-STATIC-029")
def cores_are_taken_in_the_order_of_the_machine(changes: Changes) -> None:
    """Takes the first fit: the lowest core that is free, however empty its node is."""
    for user in (assignment, deviations):
        changes.around(
            user,
            "cores_in_order",
            lambda original, topology, free: sorted(original(topology, free)),
        )


@seeds("CPU-STATIC-030")
def few_nodes_must_be_of_one_socket(changes: Changes) -> None:
    """Refuses what one socket could hold rather than take it from NUMA nodes of two."""

    def pack(original: Any, self: Any, available: int, count: int, beside: int = 0) -> Any:
        sockets = self.topology.sockets
        chosen = original(self, available, count, beside)
        largest = max((cpus.bit_count() for cpus in sockets.values()), default=0)
        if count <= largest and len(list(touching(sockets, chosen))) > 1:
            raise NotEnoughCPUsError(count, 0)
        return chosen

    changes.around(Assignment, "pack", pack)


@seeds("CPU-STATIC-031")
def every_cpu_comes_from_another_core(changes: Changes) -> None:
    """Keeps a container's threads from sharing cores, which is what an option is for."""
    changes.replace(Assignment, "whole_cores", lambda self, progress: progress)
    changes.replace(Assignment, "threads_by_core", Assignment.threads_of_other_cores)


@seeds("CPU-STATIC-032")
def uncore_caches_are_always_preferred(changes: Changes) -> None:
    """Aligns by uncore caches without being asked."""
    changes.around(
        options,
        "parse",
        lambda original, *args: replace(original(*args), by_uncore=True),
    )


# Policy options


@seeds("CPU-OPT-FULLPCPUS-011")
def only_multiples_are_a_matter_of_alignment(changes: Changes) -> None:
    """Leaves it to the choice of CPUs to find out that there are too few."""
    changes.around(
        StaticCPUPolicy,
        "check_alignment",
        lambda original, self, count, _free: original(self, count, count),
    )


@seeds("CPU-OPT-STRICT-007")
def limits_must_fit_the_allocatable_cpus(changes: Changes) -> None:
    """Adds up the limits of a pod, and admits none that could use more than there is."""

    def allocate(original: Any, self: Any, state: Any, pod: Any, *rest: Any) -> Any:
        limits = sum(quantity.parse(one.limits.get("cpu", 0)) for one in pod.containers)
        if limits > self.allocatable.bit_count():
            raise AdmissionError("OutOfcpu", "CPU limits beyond the allocatable CPUs")
        return original(self, state, pod, *rest)

    changes.around(StaticCPUPolicy, "allocate", allocate)


# Feature gates


def _unlocked(changes: Changes, name: str, passes: Callable[[bool, bool], bool]) -> None:
    """Passes over a gate's value where a rule says so, given the value and whether it is known."""

    def enabled(original: Any, given: Any, known: Any) -> Any:
        wanted = given.get("featureGates")
        if isinstance(wanted, dict) and name in wanted and passes(wanted[name], name in known):
            kept = {one: on for one, on in wanted.items() if one != name}
            given = {**given, "featureGates": kept}
        return original(given, known)

    changes.around(gates, "enabled", enabled)


@seeds("CPU-GATE-015", kubernetes="1.31")
def stable_gate_cpumanager_may_be_off(changes: Changes) -> None:
    """Warns of a stable gate that is turned off, and goes on."""
    _unlocked(changes, "CPUManager", lambda on, known: known and not on)


@seeds("CPU-GATE-015", kubernetes="1.31")
def stable_gate_cpumanager_is_gone_already(changes: Changes) -> None:
    """Forgets a gate as soon as it is stable."""
    changes.around(
        gates,
        "enabled",
        lambda original, given, known: original(
            given, {name: gate for name, gate in known.items() if name != "CPUManager"}
        ),
    )


@seeds("MEM-GATE-002", kubernetes="1.33")
def stable_gate_memorymanager_may_be_off(changes: Changes) -> None:
    """Warns of a stable gate that is turned off, and goes on."""
    _unlocked(changes, "MemoryManager", lambda on, known: known and not on)


@seeds("MEM-GATE-002", kubernetes="1.37")
def removed_gate_memorymanager_may_be_on(changes: Changes) -> None:
    """Passes over a gate that is gone, as long as it is on."""
    _unlocked(changes, "MemoryManager", lambda on, known: on and not known)
