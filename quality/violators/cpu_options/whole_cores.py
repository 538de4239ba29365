"""Violators of the options of the static policy: gates, and ``full-pcpus-only``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu import options
from numaproof.reference.cpu.assignment import Assignment, NotEnoughCPUsError
from numaproof.reference.cpu.policy import (
    StaticCPUPolicy,
    not_whole_cores,
)
from numaproof.reference.cpu.state import ReusableCPUs
from numaproof.reference.cpu.topology import touching
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-options")


def with_options(policy: StaticCPUPolicy, **changed: bool) -> StaticCPUPolicy:
    """The policy with other options on or off."""
    wanted = dataclasses.replace(policy.options, **changed)
    return dataclasses.replace(
        policy, assignment=dataclasses.replace(policy.assignment, options=wanted)
    )


def matures(changes: Changes, option: str, maturity: Any) -> None:
    """Lets an option be as mature as this; None is an option that there is not."""

    def as_mature(original: Any, name: str, text: str, known: Any, gates: Any) -> Any:
        return original(name, text, maturity if name == option else known, gates)

    changes.around(options, "value", as_mature)


def allocating(changes: Changes, change: Callable[..., Any]) -> None:
    """Lets another policy allocate; `change` makes it of the policy, the pod and the container."""
    changes.around(
        StaticCPUPolicy,
        "allocate",
        lambda original, self, state, reuse, pod, container, affinity: original(
            change(self, pod, container), state, reuse, pod, container, affinity
        ),
    )


def is_first(pod: Any, container: Any) -> bool:
    """Whether a container is the first one of its pod."""
    return bool(pod.containers[0].name == container.name)


# Gates


@seeds("CPU-OPT-001")
def gate_of_alpha_options_aligns_by_socket(changes: Changes) -> None:
    """Its author takes the gate for the switch: there is only one option left behind it."""

    def switched(original: Any, given: Any, known: Any, gates: Any) -> Any:
        found = original(given, known, gates)
        on = gates is not None and gates["CPUManagerPolicyAlphaOptions"]
        return dataclasses.replace(found, by_socket=found.by_socket or on)

    changes.around(options, "parse", switched)


@seeds("CPU-OPT-001")
def gate_of_alpha_options_spreads_over_cores(changes: Changes) -> None:
    """Its author has every alpha option on behind the gate that no other option excludes."""

    def switched(original: Any, given: Any, known: Any, gates: Any) -> Any:
        found = original(given, known, gates)
        excluded = found.full_cores or found.across_numa or found.by_uncore
        on = gates is not None and gates["CPUManagerPolicyAlphaOptions"] and not excluded
        return dataclasses.replace(found, across_cores=found.across_cores or on)

    changes.around(options, "parse", switched)


@seeds("CPU-OPT-001")
def gate_of_beta_options_distributes(changes: Changes) -> None:
    """Its author reads "beta, visible by default" as on by default."""

    def switched(original: Any, given: Any, known: Any, gates: Any) -> Any:
        found = original(given, known, gates)
        excluded = found.across_cores or found.by_uncore or options.ACROSS_NUMA in given
        on = gates is not None and gates["CPUManagerPolicyBetaOptions"] and not excluded
        return dataclasses.replace(found, across_numa=found.across_numa or on)

    changes.around(options, "parse", switched)


@seeds("CPU-OPT-001", kubernetes="1.34")
def one_beta_option_turns_the_uncore_option_on(changes: Changes) -> None:
    """Its author turns a level of maturity on as a whole once an option of it is named."""

    def switched(original: Any, given: Any, known: Any, gates: Any) -> Any:
        found = original(given, known, gates)
        on = found.strict and not (found.across_numa or found.across_cores)
        return dataclasses.replace(found, by_uncore=found.by_uncore or on)

    changes.around(options, "parse", switched)


# Availability of full-pcpus-only


@seeds("CPU-OPT-FULLPCPUS-001", kubernetes="1.30")
def full_cores_are_unknown_before_they_are_stable(changes: Changes) -> None:
    """Its author starts with the release in which the option is stable."""
    matures(changes, options.FULL_CORES, None)


@seeds("CPU-OPT-FULLPCPUS-001", kubernetes="1.32")
def full_cores_are_still_alpha(changes: Changes) -> None:
    """Its author misses that the option became beta."""
    matures(changes, options.FULL_CORES, "alpha")


@seeds("CPU-OPT-FULLPCPUS-001", kubernetes="1.33")
def full_cores_become_stable_late(changes: Changes) -> None:
    """Its author has the option beta for one release more."""
    matures(changes, options.FULL_CORES, "beta")


@seeds("CPU-OPT-FULLPCPUS-001")
def full_cores_stay_beta(changes: Changes) -> None:
    """Its author never opens the option for good."""
    matures(changes, options.FULL_CORES, "beta")


# Whole cores


def _split_cores(changes: Changes, when: Callable[..., bool]) -> None:
    """Gives a container threads of as many cores as it can, if `when` says so."""

    def split(
        original: Any, self: Any, state: Any, reuse: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        after, then = original(self, state, reuse, pod, container, affinity)
        if not self.options.full_cores or after is state or not when(pod, container, affinity):
            return after, then
        reusable = reuse.of(pod.uid)
        free = self.available(state) | reusable
        near = -1 if affinity is None else self.aligned(affinity)
        places = [
            (turn, not near >> cpu & 1, cpu)
            for core in self.topology.cores.values()
            for turn, cpu in enumerate(CPUSet.from_mask(core & free))
        ]
        count = after.of(pod.uid, container.name).bit_count()
        cpus = sum(1 << cpu for _, _, cpu in sorted(places)[:count])
        left = reusable | cpus if container.passes else reusable & ~cpus
        return state.assign(pod.uid, container.name, cpus), ReusableCPUs(pod.uid, left)

    changes.around(StaticCPUPolicy, "allocate", split)


@seeds("CPU-OPT-FULLPCPUS-002")
def init_containers_get_threads_of_many_cores(changes: Changes) -> None:
    """Its author checks the number for all, and picks cores for those that stay."""
    _split_cores(changes, lambda pod, container, affinity: container.passes)


@seeds("CPU-OPT-FULLPCPUS-002")
def sidecars_get_threads_of_many_cores(changes: Changes) -> None:
    """Its author serves sidecars in a path of their own that knows of no cores."""
    _split_cores(changes, lambda pod, container, affinity: container.sidecar)


@seeds("CPU-OPT-FULLPCPUS-002")
def only_the_first_container_gets_whole_cores(changes: Changes) -> None:
    """Its author picks cores for the first container, and fills up with threads."""
    _split_cores(changes, lambda pod, container, affinity: not is_first(pod, container))


@seeds("CPU-OPT-FULLPCPUS-002")
def app_containers_near_an_affinity_get_single_threads(changes: Changes) -> None:
    """Its author picks by NUMA node alone once the Topology Manager names one."""
    _split_cores(
        changes, lambda pod, container, affinity: affinity is not None and not container.init
    )


# Cores of one socket


def _cores_by(changes: Changes, order: Callable[[Any, list[int], int], list[int]]) -> None:
    """Takes whole cores in another `order` where only whole ones are taken."""

    def whole_cores(original: Any, self: Any, progress: Any) -> Any:
        if not self.options.full_cores:
            return original(self, progress)
        cores = self.free_cores(progress.free)
        return progress.take_units(order(self.topology, cores, progress.wanted))

    changes.around(Assignment, "whole_cores", whole_cores)


@seeds("CPU-OPT-FULLPCPUS-012")
def whole_cores_come_from_the_sockets_in_turn(changes: Changes) -> None:
    """Its author spreads the heat of cores that are busy on all threads."""

    def in_turn(topology: Any, cores: list[int], _wanted: int) -> list[int]:
        seen: dict[int, int] = {}
        ranks: dict[int, int] = {}
        for core in cores:
            socket = touching(topology.sockets, core)[0]
            ranks[core] = seen[socket] = seen.get(socket, -1) + 1
        return sorted(cores, key=lambda core: ranks[core])

    _cores_by(changes, in_turn)


@seeds("CPU-OPT-FULLPCPUS-012")
def the_last_whole_core_comes_from_elsewhere(changes: Changes) -> None:
    """Its author keeps a core of each socket for what may come."""

    def last_elsewhere(_topology: Any, cores: list[int], wanted: int) -> list[int]:
        count = max(1, wanted // cores[0].bit_count()) if cores else 0
        return [*cores[: count - 1], *cores[: count - 2 : -1]]

    _cores_by(changes, last_elsewhere)


# Requests that are no multiple


def _unchecked(changes: Changes, when: Callable[..., bool]) -> None:
    """Forgets the option for a request that is no multiple of a core, if `when` says so."""

    def forgetful(policy: StaticCPUPolicy, pod: Any, container: Any) -> StaticCPUPolicy:
        count = pod.exclusive_cpus(container)
        odd = policy.options.full_cores and count % policy.assignment.cpus_per_core
        if odd and when(policy, pod, container):
            return with_options(policy, full_cores=False)
        return policy

    allocating(changes, forgetful)


@seeds("CPU-OPT-FULLPCPUS-003")
def init_containers_may_ask_for_parts_of_cores(changes: Changes) -> None:
    """Its author checks what runs side by side, and init containers end."""
    _unchecked(changes, lambda policy, pod, container: container.passes)


@seeds("CPU-OPT-FULLPCPUS-003")
def sidecars_may_ask_for_parts_of_cores(changes: Changes) -> None:
    """Its author checks app containers and init containers that end."""
    _unchecked(changes, lambda policy, pod, container: container.sidecar)


@seeds("CPU-OPT-FULLPCPUS-003")
def later_containers_may_ask_for_parts_of_cores(changes: Changes) -> None:
    """Its author checks the first container of a pod."""
    _unchecked(changes, lambda policy, pod, container: not is_first(pod, container))


@seeds("CPU-OPT-FULLPCPUS-003")
def sum_of_the_pod_must_be_whole_cores(changes: Changes) -> None:
    """Its author takes the request for that of the pod."""

    def whole(policy: StaticCPUPolicy, pod: Any, _container: Any) -> bool:
        total = sum(pod.exclusive_cpus(one) for one in pod.containers)
        return not total % policy.assignment.cpus_per_core

    _unchecked(changes, whole)


@seeds("CPU-OPT-FULLPCPUS-003")
def even_requests_pass_on_cores_of_four_threads(changes: Changes) -> None:
    """Its author knows cores of one thread and of two."""
    _unchecked(changes, lambda policy, pod, container: not pod.exclusive_cpus(container) % 2)


@seeds("CPU-OPT-FULLPCPUS-003")
def requests_are_rounded_up_to_whole_cores(changes: Changes) -> None:
    """Its author gives the rest of the last core away rather than to refuse."""

    def rounded(
        original: Any, self: Any, state: Any, reuse: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        count, size = pod.exclusive_cpus(container), self.assignment.cpus_per_core
        if self.options.full_cores and count % size:
            requests = {**container.requests, "cpu": str(-(-count // size) * size)}
            container = dataclasses.replace(container, requests=requests)
        return original(self, state, reuse, pod, container, affinity)

    changes.around(StaticCPUPolicy, "allocate", rounded)


@seeds("CPU-OPT-FULLPCPUS-003")
def parts_of_cores_are_refused_as_a_shortage(changes: Changes) -> None:
    """Its author has one reason for all that cannot be allocated."""

    def short(original: Any, self: Any, count: int, free: int) -> Any:
        if self.options.full_cores and count % self.assignment.cpus_per_core:
            raise NotEnoughCPUsError(count, free)
        return original(self, count, free)

    changes.around(StaticCPUPolicy, "check_alignment", short)


# Siblings of reserved CPUs


@seeds("CPU-OPT-FULLPCPUS-004")
def siblings_of_reserved_cpus_count_as_free(changes: Changes) -> None:
    """Its author takes away the reserved CPUs, and nothing else."""
    changes.replace(
        StaticCPUPolicy,
        "in_unbroken_cores",
        lambda self, state, reusable: (state.shared & ~self.reserved | reusable).bit_count(),
    )


@seeds("CPU-OPT-FULLPCPUS-004")
def siblings_of_strictly_reserved_cpus_count_as_free(changes: Changes) -> None:
    """Its author looks for reserved CPUs in the shared pool, where none are then."""

    def counted(original: Any, self: StaticCPUPolicy, state: Any, reusable: int) -> Any:
        if self.options.strict:
            return (state.shared | reusable).bit_count()
        return original(self, state, reusable)

    changes.around(StaticCPUPolicy, "in_unbroken_cores", counted)


@seeds("CPU-OPT-FULLPCPUS-004")
def too_few_whole_cores_are_an_unexpected_error(changes: Changes) -> None:
    """Its author keeps SMTAlignmentError for requests that are no multiple."""

    def short(original: Any, self: Any, count: int, free: int) -> Any:
        if self.options.full_cores and not count % self.assignment.cpus_per_core and count > free:
            raise NotEnoughCPUsError(count, free)
        return original(self, count, free)

    changes.around(StaticCPUPolicy, "check_alignment", short)


# Machines without SMT


@seeds("CPU-OPT-FULLPCPUS-006")
def cores_always_have_two_threads(changes: Changes) -> None:
    """Its author checks for even requests."""

    def even(original: Any, self: Any, count: int, free: int) -> Any:
        if self.options.full_cores and self.topology.most_cpus_per_core == 1 and count % 2:
            raise not_whole_cores(count, 2)
        return original(self, count, free)

    changes.around(StaticCPUPolicy, "check_alignment", even)


@seeds("CPU-OPT-FULLPCPUS-006")
def neighbours_of_reserved_cpus_are_siblings_without_smt(changes: Changes) -> None:
    """Its author takes CPUs 0 and 1, 2 and 3 for siblings on every machine."""

    def counted(original: Any, self: StaticCPUPolicy, state: Any, reusable: int) -> Any:
        free = original(self, state, reusable)
        if self.topology.most_cpus_per_core > 1:
            return free
        pairs = sum(1 << (cpu ^ 1) for cpu in CPUSet.from_mask(self.reserved))
        return free - (state.shared & pairs & ~self.reserved).bit_count()

    changes.around(StaticCPUPolicy, "in_unbroken_cores", counted)
