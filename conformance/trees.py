"""A machine's tree, in memory or in a directory.

Programs read the tree from a directory. Code in this process reads it through pyfakefs, which
creates only the files that are read. Each form is created on first use and kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

import msgspec

from numaproof import fakesys
from numaproof.fakesys.fields import format_kilobytes
from numaproof.fakesys.profile import CacheRow, CpuInfo, CpuRow, NodeRow, Profile
from numaproof.protocol.sets import CPUSet
from numaproof.reference.cadvisor.discovery import DiscoveryError, discover
from numaproof.workdir import trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node, UncoreCache


class MachineTree(Protocol):
    """The tree of a machine, in either form."""

    def directory(self) -> Path:
        """The directory that contains ``sys/`` and ``proc/``."""

    def in_process_path(self) -> str:
        """The path of the tree for implementations in this process."""


@dataclass(frozen=True)
class InMemoryTree:
    """A tree in pyfakefs, created when it is first read."""

    tree: fakesys.Tree

    @cached_property
    def root(self) -> fakesys.TreePath:
        """The root of the fake file system."""
        return fakesys.TreePath.root(self.tree)

    @cached_property
    def path(self) -> str:
        """The path for implementations in this process, valid as long as this object exists."""
        return trees.hold(self.root)


@dataclass(frozen=True)
class GeneratedTree:
    """A generated tree.

    Attributes:
        make: creates the tree.
        target: the directory to write it to. It must be empty or missing, unless another process
            has written the same tree to it.
    """

    make: Callable[[], InMemoryTree]
    target: Path

    @cached_property
    def in_memory_tree(self) -> InMemoryTree:
        return self.make()

    @cached_property
    def _written_directory(self) -> Path:
        complete = self.target / "sys"  # trees are moved into place as a whole
        if not complete.is_dir():
            try:
                fakesys.write_directory(self.in_memory_tree.tree, self.target)
            except fakesys.WriteError:
                if not complete.is_dir():
                    raise
        return self.target

    def directory(self) -> Path:
        """The tree's directory, written on first use."""
        return self._written_directory

    def in_process_path(self) -> str:
        """The path for implementations in this process, valid as long as this object exists."""
        return self.in_memory_tree.path


@dataclass(frozen=True)
class ExistingTree:
    """A tree in an existing directory."""

    path: Path

    def directory(self) -> Path:
        return self.path

    def in_process_path(self) -> str:
        return str(self.path)


_KIB = 1 << 10
_KEPT = 64
"""The number of machines whose trees are cached. A scenario is played, compared, repeated and
shrunk on the same machine.
"""


class NoTreeError(ValueError):
    """Discovery can't return this machine from any tree; the message says why."""


def tree_of(machine: MachineInfo) -> InMemoryTree:
    """A tree in which discovery finds exactly this machine.

    Some machines have no such tree, because discovery would count their cores or place their
    shared caches differently. Machines returned by discovery always have one.

    Raises:
        NoTreeError: there is no such tree.
    """
    tree, found = _build(msgspec.json.encode(profile_of(machine)))
    if found != machine:
        raise NoTreeError("discovery on this machine's tree yields a different machine")
    return tree


def as_discovered(machine: MachineInfo) -> MachineInfo | None:
    """What discovery finds in a machine's tree; None if the machine has no tree."""
    try:
        _, found = _build(msgspec.json.encode(profile_of(machine)))
        tree_of(found)
    except NoTreeError:
        return None
    return found


@lru_cache(_KEPT)
def _build(profile: bytes) -> tuple[InMemoryTree, MachineInfo]:
    """The tree of a profile and the machine discovered in it."""
    try:
        tree = fakesys.build_tree(msgspec.json.decode(profile, type=Profile), detail="discovery")
        held = InMemoryTree(tree)
        return held, discover(held.root)
    except (msgspec.ValidationError, fakesys.ProfileError, DiscoveryError) as error:
        raise NoTreeError(str(error)) from None


def profile_of(machine: MachineInfo) -> Profile:
    """The profile of a machine with these CPUs, nodes, caches and sizes.

    Raises:
        NoTreeError: the machine has no nodes, or only some nodes have distances.
    """
    # Profiles list the distances of nodes by ascending id.
    nodes = tuple(sorted(machine.topology or (), key=lambda node: node.node_id))
    if not nodes:
        raise NoTreeError("the machine has no NUMA nodes")
    cores = [core for node in nodes for core in node.cores or ()]
    threads = sorted((cpu, core) for core in cores for cpu in core.thread_ids or ())
    return Profile(
        name="described",
        title="A machine by its description",
        source="the description",
        architecture="x86_64",
        cpus=(
            CpuRow(
                cpus=_join(cpu for cpu, _ in threads),
                socket=_join(core.socket_id for _, core in threads),
                core_id=_join(core.core_id for _, core in threads),
            ),
        ),
        nodes=tuple(map(_node, nodes)),
        distances=_distances(nodes),
        caches=tuple(_caches(nodes)),
        memory=_size(machine.memory_capacity),
        hugepages=_pages(machine.hugepages),
        cpuinfo=CpuInfo(vendor="GenuineIntel", model="Made up", mhz=2100),
    )


def _join(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _size(amount: int) -> str:
    return format_kilobytes(amount // _KIB)


def _node(node: Node) -> NodeRow:
    cpus = _cpus(node.cores or ())
    return NodeRow(
        nodes=node.node_id,
        cpus=str(cpus) if cpus else None,
        memory=_size(node.memory),
        hugepages=_pages(node.hugepages),
    )


def _cpus(cores: Iterable[Core]) -> CPUSet:
    return CPUSet(cpu for core in cores for cpu in core.thread_ids or ())


def _pages(pools: tuple[HugePages, ...] | None) -> dict[str, int]:
    return {format_kilobytes(pool.page_size): pool.num_pages for pool in pools or ()}


def _distances(nodes: tuple[Node, ...]) -> tuple[str, ...] | None:
    rows = tuple(" ".join(map(str, node.distances or ())) for node in nodes)
    if all(rows):
        return rows
    if any(rows):
        raise NoTreeError("only some nodes have distances")
    return None


def _caches(nodes: tuple[Node, ...]) -> Iterator[CacheRow]:
    """A row for each kind of cache, with the CPUs that share each cache."""
    sharers: dict[UncoreCache, CPUSet] = {}
    for cache, cpus in _shared(nodes):
        if cpus:
            sharers[cache] = sharers.get(cache, CPUSet()) | cpus
    kinds: dict[tuple[int, str, int], list[UncoreCache]] = {}
    for cache in sorted(sharers, key=lambda shared_cache: min(sharers[shared_cache])):
        kinds.setdefault((cache.level, cache.type, cache.size), []).append(cache)
    for (level, kind, size), caches in sorted(kinds.items()):
        yield CacheRow(
            level=level,
            type=kind,  # type: ignore[arg-type]
            size=_size(size),
            shared=tuple(str(sharers[cache]) for cache in caches),
            cpus=str(CPUSet.union(sharers[cache] for cache in caches)),
            ids=_join(cache.id for cache in caches),
            line=64,
            ways=8,
        )


def _shared(nodes: tuple[Node, ...]) -> Iterator[tuple[UncoreCache, CPUSet]]:
    for node in nodes:
        for cache in node.caches or ():
            yield cache, _cpus(node.cores or ())
        for core in node.cores or ():
            for cache in (*(core.caches or ()), *(core.uncore_caches or ())):
                yield cache, _cpus((core,))
