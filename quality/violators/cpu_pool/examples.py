"""Violators of the documents' example pods, and of who runs on the shared pool."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.cpu.topology import union
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import manifest, qos, quantity
from numaproof.reference.pods.pod import Pod
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-pool")


def _seen(changes: Changes, change: Callable[[Any, Any, Any, int], int]) -> None:
    """Lets containers without exclusive CPUs run on another set than the shared pool.

    `change` is given the node, the pod, the container and the shared pool.
    """
    nodes: list[Any] = []

    def entering(original: Any, self: Any, args: Any) -> Any:
        nodes.append(self)
        return original(self, args)

    def where(original: Any, self: Any, uid: str, name: str) -> Any:
        cpus = original(self, uid, name)
        if self.of(uid, name) is not None or not nodes:
            return cpus
        node = nodes[-1]
        pod = node.pods[uid]
        return change(node, pod, pod.container(name), cpus) if node.setup.cpu else cpus

    for operation in ("admit", "state", "reconcile"):
        changes.around(StartedNode, operation, entering)
    changes.around(CPUState, "where", where)


def _on_reserved(node: Any, cpus: int) -> int:
    """The reserved CPUs of the shared pool; all of it where there are none."""
    reserved: int = cpus & node.setup.cpu.reserved
    return reserved or cpus


def _exclusive(changes: Changes, change: Callable[[Any, Any, int], int]) -> None:
    """Lets containers be due another number of exclusive CPUs."""
    changes.around(
        Pod,
        "exclusive_cpus",
        lambda original, self, container: (
            original(self, container)
            if self.shared_pool or self.budget is not None
            else change(self, container, original(self, container))
        ),
    )


def _cpus(quantities: Any) -> Any:
    return quantity.parse(quantities.get("cpu", 0))


# The examples


@seeds("CPU-EXAMPLE-001")
def containers_without_resources_run_nowhere(changes: Changes) -> None:
    """Who asks for nothing is given no CPU set."""
    _seen(
        changes,
        lambda node, pod, container, cpus: cpus if container.requests or container.limits else 0,
    )


@seeds("CPU-EXAMPLE-001")
def containers_without_resources_are_due_a_cpu(changes: Changes) -> None:
    """No request equals no limit, so the pod is Guaranteed, and one CPU is the least."""
    _exclusive(
        changes,
        lambda pod, container, count: (
            count if container.requests or container.limits or len(pod.containers) > 1 else 1
        ),
    )


@seeds("CPU-EXAMPLE-002")
def containers_without_a_cpu_quantity_run_on_reserved_cpus(changes: Changes) -> None:
    """Who asks for memory alone runs where the system runs."""
    _seen(
        changes,
        lambda node, pod, container, cpus: (
            _on_reserved(node, cpus)
            if container.requests and "cpu" not in {**container.requests, **container.limits}
            else cpus
        ),
    )


@seeds("CPU-EXAMPLE-003")
def whole_requests_below_whole_limits_are_exclusive(changes: Changes) -> None:
    """What is requested is guaranteed, and a limit above that is a bonus."""

    def change(_pod: Any, container: Any, count: int) -> int:
        requested, limited = _cpus(container.requests), _cpus(container.limits)
        whole = requested.denominator == limited.denominator == 1
        return int(requested) if whole and 0 < requested < limited else count

    _exclusive(changes, change)


@seeds("CPU-EXAMPLE-004")
def two_cpus_are_one_core(changes: Changes) -> None:
    """Requests are counted in cores of two threads, on machines without them, too."""

    def allocate(original: Any, self: Any, state: Any, pod: Any, *rest: Any) -> Any:
        container, affinity = rest
        count = pod.exclusive_cpus(container)
        if count and count % 2 == 0 and self.topology.most_cpus_per_core == 1:
            requests = {**container.requests, "cpu": str(count // 2)}
            container = dataclasses.replace(container, requests=requests)
        return original(self, state, pod, container, affinity)

    changes.around(StaticCPUPolicy, "allocate", allocate)


@seeds("CPU-EXAMPLE-004")
def two_cpus_with_little_memory_are_shared(changes: Changes) -> None:
    """Memory is counted in gibibytes, rounded, and 200Mi are nothing to guarantee."""
    _exclusive(
        changes,
        lambda pod, container, count: (
            0 if quantity.parse(container.limits.get("memory", 0)) < 1 << 29 else count
        ),
    )


@seeds("CPU-EXAMPLE-005")
def half_a_cpu_more_counts_as_a_whole_one(changes: Changes) -> None:
    """Fractions are rounded the usual way."""

    def change(pod: Any, container: Any, count: int) -> int:
        amount = _cpus(container.requests)
        rounded: int = math.ceil(amount)
        return rounded if pod.qos == "Guaranteed" and amount % 1 * 2 >= 1 else count

    _exclusive(changes, change)


@seeds("CPU-EXAMPLE-006")
def limits_alone_leave_requests_missing(changes: Changes) -> None:
    """What is not requested is zero, whatever the limits."""

    def read(original: Any, item: Any, where: str, *, init: bool) -> Any:
        container = original(item, where, init=init)
        written = (item.get("resources") or {}).get("requests")
        return container if written else dataclasses.replace(container, requests={})

    changes.around(manifest, "read_container", read)


# What is in the pool


def _pool_without(changes: Changes, left_out: Callable[[Any], int]) -> None:
    """Lets the shared pool begin without some CPUs, which nobody ever gets."""

    def restore(original: Any, self: Any, state: Any) -> Any:
        lost = 0 if self.options.strict else left_out(self)
        if not lost:
            return original(self, state)
        if state.shared:
            state = dataclasses.replace(state, shared=state.shared | lost)
        restored = original(self, state)
        return dataclasses.replace(restored, shared=restored.shared & ~lost)

    changes.around(StaticCPUPolicy, "restore", restore)


@seeds("CPU-POOL-001")
def pool_begins_with_the_cpus_of_the_largest_cores(changes: Changes) -> None:
    """A core with threads offline is broken, and a small one of a hybrid machine looks alike."""
    _pool_without(
        changes,
        lambda policy: union(
            core
            for core in policy.topology.cores.values()
            if core.bit_count() < policy.topology.most_cpus_per_core and not core & policy.reserved
        ),
    )


@seeds("CPU-POOL-001")
def pool_begins_with_64_cpus(changes: Changes) -> None:
    """A mask of CPUs is one machine word."""
    _pool_without(
        changes, lambda policy: policy.topology.cpus & ~((1 << 64) - 1) & ~policy.reserved
    )


# Who runs on the whole pool


def _on_one_node(node: Any, cpus: int) -> int:
    """The part of the shared pool on the first NUMA node that has one."""
    parts = [cpus & mask for mask in node.setup.topology.nodes.values()]
    return next((part for part in parts if part), cpus)


@seeds("CPU-POOL-002")
def best_effort_containers_stay_on_one_node(changes: Changes) -> None:
    """Small pods are kept together."""
    _seen(
        changes,
        lambda node, pod, container, cpus: (
            _on_one_node(node, cpus) if pod.qos == "BestEffort" else cpus
        ),
    )


@seeds("CPU-POOL-002")
def best_effort_init_containers_run_on_reserved_cpus(changes: Changes) -> None:
    """To start a pod is the system's work."""
    _seen(
        changes,
        lambda node, pod, container, cpus: (
            _on_reserved(node, cpus) if pod.qos == "BestEffort" and container.passes else cpus
        ),
    )


@seeds("CPU-POOL-002")
def best_effort_sidecars_stay_off_reserved_cpus(changes: Changes) -> None:
    """What runs for long is kept out of the system's way."""
    _seen(
        changes,
        lambda node, pod, container, cpus: (
            cpus & ~node.setup.cpu.reserved or cpus
            if pod.qos == "BestEffort" and container.sidecar
            else cpus
        ),
    )


@seeds("CPU-POOL-003")
def containers_are_guaranteed_by_themselves(changes: Changes) -> None:
    """Each container's own class decides, whatever else its pod has."""
    _exclusive(
        changes,
        lambda pod, container, count: (
            quantity.whole_cpus(container.requests.get("cpu", 0)) or 0
            if qos.class_of((container,)) == "Guaranteed"
            else count
        ),
    )


@seeds("CPU-POOL-003")
def cpus_are_guaranteed_without_memory(changes: Changes) -> None:
    """For the CPU Manager, equal requests and limits of CPUs are enough."""

    def change(pod: Any, container: Any, count: int) -> int:
        requested = _cpus(container.requests)
        if pod.qos != "Burstable" or requested != _cpus(container.limits):
            return count
        return int(requested) if requested.denominator == 1 else count

    _exclusive(changes, change)


@seeds("CPU-POOL-003")
def burstable_sidecars_stay_on_one_node(changes: Changes) -> None:
    """What runs for long is kept together."""
    _seen(
        changes,
        lambda node, pod, container, cpus: (
            _on_one_node(node, cpus) if pod.qos == "Burstable" and container.sidecar else cpus
        ),
    )


@seeds("CPU-POOL-003")
def burstable_init_containers_run_on_reserved_cpus(changes: Changes) -> None:
    """To start a pod is the system's work."""
    _seen(
        changes,
        lambda node, pod, container, cpus: (
            _on_reserved(node, cpus) if pod.qos == "Burstable" and container.passes else cpus
        ),
    )
