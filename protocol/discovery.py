"""What can be discovered of a machine, by the names that ``discovers`` of ``hello`` has for it.

Whoever sees less than cAdvisor does names what it sees; answers are compared as far as that goes.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol.messages import Hello

DISCOVERED: Mapping[str, str] = MappingProxyType(
    {
        "num_cores": "how many logical CPUs there are",
        "num_physical_cores": "how many cores",
        "num_sockets": "how many packages",
        "memory_capacity": "the memory of the machine",
        "hugepages": "its pools of huge pages",
        "nodes": "the ids of the NUMA nodes, and which CPUs each has",
        "node_memory": "the memory of each node",
        "node_hugepages": "the pools of huge pages of each node",
        "distances": "the distances of each node",
        "cores": "which CPUs are the threads of one core, whatever it is called",
        "core_ids": "the `core_id` of each CPU's core",
        "socket_ids": "the `socket_id` of each CPU's core",
        "caches": "the size, type and level of the caches of each core",
        "uncore_caches": "those of the caches that cores share, and which CPUs share them",
        "node_caches": "those of the caches of whole nodes",
        "cache_ids": "the ids of the caches that are seen",
    }
)
"""Every name, with what it stands for."""

WHOLE = "discovery of every field"
"""The claim that a start from a tree needs: the managers work with what is discovered."""


def claim(name: str) -> str:
    """How it is called to discover something, where a case needs it."""
    return f"discovery of {name}"


def discovers(hello: Hello) -> frozenset[str] | None:
    """What an implementation discovers; None for all of it."""
    if hello.discovers is None or DISCOVERED.keys() <= set(hello.discovers):
        return None
    return frozenset(hello.discovers)


def common(first: Hello, second: Hello) -> tuple[str, ...] | None:
    """What both discover, in the order of the table; None for all of it."""
    seen = [one for one in (discovers(first), discovers(second)) if one is not None]
    return tuple(name for name in DISCOVERED if all(name in one for one in seen)) if seen else None
