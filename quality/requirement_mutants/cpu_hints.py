"""Violators of CPU hints."""

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


# CPU-HINT-014 to -016: what is aligned


@seeds("CPU-HINT-014").around(StaticCPUPolicy, "allocate")
def exclusive_cpus_are_kept_on_a_node_without_a_topology_policy(
    rule: Any, self: Any, state: Any, pod: Pod, container: Any, affinity: Any
) -> Any:
    """Looks for the first NUMA node that can hold a container, without any policy."""
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
    """Places containers without their affinity where it is `ignores`.

    It is asked with the policy, the CPUs at hand, the affinity, the container, and what it is due.
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
    """Takes the affinity for a condition that is met as a whole or not at all."""
    return (policy.aligned_cpus(at) & free).bit_count() < count


@seeds("CPU-HINT-015")
def init_containers_ignore_their_affinity(changes: Changes) -> None:
    """Places init containers where there is room."""
    _affinity(changes, lambda policy, free, at, container, count: container.runs_to_completion)


@seeds("CPU-HINT-016")
def policy_none_hints_pods_as_a_whole(changes: Changes) -> None:
    """Gives the hints of an empty machine in scope pod, where nobody looked at the policy."""

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


# CPU-HINT-017: node ids with gaps


@seeds("CPU-HINT-017").after(hints, "generate")
def cpu_hints_name_nodes_that_are_missing(demand: Any) -> Any:
    """Makes sets of all numbers up to the highest, which leaves no gap."""
    return replace(demand, nodes=tuple(range(max(demand.nodes) + 1)))


# CPU-HINT-018: distribution over the affinity


@shape(DistributedAssignment, "take")
def _least(nodes: Callable[[int, int], int], rule: Any, count: Any, min_nodes: Any) -> Any:
    """Lets `nodes` say over how many nodes to distribute, by the CPUs wanted and the affinity."""
    return rule(min_nodes=nodes(count, min_nodes))


@seeds("CPU-HINT-018").of(_least, lambda count, nodes: 0 if nodes and count % nodes else nodes)
def a_remainder_shrinks_the_distribution() -> None:
    """Distributes over the nodes of the affinity what they can share without a remainder."""


# Counting


_MAX_LISTED = 12


@shape(CPUManager, "hints", Changes.after)
def _change_hints(change: Change, resources: Any) -> Any:
    """Lets `change` make another list of the hints for CPUs, where they can be listed."""
    demand = resources.get("cpu")
    if not isinstance(demand, Demand) or len(demand.nodes) > _MAX_LISTED:
        return resources
    return {"cpu": tuple(change(evaluation.list_hints(demand)))}


@shape(hints, "for_container")
def _replace_hints(
    instead: Change, rule: Any, policy: Any, state: Any, pod: Pod, container: Any
) -> Any:
    """Lets `instead` give the hints of a container, given how they are worked out.

    It is asked with that, the policy, the state, the pod and the container.
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
    """Aligns what keeps running, and lets init containers run anywhere."""
    return {} if container.runs_to_completion else rules()


# CPU-HINT-002, -003 and -005: no preference


@seeds("CPU-HINT-002")
def whole_cpus_of_burstable_pods_are_hinted(changes: Changes) -> None:
    """Asks for a whole number of CPUs, and not for the class of the pod."""
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
    """Wants nodes where a fractional request fits, though nothing is pinned there."""
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
    """Has a container with devices run beside them, on a node with a free CPU."""
    if pod.qos != "BestEffort" or not _asks_for_devices(container):
        return rules()
    return {"cpu": hints.generate(policy, policy.available(state), 0, 1)}


# CPU-HINT-004: policy none


def _under_none(changes: Changes, instead: Callable[[Any, Pod, PodContainer], Any]) -> None:
    """Lets `instead` give the hints of Guaranteed containers under policy none.

    It is asked with the machine's CPUs, the pod and the container.
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
    """Has no hints to offer, and answers with an empty list."""
    return hints.UNSATISFIABLE if pod.exclusive_cpus(container) else {}


# CPU-HINT-006: preferred


@seeds("CPU-HINT-006").after(hints, "generate")
def nodes_count_with_their_average_size_for_the_preference(demand: Any, policy: Any) -> Any:
    """Divides the CPUs of the machine by its nodes, which need not be alike."""
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
    """Counts the CPUs of a node that are free or reserved."""
    mine = available | reusable | policy.reserved
    supplies = tuple(
        Supply(1 << node, (cpus & mine).bit_count()) for node, cpus in policy.topology.nodes.items()
    )
    return replace(demand, needs=tuple(replace(need, total=supplies) for need in demand.needs))


# CPU-HINT-007: the order


@seeds("CPU-HINT-007").of(
    _change_hints, lambda hint_list: sorted(hint_list, key=lambda hint: hint.nodes)
)
def cpu_hints_are_ordered_by_their_masks() -> None:
    """Counts masks up from one."""


@seeds("CPU-HINT-007").by(_change_hints)
def the_widest_cpu_hints_come_first(hint_list: Sequence[TopologyHint]) -> Any:
    """Starts with all nodes, and takes one away after the other."""
    return sorted(hint_list, key=lambda hint: -hint.nodes.bit_count())


@seeds("CPU-HINT-007").by(_change_hints)
def cpu_hints_of_a_size_come_from_the_highest_node(hint_list: Sequence[TopologyHint]) -> Any:
    """Orders the sets of a size by their masks, the highest first."""
    return sorted(hint_list, key=lambda hint: (hint.nodes.bit_count(), -hint.nodes))


# CPU-HINT-008: what counts


@seeds("CPU-HINT-008").around(hints, "for_pod")
def reserved_cpus_count_in_the_hints_of_a_pod(rule: Any, policy: Any) -> Any:
    """Takes the whole shared pool for free CPUs in scope pod."""
    bare = replace(policy, reserved=0)
    return rule(policy=bare)


@seeds("CPU-HINT-008").around(hints, "for_container")
def what_another_pod_can_reuse_counts_as_free(
    rule: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Adds the CPUs of ended init containers, whoever they belong to."""
    if state.reuse.uid != pod.uid and state.of(pod.uid, container.name) is None:
        state = replace(state, shared=state.shared | state.reuse.cpus)
    return rule(state=state)


@seeds("CPU-HINT-008")
def what_the_pod_can_reuse_does_not_count(changes: Changes) -> None:
    """Counts the CPUs of the shared pool, near those that can be reused."""
    for owner in (StaticCPUPolicy, ReusableCPUsCountedTwice):
        changes.replace(
            owner, "countable", lambda self, free, reusable: (free & ~reusable).bit_count()
        )


# CPU-HINT-009: near what can be reused


@shape(hints, "generate", Changes.after)
def _touching(change: Callable[[tuple[int, ...]], tuple[int, ...]], demand: Any) -> Any:
    """Lets a hint contain a node of each of other sets."""
    return replace(demand, touching=change(demand.touching))


@seeds("CPU-HINT-009").of(_touching, lambda groups: (union(groups),) if groups else ())
def hints_touch_any_node_that_can_be_reused() -> None:
    """Is content with a hint that has one of the nodes."""


@seeds("CPU-HINT-009").of(_touching, lambda groups: groups[:1])
def hints_cover_the_first_node_that_can_be_reused() -> None:
    """Looks for the node of the lowest CPU that can be reused."""


@seeds("CPU-HINT-009").of(_touching, lambda groups: ())
def hints_need_not_cover_what_can_be_reused() -> None:
    """Adds CPUs that can be reused to the free ones, and treats them alike."""


# CPU-HINT-010 and -011: what is held


@shape(hints, "for_container")
def _replace_holder_hints(
    instead: Change, rule: Any, policy: Any, state: Any, pod: Pod, container: Any
) -> Any:
    """Lets `instead` give the hints of a container that holds CPUs.

    It is asked with how they are worked out, the policy, the state, the CPUs held, how many the
    container is due, and the container.
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
    """Takes the CPUs that an init container holds for free ones, which its pod does not need."""
    if held_cpus.bit_count() == count and container.runs_to_completion:
        return {"cpu": hints.generate(policy, policy.available(state), 0, count)}
    return rules()


@seeds("CPU-HINT-011").by(_replace_holder_hints)
def a_container_that_holds_enough_is_hinted_there(
    rules: Any, policy: Any, state: Any, held_cpus: int, count: int, container: PodContainer
) -> Any:
    """Refuses too few CPUs, and is content with more."""
    return (
        {"cpu": hints.generate(policy, held_cpus, 0, count)}
        if held_cpus.bit_count() > count
        else rules()
    )


# CPU-HINT-012 and -013: scope pod


@shape(Pod, "peak_exclusive_cpus")
def _change_peak(together: Callable[[Pod], int], rule: Any, self: Any) -> Any:
    """Lets `together` say how many CPUs a pod needs in scope pod."""
    return rule() if self.budget is not None else together(self)


@seeds("CPU-HINT-012").by(_change_peak)
def init_containers_count_all_together_in_scope_pod(pod: Pod) -> int:
    """Takes the larger of two sums."""
    starting = sum(pod.exclusive_cpus(one) for one in pod.containers if one.runs_to_completion)
    return max(starting, containers.peak(pod.containers, pod.exclusive_cpus))


@seeds("CPU-HINT-012").by(_change_peak)
def only_the_last_init_container_counts_in_scope_pod(pod: Pod) -> int:
    """Goes through the init containers, and keeps the last request."""
    starting = [one for one in pod.containers if one.runs_to_completion]
    rest = tuple(one for one in pod.containers if not one.runs_to_completion or one is starting[-1])
    return containers.peak(rest, pod.exclusive_cpus)


@seeds("CPU-HINT-013").by(_change_peak)
def sidecars_count_beside_all_init_containers(pod: Pod) -> int:
    """Adds sidecars to every init container, even to those that end before they start."""
    due = pod.exclusive_cpus
    sidecars = sum(due(one) for one in pod.containers if one.sidecar)
    starting = max((due(one) for one in pod.containers if one.runs_to_completion), default=0)
    running = sum(due(one) for one in pod.containers if not one.init)
    return sidecars + max(starting, running)
