"""Which sets of NUMA nodes could give a container, or a whole pod, its memory.

(Kubernetes documentation, "Memory Manager"; the kubelet's rule of groups: a node is used alone or
with one and the same group of nodes, never both.)
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from numaproof.reference.topology.hints import Family, Hint, Need, Supply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.memory.state import Blocks, MemoryState, Reuse
    from numaproof.reference.topology.hints import Resources


def family(state: MemoryState, reuse: Reuse, uid: str, amounts: Mapping[str, int]) -> Family:
    """The sets of nodes that have `amounts` (bytes by memory type) free."""
    return Family(
        nodes=tuple(sorted(state.nodes)),
        needs=tuple(_need(state, reuse, uid, kind, size) for kind, size in amounts.items()),
        cells=tuple(
            (node, memory.cells)
            for node, memory in sorted(state.nodes.items())
            if memory.assignments > 0
        ),
    )


def _need(state: MemoryState, reuse: Reuse, uid: str, kind: str, amount: int) -> Need:
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


def calculated(state: MemoryState, reuse: Reuse, uid: str, amounts: Mapping[str, int]) -> Resources:
    """Hints for each of `amounts`: a set of nodes has all of them, or is a hint for none."""
    described = family(state, reuse, uid, amounts)
    if not amounts or best(described) is None:
        return {}
    return dict.fromkeys(amounts, described)


def regenerated(blocks: Blocks, amounts: Mapping[str, int]) -> Resources:
    """Hints for what is allocated already: just there; nothing where the amounts differ."""
    if len(blocks) != len(amounts):
        return {}
    if any(amounts.get(block.kind) != block.size for block in blocks):
        return {}
    hints = {block.kind: (Hint(block.nodes, preferred=True),) for block in blocks}
    return {kind: hints[kind] for kind in amounts}


def best(described: Family, containing: int = 0) -> Hint | None:
    """The hint with the fewest nodes, of those the lowest, that contains these nodes."""
    found = [
        cells
        for cells in {cells for _, cells in described.cells}
        if not containing & ~cells and _fits(described, cells)
    ]
    unused = _fewest_unused(described, containing)
    if unused:
        found.append(unused)
    if not found:
        return None
    chosen = min(found, key=lambda nodes: (nodes.bit_count(), nodes))
    count = chosen.bit_count()
    return Hint(chosen, preferred=count == _least(described, count))


def _fewest_unused(described: Family, containing: int) -> int:
    """The smallest hint of nodes that nothing lies on; 0 for none."""
    used = {node for node, _ in described.cells}
    nodes = [node for node in described.nodes if node not in used]
    everything = sum(1 << node for node in nodes)
    exact = any(need.reusable for need in described.needs)
    if containing & ~everything or not (exact or _fits(described, everything)):
        return 0
    for count in range(max(1, containing.bit_count()), len(nodes) + 1):
        sets = (sum(1 << node for node in some) for some in combinations(nodes, count))
        found = [some for some in sets if not containing & ~some and _fits(described, some)]
        if found:
            return min(found)
    return 0


def _least(described: Family, at_most: int) -> int:
    """The fewest nodes that have enough of everything on an empty machine."""
    for count in range(1, at_most):
        for some in combinations(described.nodes, count):
            nodes = sum(1 << node for node in some)
            if all(_sum(need.total, nodes) >= need.amount for need in described.needs):
                return count
    return at_most


def _fits(described: Family, nodes: int) -> bool:
    if any(nodes >> node & 1 and nodes != cells for node, cells in described.cells):
        return False
    return all(
        _sum(need.total, nodes) >= need.amount
        and _sum(need.free, nodes)
        + sum(supply.amount for supply in need.reusable if supply.nodes == nodes)
        >= need.amount
        for need in described.needs
    )


def _sum(supplies: tuple[Supply, ...], nodes: int) -> int:
    return sum(supply.amount for supply in supplies if supply.nodes & nodes)
