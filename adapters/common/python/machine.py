"""Builds a MachineInfo from a program's description of CPUs, cores, nodes and caches.

Caches are placed as in cAdvisor. A level 1 or 2 cache belongs to the core if the number of CPUs
sharing it equals the core's number of CPUs. A higher cache belongs to the node if it equals the
core's number of CPUs times the node's number of cores; otherwise, it is an uncore cache of the
core.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_HIGHEST_CORE_LEVEL = 2


@dataclass(frozen=True)
class SeenCore:
    """The threads of a core, and the ids of the core and its package."""

    cpus: frozenset[int]
    core_id: int
    socket_id: int


@dataclass(frozen=True)
class SeenCache:
    """A cache and the CPUs sharing it; `size` is in bytes; `kind` is the kernel's name for it."""

    cpus: frozenset[int]
    level: int
    kind: str
    size: int


@dataclass(frozen=True)
class SeenNode:
    """A NUMA node; `rest` holds its other fields in MachineInfo."""

    number: int
    cpus: frozenset[int]
    rest: dict[str, Any] = field(default_factory=dict)


def machine_info(
    nodes: list[SeenNode], cores: list[SeenCore], caches: list[SeenCache], **rest: Any
) -> dict[str, Any]:
    """Returns the machine, with cores on the nodes of their CPUs (node 0 if there are none)."""
    cpus = frozenset[int]().union(*(core.cpus for core in cores))
    numbered = {cache: number for number, cache in enumerate(caches)}
    topology = [_node(one, cores, numbered) for one in nodes or [SeenNode(0, cpus)]]
    sockets = {core.socket_id for core in cores}
    return {"num_cores": len(cpus), "num_sockets": len(sockets), "topology": topology, **rest}


def _node(node: SeenNode, cores: list[SeenCore], caches: dict[SeenCache, int]) -> dict[str, Any]:
    here = [core for core in cores if core.cpus & node.cpus]
    of_node: dict[SeenCache, None] = {}
    shown = []
    for core in here:
        seen = [one for one in caches if min(core.cpus) in one.cpus]
        high = [one for one in seen if one.level > _HIGHEST_CORE_LEVEL]
        whole = [one for one in high if len(one.cpus) == len(core.cpus) * len(here)]
        own = [one for one in seen if one not in high and len(one.cpus) == len(core.cpus)]
        uncore = [one for one in high if one not in whole]
        of_node |= dict.fromkeys(whole)
        shown.append(
            {
                "core_id": core.core_id,
                "socket_id": core.socket_id,
                "thread_ids": sorted(core.cpus & node.cpus),
                "caches": [_cache(one, caches[one]) for one in own],
                "uncore_caches": [_cache(one, caches[one]) for one in uncore],
            }
        )
    listed = [_cache(one, caches[one]) for one in of_node]
    return {"node_id": node.number, "cores": shown, "caches": listed, **node.rest}


def _cache(cache: SeenCache, number: int) -> dict[str, Any]:
    return {"id": number, "size": cache.size, "type": cache.kind, "level": cache.level}
