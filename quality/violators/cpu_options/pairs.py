"""Violators of the options of the static policy: ``full-pcpus-only`` over time, and pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu import options
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.cpu.options import (
    ACROSS_CORES,
    ACROSS_NUMA,
    BY_SOCKET,
    BY_UNCORE,
    FULL_CORES,
    STRICT,
)
from numaproof.reference.cpu.policy import StaticCPUPolicy, not_whole_cores
from numaproof.reference.pods import quantity
from quality.seeding import Changes, SubjectBugs
from quality.violators.cpu_options.whole_cores import (
    allocating,
    is_first,
    with_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-options")


# Pods that are admitted again


def _asked_again(changes: Changes, when: Callable[..., bool]) -> None:
    """Looks for free cores for a container that has its own, if `when` says so."""

    def again(original: Any, self: Any, state: Any, pod: Any, container: Any, affinity: Any) -> Any:
        held = state.of(pod.uid, container.name)
        if held is not None and when(pod, container):
            free = self.in_unbroken_cores(state, state.reuse.of(pod.uid))
            self.check_alignment(held.bit_count(), free)
        return original(self, state, pod, container, affinity)

    changes.around(StaticCPUPolicy, "allocate", again)


@seeds("CPU-OPT-FULLPCPUS-007")
def sidecars_need_free_cores_besides_their_own(changes: Changes) -> None:
    """Its author skips the check for app containers that have CPUs."""
    _asked_again(changes, lambda pod, container: container.sidecar)


@seeds("CPU-OPT-FULLPCPUS-007")
def pods_of_several_containers_need_free_cores_again(changes: Changes) -> None:
    """Its author looks for what the first container has, and then for free cores."""
    _asked_again(changes, lambda pod, container: not is_first(pod, container))


# Hybrid machines


@seeds("CPU-OPT-FULLPCPUS-008")
def smallest_core_decides_on_hybrid_machines(changes: Changes) -> None:
    """Its author takes the size of a core from the one that comes last."""

    def smallest(self: Assignment) -> int:
        return min((core.bit_count() for core in self.topology.cores.values()), default=1)

    def whole(self: Assignment) -> bool:
        return self.options.full_cores and self.topology.has_even_cores

    changes.replace(Assignment, "cpus_per_core", property(smallest))
    changes.replace(Assignment, "only_whole_cores", property(whole))


@seeds("CPU-OPT-FULLPCPUS-008")
def even_requests_end_with_a_thread_on_hybrid_machines(changes: Changes) -> None:
    """Its author relies on the number: an even one must be whole cores."""

    def whole(self: Assignment) -> bool:
        return self.options.full_cores and self.topology.has_even_cores

    changes.replace(Assignment, "only_whole_cores", property(whole))


# Containers in the shared pool


def _restricted(changes: Changes, when: Callable[..., bool]) -> None:
    """Refuses a container of the shared pool that asks for parts of cores, if `when` says so."""

    def checked(
        original: Any, self: Any, state: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        if self.options.full_cores and not pod.exclusive_cpus(container):
            amount = quantity.parse(container.requests.get("cpu", 0))
            size = self.assignment.cpus_per_core
            if amount % size and when(pod, container, amount):
                raise not_whole_cores(-(-amount.numerator // amount.denominator), size)
        return original(self, state, pod, container, affinity)

    changes.around(StaticCPUPolicy, "allocate", checked)


@seeds("CPU-OPT-FULLPCPUS-009")
def init_containers_of_the_shared_pool_need_whole_cores(changes: Changes) -> None:
    """Its author checks init containers and sidecars before it knows where they run."""
    _restricted(changes, lambda pod, container, amount: container.init)


# Pairs that exclude each other


def _together(changes: Changes, one: str, other: str) -> None:
    """Forgets that two options exclude each other."""
    pairs = tuple(pair for pair in options.INCOMPATIBLE if pair != (one, other))
    changes.replace(options, "INCOMPATIBLE", pairs)


@seeds("CPU-OPT-PAIR-001")
def options_spelled_otherwise_exclude_nothing(changes: Changes) -> None:
    """Its author compares with the word "true" to find full cores spread over cores."""

    def read(original: Any, given: Any, known: Any, gates: Any) -> Any:
        spelled = {given.get(FULL_CORES), given.get(ACROSS_CORES)} != {"true"}
        if not spelled or FULL_CORES not in given or ACROSS_CORES not in given:
            return original(given, known, gates)
        original({name: text for name, text in given.items() if name != FULL_CORES}, known, gates)
        return original(
            {name: text for name, text in given.items() if name != ACROSS_CORES}, known, gates
        )

    changes.around(options, "parse", read)


@seeds("CPU-OPT-PAIR-003")
def uncore_caches_go_with_spreading_over_cores(changes: Changes) -> None:
    """Its author sees a preference there, which excludes nothing."""
    _together(changes, BY_UNCORE, ACROSS_CORES)


@seeds("CPU-OPT-PAIR-004")
def uncore_caches_go_with_distributing(changes: Changes) -> None:
    """Its author lists what distribute-cpus-across-cores excludes, and stops there."""
    _together(changes, BY_UNCORE, ACROSS_NUMA)


# Pairs that go together


def _exclude(changes: Changes, one: str, other: str) -> None:
    """Lets two options exclude each other."""

    def read(original: Any, given: Any, known: Any, gates: Any) -> Any:
        found = original(given, known, gates)
        on = {name for name in given if options.value(name, given[name], known.get(name), gates)}
        if {one, other} <= on:
            raise OptionError(
                f"static policy options {one} and {other} can not be used at the same time"
            )
        return found

    changes.around(options, "parse", read)


@seeds("CPU-OPT-PAIR-005")
def full_cores_exclude_distributing(changes: Changes) -> None:
    """Its author takes an even share for one that no whole cores make."""
    _exclude(changes, FULL_CORES, ACROSS_NUMA)


@seeds("CPU-OPT-PAIR-005")
def full_cores_exclude_aligning_by_socket(changes: Changes) -> None:
    """Its author lets one option align."""
    _exclude(changes, FULL_CORES, BY_SOCKET)


@seeds("CPU-OPT-PAIR-005")
def full_cores_exclude_uncore_caches(changes: Changes) -> None:
    """Its author lets one option say which units are kept whole."""
    _exclude(changes, FULL_CORES, BY_UNCORE)


@seeds("CPU-OPT-PAIR-005")
def full_cores_exclude_a_strict_reservation(changes: Changes) -> None:
    """Its author fears for the siblings of reserved CPUs."""
    _exclude(changes, FULL_CORES, STRICT)


@seeds("CPU-OPT-PAIR-005")
def distributing_excludes_aligning_by_socket(changes: Changes) -> None:
    """Its author sees one option spread and the other one pack."""
    _exclude(changes, ACROSS_NUMA, BY_SOCKET)


@seeds("CPU-OPT-PAIR-005")
def distributing_excludes_a_strict_reservation(changes: Changes) -> None:
    """Its author wants as many CPUs on every node."""
    _exclude(changes, ACROSS_NUMA, STRICT)


@seeds("CPU-OPT-PAIR-005")
def spreading_over_cores_excludes_aligning_by_socket(changes: Changes) -> None:
    """Its author has distribute-cpus-across-cores exclude all that is older."""
    _exclude(changes, ACROSS_CORES, BY_SOCKET)


@seeds("CPU-OPT-PAIR-005")
def spreading_over_cores_excludes_a_strict_reservation(changes: Changes) -> None:
    """Its author has distribute-cpus-across-cores exclude all that came after it."""
    _exclude(changes, ACROSS_CORES, STRICT)


@seeds("CPU-OPT-PAIR-005")
def aligning_by_socket_excludes_uncore_caches(changes: Changes) -> None:
    """Its author lets one option say what CPUs are near each other."""
    _exclude(changes, BY_SOCKET, BY_UNCORE)


@seeds("CPU-OPT-PAIR-005")
def aligning_by_socket_excludes_a_strict_reservation(changes: Changes) -> None:
    """Its author wants sockets of one size."""
    _exclude(changes, BY_SOCKET, STRICT)


@seeds("CPU-OPT-PAIR-005")
def uncore_caches_exclude_a_strict_reservation(changes: Changes) -> None:
    """Its author fears for uncore caches with reserved CPUs."""
    _exclude(changes, BY_UNCORE, STRICT)


@seeds("CPU-OPT-PAIR-005")
def full_cores_yield_to_distributing(changes: Changes) -> None:
    """Its author chooses CPUs by one option, the one that is asked first."""
    allocating(
        changes,
        lambda policy, pod, container: (
            with_options(policy, full_cores=False) if policy.options.across_numa else policy
        ),
    )


@seeds("CPU-OPT-PAIR-005")
def full_cores_yield_to_uncore_caches(changes: Changes) -> None:
    """Its author chooses CPUs by the cache, and checks no cores then."""
    allocating(
        changes,
        lambda policy, pod, container: (
            with_options(policy, full_cores=False) if policy.options.by_uncore else policy
        ),
    )


@seeds("CPU-OPT-PAIR-005")
def strict_reservation_yields_to_full_cores(changes: Changes) -> None:
    """Its author reads the options in a chain of else-ifs: full-pcpus-only comes first."""

    def made(
        original: Any, topology: Any, chosen: Any, count: int, named: int, rules: Any
    ) -> StaticCPUPolicy:
        policy: StaticCPUPolicy = original(topology, chosen, count, named, rules)
        return with_options(policy, strict=policy.options.strict and not policy.options.full_cores)

    changes.around(startup, "make_static", made)
