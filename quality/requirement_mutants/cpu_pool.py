"""Violators of the shared CPU pool and the example pods of the documents."""

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
    """Lets containers without exclusive CPUs run on another set than the shared pool.

    `change` is given the node, the pod, the container and the shared pool.
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
    """The reserved CPUs of the shared pool; all of it where there are none."""
    reserved: int = cpus & node.setup.cpu.reserved
    return reserved or cpus


@shape(Pod, "exclusive_cpus")
def _exclusive(change: Change, rule: Any, self: Any, container: Any) -> Any:
    """Lets containers be due another number of exclusive CPUs."""
    return (
        rule() if self.shared_pool or self.budget is not None else change(self, container, rule())
    )


def _cpus(quantities: Any) -> Any:
    return quantity.parse(quantities.get("cpu", 0))


# The examples


@seeds("CPU-EXAMPLE-001").by(_change_visible_pool)
def containers_without_resources_run_nowhere(node: Any, pod: Any, container: Any, cpus: int) -> Any:
    """Who asks for nothing is given no CPU set."""
    return cpus if container.requests or container.limits else 0


@seeds("CPU-EXAMPLE-001").by(_exclusive)
def containers_without_resources_are_due_a_cpu(pod: Any, container: Any, count: int) -> Any:
    """No request equals no limit, so the pod is Guaranteed, and one CPU is the least."""
    return count if container.requests or container.limits or len(pod.containers) > 1 else 1


@seeds("CPU-EXAMPLE-002").by(_change_visible_pool)
def containers_without_a_cpu_quantity_run_on_reserved_cpus(
    node: Any, pod: Any, container: Any, cpus: int
) -> Any:
    """Who asks for memory alone runs where the system runs."""
    if container.requests and "cpu" not in {**container.requests, **container.limits}:
        return _on_reserved(node, cpus)
    return cpus


@seeds("CPU-EXAMPLE-003").by(_exclusive)
def whole_requests_below_whole_limits_are_exclusive(_pod: Any, container: Any, count: int) -> int:
    """What is requested is guaranteed, and a limit above that is a bonus."""
    requested, limited = _cpus(container.requests), _cpus(container.limits)
    whole = requested.denominator == limited.denominator == 1
    return int(requested) if whole and 0 < requested < limited else count


@seeds("CPU-EXAMPLE-004").around(StaticCPUPolicy, "allocate")
def two_cpus_are_one_core(rule: Any, self: Any, pod: Any, container: Any) -> Any:
    """Requests are counted in cores of two threads, on machines without them, too."""
    count = pod.exclusive_cpus(container)
    if count and count % 2 == 0 and self.topology.most_cpus_per_core == 1:
        requests = {**container.requests, "cpu": str(count // 2)}
        container = replace(container, requests=requests)
    return rule(container=container)


@seeds("CPU-EXAMPLE-004").by(_exclusive)
def two_cpus_with_little_memory_are_shared(pod: Any, container: Any, count: int) -> Any:
    """Memory is counted in gibibytes, rounded, and 200Mi are nothing to guarantee."""
    return 0 if quantity.parse(container.limits.get("memory", 0)) < 1 << 29 else count


@seeds("CPU-EXAMPLE-005").by(_exclusive)
def half_a_cpu_more_counts_as_a_whole_one(pod: Any, container: Any, count: int) -> int:
    """Fractions are rounded the usual way."""
    amount = _cpus(container.requests)
    rounded: int = math.ceil(amount)
    return rounded if pod.qos == "Guaranteed" and amount % 1 * 2 >= 1 else count


@seeds("CPU-EXAMPLE-006").after(manifest, "read_container")
def limits_alone_leave_requests_missing(container: Any, item: Any) -> Any:
    """What is not requested is zero, whatever the limits."""
    written = (item.get("resources") or {}).get("requests")
    return container if written else replace(container, requests={})


# What is in the pool


@shape(StaticCPUPolicy, "restore")
def _pool_without(left_out: Callable[[Any], int], rule: Any, self: Any, state: Any) -> Any:
    """Lets the shared pool begin without some CPUs, which nobody ever gets."""
    lost = 0 if self.options.strict else left_out(self)
    if not lost:
        return rule(state=state)
    if state.shared:
        state = replace(state, shared=state.shared | lost)
    restored = rule(state=state)
    return replace(restored, shared=restored.shared & ~lost)


@seeds("CPU-POOL-001").by(_pool_without)
def pool_begins_with_the_cpus_of_the_largest_cores(policy: Any) -> Any:
    """A core with threads offline is broken, and a small one of a hybrid machine looks alike."""
    return union(
        core
        for core in policy.topology.cores.values()
        if core.bit_count() < policy.topology.most_cpus_per_core and not core & policy.reserved
    )


@seeds("CPU-POOL-001").by(_pool_without)
def pool_begins_with_64_cpus(policy: Any) -> Any:
    """A mask of CPUs is one machine word."""
    return policy.topology.cpus & ~((1 << 64) - 1) & ~policy.reserved


# Who runs on the whole pool


def _on_one_node(node: Any, cpus: int) -> int:
    """The part of the shared pool on the first NUMA node that has one."""
    parts = [cpus & mask for mask in node.setup.topology.nodes.values()]
    return next((part for part in parts if part), cpus)


@seeds("CPU-POOL-002").by(_change_visible_pool)
def best_effort_containers_stay_on_one_node(node: Any, pod: Any, container: Any, cpus: int) -> Any:
    """Small pods are kept together."""
    return _on_one_node(node, cpus) if pod.qos == "BestEffort" else cpus


@seeds("CPU-POOL-002").by(_change_visible_pool)
def best_effort_init_containers_run_on_reserved_cpus(
    node: Any, pod: Any, container: Any, cpus: int
) -> Any:
    """To start a pod is the system's work."""
    return (
        _on_reserved(node, cpus)
        if pod.qos == "BestEffort" and container.runs_to_completion
        else cpus
    )


@seeds("CPU-POOL-002").by(_change_visible_pool)
def best_effort_sidecars_stay_off_reserved_cpus(
    node: Any, pod: Any, container: Any, cpus: int
) -> Any:
    """What runs for long is kept out of the system's way."""
    if pod.qos == "BestEffort" and container.sidecar:
        return cpus & ~node.setup.cpu.reserved or cpus
    return cpus


@seeds("CPU-POOL-003").by(_exclusive)
def containers_are_guaranteed_by_themselves(pod: Any, container: Any, count: int) -> Any:
    """Each container's own class decides, whatever else its pod has."""
    if qos.class_of((container,)) == "Guaranteed":
        return quantity.whole_cpus(container.requests.get("cpu", 0)) or 0
    return count


@seeds("CPU-POOL-003").by(_exclusive)
def cpus_are_guaranteed_without_memory(pod: Any, container: Any, count: int) -> int:
    """For the CPU Manager, equal requests and limits of CPUs are enough."""
    requested = _cpus(container.requests)
    if pod.qos != "Burstable" or requested != _cpus(container.limits):
        return count
    return int(requested) if requested.denominator == 1 else count


@seeds("CPU-POOL-003").by(_change_visible_pool)
def burstable_sidecars_stay_on_one_node(node: Any, pod: Any, container: Any, cpus: int) -> Any:
    """What runs for long is kept together."""
    return _on_one_node(node, cpus) if pod.qos == "Burstable" and container.sidecar else cpus


@seeds("CPU-POOL-003").by(_change_visible_pool)
def burstable_init_containers_run_on_reserved_cpus(
    node: Any, pod: Any, container: Any, cpus: int
) -> Any:
    """To start a pod is the system's work."""
    return (
        _on_reserved(node, cpus)
        if pod.qos == "Burstable" and container.runs_to_completion
        else cpus
    )


# Fractions of CPUs


@shape(Pod, "exclusive_cpus", Changes.after)
def _fractions(change: Callable[[Any, Any], int], count: Any, self: Any, container: Any) -> Any:
    """Lets containers of Guaranteed pods with a fraction of a CPU be due exclusive ones."""
    amount = quantity.parse(container.requests.get("cpu", 0))
    guaranteed = self.qos == "Guaranteed" and not self.shared_pool and self.budget is None
    if count or not guaranteed or amount.denominator == 1:
        return count
    return change(container, amount)


@seeds("CPU-POOL-004").by(_fractions)
def fractions_of_sidecars_are_rounded_up(container: Any, amount: Any) -> Any:
    """A sidecar runs beside the others, and must not disturb them."""
    return math.ceil(amount) if container.sidecar else 0


@seeds("CPU-POOL-004").by(_fractions)
def fractions_of_init_containers_are_rounded_up(container: Any, amount: Any) -> Any:
    """An init container's CPUs are reused, so it may have more of them."""
    return math.ceil(amount) if container.runs_to_completion else 0


@seeds("CPU-POOL-004").by(_change_visible_pool)
def fractions_run_on_the_exclusive_cpus_of_their_pod(
    node: Any, pod: Any, _container: Any, cpus: int
) -> int:
    """Containers of one pod run together."""
    if pod.qos != "Guaranteed":
        return cpus
    return union(node.cpus.state.exclusive.get(pod.uid, {}).values()) or cpus


@seeds("CPU-POOL-004").by(_change_visible_pool)
def fractions_run_on_the_nodes_of_their_affinity(
    node: Any, pod: Any, container: Any, cpus: int
) -> int:
    """The Topology Manager's affinity is for every container of a Guaranteed pod."""
    kept = node.affinity.get((pod.uid, container.name))
    if pod.qos != "Guaranteed" or kept is None or kept.numa is None:
        return cpus
    near: int = cpus & node.setup.cpu.aligned_cpus(kept)
    return near or cpus


# CPUs that are shared and exclusive at once


def _left_in_the_pool(changes: Changes, stays: Callable[[Any], bool]) -> None:
    """Lets the exclusive CPUs of some containers be shared besides."""

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
    """An init container ends soon, so the pool is left as it is."""


@seeds("CPU-POOL-005").of(_left_in_the_pool, lambda container: container.sidecar)
def cpus_of_sidecars_stay_shared() -> None:
    """A sidecar helps the others, and shares its CPUs with them."""


@seeds("CPU-POOL-006").around(Assignment, "whole_cores")
def broken_cores_are_taken_whole(rule: Any, self: Any, progress: Any) -> Any:
    """A core is free if as many of its CPUs are free as cores have on average."""
    topology = self.topology
    if topology.has_even_cores:
        return rule()
    free = progress.free
    return progress.take_units(
        topology.cores[core]
        for core in cores_in_order(topology, free)
        if (topology.cores[core] & free).bit_count() >= topology.cpus_per_core
    )


# CPUs that get lost


@shape(CPUState, "release", Changes.after)
def _lose_cpus(loses: Change, after: Any, self: Any, uid: str, container: str) -> Any:
    """Lets some containers' CPUs not come back when these are released."""
    if after is self or not loses(uid, container):
        return after
    return replace(after, shared=self.shared)


@seeds("CPU-POOL-007")
def cpus_of_pods_that_left_during_a_restart_are_lost(changes: Changes) -> None:
    """Entries of pods that are gone are dropped from the checkpoint."""
    starting = changes.record_argument(startup, "start", "args", inside=True)
    _lose_cpus(changes, lambda uid, name: bool(starting))


def _removing(
    changes: Changes, lost_containers: Callable[[Any, Any], set[tuple[str, str]]]
) -> None:
    """Lets containers lose their CPUs; `lost_containers` selects them by pod and request."""
    places: set[tuple[str, str]] = set()

    def remove(rule: Any, self: Any, args: Any) -> Any:
        pod = self.pods.get(args.uid)
        places.update(lost_containers(pod, args) if pod else ())
        return rule()

    changes.around(StartedNode, "remove", remove)
    _lose_cpus(changes, lambda uid, name: (uid, name) in places)


@seeds("CPU-POOL-007").by(_removing)
def cpus_that_only_init_containers_had_are_lost(pod: Any, args: Any) -> Any:
    """A pod gives back what its running containers have."""
    return {(pod.uid, each.name) for each in pod.containers if each.runs_to_completion}


@seeds("CPU-POOL-007").by(_removing)
def cpus_of_a_container_that_ends_alone_are_lost(pod: Any, args: Any) -> Any:
    """CPUs come back with their pod, which does not have them any more."""
    return {(pod.uid, args.container)} if args.container else set()


# An empty pool


@seeds("CPU-POOL-008").around(StaticCPUPolicy, "allocate")
def a_request_for_the_whole_machine_gets_it(
    rule: Any, self: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Whoever asks for every CPU of an idle machine is given the machine."""
    every = self.topology.cpus
    if pod.exclusive_cpus(container) == every.bit_count() and state.shared == every:
        self = replace(self, reserved=0, broken_cores=0)
    return rule(self=self)
