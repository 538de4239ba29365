"""Writes a node as a NodeResourceTopology, which schedulers read.

``topology.node.k8s.io/v1alpha2``; exporters on nodes write the same from the kubelet's answers. The
place of each CPU is in an annotation, as Koordinator writes it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import yaml

from numaproof.formats.machines.kubernetes import CPU_TOPOLOGY
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.machine import Core, MachineInfo
    from numaproof.protocol.machine import Node as MachineNode
    from numaproof.simulation.admission import NodeView
    from numaproof.simulation.remaining import Remaining, RemainingNode

_KIB = 1024


def dump(name: str, machine: MachineInfo, view: NodeView, remaining: Remaining) -> str:
    """Returns the object as YAML, with what remains on the node as available.

    Args:
        name: the node's name; characters that names of objects can't have are replaced.
        machine: the machine.
        view: the node.
        remaining: what remains on it.
    """
    zones = []
    free = {one.numa: one for one in remaining.nodes}
    numbers = [node.node_id for node in machine.topology or ()]
    for node in machine.topology or ():
        zone: dict[str, Any] = {"name": _zone(node.node_id), "type": "Node"}
        if node.distances:
            zone["costs"] = [
                {"name": _zone(number), "value": cost}
                for number, cost in zip(sorted(numbers), node.distances, strict=False)
            ]
        resources = _resources(node, view, free[node.node_id])
        zone["resources"] = [
            {
                "name": resource,
                "capacity": str(capacity),
                "allocatable": str(allocatable),
                "available": str(available),
            }
            for resource, capacity, allocatable, available in resources
        ]
        zones.append(zone)
    policies = view.policies
    places = [
        {"id": cpu, "core": number, "socket": core.socket_id, "node": node}
        for number, (node, core) in enumerate(_cores(machine))
        for cpu in core.thread_ids or ()
    ]
    data = {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {
            "name": re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.") or "node",
            # Zones have numbers of CPUs, but not which ones.
            "annotations": {CPU_TOPOLOGY: json.dumps({"detail": places})},
        },
        "attributes": [
            {"name": "topologyManagerPolicy", "value": policies.topology},
            {"name": "topologyManagerScope", "value": policies.scope},
        ],
        "zones": zones,
    }
    return yaml.safe_dump(data, sort_keys=False, width=100)


def _cores(machine: MachineInfo) -> Iterator[tuple[int, Core]]:
    for node in machine.topology or ():
        for core in node.cores or ():
            yield node.node_id, core


def _zone(number: int) -> str:
    return f"node-{number}"


def _resources(
    node: MachineNode, view: NodeView, free: RemainingNode
) -> Iterator[tuple[str, int, int, int]]:
    """Yields each resource with its capacity, what is allocatable, and what is available."""
    cpus = CPUSet(cpu for core in node.cores or () for cpu in core.thread_ids or ())
    if view.policies.cpu == "none":
        yield "cpu", len(cpus), len(cpus), len(cpus)
    else:
        allocatable = cpus.mask & ~view.reserved.mask
        yield "cpu", len(cpus), allocatable.bit_count(), len(free.cpus)
    pages = {
        f"hugepages-{_page_text(one.page_size)}": one.page_size * _KIB * one.num_pages
        for one in node.hugepages or ()
    }
    tables = {one.type: one for one in view.memory if one.node == node.node_id}
    for resource, capacity in {"memory": node.memory, **pages}.items():
        if table := tables.get(resource):
            yield resource, capacity, table.allocated + table.free, table.free
        else:
            yield resource, capacity, capacity, capacity
    near = [one for one in view.devices if one.numa and node.node_id in one.numa]
    counts = Counter(one.resource for one in near)
    healthy = Counter(one.resource for one in near if one.healthy)
    for resource, count in sorted(counts.items()):
        yield resource, count, healthy[resource], free.devices.get(resource, 0)


def _page_text(kibibytes: int) -> str:
    """Returns the size of a huge page as in names of resources: ``2Mi``."""
    for unit in ("Ki", "Mi"):
        if kibibytes % _KIB:
            return f"{kibibytes}{unit}"
        kibibytes //= _KIB
    return f"{kibibytes}Gi"
