"""What a node has and who holds it: CPUs, memory by NUMA node, devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.reference.node import StartedNode


class NodePolicies(msgspec.Struct, frozen=True):
    """The policies of the node's managers, by their names in KubeletConfiguration."""

    cpu: str
    memory: str
    topology: str
    scope: str


class MemoryOfNode(msgspec.Struct, frozen=True):
    """Memory of one type on one NUMA node, in bytes; `reserved` is for the system.

    `allocated` is held by containers, which share the nodes of `group`.
    """

    node: int
    type: str
    total: int
    reserved: int
    allocated: int
    free: int
    group: NUMASet


class DeviceOfNode(msgspec.Struct, frozen=True):
    """A device and its owner; `pod` and `container` are empty for a free device."""

    resource: str
    id: str
    numa: NUMASet | None
    healthy: bool
    pod: str = ""
    container: str = ""


class NodeView(msgspec.Struct, frozen=True):
    """The node after the last admission; `memory` is empty unless the policy is Static."""

    policies: NodePolicies
    shared: CPUSet
    reserved: CPUSet
    memory: tuple[MemoryOfNode, ...]
    devices: tuple[DeviceOfNode, ...]


def view(node: StartedNode) -> NodeView:
    """What is on the node now."""
    setup = node.setup
    return NodeView(
        policies=NodePolicies(
            setup.cpu_policy,
            setup.memory_policy,
            setup.topology_policy.name if setup.topology_policy else "none",
            setup.scope,
        ),
        shared=CPUSet.from_mask(node.cpus.state.shared),
        reserved=CPUSet.from_mask(setup.cpu.reserved if setup.cpu else 0),
        memory=tuple(_memory(node)),
        devices=tuple(_devices(node)),
    )


def _memory(node: StartedNode) -> Iterator[MemoryOfNode]:
    for number, memory in node.memory.state.nodes.items():
        for kind, table in sorted(memory.tables.items()):
            if table.total:
                yield MemoryOfNode(
                    node=number,
                    type=kind,
                    total=table.total,
                    reserved=table.system,
                    allocated=table.reserved,
                    free=table.free,
                    group=NUMASet.from_mask(memory.cells),
                )


def _devices(node: StartedNode) -> Iterator[DeviceOfNode]:
    state = node.device_manager.state
    owners = {
        (resource, device): (uid, name)
        for uid, containers in state.held.items()
        for name, resources in containers.items()
        for resource, ids in resources.items()
        for device in ids
    }
    for resource, devices in sorted(state.lists.items()):
        for device, near in devices.nodes.items():
            numa = None if near is None else NUMASet.from_mask(near)
            owner = owners.get((resource, device), ("", ""))
            yield DeviceOfNode(resource, device, numa, device in devices.healthy, *owner)
