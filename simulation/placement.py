"""What an admitted pod did not get: exclusive CPUs, or resources inside its affinity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.protocol.sets import NUMASet
from numaproof.reference.cpu.topology import touching
from numaproof.reference.pods import quantity
from numaproof.simulation.requests import CPU, why_no_cpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol import messages
    from numaproof.reference.node import NodeSetup, StartedNode
    from numaproof.reference.pods.pod import Pod


class OutsideAffinity(msgspec.Struct, frozen=True):
    """Resources of a container on NUMA nodes that are not in its affinity.

    `resource` is ``cpu``, a type of memory, or a resource of devices; `nodes` are those outside.
    """

    container: str
    resource: str
    nodes: NUMASet


def why_shared(setup: NodeSetup, pod: Pod, containers: messages.Containers) -> dict[str, str]:
    """Returns why containers that request CPUs have none of their own, by container.

    CPUs requested at pod level count for containers that request none.
    It is empty if the CPU Manager assigns no CPUs to any container.
    """
    if setup.cpu is None:
        return {}
    return {
        one.name: why_no_cpus(setup, pod, one) or "the pod's CPUs are shared by its containers"
        for one in pod.containers
        if one.name in containers
        and not containers[one.name].exclusive
        and quantity.parse(one.requests.get(CPU, pod.requests.get(CPU, 0)))
    }


def outside_affinity(
    node: StartedNode, containers: messages.Containers
) -> tuple[OutsideAffinity, ...]:
    """Returns the resources of containers that are on nodes outside their affinity."""
    return tuple(
        OutsideAffinity(name, resource, NUMASet.from_mask(nodes))
        for name, held in containers.items()
        if held.affinity.numa is not None
        for resource, nodes in _outside(node, held, held.affinity.numa.mask)
    )


def _outside(
    node: StartedNode, container: messages.Container, affinity: int
) -> Iterator[tuple[str, int]]:
    """Yields each resource with nodes outside the affinity, and a mask of these nodes."""
    if node.setup.cpu is not None:
        nodes = node.setup.cpu.topology.nodes
        used = NUMASet(touching(nodes, container.exclusive.mask)).mask
        if used & ~affinity:
            yield CPU, used & ~affinity
    for block in container.memory:
        if block.numa.mask & ~affinity:
            yield block.type, block.numa.mask & ~affinity
    for resource, ids in (container.devices or {}).items():
        near = node.device_manager.state.lists[resource].nodes
        # A device near several nodes is aligned if one of them is in the affinity.
        outside = [mask for each in ids if (mask := near[each]) and not mask & affinity]
        if outside:
            yield resource, _union(outside)


def _union(masks: list[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union
