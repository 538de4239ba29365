"""What remains free on a node, and the largest pod that still fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.capacity.allocatable import total_request
from numaproof.reference.errors import AdmissionError
from numaproof.simulation.alignment import nodes_of
from numaproof.simulation.requests import CPU
from numaproof.simulation.shared_pool import pool_requests
from numaproof.simulation.trials import trial_node

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.node import StartedNode

_MEMORY = "memory"
_MIB = 1 << 20
_UID = "largest pod"


class RemainingNode(msgspec.Struct, frozen=True):
    """What is free on a NUMA node.

    Attributes:
        numa: the node; None for devices without one.
        cpus: the CPUs that can be assigned exclusively.
        cores: the number of cores whose CPUs are all among them.
        memory: free bytes by type of memory; empty unless the policy is Static.
        devices: the number of free devices by resource; those near several nodes count on each.
    """

    numa: int | None
    cpus: CPUSet
    cores: int
    memory: dict[str, int]
    devices: dict[str, int]


class LargestPod(msgspec.Struct, frozen=True):
    """The largest Guaranteed pod with one container that the node admits.

    `memory`, in bytes, is the most that it can have with that many CPUs; `numa` are the nodes where
    it would be.
    """

    cpus: int
    memory: int
    numa: NUMASet


class Remaining(msgspec.Struct, frozen=True):
    """What remains on a node.

    Attributes:
        nodes: what is free on each NUMA node.
        shared: the CPUs of the shared pool.
        sharing_pods: the number of pods with containers in it.
        sharing_request: what these containers request, in thousandths of CPUs.
        largest: the largest pod that fits; None if the node admits no pod with a CPU of its own.
        largest_on_one_node: the largest pod whose CPUs and memory fit on one NUMA node.
    """

    nodes: tuple[RemainingNode, ...]
    shared: CPUSet
    sharing_pods: int
    sharing_request: int
    largest: LargestPod | None
    largest_on_one_node: LargestPod | None


def remaining(node: StartedNode) -> Remaining:
    """Returns what remains on a node; the node itself admits or refuses the largest pods."""
    sharing = dict(pool_requests(node))
    nodes = tuple(_on_node(node, number) for number in node.setup.nodes)
    nowhere = _devices(node, None)
    if nowhere:
        nodes = (*nodes, RemainingNode(None, CPUSet(), 0, {}, nowhere))
    return Remaining(
        nodes=nodes,
        shared=CPUSet.from_mask(node.cpus.state.shared),
        sharing_pods=len(sharing),
        sharing_request=sum(sharing.values()),
        largest=_largest(node, lambda _: True),
        largest_on_one_node=_largest(node, lambda numa: len(numa) == 1),
    )


def _on_node(node: StartedNode, number: int) -> RemainingNode:
    setup = node.setup
    free = 0
    if setup.cpu:
        free = setup.cpu.available(node.cpus.state) & setup.topology.nodes.get(number, 0)
    state = node.memory.state
    tables = state.nodes[number].tables if number in state.nodes else {}
    return RemainingNode(
        numa=number,
        cpus=CPUSet.from_mask(free),
        cores=sum(not core & ~free for core in setup.topology.cores.values() if core),
        memory={kind: table.free for kind, table in sorted(tables.items()) if table.total},
        devices=_devices(node, number),
    )


def _devices(node: StartedNode, number: int | None) -> dict[str, int]:
    state = node.device_manager.state
    found = {}
    for resource, devices in sorted(state.lists.items()):
        masks = [devices.nodes[one] or 0 for one in state.available(resource)]
        found[resource] = sum(
            not mask if number is None else bool(mask >> number & 1) for mask in masks
        )
    return {resource: count for resource, count in found.items() if count}


def _largest(node: StartedNode, fits: Callable[[NUMASet], bool]) -> LargestPod | None:
    """Returns the largest pod that the node admits on nodes that `fits` accepts."""

    def place(cpus: int, memory: int) -> NUMASet | None:
        numa = _place(node, cpus, memory)
        return numa if numa is not None and fits(numa) else None

    policy = node.setup.cpu
    free = _allocatable(node, CPU) // 1000
    step = 1
    if policy is not None:
        free = min(free, policy.available(node.cpus.state).bit_count())
        step = policy.assignment.cpus_per_core if policy.assignment.only_whole_cores else 1
    cpus = step * _greatest(free // step, lambda count: place(count * step, _MIB) is not None)
    if not cpus:
        return None
    most = _allocatable(node, _MEMORY) // _MIB
    memory = _MIB * _greatest(most, lambda count: place(cpus, count * _MIB) is not None)
    numa = place(cpus, memory)
    assert numa is not None
    return LargestPod(cpus, memory, numa)


def _greatest(limit: int, holds: Callable[[int], bool]) -> int:
    """Returns the greatest number up to `limit` that holds, or 0, by bisection.

    What is refused can be admitted with one more, for example where a policy aligns to sockets, so
    the limit itself is tried first.
    """
    if limit <= 0 or holds(limit):
        return max(0, limit)
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _place(node: StartedNode, cpus: int, memory: int) -> NUMASet | None:
    """Returns the NUMA nodes where a pod would be; None if the node refuses it."""
    amounts = {CPU: cpus, _MEMORY: memory}
    container = {"name": "main", "resources": {"limits": amounts, "requests": amounts}}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "largest", "namespace": "default", "uid": _UID},
        "spec": {"containers": [container]},
    }
    trial = trial_node(node)
    try:
        admitted = trial.admit(messages.AdmitArgs(manifest))
    except AdmissionError:
        return None
    return nodes_of(trial, admitted.containers["main"])


def _allocatable(node: StartedNode, resource: str) -> int:
    """Returns what is left of an allocatable resource, in the units of `total_request`."""
    assert node.setup.allocatable is not None
    used = sum(total_request(one, resource) for one in node.pods.values())
    return max(0, node.setup.allocatable.amounts[resource] - used)
