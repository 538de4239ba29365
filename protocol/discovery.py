"""The properties of a machine that ``discovers`` in ``hello`` can name.

Implementations that discover less than cAdvisor list the properties they discover, and only those
are compared.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol.messages import Hello

DISCOVERED: Mapping[str, str] = MappingProxyType(
    {
        "num_cores": "number of logical CPUs",
        "num_physical_cores": "number of cores",
        "num_sockets": "number of packages",
        "memory_capacity": "memory of the machine",
        "hugepages": "huge pages of the machine",
        "nodes": "NUMA node ids, and the CPUs of each node",
        "node_memory": "memory of each node",
        "node_hugepages": "huge pages of each node",
        "distances": "distances from each node",
        "cores": "which CPUs share a core, regardless of its id",
        "core_ids": "`core_id` of each CPU's core",
        "socket_ids": "`socket_id` of each CPU's core",
        "caches": "size, type and level of each core's caches",
        "uncore_caches": "the same for caches that several cores share, and which CPUs share them",
        "node_caches": "the same for caches that a whole node shares",
        "cache_ids": "ids of the discovered caches",
    }
)
"""Every name and its meaning."""

WHOLE = "discovery of every field"
"""The claim needed by a `start` from a tree, because the managers use all discovered fields."""


def claim(name: str) -> str:
    """The claim that a case needs in order to check this property."""
    return f"discovery of {name}"


def discovers(hello: Hello) -> frozenset[str] | None:
    """The properties that an implementation discovers; None means all."""
    if hello.discovers is None or DISCOVERED.keys() <= set(hello.discovers):
        return None
    return frozenset(hello.discovers)


def common(first: Hello, second: Hello) -> tuple[str, ...] | None:
    """The properties that both implementations discover, in table order; None means all."""
    seen = [one for one in (discovers(first), discovers(second)) if one is not None]
    return tuple(name for name in DISCOVERED if all(name in one for one in seen)) if seen else None
