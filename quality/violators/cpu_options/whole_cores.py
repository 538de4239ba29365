"""Violators of the options of the static policy: gates, and ``full-pcpus-only``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu import options
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.cpu.policy import (
    StaticCPUPolicy,
)
from numaproof.reference.cpu.state import ReusableCPUs
from numaproof.reference.cpu.topology import touching
from numaproof.reference.topology.hints import ANYWHERE
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


def comes_early(changes: Changes, option: str) -> None:
    """Knows an option as alpha in releases that do not have it."""

    def read(original: Any, given: Any, known: Any, gates: Any) -> Any:
        return original(given, {option: "alpha", **known}, gates)

    changes.around(options, "parse", read)


def allocating(changes: Changes, change: Callable[..., Any]) -> None:
    """Lets another policy allocate; `change` makes it of the policy, the pod and the container."""
    changes.around(
        StaticCPUPolicy,
        "allocate",
        lambda original, self, state, pod, container, affinity: original(
            change(self, pod, container), state, pod, container, affinity
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


@seeds("CPU-OPT-001", kubernetes="1.34")
def one_beta_option_turns_the_uncore_option_on(changes: Changes) -> None:
    """Its author turns a level of maturity on as a whole once an option of it is named."""

    def switched(original: Any, given: Any, known: Any, gates: Any) -> Any:
        found = original(given, known, gates)
        on = found.strict and not (found.across_numa or found.across_cores)
        return dataclasses.replace(found, by_uncore=found.by_uncore or on)

    changes.around(options, "parse", switched)


# Availability of full-pcpus-only


# Whole cores


def _split_cores(changes: Changes, when: Callable[..., bool]) -> None:
    """Gives a container threads of as many cores as it can, if `when` says so."""

    def split(original: Any, self: Any, state: Any, pod: Any, container: Any, affinity: Any) -> Any:
        after = original(self, state, pod, container, affinity)
        if not self.options.full_cores or after is state or not when(pod, container, affinity):
            return after
        reusable = state.reuse.of(pod.uid)
        free = self.available(state) | reusable
        near = self.aligned(affinity)
        places = [
            (turn, not near >> cpu & 1, cpu)
            for core in self.topology.cores.values()
            for turn, cpu in enumerate(CPUSet.from_mask(core & free))
        ]
        count = after.of(pod.uid, container.name).bit_count()
        cpus = sum(1 << cpu for _, _, cpu in sorted(places)[:count])
        left = reusable | cpus if container.passes else reusable & ~cpus
        made = state.assign(pod.uid, container.name, cpus)
        return dataclasses.replace(made, reuse=ReusableCPUs(pod.uid, left))

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
        changes,
        lambda pod, container, affinity: affinity.nodes != ANYWHERE and not container.init,
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


# Machines without SMT


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
