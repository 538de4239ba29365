"""What the Memory Manager keeps: memory by NUMA node, and the blocks of each container.

Sets of NUMA nodes are bit masks, amounts are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from numaproof.protocol.sets import NUMASet
from numaproof.reference.topology.hints import Demand, Need, Supply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Block(NamedTuple):
    """An amount of one memory type on a set of nodes together."""

    nodes: int
    kind: str
    size: int


Blocks = tuple[Block, ...]


class MemoryTable(NamedTuple):
    """One memory type on one node: `allocatable` is what is left of `total` beside `system`.

    Requirements: NODE-STATE-002.
    """

    total: int
    system: int
    allocatable: int
    reserved: int
    free: int

    def take(self, size: int) -> MemoryTable:
        """The table with `size` more reserved."""
        total, system, allocatable, reserved, free = self
        return MemoryTable(total, system, allocatable, reserved + size, free - size)


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """One node: how many blocks lie on it, and the group of nodes that it is used with."""

    assignments: int
    tables: Mapping[str, MemoryTable]
    cells: int


Nodes = dict[int, NodeMemory]
"""Nodes by id, ascending."""


@dataclass(frozen=True, slots=True)
class ReusableMemory:
    """Memory of a pod's ended init containers, by its nodes and type.

    Kept for the pod that was last allocated to, and for no other.

    Requirements: MEM-INIT-004.
    """

    uid: str = ""
    sizes: Mapping[tuple[int, str], int] = field(default_factory=dict)

    def of(self, uid: str, nodes: int, kind: str) -> int:
        """What containers of this pod may take again on exactly these nodes.

        Requirements: MEM-INIT-007.
        """
        return self.sizes.get((nodes, kind), 0) if uid == self.uid else 0


_NO_REUSE = ReusableMemory()


@dataclass(frozen=True, slots=True)
class MemoryState:
    """Memory by node, and blocks by pod uid and container name.

    `pods` are the blocks that a pod has as a whole, by its uid; its containers share them. A file
    may name a pod without a list of blocks: None, which 1.36 tells from an empty list when it
    writes the file again. `reuse` is kept in memory alone.
    """

    nodes: Mapping[int, NodeMemory] = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, Blocks]] = field(default_factory=dict)
    pods: Mapping[str, Blocks | None] = field(default_factory=dict)
    reuse: ReusableMemory = _NO_REUSE

    def __iter__(self) -> Iterator[tuple[str, str, Blocks]]:
        """Every container that has blocks: pod uid, container name, blocks."""
        for uid, containers in self.entries.items():
            for name, blocks in containers.items():
                yield uid, name, blocks

    def of(self, uid: str, name: str) -> Blocks | None:
        """The container's blocks, None where it has none."""
        return self.entries.get(uid, {}).get(name)

    def with_blocks(self, uid: str, name: str, blocks: Blocks) -> MemoryState:
        """The state in which the container has these blocks; nodes stay as they are."""
        pod = {**self.entries.get(uid, {}), name: blocks}
        return replace(self, entries={**self.entries, uid: pod})

    def with_pod(self, uid: str, blocks: Blocks) -> MemoryState:
        """The state in which the pod as a whole has these blocks; nodes stay as they are."""
        return replace(self, pods={**self.pods, uid: blocks})

    def reserve(self, block: Block, size: int) -> MemoryState:
        """The state with the block on its nodes, `size` of it newly taken, lowest node first."""
        return replace(self, nodes=reserve_block(self.nodes, block, size))

    def release(self, uid: str, name: str) -> MemoryState:
        """The state in which the container has nothing.

        What a pod has as a whole returns with its last container.

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
        """The sets of nodes that have `amounts` (bytes by memory type) free for the pod.

        A node is used alone or with one and the same group of nodes, never both.

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
    """The nodes with the block on them, `size` of it newly taken, lowest node first.

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
    """Gives back up to `size` on the node, and says how much it was.

    With its last block, the node leaves its group.

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
    """Whether two machines have the same memory, and as much of it in use by groups of nodes.

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
