"""Machines as discovery would find them."""

from __future__ import annotations

from typing import Any

import msgspec

from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node, UncoreCache

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
) -> MachineInfo:
    """A machine whose nodes are alike.

    Args:
        nodes: NUMA nodes, spread evenly over the sockets.
        cores: in each node.
        threads: in each core.
        sockets: physical packages.
        adjacent: whether sibling threads have adjacent numbers; otherwise apart, as on x86.
        cores_per_cache: cores in a row that share an uncore cache; 0 for none reported.
        cache: what each of these caches is like, but for its id.
        memory: bytes in each node.
        hugepages: in each node.
        remote: the distance between nodes.
        ids_per_socket: whether core ids start again in each socket.
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
            node,
            memory,
            hugepages,
            tuple(LOCAL if other == node else remote for other in range(nodes)),
            tuple(core(number) for number in range(node * cores, (node + 1) * cores)),
        )
        for node in range(nodes)
    )
    return MachineInfo(total * threads, total, sockets, memory * nodes, None, topology)


def plain(machine: MachineInfo) -> dict[str, Any]:
    """A machine as JSON has it, to change and send."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(machine))
    return found


def of_memory(*sizes: int, hugepages: tuple[HugePages, ...] | None = None) -> MachineInfo:
    """A machine without CPUs: a node for each size in bytes, all with the same huge pages."""
    topology = tuple(Node(node, size, hugepages) for node, size in enumerate(sizes))
    return MachineInfo(memory_capacity=sum(sizes), topology=topology)


def bare(nodes: int, *, distances: bool = True) -> MachineInfo:
    """A machine of empty nodes, all equally near where they report distances."""
    row = (LOCAL,) * nodes if distances else None
    return MachineInfo(topology=tuple(Node(node, distances=row) for node in range(nodes)))
