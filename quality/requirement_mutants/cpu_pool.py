"""Mutants of the shared CPU pool and of the documentation's example pods."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.cpu.assignment import Assignment, cores_in_order
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.cpu.topology import union
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import manifest, qos, quantity
from numaproof.reference.pods.pod import Pod
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-pool")


# Examples


def _change_visible_pool(changes: Changes, change: Callable[[Any, Any, Any, int], int]) -> None:
    """Lets `change` replace the CPUs of containers without exclusive CPUs.

    `change` is called with the node, the pod, the container and the shared pool.
    """
    nodes: list[Any] = []

    def enter(rule: Any, self: Any, args: Any) -> Any:
        nodes.append(self)
        return rule(self, args)

    def where(cpus: Any, self: Any, uid: str, container: str) -> Any:
        if self.of(uid, container) is not None or not nodes:
            return cpus
        node = nodes[-1]
        pod = node.pods[uid]
        return change(node, pod, pod.container(container), cpus) if node.setup.cpu else cpus

    for operation in ("admit", "state", "reconcile"):
        changes.around(StartedNode, operation, enter)
    changes.after(CPUState, "allowed_cpus", where)


def _on_reserved(node: Any, cpus: int) -> int:
    """Returns the reserved CPUs in the shared pool, or the whole pool if it has none."""
    reserved: int = cpus & node.setup.cpu.reserved
    return reserved or cpus


@shape(Pod, "exclusive_cpus")
def _exclusive(change: Change, rule: Any, self: Any, container: Any) -> Any:
    """Lets `change` override how many exclusive CPUs containers get."""
    return (
        rule() if self.shared_pool or self.budget is not None else change(self, container, rule())
    )


def _cpus(quantities: Any) -> Any:
    return quantity.parse(quantities.get("cpu", 0))


# The examples


@seeds("CPU-EXAMPLE-001").by(_change_visible_pool)
def containers_without_resources_run_nowhere(node: Any, pod: Any, container: Any, cpus: int) -> Any:
    """Gives containers without requests and limits an empty CPU set."""
    return cpus if container.requests or container.limits else 0


@seeds("CPU-EXAMPLE-001").by(_exclusive)
def containers_without_resources_are_due_a_cpu(pod: Any, container: Any, count: int) -> Any:
    """Treats a container without requests and limits as Guaranteed with one CPU."""
    return count if container.requests or container.limits or len(pod.containers) > 1 else 1


@seeds("CPU-EXAMPLE-002").by(_change_visible_pool)
def containers_without_a_cpu_quantity_run_on_reserved_cpus(
    node: Any, pod: Any, container: Any, cpus: int
) -> Any:
    """Confines containers that request only memory to reserved CPUs."""
    if container.requests and "cpu" not in {**container.requests, **container.limits}:
        return _on_reserved(node, cpus)
    return cpus


@seeds("CPU-EXAMPLE-003").by(_exclusive)
def whole_requests_below_whole_limits_are_exclusive(_pod: Any, container: Any, count: int) -> int:
    """Gives containers exclusive CPUs for their request even if their limit is higher."""
    requested, limited = _cpus(container.requests), _cpus(container.limits)
    whole = requested.denominator == limited.denominator == 1
    return int(requested) if whole and 0 < requested < limited else count


@seeds("CPU-EXAMPLE-004").around(StaticCPUPolicy, "allocate")
def two_cpus_are_one_core(rule: Any, self: Any, pod: Any, container: Any) -> Any:
    """Counts two CPUs as one core, even on machines without SMT."""
    count = pod.exclusive_cpus(container)
    if count and count % 2 == 0 and self.topology.most_cpus_per_core == 1:
        requests = {**container.requests, "cpu": str(count // 2)}
        container = replace(container, requests=requests)
    return rule(container=container)


@seeds("CPU-EXAMPLE-004").by(_exclusive)
def two_cpus_with_little_memory_are_shared(pod: Any, container: Any, count: int) -> Any:
    """Rounds memory to GiB, so 200Mi counts as none."""
    return 0 if quantity.parse(container.limits.get("memory", 0)) < 1 << 29 else count


@seeds("CPU-EXAMPLE-005").by(_exclusive)
def half_a_cpu_more_counts_as_a_whole_one(pod: Any, container: Any, count: int) -> int:
    """Rounds fractional requests to the nearest integer."""
    amount = _cpus(container.requests)
    rounded: int = math.ceil(amount)
    return rounded if pod.qos == "Guaranteed" and amount % 1 * 2 >= 1 else count


@seeds("CPU-EXAMPLE-006").after(manifest, "read_container")
def limits_alone_leave_requests_missing(container: Any, item: Any) -> Any:
    """Doesn't default requests to the limits."""
    written = (item.get("resources") or {}).get("requests")
    return container if written else replace(container, requests={})


# CPUs in the pool


@shape(StaticCPUPolicy, "restore")
def _pool_without(left_out: Callable[[Any], int], rule: Any, self: Any, state: Any) -> Any:
    """Omits some CPUs from the initial shared pool, so no container ever gets them."""
    lost = 0 if self.options.strict else left_out(self)
    if not lost:
        return rule(state=state)
    if state.shared:
        state = replace(state, shared=state.shared | lost)
    restored = rule(state=state)
    return replace(restored, shared=restored.shared & ~lost)


@seeds("CPU-POOL-001").by(_pool_without)
def pool_begins_with_the_cpus_of_the_largest_cores(policy: Any) -> Any:
    """Omits cores smaller than the largest."""
    return union(
        core
        for core in policy.topology.cores.values()
        if core.bit_count() < policy.topology.most_cpus_per_core and not core & policy.reserved
    )


@seeds("CPU-POOL-001").by(_pool_without)
def pool_begins_with_64_cpus(policy: Any) -> Any:
    """Keeps only CPUs below 64, as if masks were 64 bits wide."""
    return policy.topology.cpus & ~((1 << 64) - 1) & ~policy.reserved


# Containers in the shared pool


def _on_one_node(node: Any, cpus: int) -> int:
    """Returns the shared pool's CPUs on its first NUMA node."""
    parts = [cpus & mask for mask in node.setup.topology.nodes.values()]
    return next((part for part in parts if part), cpus)


@seeds("CPU-POOL-002").by(_change_visible_pool)
def best_effort_containers_stay_on_one_node(node: Any, pod: Any, container: Any, cpus: int) -> Any:
    """Confines BestEffort containers to one NUMA node."""
    return _on_one_node(node, cpus) if pod.qos == "BestEffort" else cpus


@seeds("CPU-POOL-002").by(_change_visible_pool)
def best_effort_init_containers_run_on_reserved_cpus(
    node: Any, pod: Any, container: Any, cpus: int
) -> Any:
    """Confines BestEffort init containers to reserved CPUs."""
    return (
        _on_reserved(node, cpus)
        if pod.qos == "BestEffort" and container.runs_to_completion
        else cpus
    )


@seeds("CPU-POOL-002").by(_change_visible_pool)
def best_effort_sidecars_stay_off_reserved_cpus(
    node: Any, pod: Any, container: Any, cpus: int
) -> Any:
    """Keeps BestEffort sidecars off reserved CPUs."""
    if pod.qos == "BestEffort" and container.sidecar:
        return cpus & ~node.setup.cpu.reserved or cpus
    return cpus


@seeds("CPU-POOL-003").by(_exclusive)
def containers_are_guaranteed_by_themselves(pod: Any, container: Any, count: int) -> Any:
    """Decides by the QoS class that the container would have alone."""
    if qos.class_of((container,)) == "Guaranteed":
        return quantity.whole_cpus(container.requests.get("cpu", 0)) or 0
    return count


@seeds("CPU-POOL-003").by(_exclusive)
def cpus_are_guaranteed_without_memory(pod: Any, container: Any, count: int) -> int:
    """Ignores memory when deciding whether a pod is Guaranteed."""
    requested = _cpus(container.requests)
    if pod.qos != "Burstable" or requested != _cpus(container.limits):
        return count
    return int(requested) if requested.denominator == 1 else count


@seeds("CPU-POOL-003").by(_change_visible_pool)
def burstable_sidecars_stay_on_one_node(node: Any, pod: Any, container: Any, cpus: int) -> Any:
    """Confines Burstable sidecars to one NUMA node."""
    return _on_one_node(node, cpus) if pod.qos == "Burstable" and container.sidecar else cpus


@seeds("CPU-POOL-003").by(_change_visible_pool)
def burstable_init_containers_run_on_reserved_cpus(
    node: Any, pod: Any, container: Any, cpus: int
) -> Any:
    """Confines Burstable init containers to reserved CPUs."""
    return (
        _on_reserved(node, cpus)
        if pod.qos == "Burstable" and container.runs_to_completion
        else cpus
    )


# Fractional requests


@shape(Pod, "exclusive_cpus", Changes.after)
def _fractions(change: Callable[[Any, Any], int], count: Any, self: Any, container: Any) -> Any:
    """Lets `change` give exclusive CPUs to fractional requests in Guaranteed pods."""
    amount = quantity.parse(container.requests.get("cpu", 0))
    guaranteed = self.qos == "Guaranteed" and not self.shared_pool and self.budget is None
    if count or not guaranteed or amount.denominator == 1:
        return count
    return change(container, amount)


@seeds("CPU-POOL-004").by(_fractions)
def fractions_of_sidecars_are_rounded_up(container: Any, amount: Any) -> Any:
    """Rounds fractional requests of sidecars up to exclusive CPUs."""
    return math.ceil(amount) if container.sidecar else 0


@seeds("CPU-POOL-004").by(_fractions)
def fractions_of_init_containers_are_rounded_up(container: Any, amount: Any) -> Any:
    """Rounds fractional requests of init containers up to exclusive CPUs."""
    return math.ceil(amount) if container.runs_to_completion else 0


@seeds("CPU-POOL-004").by(_change_visible_pool)
def fractions_run_on_the_exclusive_cpus_of_their_pod(
    node: Any, pod: Any, _container: Any, cpus: int
) -> int:
    """Runs containers with fractional requests on the exclusive CPUs of their pod."""
    if pod.qos != "Guaranteed":
        return cpus
    return union(node.cpus.state.exclusive.get(pod.uid, {}).values()) or cpus


@seeds("CPU-POOL-004").by(_change_visible_pool)
def fractions_run_on_the_nodes_of_their_affinity(
    node: Any, pod: Any, container: Any, cpus: int
) -> int:
    """Confines containers with fractional requests to the NUMA nodes of their affinity."""
    kept = node.affinity.get((pod.uid, container.name))
    if pod.qos != "Guaranteed" or kept is None or kept.numa is None:
        return cpus
    near: int = cpus & node.setup.cpu.aligned_cpus(kept)
    return near or cpus


# CPUs that are both shared and exclusive


def _left_in_the_pool(changes: Changes, stays: Callable[[Any], bool]) -> None:
    """Keeps some containers' exclusive CPUs in the shared pool."""

    def allocate(after: Any, pod: Any, container: Any) -> Any:
        if stays(container):
            own = after.of(pod.uid, container.name) or 0
            after = replace(after, shared=after.shared | own)
        return after

    def available(rule: Any, state: Any) -> Any:
        return rule() & ~union(cpus for _, _, cpus in state)

    changes.after(StaticCPUPolicy, "allocate", allocate)
    changes.around(StaticCPUPolicy, "available", available)


@seeds("CPU-POOL-005").of(_left_in_the_pool, lambda container: container.runs_to_completion)
def cpus_of_init_containers_stay_shared() -> None:
    """Keeps the exclusive CPUs of init containers in the shared pool."""


@seeds("CPU-POOL-005").of(_left_in_the_pool, lambda container: container.sidecar)
def cpus_of_sidecars_stay_shared() -> None:
    """Keeps the exclusive CPUs of sidecars in the shared pool."""


@seeds("CPU-POOL-006").around(Assignment, "whole_cores")
def broken_cores_are_taken_whole(rule: Any, self: Any, progress: Any) -> Any:
    """Takes a core as free if it has the average number of free CPUs per core."""
    topology = self.topology
    if topology.has_even_cores:
        return rule()
    free = progress.free
    return progress.take_units(
        topology.cores[core]
        for core in cores_in_order(topology, free)
        if (topology.cores[core] & free).bit_count() >= topology.cpus_per_core
    )


# Lost CPUs


@shape(CPUState, "release", Changes.after)
def _lose_cpus(loses: Change, after: Any, self: Any, uid: str, container: str) -> Any:
    """Doesn't return the CPUs of containers selected by `loses` to the shared pool."""
    if after is self or not loses(uid, container):
        return after
    return replace(after, shared=self.shared)


@seeds("CPU-POOL-007")
def cpus_of_pods_that_left_during_a_restart_are_lost(changes: Changes) -> None:
    """Loses the CPUs of pods that left during a restart."""
    starting = changes.record_argument(startup, "start", "args", inside=True)
    _lose_cpus(changes, lambda uid, name: bool(starting))


def _removing(
    changes: Changes, lost_containers: Callable[[Any, Any], set[tuple[str, str]]]
) -> None:
    """Loses the CPUs of containers selected by `lost_containers`, given the pod and the request."""
    places: set[tuple[str, str]] = set()

    def remove(rule: Any, self: Any, args: Any) -> Any:
        pod = self.pods.get(args.uid)
        places.update(lost_containers(pod, args) if pod else ())
        return rule()

    changes.around(StartedNode, "remove", remove)
    _lose_cpus(changes, lambda uid, name: (uid, name) in places)


@seeds("CPU-POOL-007").by(_removing)
def cpus_that_only_init_containers_had_are_lost(pod: Any, args: Any) -> Any:
    """Loses the CPUs of init containers when their pod leaves."""
    return {(pod.uid, each.name) for each in pod.containers if each.runs_to_completion}


@seeds("CPU-POOL-007").by(_removing)
def cpus_of_a_container_that_ends_alone_are_lost(pod: Any, args: Any) -> Any:
    """Loses the CPUs of a container that ends before its pod."""
    return {(pod.uid, args.container)} if args.container else set()


# An empty pool


@seeds("CPU-POOL-008").around(StaticCPUPolicy, "allocate")
def a_request_for_the_whole_machine_gets_it(
    rule: Any, self: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Also allocates reserved CPUs to a container that requests all CPUs of an idle machine."""
    every = self.topology.cpus
    if pod.exclusive_cpus(container) == every.bit_count() and state.shared == every:
        self = replace(self, reserved=0, broken_cores=0)
    return rule(self=self)
