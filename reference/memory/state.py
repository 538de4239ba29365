"""The Memory Manager's state: memory by NUMA node, and the blocks of each container.

Sets of NUMA nodes are bit masks; amounts are in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from numaproof.protocol.sets import NUMASet
from numaproof.reference.topology.hints import Demand, Need, Supply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Block(NamedTuple):
    """An amount of one memory type, allocated jointly on a set of nodes."""

    nodes: int
    kind: str
    size: int


Blocks = tuple[Block, ...]


class MemoryTable(NamedTuple):
    """One memory type on one node; `allocatable` is `total` minus the reserved `system` memory.

    Requirements: NODE-STATE-002.
    """

    total: int
    system: int
    allocatable: int
    reserved: int
    free: int

    def take(self, size: int) -> MemoryTable:
        total, system, allocatable, reserved, free = self
        return MemoryTable(total, system, allocatable, reserved + size, free - size)


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """A node: its number of blocks, its memory by type, and the group that it is used with."""

    assignments: int
    tables: Mapping[str, MemoryTable]
    cells: int


Nodes = dict[int, NodeMemory]
"""Nodes by id, in ascending order."""


@dataclass(frozen=True, slots=True)
class ReusableMemory:
    """Memory of a pod's ended init containers, by nodes and type.

    It is kept only for the pod of the last allocation.

    Requirements: MEM-INIT-004.
    """

    uid: str = ""
    sizes: Mapping[tuple[int, str], int] = field(default_factory=dict)

    def of(self, uid: str, nodes: int, kind: str) -> int:
        """The amount that containers of this pod can reuse on exactly these nodes.

        Requirements: MEM-INIT-007.
        """
        return self.sizes.get((nodes, kind), 0) if uid == self.uid else 0


_NO_REUSE = ReusableMemory()


@dataclass(frozen=True, slots=True)
class MemoryState:
    """Memory by node, and blocks by pod uid and container name.

    `pods` are the blocks of whole pods, by uid. None stands for a pod that the checkpoint names
    without a list of blocks, which release 1.36 writes differently from an empty list. `reuse` is
    kept only in memory.
    """

    nodes: Mapping[int, NodeMemory] = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, Blocks]] = field(default_factory=dict)
    pods: Mapping[str, Blocks | None] = field(default_factory=dict)
    reuse: ReusableMemory = _NO_REUSE

    def __iter__(self) -> Iterator[tuple[str, str, Blocks]]:
        """Yields every container with blocks: pod uid, container name and blocks."""
        for uid, containers in self.entries.items():
            for name, blocks in containers.items():
                yield uid, name, blocks

    def of(self, uid: str, name: str) -> Blocks | None:
        return self.entries.get(uid, {}).get(name)

    def with_blocks(self, uid: str, name: str, blocks: Blocks) -> MemoryState:
        """Gives the container these blocks without changing the nodes."""
        pod = {**self.entries.get(uid, {}), name: blocks}
        return replace(self, entries={**self.entries, uid: pod})

    def with_pod(self, uid: str, blocks: Blocks) -> MemoryState:
        return replace(self, pods={**self.pods, uid: blocks})

    def reserve(self, block: Block, size: int) -> MemoryState:
        """Puts a block on its nodes and reserves `size` bytes for it, lowest node first."""
        return replace(self, nodes=reserve_block(self.nodes, block, size))

    def release(self, uid: str, name: str) -> MemoryState:
        """Releases the container's blocks.

        The blocks of a whole pod are released with its last container.

        Requirements: MEM-HUGE-006, MEM-REMOVE-001, MEM-REMOVE-002, NODE-PODLEVEL-014.
        """
        blocks = self.of(uid, name)
        if blocks is None:
            return self
        left = {other: had for other, had in self.entries[uid].items() if other != name}
        entries = {**self.entries, uid: left}
        if not left:
            del entries[uid]
        pods = dict(self.pods)
        if uid in pods:
            blocks = () if left else pods.pop(uid) or ()
        nodes = dict(self.nodes)
        for block in blocks:
            size = block.size
            for node in NUMASet.from_mask(block.nodes):
                size -= give_back(nodes, node, block.kind, size)
        return replace(self, nodes=nodes, entries=entries, pods=pods)

    def demand(self, uid: str, amounts: Mapping[str, int]) -> Demand:
        """Returns the demand of a pod for `amounts` (bytes by memory type).

        A node is used either alone or with one group of nodes.

        Requirements: MEM-GROUP-004, MEM-GROUP-005, MEM-HINT-003, MEM-HINT-004, MEM-STATIC-010.
        """
        nodes = sorted(self.nodes.items())
        return Demand(
            nodes=tuple(sorted(self.nodes)),
            needs=tuple(self._need(uid, kind, size) for kind, size in amounts.items()),
            cells=tuple((node, memory.cells) for node, memory in nodes if memory.assignments > 0),
        )

    def _need(self, uid: str, kind: str, amount: int) -> Need:
        tables = [
            (1 << node, memory.tables[kind])
            for node, memory in sorted(self.nodes.items())
            if kind in memory.tables
        ]
        return Need(
            amount=amount,
            free=tuple(Supply(node, table.free) for node, table in tables),
            total=tuple(Supply(node, table.allocatable) for node, table in tables),
            reusable=tuple(
                Supply(nodes, size)
                for (nodes, had), size in sorted(self.reuse.sizes.items())
                if had == kind and size and uid == self.reuse.uid
            ),
        )


def reserve_block(nodes: Mapping[int, NodeMemory], block: Block, size: int) -> Nodes:
    """Puts a block on its nodes and reserves `size` bytes for it, lowest node first.

    Requirements: MEM-GROUP-003.
    """
    found = dict(nodes)
    for node in NUMASet.from_mask(block.nodes):
        memory = found[node]
        table = memory.tables[block.kind]
        taken = min(size, table.free)
        size -= taken
        found[node] = NodeMemory(
            memory.assignments + 1, {**memory.tables, block.kind: table.take(taken)}, block.nodes
        )
    return found


def give_back(nodes: Nodes, node: int, kind: str, size: int) -> int:
    """Releases up to `size` bytes of a block on a node and returns how many were released.

    A node leaves its group when its last block is released.

    Requirements: MEM-GROUP-006.
    """
    memory = nodes[node]
    table = memory.tables[kind]
    given = min(size, table.reserved)
    left = memory.assignments - 1
    nodes[node] = NodeMemory(
        left, {**memory.tables, kind: table.take(-given)}, memory.cells if left else 1 << node
    )
    return given


def same_memory(real: Mapping[int, NodeMemory], expected: Mapping[int, NodeMemory]) -> bool:
    """Whether two machines have the same memory, used by the same groups to the same extent.

    Requirements: MEM-CHECKPOINT-002, MEM-CHECKPOINT-011, MEM-RESTART-006, MEM-RESTART-007.
    """
    if real.keys() != expected.keys():
        return False
    return all(
        (memory.assignments, memory.cells) == (expected[node].assignments, expected[node].cells)
        and memory.tables.keys() == expected[node].tables.keys()
        and all(_same_kind(real, expected, node, kind) for kind in memory.tables)
        for node, memory in real.items()
    )


def _same_kind(
    real: Mapping[int, NodeMemory], expected: Mapping[int, NodeMemory], node: int, kind: str
) -> bool:
    sides = (real, expected)
    fixed = [side[node].tables[kind]._replace(reserved=0, free=0) for side in sides]
    group = NUMASet.from_mask(real[node].cells)
    tables = [[side[member].tables[kind] for member in group] for side in sides]
    sums = [(sum(one.free for one in of), sum(one.reserved for one in of)) for of in tables]
    return fixed[0] == fixed[1] and sums[0] == sums[1]
