"""What remains free on a node, and the largest pod that still fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.protocol.sets import CPUSet
from numaproof.simulation.largest_pod import LargestPod, largest_pods
from numaproof.simulation.shared_pool import pool_requests

if TYPE_CHECKING:
    from numaproof.reference.node import StartedNode


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


def remaining(node: StartedNode, *, knows_memory: bool = True) -> Remaining:
    """Returns what remains on a node; the node itself admits or refuses the largest pods.

    `knows_memory` is whether the machine's description shows how much memory it has.
    """
    sharing = dict(pool_requests(node))
    largest, on_one_node = largest_pods(node)
    if not knows_memory:
        largest, on_one_node = _without_memory(largest), _without_memory(on_one_node)
    nodes = tuple(_on_node(node, number) for number in node.setup.nodes)
    nowhere = _devices(node, None)
    if nowhere:
        nodes = (*nodes, RemainingNode(None, CPUSet(), 0, {}, nowhere))
    return Remaining(
        nodes=nodes,
        shared=CPUSet.from_mask(node.cpus.state.shared),
        sharing_pods=len(sharing),
        sharing_request=sum(sharing.values()),
        largest=largest,
        largest_on_one_node=on_one_node,
    )


def _without_memory(pod: LargestPod | None) -> LargestPod | None:
    return pod and msgspec.structs.replace(pod, memory=None)


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
