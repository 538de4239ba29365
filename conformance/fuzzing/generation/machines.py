"""Generates machines ranging from one core to twelve NUMA nodes, including unusual layouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node, UncoreCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.conformance.fuzzing.generation.choices import Choices

MAX_NODES = 12
MAX_CPUS = 64

_MIB = 1 << 20
_GIB = 1 << 30
_CACHE_BYTES = 32 * _MIB
_LOCAL = 10
_MAX_ID = 63
"""The kubelet panics if node ids are larger."""

_MEMORY = (1 * _GIB, 1 * _GIB, 2 * _GIB, 4 * _GIB, 3 * _GIB + 4096 * 77)
_PAGES_KIB = {"2Mi": 2048, "1Gi": 1048576}


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sockets, nodes per socket, cores per node, threads per core, and nodes without CPUs."""

    sockets: int
    nodes: int
    cores: int
    smt: int
    bare: int


def machine(
    choices: Choices, *, most_nodes: int = MAX_NODES, most_cpus: int = MAX_CPUS
) -> MachineInfo:
    """Generates a machine with up to `most_nodes` NUMA nodes and `most_cpus` CPUs, including CPU 0.

    All nodes have the same huge page sizes, but different numbers of pages, because the kubelet
    panics if a node lacks a size. Node ids are at most 63.
    """
    shape = _shape(choices, most_nodes, most_cpus)
    nodes = _cores(choices, shape)
    if choices.chance(6):
        nodes = _drop_threads(choices, nodes)
    bare: list[tuple[Core, ...]] = [()] * shape.bare
    nodes = [*bare, *nodes] if shape.bare and choices.chance(4) else [*nodes, *bare]
    return _assemble(choices, shape, nodes)


_FAMILIES: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, tuple[int, ...]]] = {
    "small": ((1, 1, 2), (1, 1, 2), 4, (0, 0, 0, 1)),
    "server": ((1, 2, 2, 4), (1, 2, 2, 4), 8, (0, 0, 0, 1, 2)),
    "wide": ((1, 2, 4), (), 2, (0, 0, 1, 4)),
}
"""The numbers of sockets and of nodes per socket (empty: five to twelve nodes in total), the most
cores per node, and the numbers of nodes without CPUs."""


def _shape(choices: Choices, most_nodes: int, most_cpus: int) -> _Shape:
    family = choices.pick(("small",) * 7 + ("server",) * 4 + ("wide",))
    of_sockets, of_nodes, most_cores, of_bare = _FAMILIES[family]
    sockets = choices.pick(of_sockets)
    nodes = choices.pick(of_nodes) if of_nodes else choices.integer(5, 12) // sockets
    cores = choices.integer(1, most_cores)
    bare = choices.pick(of_bare)
    smt = choices.pick((2, 2, 2, 1, 4))
    sockets = max(1, min(sockets, most_nodes, most_cpus))
    nodes = max(1, min(nodes, most_nodes // sockets, most_cpus // sockets))
    bare = min(bare, most_nodes - sockets * nodes)
    smt = min(smt, most_cpus // (sockets * nodes))
    cores = max(1, min(cores, most_cpus // (sockets * nodes * smt)))
    return _Shape(sockets, nodes, cores, smt, bare)


def _cores(choices: Choices, shape: _Shape) -> list[tuple[Core, ...]]:
    per_cache = choices.pick((0, shape.cores, 1, 2, shape.cores * shape.nodes))
    adjacent = choices.chance(3)
    step = choices.pick((1, 1, 1, 4))
    total = shape.sockets * shape.nodes * shape.cores
    # Sometimes a single node spans all sockets, as with interleaved memory.
    spanned = shape.nodes == 1 and shape.sockets > 1 and choices.chance(6)
    made = [
        tuple(
            Core(
                core_id=number % (shape.nodes * shape.cores) * step,
                thread_ids=_threads(number, shape.smt, total, adjacent=adjacent),
                socket_id=number // (shape.nodes * shape.cores),
                uncore_caches=_caches(number, per_cache),
            )
            for number in range(node * shape.cores, (node + 1) * shape.cores)
        )
        for node in range(shape.sockets * shape.nodes)
    ]
    return [tuple(core for cores in made for core in cores)] if spanned else made


def _threads(core: int, smt: int, total: int, *, adjacent: bool) -> tuple[int, ...]:
    if adjacent:
        return tuple(range(core * smt, (core + 1) * smt))
    return tuple(core + thread * total for thread in range(smt))


def _caches(core: int, per_cache: int) -> tuple[UncoreCache, ...] | None:
    if not per_cache:
        return None
    return (UncoreCache(core // per_cache, _CACHE_BYTES, "Unified", 3),)


def _drop_threads(choices: Choices, nodes: Sequence[tuple[Core, ...]]) -> list[tuple[Core, ...]]:
    """Takes some CPUs offline, or leaves some cores with only one thread; CPU 0 stays online."""
    cores = [core for node in nodes for core in node]
    if choices.chance(2):
        single = cores[choices.integer(0, len(cores) - 1) :]
        gone = {cpu for core in single for cpu in (core.thread_ids or ())[1:]}
    else:
        cpus = sorted(cpu for core in cores for cpu in core.thread_ids or ())
        gone = set(choices.some(cpus[1:], 1, 3))
    return [
        tuple(
            Core(core.core_id, online, core.socket_id, core.uncore_caches)
            for core in node
            if (online := tuple(cpu for cpu in core.thread_ids or () if cpu not in gone))
        )
        for node in nodes
    ]


def _assemble(choices: Choices, shape: _Shape, nodes: Sequence[tuple[Core, ...]]) -> MachineInfo:
    cores = [core for node in nodes for core in node]
    memory = _memory(choices, nodes)
    pages = _pages(choices, memory)
    ids = _ids(choices, len(nodes))
    distances = _distances(choices, nodes)
    return MachineInfo(
        num_cores=sum(len(core.thread_ids or ()) for core in cores),
        num_physical_cores=len(cores),
        num_sockets=shape.sockets,
        memory_capacity=sum(memory),
        hugepages=tuple(
            HugePages(size, sum(one[size] for one in pages)) for size in (pages[0] if pages else ())
        ),
        topology=tuple(
            Node(
                node_id=ids[place],
                memory=memory[place],
                hugepages=tuple(HugePages(size, count) for size, count in pages[place].items()),
                distances=distances[place],
                cores=node,
            )
            for place, node in enumerate(nodes)
        ),
    )


def _ids(choices: Choices, count: int) -> tuple[int, ...]:
    """Returns node ids: usually 0, 1, 2; sometimes with gaps, as on machines with missing parts."""
    if count == 1 or not choices.chance(6):
        return tuple(range(count))
    gap = choices.integer(2, max(2, min(8, _MAX_ID // (count - 1))))
    if choices.chance(2):
        return tuple(number * gap for number in range(count))
    return tuple(number if number < count // 2 else number + gap for number in range(count))


def _memory(choices: Choices, nodes: Sequence[tuple[Core, ...]]) -> tuple[int, ...]:
    """Returns the memory of each node in bytes; some nodes may have none if another has some."""
    size = choices.pick(_MEMORY)
    if len(nodes) == 1 or not choices.chance(4):
        return (size,) * len(nodes)
    sizes = [choices.pick((*_MEMORY, 0)) if cores else choices.pick(_MEMORY) for cores in nodes]
    return tuple(sizes) if any(sizes) else (size, *sizes[1:])


def _pages(choices: Choices, memory: Sequence[int]) -> list[dict[int, int]]:
    """Returns the number of huge pages of each size (in KiB) on each node."""
    sizes: tuple[str, ...] = choices.pick(((), (), ("2Mi",), ("2Mi", "1Gi")))
    unequal = bool(sizes) and len(memory) > 1 and choices.chance(4)
    made = []
    for amount in memory:
        counts = {_PAGES_KIB["2Mi"]: 64, _PAGES_KIB["1Gi"]: int(amount > 2 * _GIB)}
        if unequal and choices.chance(2):
            counts[_PAGES_KIB["2Mi"]] = choices.pick((0, 128))
        made.append({_PAGES_KIB[size]: counts[_PAGES_KIB[size]] if amount else 0 for size in sizes})
    return made


def _distances(choices: Choices, nodes: Sequence[tuple[Core, ...]]) -> list[tuple[int, ...]]:
    """Generates distances: by socket, by difference in position, or any symmetric values."""
    count = len(nodes)
    sockets = [cores[0].socket_id if cores else -1 for cores in nodes]
    kind = choices.pick(("socket", "socket", "apart", "any"))
    table = [[_LOCAL] * count for _ in range(count)]
    for left in range(count):
        for right in range(left + 1, count):
            if kind == "socket":
                between = 12 if sockets[left] == sockets[right] else 21
            elif kind == "apart":
                between = 10 + 2 * (right - left)
            else:
                between = choices.pick((11, 12, 16, 21, 32))
            table[left][right] = table[right][left] = between
    return [tuple(row) for row in table]


def page_kinds(info: MachineInfo) -> tuple[str, ...]:
    """Returns the huge pages that every node has, as resources such as ``hugepages-2Mi``."""
    names = {size: name for name, size in _PAGES_KIB.items()}
    sizes = [{one.page_size for one in node.hugepages or ()} for node in info.topology or ()]
    common = set.intersection(*sizes) if sizes else set()
    return tuple(f"hugepages-{names[size]}" for size in sorted(common) if size in names)


def dense(info: MachineInfo) -> bool:
    """Whether the node ids are 0 to n-1."""
    ids = [node.node_id for node in info.topology or ()]
    return sorted(ids) == list(range(len(ids)))
