"""The part of cAdvisor's ``MachineInfo`` that the managers read.

The field names are the same as in cAdvisor's JSON. Unknown fields are ignored, and ``null`` means
an empty list.
"""

from __future__ import annotations

import msgspec


class HugePages(msgspec.Struct, frozen=True, cache_hash=True):
    """The huge pages of one size, on a node or on the whole machine.

    `page_size` is in KiB, as in the kernel's directory names; `num_pages` is a count.
    """

    page_size: int
    num_pages: int


class UncoreCache(msgspec.Struct, frozen=True, cache_hash=True):
    """A last-level cache used by a core. `size` is in bytes; `type` is what the kernel reports."""

    id: int
    size: int = 0
    type: str = ""
    level: int = 0


class Core(msgspec.Struct, frozen=True, cache_hash=True):
    """A physical core: its id (unique within its socket at best) and its hardware threads."""

    core_id: int
    thread_ids: tuple[int, ...] | None = None
    socket_id: int = 0
    uncore_caches: tuple[UncoreCache, ...] | None = None
    caches: tuple[UncoreCache, ...] | None = None


class Node(msgspec.Struct, frozen=True, cache_hash=True):
    """A NUMA node. `memory` is in bytes; `distances` are in the kernel's order of nodes."""

    node_id: int
    memory: int = 0
    hugepages: tuple[HugePages, ...] | None = None
    distances: tuple[int, ...] | None = None
    cores: tuple[Core, ...] | None = None
    caches: tuple[UncoreCache, ...] | None = None


class MachineInfo(msgspec.Struct, frozen=True, cache_hash=True):
    """A whole machine.

    By cAdvisor's rules, `num_cores` counts logical CPUs, `num_physical_cores` counts cores, and
    `num_sockets` counts packages. `memory_capacity` is in bytes.
    """

    num_cores: int = 0
    num_physical_cores: int = 0
    num_sockets: int = 0
    memory_capacity: int = 0
    hugepages: tuple[HugePages, ...] | None = None
    topology: tuple[Node, ...] | None = None
