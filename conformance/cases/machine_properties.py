"""The properties of a machine that cases may use.

They are derived from ``MachineInfo`` alone, so that selecting and expanding a case never depends on
an implementation.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numaproof.conformance.cases.expressions import cpu_set
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.protocol.machine import MachineInfo, Node

Property = int | bool


class Facts:
    """A machine's properties, and its CPUs by core, node, socket and cache.

    Cores are ordered by their lowest CPU, and the other groups by id.
    """

    def __init__(self, machine: MachineInfo) -> None:
        self.machine = machine

    @cached_property
    def all(self) -> CPUSet:
        """All CPUs of the machine."""
        return CPUSet.union(self.cores)

    @cached_property
    def cores(self) -> tuple[CPUSet, ...]:
        """The hardware threads of each physical core."""
        sets = [
            CPUSet(core.thread_ids)
            for node in self.machine.topology or ()
            for core in node.cores or ()
            if core.thread_ids
        ]
        return tuple(sorted(sets, key=lambda threads: next(iter(threads))))

    @cached_property
    def nodes(self) -> dict[int, CPUSet]:
        """The CPUs of each NUMA node, by id; empty for memory-only nodes."""
        return {
            node.node_id: CPUSet.union(CPUSet(core.thread_ids or ()) for core in node.cores or ())
            for node in sorted(self.machine.topology or (), key=lambda node: node.node_id)
        }

    @cached_property
    def sockets(self) -> dict[int, CPUSet]:
        """The CPUs of each socket, by id."""
        return _group_cpus(
            (core.socket_id, CPUSet(core.thread_ids or ()))
            for node in self.machine.topology or ()
            for core in node.cores or ()
        )

    @cached_property
    def uncore_caches(self) -> dict[int, CPUSet]:
        """The CPUs of each last-level cache, by id; empty if none is reported."""
        return _group_cpus(
            (core.uncore_caches[0].id, CPUSet(core.thread_ids or ()))
            for node in self.machine.topology or ()
            for core in node.cores or ()
            if core.uncore_caches
        )

    @cached_property
    def properties(self) -> dict[str, Property]:
        """All properties by name, as listed in `docs/cases.md`."""
        cpus, cores = len(self.all), len(self.cores)
        with_cpus = [cpus for cpus in self.nodes.values() if cpus]
        sizes = Counter(len(core) for core in self.cores)
        return {
            "cpus": cpus,
            "cores": cores,
            "sockets": len(self.sockets),
            "numa_nodes": len(self.nodes),
            "cpu_nodes": len(with_cpus),
            "memory_only_nodes": len(self.nodes) - len(with_cpus),
            "uncore_caches": len(self.uncore_caches),
            "smt": max(sizes, default=1),
            "cpus_per_node": max(map(len, with_cpus), default=0),
            "cpus_per_socket": max(map(len, self.sockets.values()), default=0),
            "cpus_per_uncore_cache": max(map(len, self.uncore_caches.values()), default=0),
            "uniform": len(sizes) <= 1 and _alike(with_cpus) and _alike(self.sockets.values()),
            "dense": self.all == CPUSet(range(cpus))
            and list(self.nodes) == list(range(len(self.nodes))),
            "memory_nodes": sum(node.memory > 0 for node in self._memory_nodes),
            "hugepage_sizes": len(self.hugepages),
            "equidistant": _equidistant(self._memory_nodes),
        }

    @property
    def _memory_nodes(self) -> list[Node]:
        return sorted(self.machine.topology or (), key=lambda node: node.node_id)

    @cached_property
    def hugepages(self) -> dict[int, dict[int, int]]:
        """Bytes of huge pages, by page size in KiB and node id; only for nodes with such pages."""
        sizes: dict[int, dict[int, int]] = {}
        for node in self._memory_nodes:
            for pages in node.hugepages or ():
                if pages.num_pages:
                    of_size = sizes.setdefault(pages.page_size, {})
                    of_size[node.node_id] = pages.page_size * 1024 * pages.num_pages
        return sizes

    def names(self) -> dict[str, Any]:
        """The names that expressions may use: properties, CPU sets and functions.

        ``core(i)``, ``node(i)``, ``socket(i)`` and ``cache(i)`` return the CPUs of the i-th core,
        node, socket or cache that has CPUs. ``first_cores(n)`` returns the CPUs of the first n
        cores, ``first(n, s)`` returns the n lowest CPUs of a set, and ``size(s)`` returns the size
        of a set. ``all`` is the set of all CPUs, and ``set("0-3")`` is a literal set.
        ``node_id(i)``, ``memory(i)`` and ``hugepages(i, s)`` return the i-th node's id, bytes of
        memory and bytes of huge pages of s KiB; here, nodes without CPUs count too. ``per_node(n)``
        describes n devices on each node. ``gib(n)`` and ``mib(n)`` convert to bytes.
        """
        return dict(self._names)

    @cached_property
    def _names(self) -> dict[str, Any]:
        ids = list(self.nodes)
        nodes = [cpus for cpus in self.nodes.values() if cpus]
        sockets, caches = list(self.sockets.values()), list(self.uncore_caches.values())
        return {
            **self.properties,
            "all": self.all,
            "core": self.cores.__getitem__,
            "first_cores": lambda count: CPUSet.union(self.cores[:count]),
            "node": nodes.__getitem__,
            "socket": sockets.__getitem__,
            "cache": caches.__getitem__,
            "first": lambda count, cpus: cpus.first(count),
            "size": len,
            "set": cpu_set,
            "node_id": ids.__getitem__,
            "memory": lambda index: self._memory_nodes[index].memory,
            "hugepages": lambda index, kib: self.hugepages.get(kib, {}).get(ids[index], 0),
            "per_node": lambda count: [[one] for one in ids for _ in range(_few(count))],
            "gib": lambda count: count << 30,
            "mib": lambda count: count << 20,
        }


_KEPT: dict[int, Facts] = {}
_MAX_KEPT = 64


def facts_of(machine: MachineInfo) -> Facts:
    """The properties of a machine, cached because computing them is slow for large machines."""
    known = _KEPT.get(id(machine))
    if known is None or known.machine is not machine:
        if len(_KEPT) >= _MAX_KEPT:
            _KEPT.clear()
        known = _KEPT[id(machine)] = Facts(machine)
    return known


MAX_DEVICES = 4096
"""The maximum argument of `per_node`, which creates an item for every device."""


def _few(count: int) -> int:
    if count > MAX_DEVICES:
        raise ValueError(f"expected at most {MAX_DEVICES} devices per node, got {count}")
    return count


def _alike(sets: Iterable[CPUSet]) -> bool:
    return len({len(one) for one in sets}) <= 1


def _equidistant(nodes: list[Node]) -> bool:
    """Whether all nodes are at the same distance from each other."""
    apart = {
        distance
        for here, node in enumerate(nodes)
        for there, distance in enumerate(node.distances or ())
        if there != here
    }
    return len(apart) <= 1


def _group_cpus(pairs: Iterable[tuple[int, CPUSet]]) -> dict[int, CPUSet]:
    groups: dict[int, CPUSet] = {}
    for key, cpus in pairs:
        groups[key] = groups.get(key, CPUSet()) | cpus
    return dict(sorted(groups.items()))
