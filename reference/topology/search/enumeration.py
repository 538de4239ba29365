"""The hints of a demand, with one set of NUMA nodes looked at for many.

What a demand says of nodes (`signatures`) shows which of them are interchangeable, and for each
class of these only representatives are looked at (`numaproof.reference.topology.search.symmetry`).
What the sets have is summed up for all of them at once.

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from numaproof.protocol.sets import NUMASet
from numaproof.reference.topology.hints import Demand, TopologyHint
from numaproof.reference.topology.search.symmetry import NodeClasses, classify

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from numaproof.reference.topology.hints import Hints, Supply


def list_hints(hints: Hints) -> tuple[TopologyHint, ...]:
    """The hints one by one, in the kubelet's order; see the definition of the same name.

    Raises:
        UnsupportedError: there are too many sets of nodes.
    """
    if not isinstance(hints, Demand):
        return hints
    place = {node: position for position, node in enumerate(hints.nodes)}

    def order(hint: TopologyHint) -> tuple[int, list[int]]:
        members = [place[node] for node in NUMASet.from_mask(hint.nodes)]
        return len(members), sorted(members)

    return tuple(sorted(among(hints, NodeClasses.all_distinct(hints.nodes)), key=order))


def satisfiable(demand: Demand) -> bool:
    """Whether any set of nodes is a hint."""
    # Mostly some node will do alone.
    if any(demand.met_by(1 << node) for node in demand.nodes):
        return True
    classes = interchangeable(demand)
    sets = _sets(demand, classes)
    if _is_capped(demand):
        sets = _possible(demand, sets, classes)
    return bool(_hints(demand, sets, classes))


def narrowest(demand: Demand, containing: int = 0) -> TopologyHint | None:
    """The best hint with all nodes of `containing`; see the definition of the same name."""
    known = signatures(demand)
    classes = classify(demand.nodes, lambda node: (known[node], containing >> node & 1))
    fitting = [hint for hint in among(demand, classes) if not containing & ~hint.nodes]
    return min(
        fitting,
        key=lambda hint: (not hint.preferred, hint.nodes.bit_count(), hint.nodes),
        default=None,
    )


def interchangeable(demand: Demand) -> NodeClasses:
    """The classes of nodes that a demand does not tell apart."""
    return classify(demand.nodes, signatures(demand).__getitem__)


def signatures(demand: Demand) -> Mapping[int, Hashable]:
    """What a demand says of each of its nodes; two with the same signature can be swapped."""
    groups = [*demand.touching]
    for named, cell in demand.cells:
        groups += [1 << named, cell]
    for need in demand.needs:
        groups += [one.nodes for one in (*need.free, *need.total) if not _single(one)]
        groups += [one.nodes for one in need.reusable]
    named_ones = reduce(or_, groups, 0)
    amounts = [_by_node(some) for need in demand.needs for some in (need.free, need.total)]
    return {
        node: (node, "named")
        if named_ones >> node & 1
        else (
            tuple(by_node.get(node, 0) for by_node in amounts),
            tuple(socket >> node & 1 for socket in demand.sockets),
        )
        for node in demand.nodes
    }


def among(demand: Demand, classes: NodeClasses) -> list[TopologyHint]:
    """The hints that are representatives of `classes`, which must keep to `signatures`."""
    sets = _sets(demand, classes)
    possible = _possible(demand, sets, classes)
    fewest = min((nodes.bit_count() for nodes in possible if nodes), default=len(demand.nodes))
    return [
        TopologyHint(nodes, demand.prefers(nodes, fewest))
        for nodes in _hints(demand, possible if _is_capped(demand) else sets, classes)
    ]


def _is_capped(demand: Demand) -> bool:
    """Whether a hint must do on an empty machine, too: nothing else caps what may be reused."""
    return any(need.reusable for need in demand.needs)


def _sets(demand: Demand, classes: NodeClasses) -> list[int]:
    """The representatives; the empty set in the place of those beyond the demand's nodes."""
    outside = ~sum(1 << node for node in demand.nodes)
    return [0 if nodes & outside else nodes for nodes in classes.representatives()]


def _possible(demand: Demand, sets: list[int], classes: NodeClasses) -> list[int]:
    """The sets; the empty one in the place of those that would not do if all was free."""
    full = [(need.total, (), need.amount) for need in demand.needs]
    return _enough(full, sets, classes)


def _hints(demand: Demand, sets: list[int], classes: NodeClasses) -> list[int]:
    """Those of the representatives that meet the demand."""
    free = [(need.free, need.reusable, need.amount) for need in demand.needs]
    found = [nodes for nodes in _enough(free, sets, classes) if nodes]
    if demand.cells:
        named = reduce(or_, (1 << node for node, _ in demand.cells))
        groups = _whole_groups(demand)
        found = [nodes for nodes in found if not nodes & named or nodes in groups]
    for group in demand.touching:
        found = [nodes for nodes in found if nodes & group]
    return found


def _whole_groups(demand: Demand) -> set[int]:
    """The groups in `cells` on which all of their own nodes agree."""
    return {
        group
        for node, group in demand.cells
        if group >> node & 1
        and all(other == group for member, other in demand.cells if group >> member & 1)
    }


def _enough(
    needs: Iterable[tuple[tuple[Supply, ...], tuple[Supply, ...], int]],
    sets: list[int],
    classes: NodeClasses,
) -> list[int]:
    """Those of `sets` that have the amounts of all `needs`, the empty set in place of others.

    A need is what there is, what there is in addition for exact sets, and the amount. `sets` stand
    at the places of the representatives of `classes`.
    """
    for supplies, reusable, amount in needs:
        sums = classes.weigh(_by_node(supplies))
        for supply in supplies:
            if not _single(supply):
                sums = [
                    total + supply.amount if nodes & supply.nodes else total
                    for nodes, total in zip(sets, sums, strict=True)
                ]
        for supply in reusable:
            sums = [
                total + supply.amount if nodes == supply.nodes else total
                for nodes, total in zip(sets, sums, strict=True)
            ]
        sets = [nodes if total >= amount else 0 for nodes, total in zip(sets, sums, strict=True)]
    return sets


def _single(supply: Supply) -> bool:
    return supply.nodes.bit_count() == 1


def _by_node(supplies: tuple[Supply, ...]) -> dict[int, int]:
    amounts: dict[int, int] = {}
    for supply in supplies:
        if _single(supply):
            node = supply.nodes.bit_length() - 1
            amounts[node] = amounts.get(node, 0) + supply.amount
    return amounts
