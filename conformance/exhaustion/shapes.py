"""Every machine of up to a few CPUs, each once.

A machine is a tree: sockets or NUMA nodes at the top, then the other of the two, last-level caches,
cores and threads. Two machines that differ only in the order of equal parts are one shape. CPUs are
numbered in the order of the tree, or so that the first threads of all cores come first, with or
without gaps (offline CPUs).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Literal

from msgspec import structs

from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node, UncoreCache

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Numbering = Literal["by core", "by thread", "with gaps"]

NUMBERINGS: tuple[Numbering, ...] = ("by core", "by thread", "with gaps")

MAX_THREADS = 2
"""The maximum number of threads of a core."""

_MEMORY = 1 << 30
"""The memory of a NUMA node, in bytes."""

_PAGES = HugePages(page_size=2048, num_pages=32)
"""The huge pages of a NUMA node: 64 MiB."""

Tree = int | tuple["Tree", ...]
"""A part of a machine: the number of a core's threads, or smaller parts, largest first."""

_LEVELS = ("core", "cache", "inner", "outer", "machine")


@cache
def _trees(level: int, cpus: int) -> tuple[Tree, ...]:
    """All parts of a level with this number of CPUs, in a fixed order."""
    if level == 0:
        return (cpus,) if cpus <= MAX_THREADS else ()
    parts = [(size, part) for size in range(1, cpus + 1) for part in _trees(level - 1, size)]

    def fill(left: int, largest: int) -> Iterator[tuple[Tree, ...]]:
        if not left:
            yield ()
            return
        for number in range(largest, -1, -1):
            size, part = parts[number]
            if size <= left:
                yield from ((part, *rest) for rest in fill(left - size, number))

    return tuple(fill(cpus, len(parts) - 1))


@dataclass(frozen=True)
class Shape:
    """A machine and how it was made: its tree, what is at the top, and how CPUs are numbered."""

    tree: tuple[Tree, ...]
    sockets_outside: bool
    numbering: Numbering

    @property
    def name(self) -> str:
        """A short description, such as ``[[[2 2]]] by core``: sockets, nodes, caches, cores."""
        top = "sockets" if self.sockets_outside else "nodes"
        return f"{top} {_text(self.tree)} {self.numbering}"

    @property
    def mirror(self) -> Shape:
        """The same machine with its parts in reverse order."""
        return replace(self, tree=_reverse(self.tree))

    @property
    def has_one_cache_each(self) -> bool:
        """Whether the CPUs of each inner part share one cache."""
        return all(
            len(inner) == 1
            for outer in self.tree
            if isinstance(outer, tuple)
            for inner in outer
            if isinstance(inner, tuple)
        )

    def machine(self) -> MachineInfo:
        """The machine as cAdvisor describes it, with 1 GiB of memory on each NUMA node.

        64 MiB of it are huge pages.
        """
        cores = list(_cores(self.tree))
        ids = _cpu_ids([threads for _, threads in cores], self.numbering)
        nodes: dict[int, list[Core]] = {}
        for number, ((place, _), cpus) in enumerate(zip(cores, ids, strict=True)):
            outer, inner, cache = place
            socket, node = (outer, inner) if self.sockets_outside else (inner, outer)
            core = Core(number, cpus, socket, (UncoreCache(cache, level=3),))
            nodes.setdefault(node, []).append(core)
        sockets = {core.socket_id for core in chain.from_iterable(nodes.values())}
        return MachineInfo(
            num_cores=sum(map(len, ids)),
            num_physical_cores=len(cores),
            num_sockets=len(sockets),
            memory_capacity=_MEMORY * len(nodes),
            hugepages=(structs.replace(_PAGES, num_pages=_PAGES.num_pages * len(nodes)),),
            topology=tuple(
                Node(node, _MEMORY, (_PAGES,), cores=tuple(inside))
                for node, inside in sorted(nodes.items())
            ),
        )


def shapes(cpus: int) -> Iterator[Shape]:
    """Every machine of exactly this number of CPUs.

    NUMA nodes are outside only if one of them has several sockets; otherwise, the same machine has
    sockets outside.
    """
    for tree in _trees(len(_LEVELS) - 1, cpus):
        assert isinstance(tree, tuple)
        has_several = any(len(outer) > 1 for outer in tree if isinstance(outer, tuple))
        for sockets_outside in (True, False) if has_several else (True,):
            machines: set[MachineInfo] = set()
            for numbering in NUMBERINGS:
                shape = Shape(tree, sockets_outside, numbering)
                machine = shape.machine()
                if machine not in machines:
                    machines.add(machine)
                    yield shape


def _reverse(parts: tuple[Tree, ...]) -> tuple[Tree, ...]:
    return tuple(part if isinstance(part, int) else _reverse(part) for part in reversed(parts))


def _text(tree: Tree) -> str:
    return str(tree) if isinstance(tree, int) else f"[{' '.join(map(_text, tree))}]"


def _cores(tree: Sequence[Tree]) -> Iterator[tuple[tuple[int, int, int], int]]:
    """The cores: the numbers of their outer part, inner part and cache, and their threads."""
    inner_count = cache_count = 0
    for outer, inners in enumerate(tree):
        assert isinstance(inners, tuple)
        for caches in inners:
            assert isinstance(caches, tuple)
            for cores in caches:
                assert isinstance(cores, tuple)
                for threads in cores:
                    assert isinstance(threads, int)
                    yield (outer, inner_count, cache_count), threads
                cache_count += 1
            inner_count += 1


def _cpu_ids(threads: Sequence[int], numbering: Numbering) -> list[tuple[int, ...]]:
    """The CPUs of each core."""
    places = [(core, thread) for core, count in enumerate(threads) for thread in range(count)]
    if numbering == "by thread":
        places.sort(key=lambda place: place[1])
    apart = 2 if numbering == "with gaps" else 1
    numbers = {place: number * apart for number, place in enumerate(places)}
    return [
        tuple(numbers[core, thread] for thread in range(count))
        for core, count in enumerate(threads)
    ]
