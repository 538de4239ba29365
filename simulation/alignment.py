"""Whether a container's CPUs, memory and devices are on as few NUMA nodes as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.sets import NUMASet
from numaproof.reference.cpu.topology import touching

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol import messages
    from numaproof.reference.cpu.topology import CPUTopology
    from numaproof.reference.node import StartedNode


def nodes_of(node: StartedNode, container: messages.Container) -> NUMASet:
    """Returns the NUMA nodes of the container's exclusive CPUs, pinned memory and devices.

    A device near several nodes counts only if it is near none of the others.
    """
    used = NUMASet(touching(node.setup.topology.nodes, container.exclusive.mask)).mask
    for block in container.memory:
        used |= block.numa.mask
    near = [
        mask
        for resource, ids in (container.devices or {}).items()
        for one in ids
        if (mask := node.device_manager.state.lists[resource].nodes[one])
    ]
    for mask in near:
        if not mask & used:
            used |= mask
    return NUMASet.from_mask(used)


def fewest_nodes(topology: CPUTopology, cpus: int) -> int:
    """Returns on how few NUMA nodes an empty machine could provide some CPUs, at least 1."""
    sizes = sorted((mask.bit_count() for mask in topology.nodes.values()), reverse=True)
    nodes = 1
    while sum(sizes[:nodes]) < cpus and nodes < len(sizes):
        nodes += 1
    return nodes


def is_aligned(node: StartedNode, container: messages.Container) -> bool:
    """Whether the container is on as few NUMA nodes as an empty machine would need for its CPUs."""
    fewest = fewest_nodes(node.setup.topology, len(container.exclusive))
    return len(nodes_of(node, container)) <= fewest


def are_aligned(node: StartedNode, containers: Mapping[str, messages.Container]) -> bool | None:
    """Whether all containers with exclusive CPUs are aligned; None if there are none."""
    holders = [one for one in containers.values() if one.exclusive]
    return all(is_aligned(node, one) for one in holders) if holders else None
