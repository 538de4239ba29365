"""Which sets of NUMA nodes could give a container, or a whole pod, its memory.

(Kubernetes documentation, "Memory Manager"; the kubelet's rule of groups: a node is used alone or
with one and the same group of nodes, never both.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.topology.hints import Demand, Need, Supply, TopologyHint
from numaproof.reference.topology.search import evaluation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.memory.state import Blocks, MemoryState, ReusableMemory
    from numaproof.reference.topology.hints import Resources


def demand(
    state: MemoryState, reuse: ReusableMemory, uid: str, amounts: Mapping[str, int]
) -> Demand:
    """The sets of nodes that have `amounts` (bytes by memory type) free.

    Requirements: MEM-GROUP-004, MEM-GROUP-005, MEM-HINT-003, MEM-HINT-004, MEM-STATIC-010.
    """
    return Demand(
        nodes=tuple(sorted(state.nodes)),
        needs=tuple(_need(state, reuse, uid, kind, size) for kind, size in amounts.items()),
        cells=tuple(
            (node, memory.cells)
            for node, memory in sorted(state.nodes.items())
            if memory.assignments > 0
        ),
    )


def _need(state: MemoryState, reuse: ReusableMemory, uid: str, kind: str, amount: int) -> Need:
    tables = [
        (1 << node, memory.tables[kind])
        for node, memory in sorted(state.nodes.items())
        if kind in memory.tables
    ]
    return Need(
        amount=amount,
        free=tuple(Supply(node, table.free) for node, table in tables),
        total=tuple(Supply(node, table.allocatable) for node, table in tables),
        reusable=tuple(
            Supply(nodes, size)
            for (nodes, had), size in sorted(reuse.sizes.items())
            if had == kind and size and uid == reuse.uid
        ),
    )


def calculated(
    state: MemoryState, reuse: ReusableMemory, uid: str, amounts: Mapping[str, int]
) -> Resources:
    """Hints for each of `amounts`: a set of nodes has all of them, or is a hint for none.

    Requirements: MEM-HINT-002, MEM-HINT-005, MEM-HINT-006, TOPO-ORDER-004.
    """
    described = demand(state, reuse, uid, amounts)
    if not amounts or not evaluation.satisfiable(described):
        return {}
    return dict.fromkeys(amounts, described)


def regenerated(blocks: Blocks, amounts: Mapping[str, int]) -> Resources:
    """Hints for what is allocated already: just there; nothing where the amounts differ.

    Requirements: MEM-HINT-007, MEM-RESTART-004, TOPO-RESTART-001.
    """
    if len(blocks) != len(amounts):
        return {}
    if any(amounts.get(block.kind) != block.size for block in blocks):
        return {}
    hints = {block.kind: (TopologyHint(block.nodes, preferred=True),) for block in blocks}
    return {kind: hints[kind] for kind in amounts}
