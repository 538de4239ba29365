"""The caches of CPUs: each belongs to a core or a whole node, or is an *uncore* cache.

A core has the caches of its first CPU. A level 1 or 2 cache belongs to the core if the number of
CPUs that share it equals the core's number of CPUs. A cache above level 2 belongs to the node if
the number of CPUs that share it is the node's number of cores times this core's number of CPUs. All
others above level 2 are uncore caches: an L3 cache that only some cores of the node share, or any
cache for which that product is wrong because cores differ in size or are partly offline.

A cache has an id, a size, a level, a type and a map of the CPUs that share it. If any of these is
unreadable, the cache's core and all later cores of the node have no caches. Many Arm kernels
provide no ids (``cache/indexN/id``), so machines that run them have no caches; guests may even lack
the ``cache`` folder (google/cadvisor#2456).

Source: the sysinfo and sysfs packages of cAdvisor v0.49.0 to v0.60.5 (Kubernetes 1.30 to 1.37),
built for amd64.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from numaproof.protocol.machine import UncoreCache
from numaproof.reference.cadvisor.sysfs import CPUS, UnreadablePathError
from numaproof.reference.golang.numbers import UNSIGNED_LIMIT, leading_signed, leading_unsigned
from numaproof.reference.golang.text import WHITE_SPACE, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.reference.cadvisor.cpus import CoreThreads
    from numaproof.reference.cadvisor.sysfs import SysTree

_HIGHEST_CORE_LEVEL = 2


class SharedCache(NamedTuple):
    """A cache and the number of CPUs that share it."""

    cache: UncoreCache
    sharers: int


class NodeCaches(NamedTuple):
    """A node's caches and, for each core in order, the core's own caches and its uncore caches."""

    node: tuple[UncoreCache, ...]
    core: tuple[tuple[UncoreCache, ...], ...]
    uncore: tuple[tuple[UncoreCache, ...], ...]


def caches_of(tree: SysTree, cores: Sequence[CoreThreads]) -> NodeCaches:
    """Returns the caches of a node with these cores.

    Requirements: DISCOVERY-010, DISCOVERY-011.
    """
    by_core = read_until_unreadable(tree, cores)
    node: dict[UncoreCache, None] = {}
    core: list[tuple[UncoreCache, ...]] = []
    uncore: list[tuple[UncoreCache, ...]] = []
    for threads, shared in zip(cores, by_core, strict=True):
        per_core = len(threads.cpus)
        per_node = per_core * len(cores)
        high = [found for found in shared if found.cache.level > _HIGHEST_CORE_LEVEL]
        node.update(dict.fromkeys(found.cache for found in high if found.sharers == per_node))
        core.append(
            tuple(
                found.cache
                for found in shared
                if found.cache.level <= _HIGHEST_CORE_LEVEL and found.sharers == per_core
            )
        )
        # The same cache may be listed twice.
        uncore.append(
            tuple(dict.fromkeys(found.cache for found in high if found.sharers != per_node))
        )
    return NodeCaches(tuple(node), tuple(core), tuple(uncore))


def read_until_unreadable(tree: SysTree, cores: Sequence[CoreThreads]) -> list[list[SharedCache]]:
    """Returns the caches of each core; from the first unreadable cache on, cores have none.

    Requirements: DISCOVERY-009.
    """
    by_core: list[list[SharedCache]] = [[] for _ in cores]
    for position, threads in enumerate(cores):
        found = caches_of_cpu(tree, threads.cpus[0])
        if found is None:
            break
        by_core[position] = found
    return by_core


def caches_of_cpu(tree: SysTree, cpu: int) -> list[SharedCache] | None:
    """Returns a CPU's caches in the byte order of their folders, or None if any is unreadable.

    Requirements: DISCOVERY-008, DISCOVERY-010.
    """
    folder = f"{CPUS}/cpu{cpu}/cache"
    caches = []
    try:
        for name in tree.names(folder):
            if name.startswith("index"):
                found = _read_cache(tree, f"{folder}/{name}")
                if found is None:
                    return None
                caches.append(found)
    except UnreadablePathError:
        return None
    return caches


def _read_cache(tree: SysTree, folder: str) -> SharedCache | None:
    # If a file is missing, it is usually the id; reading it first saves time.
    cache_id = leading_signed(tree.read(f"{folder}/id"))
    size = leading_unsigned(tree.read(f"{folder}/size"), unit="K")
    level = leading_signed(tree.read(f"{folder}/level"))
    kind = printable(tree.read_trimmed(f"{folder}/type"))
    sharers = _count_cpus(tree.read(f"{folder}/shared_cpu_map"))
    if cache_id is None or size is None or level is None or sharers is None:
        return None
    cache = UncoreCache(id=cache_id, size=size * 1024 % UNSIGNED_LIMIT, type=kind, level=level)
    return SharedCache(cache, sharers)


# Every CPU that shares a cache has a file with the same map.
@lru_cache(maxsize=256)
def _count_cpus(cpu_map: str) -> int | None:
    """Counts the bits in a CPU map, which consists of hexadecimal words separated by commas."""
    count = 0
    for word in cpu_map.split(","):
        digits = word.strip(WHITE_SPACE)
        if not digits or digits.strip("0123456789abcdefABCDEF"):
            return None
        bits = int(digits, 16)
        if bits >= UNSIGNED_LIMIT:
            return None
        count += bits.bit_count()
    return count
