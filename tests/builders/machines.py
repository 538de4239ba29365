"""Machines as found by discovery."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import msgspec

from numaproof import fakesys
from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node, UncoreCache
from numaproof.reference.cadvisor.discovery import discover

GIB = 1 << 30
LOCAL = 10


def regular(
    nodes: int = 1,
    cores: int = 4,
    threads: int = 2,
    sockets: int = 1,
    *,
    adjacent: bool = False,
    cores_per_cache: int = 0,
    cache: UncoreCache | None = None,
    memory: int = GIB,
    hugepages: tuple[HugePages, ...] | None = None,
    remote: int = 20,
    ids_per_socket: bool = False,
    first_node: int = 0,
) -> MachineInfo:
    """A machine with equal nodes.

    Args:
        nodes: NUMA nodes, divided evenly among the sockets.
        cores: cores per node.
        threads: threads per core.
        sockets: physical packages.
        adjacent: whether sibling threads have adjacent numbers; if not, they are apart as on
            x86.
        cores_per_cache: consecutive cores that share an uncore cache; 0 for no caches.
        cache: the properties of each of these caches, except for the id.
        memory: bytes per node.
        hugepages: huge pages per node.
        remote: the distance between nodes.
        ids_per_socket: whether core ids restart in each socket.
        first_node: the id of the first node.
    """
    total = nodes * cores

    def core(number: int) -> Core:
        cpus = (
            range(number * threads, (number + 1) * threads)
            if adjacent
            else range(number, total * threads, total)
        )
        found = cache or UncoreCache(0)
        shared = (
            (msgspec.structs.replace(found, id=number // cores_per_cache),)
            if cores_per_cache
            else None
        )
        core_id = number % (total // sockets) if ids_per_socket else number
        return Core(core_id, tuple(cpus), number // cores * sockets // nodes, shared)

    topology = tuple(
        Node(
            first_node + node,
            memory,
            hugepages,
            tuple(LOCAL if other == node else remote for other in range(nodes)),
            tuple(core(number) for number in range(node * cores, (node + 1) * cores)),
        )
        for node in range(nodes)
    )
    return MachineInfo(total * threads, total, sockets, memory * nodes, None, topology)


def uneven(*threads: int) -> MachineInfo:
    """A machine with one node whose cores have these numbers of threads, numbered consecutively."""
    numbers = itertools.count()
    cores = tuple(
        Core(core, tuple(itertools.islice(numbers, count)), 0) for core, count in enumerate(threads)
    )
    node = Node(0, GIB, distances=(LOCAL,), cores=cores)
    return MachineInfo(sum(threads), len(threads), 1, GIB, None, (node,))


def with_node(machine: MachineInfo, node_id: int, /, **changes: Any) -> MachineInfo:
    """Returns the machine with one node changed."""
    topology = tuple(
        msgspec.structs.replace(node, **changes) if node.node_id == node_id else node
        for node in machine.topology or ()
    )
    return msgspec.structs.replace(machine, topology=topology)


@cache
def discover_profile(profile: str) -> MachineInfo:
    """Discovers a bundled profile."""
    tree = fakesys.build_tree(fakesys.load_profile(profile))
    return discover(fakesys.TreePath.root(tree))


def plain(machine: MachineInfo) -> dict[str, Any]:
    """Returns a machine as plain JSON values to edit."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(machine))
    return found


def of_memory(*sizes: int, hugepages: tuple[HugePages, ...] | None = None) -> MachineInfo:
    """A machine without CPUs: one node per size in bytes, all with the same huge pages."""
    topology = tuple(Node(node, size, hugepages) for node, size in enumerate(sizes))
    return MachineInfo(memory_capacity=sum(sizes), topology=topology)


def bare(nodes: int, *, distances: bool = True) -> MachineInfo:
    """A machine of empty nodes at equal distances, if they have any."""
    row = (LOCAL,) * nodes if distances else None
    return MachineInfo(topology=tuple(Node(node, distances=row) for node in range(nodes)))
