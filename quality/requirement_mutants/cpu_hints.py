"""Mutants of CPU hints."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.cpu import hints
from numaproof.reference.cpu.distribution import DistributedAssignment
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.topology import union
from numaproof.reference.deviations.cpu import ReusableCPUsCountedTwice
from numaproof.reference.pods import containers, quantity
from numaproof.reference.pods.pod import Pod
from numaproof.reference.topology.hints import (
    ANYWHERE,
    NO_AFFINITY,
    Demand,
    Need,
    Supply,
    TopologyHint,
)
from numaproof.reference.topology.search import evaluation
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numaproof.reference.pods.containers import PodContainer

seeds = SubjectBugs("cpu-hints")


# CPU-HINT-014 to -016: alignment


@seeds("CPU-HINT-014").around(StaticCPUPolicy, "allocate")
def exclusive_cpus_are_kept_on_a_node_without_a_topology_policy(
    rule: Any, self: Any, state: Any, pod: Pod, container: Any, affinity: Any
) -> Any:
    """Prefers the first NUMA node with enough CPUs even without a topology policy."""
    count = pod.exclusive_cpus(container)
    free = self.available(state) | state.reuse.of(pod.uid)
    nodes = self.topology.nodes
    if affinity.nodes == ANYWHERE and count and state.of(pod.uid, container.name) is None:
        fitting = [node for node in nodes if (nodes[node] & free).bit_count() >= count]
        affinity = TopologyHint(1 << fitting[0], preferred=True) if fitting else affinity
    return rule(affinity=affinity)


def _affinity(
    changes: Changes, ignores: Callable[[Any, Any, Any, PodContainer, int], bool]
) -> None:
    """Ignores a container's affinity if `ignores` is true.

    `ignores` is called with the policy, the available CPUs, the affinity, the container and its
    number of exclusive CPUs.
    """

    def allocate(rule: Any, self: Any, state: Any, pod: Pod, container: Any, affinity: Any) -> Any:
        free = self.available(state) | state.reuse.of(pod.uid)
        count = pod.exclusive_cpus(container)
        if affinity.nodes != ANYWHERE and ignores(self, free, affinity, container, count):
            affinity = NO_AFFINITY
        return rule(affinity=affinity)

    changes.around(StaticCPUPolicy, "allocate", allocate)


@seeds("CPU-HINT-015").by(_affinity)
def an_affinity_with_too_few_cpus_is_ignored(
    policy: Any, free: Any, at: Any, container: PodContainer, count: int
) -> Any:
    """Ignores an affinity with too few free CPUs instead of filling up from other nodes."""
    return (policy.aligned_cpus(at) & free).bit_count() < count


@seeds("CPU-HINT-015")
def init_containers_ignore_their_affinity(changes: Changes) -> None:
    """Ignores the affinity of init containers."""
    _affinity(changes, lambda policy, free, at, container, count: container.runs_to_completion)


@seeds("CPU-HINT-016")
def policy_none_hints_pods_as_a_whole(changes: Changes) -> None:
    """Returns hints for an empty machine under the none policy with the pod scope."""

    def start_cpus(manager: Any, setup: Any) -> Any:
        if setup.cpu is None:
            manager.machine = setup.topology
        return manager

    def pod_hints(rule: Any, self: Any, pod: Pod, container: Any) -> Any:
        machine, count = getattr(self, "machine", None), pod.peak_exclusive_cpus()
        if machine is None or container is not None or not count:
            return rule()
        total = tuple(Supply(1 << node, cpus.bit_count()) for node, cpus in machine.nodes.items())
        return {"cpu": Demand(tuple(machine.nodes), (Need(count, total, total),))}

    changes.after(startup, "start_cpus", start_cpus)
    changes.around(CPUManager, "hints", pod_hints)


# CPU-HINT-017: gaps between node ids


@seeds("CPU-HINT-017").after(hints, "generate")
def cpu_hints_name_nodes_that_are_missing(demand: Any) -> Any:
    """Returns hints for every node id up to the highest, including ids that don't exist."""
    return replace(demand, nodes=tuple(range(max(demand.nodes) + 1)))


# CPU-HINT-018: distribution over the affinity


@shape(DistributedAssignment, "take")
def _least(nodes: Callable[[int, int], int], rule: Any, count: Any, min_nodes: Any) -> Any:
    """Overrides over how many NUMA nodes to distribute, given the count and the affinity's size."""
    return rule(min_nodes=nodes(count, min_nodes))


@seeds("CPU-HINT-018").of(_least, lambda count, nodes: 0 if nodes and count % nodes else nodes)
def a_remainder_shrinks_the_distribution() -> None:
    """Ignores the affinity's size if the CPUs don't divide evenly over its nodes."""


# Counting


_MAX_LISTED = 12


@shape(CPUManager, "hints", Changes.after)
def _change_hints(change: Change, resources: Any) -> Any:
    """Lets `change` edit the list of CPU hints on machines with at most 12 NUMA nodes."""
    demand = resources.get("cpu")
    if not isinstance(demand, Demand) or len(demand.nodes) > _MAX_LISTED:
        return resources
    return {"cpu": tuple(change(evaluation.list_hints(demand)))}


@shape(hints, "for_container")
def _replace_hints(
    instead: Change, rule: Any, policy: Any, state: Any, pod: Pod, container: Any
) -> Any:
    """Lets `instead` compute a container's hints.

    `instead` is called with the original function, the policy, the state, the pod and the
    container.
    """

    def by_the_rules() -> Any:
        return rule()

    return instead(by_the_rules, policy, state, pod, container)


def _asks(container: PodContainer) -> Any:
    return quantity.parse(container.requests.get("cpu", 0))


def _is_fraction(pod: Pod, container: PodContainer) -> bool:
    return pod.qos == "Guaranteed" and not pod.shared_pool and _asks(container).denominator != 1


# CPU-HINT-001: every set of nodes


@seeds("CPU-HINT-001").by(_replace_hints)
def init_containers_have_no_cpu_hints(
    rules: Any, policy: Any, state: Any, pod: Pod, container: PodContainer
) -> Any:
    """Returns no hints for init containers."""
    return {} if container.runs_to_completion else rules()


# CPU-HINT-002, -003 and -005: no preference


@seeds("CPU-HINT-002")
def whole_cpus_of_burstable_pods_are_hinted(changes: Changes) -> None:
    """Returns hints for Burstable pods that request whole CPUs."""
    for name in ("for_container", "for_pod"):
        changes.around(
            hints,
            name,
            lambda rule, pod: rule(
                pod=replace(pod, qos="Guaranteed") if pod.qos == "Burstable" else pod
            ),
        )


@seeds("CPU-HINT-003").by(_replace_hints)
def fractions_of_a_cpu_are_hinted_rounded_up(
    rules: Any, policy: Any, state: Any, pod: Pod, container: PodContainer
) -> Any:
    """Returns hints for fractional requests, rounded up."""
    if not _is_fraction(pod, container):
        return rules()
    free = policy.available(state)
    return {"cpu": hints.generate(policy, free, 0, math.ceil(_asks(container)))}


def _asks_for_devices(container: PodContainer) -> bool:
    return any("/" in resource for resource in container.requests)


@seeds("CPU-HINT-005").by(_replace_hints)
def best_effort_containers_with_devices_want_a_free_cpu_near_them(
    rules: Any, policy: Any, state: Any, pod: Pod, container: PodContainer
) -> Any:
    """Returns hints for a CPU near the devices of a BestEffort container."""
    if pod.qos != "BestEffort" or not _asks_for_devices(container):
        return rules()
    return {"cpu": hints.generate(policy, policy.available(state), 0, 1)}


# CPU-HINT-004: the none policy


def _under_none(changes: Changes, instead: Callable[[Any, Pod, PodContainer], Any]) -> None:
    """Lets `instead` compute the hints of Guaranteed containers under the none policy.

    `instead` is called with the machine's CPUs, the pod and the container.
    """

    def start_cpus(manager: Any, setup: Any) -> Any:
        if setup.cpu is None:
            manager.machine = setup.topology
        return manager

    def container_hints(rule: Any, self: Any, pod: Pod, container: Any) -> Any:
        machine = getattr(self, "machine", None)
        if machine is None or container is None or pod.qos != "Guaranteed" or pod.shared_pool:
            return rule()
        return instead(machine, pod, container)

    changes.after(startup, "start_cpus", start_cpus)
    changes.around(CPUManager, "hints", container_hints)


@seeds("CPU-HINT-004").by(_under_none)
def policy_none_has_no_nodes_for_whole_cpus(machine: Any, pod: Pod, container: PodContainer) -> Any:
    """Reports whole CPUs as unsatisfiable under the none policy."""
    return hints.UNSATISFIABLE if pod.exclusive_cpus(container) else {}


# CPU-HINT-006: preferred


@seeds("CPU-HINT-006").after(hints, "generate")
def nodes_count_with_their_average_size_for_the_preference(demand: Any, policy: Any) -> Any:
    """Assumes that all NUMA nodes have the average number of CPUs."""
    nodes = policy.topology.nodes
    supplies = tuple(
        (
            Supply(1 << node, union(nodes.values()).bit_count() // len(nodes))
            for node, cpus in nodes.items()
        )
    )
    return replace(demand, needs=tuple(replace(need, total=supplies) for need in demand.needs))


@seeds("CPU-HINT-006").after(hints, "generate")
def cpus_in_use_do_not_count_for_the_preference(
    demand: Any, policy: Any, available: int, reusable: int
) -> Any:
    """Counts only free and reserved CPUs of a node when deciding what is preferred."""
    mine = available | reusable | policy.reserved
    supplies = tuple(
        Supply(1 << node, (cpus & mine).bit_count()) for node, cpus in policy.topology.nodes.items()
    )
    return replace(demand, needs=tuple(replace(need, total=supplies) for need in demand.needs))


# CPU-HINT-007: order


@seeds("CPU-HINT-007").of(
    _change_hints, lambda hint_list: sorted(hint_list, key=lambda hint: hint.nodes)
)
def cpu_hints_are_ordered_by_their_masks() -> None:
    """Sorts hints by their bit masks alone."""


@seeds("CPU-HINT-007").by(_change_hints)
def the_widest_cpu_hints_come_first(hint_list: Sequence[TopologyHint]) -> Any:
    """Lists the widest hints first."""
    return sorted(hint_list, key=lambda hint: -hint.nodes.bit_count())


@seeds("CPU-HINT-007").by(_change_hints)
def cpu_hints_of_a_size_come_from_the_highest_node(hint_list: Sequence[TopologyHint]) -> Any:
    """Sorts hints of the same size from the highest mask down."""
    return sorted(hint_list, key=lambda hint: (hint.nodes.bit_count(), -hint.nodes))


# CPU-HINT-008: counted CPUs


@seeds("CPU-HINT-008").around(hints, "for_pod")
def reserved_cpus_count_in_the_hints_of_a_pod(rule: Any, policy: Any) -> Any:
    """Counts reserved CPUs as free with the pod scope."""
    bare = replace(policy, reserved=0)
    return rule(policy=bare)


@seeds("CPU-HINT-008").around(hints, "for_container")
def what_another_pod_can_reuse_counts_as_free(
    rule: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Counts the CPUs of ended init containers as free, even for other pods."""
    if state.reuse.uid != pod.uid and state.of(pod.uid, container.name) is None:
        state = replace(state, shared=state.shared | state.reuse.cpus)
    return rule(state=state)


@seeds("CPU-HINT-008")
def what_the_pod_can_reuse_does_not_count(changes: Changes) -> None:
    """Doesn't count reusable CPUs."""
    for owner in (StaticCPUPolicy, ReusableCPUsCountedTwice):
        changes.replace(
            owner, "countable", lambda self, free, reusable: (free & ~reusable).bit_count()
        )


# CPU-HINT-009: near reusable CPUs


@shape(hints, "generate", Changes.after)
def _touching(change: Callable[[tuple[int, ...]], tuple[int, ...]], demand: Any) -> Any:
    """Lets `change` override the groups of nodes that a hint must touch."""
    return replace(demand, touching=change(demand.touching))


@seeds("CPU-HINT-009").of(_touching, lambda groups: (union(groups),) if groups else ())
def hints_touch_any_node_that_can_be_reused() -> None:
    """Accepts hints that contain any node with reusable CPUs."""


@seeds("CPU-HINT-009").of(_touching, lambda groups: groups[:1])
def hints_cover_the_first_node_that_can_be_reused() -> None:
    """Requires only the first node with reusable CPUs in a hint."""


@seeds("CPU-HINT-009").of(_touching, lambda groups: ())
def hints_need_not_cover_what_can_be_reused() -> None:
    """Doesn't require nodes with reusable CPUs in a hint."""


# CPU-HINT-010 and -011: containers that hold CPUs


@shape(hints, "for_container")
def _replace_holder_hints(
    instead: Change, rule: Any, policy: Any, state: Any, pod: Pod, container: Any
) -> Any:
    """Lets `instead` compute the hints of a container that holds CPUs.

    `instead` is called with the original function, the policy, the state, the held CPUs, the
    number of exclusive CPUs and the container.
    """
    count = pod.exclusive_cpus(container)
    held = state.of(pod.uid, container.name)

    def by_the_rules() -> Any:
        return rule()

    if held is None or not count:
        return by_the_rules()
    return instead(by_the_rules, policy, state, held, count, container)


@seeds("CPU-HINT-010").by(_replace_holder_hints)
def init_containers_are_hinted_as_new_ones(
    rules: Any, policy: Any, state: Any, held_cpus: int, count: int, container: PodContainer
) -> Any:
    """Returns hints for an init container as if it held no CPUs."""
    if held_cpus.bit_count() == count and container.runs_to_completion:
        return {"cpu": hints.generate(policy, policy.available(state), 0, count)}
    return rules()


@seeds("CPU-HINT-011").by(_replace_holder_hints)
def a_container_that_holds_enough_is_hinted_there(
    rules: Any, policy: Any, state: Any, held_cpus: int, count: int, container: PodContainer
) -> Any:
    """Accepts a container that holds more CPUs than it requests."""
    return (
        {"cpu": hints.generate(policy, held_cpus, 0, count)}
        if held_cpus.bit_count() > count
        else rules()
    )


# CPU-HINT-012 and -013: the pod scope


@shape(Pod, "peak_exclusive_cpus")
def _change_peak(together: Callable[[Pod], int], rule: Any, self: Any) -> Any:
    """Lets `together` compute how many CPUs a pod needs with the pod scope."""
    return rule() if self.budget is not None else together(self)


@seeds("CPU-HINT-012").by(_change_peak)
def init_containers_count_all_together_in_scope_pod(pod: Pod) -> int:
    """Adds up all init containers instead of using the largest."""
    starting = sum(pod.exclusive_cpus(one) for one in pod.containers if one.runs_to_completion)
    return max(starting, containers.peak(pod.containers, pod.exclusive_cpus))


@seeds("CPU-HINT-012").by(_change_peak)
def only_the_last_init_container_counts_in_scope_pod(pod: Pod) -> int:
    """Counts only the last init container."""
    starting = [one for one in pod.containers if one.runs_to_completion]
    rest = tuple(one for one in pod.containers if not one.runs_to_completion or one is starting[-1])
    return containers.peak(rest, pod.exclusive_cpus)


@seeds("CPU-HINT-013").by(_change_peak)
def sidecars_count_beside_all_init_containers(pod: Pod) -> int:
    """Adds every sidecar to every init container, even to those that end before it starts."""
    due = pod.exclusive_cpus
    sidecars = sum(due(one) for one in pod.containers if one.sidecar)
    starting = max((due(one) for one in pod.containers if one.runs_to_completion), default=0)
    running = sum(due(one) for one in pod.containers if not one.init)
    return sidecars + max(starting, running)
