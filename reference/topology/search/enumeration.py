"""Enumerates a demand's hints, checking one set of NUMA nodes in place of many similar ones.

`signatures` shows which nodes a demand treats alike. Only representatives of each class of such
nodes are checked (`numaproof.reference.topology.search.symmetry`). The resources of all sets are
added up at once.

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from numaproof.protocol.sets import NUMASet
from numaproof.reference.topology.hints import Demand, TopologyHint, best_of
from numaproof.reference.topology.search.symmetry import NodeClasses, classify

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from numaproof.reference.topology.hints import Hints, Supply


def list_hints(hints: Hints) -> tuple[TopologyHint, ...]:
    """Lists the hints in the kubelet's order; see the definition of the same name.

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
    # Usually, a single node suffices.
    if any(demand.met_by(1 << node) for node in demand.nodes):
        return True
    classes = interchangeable(demand)
    sets = _sets(demand, classes)
    if _is_capped(demand):
        sets = _possible(demand, sets, classes)
    return bool(_hints(demand, sets, classes))


def narrowest(demand: Demand, containing: int = 0, first_choice: int = 0) -> TopologyHint | None:
    """The best hint that includes `containing`; see the definition of the same name."""
    known = signatures(demand)
    classes = classify(
        demand.nodes, lambda node: (known[node], containing >> node & 1, first_choice >> node & 1)
    )
    fitting = [hint for hint in among(demand, classes) if not containing & ~hint.nodes]
    return best_of(fitting, first_choice)


def interchangeable(demand: Demand) -> NodeClasses:
    return classify(demand.nodes, signatures(demand).__getitem__)


def signatures(demand: Demand) -> Mapping[int, Hashable]:
    """The demand's view of each node; nodes with equal signatures are interchangeable."""
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
    """The hints among the representatives of `classes`, whose nodes must have equal signatures."""
    sets = _sets(demand, classes)
    possible = _possible(demand, sets, classes)
    fewest = min((nodes.bit_count() for nodes in possible if nodes), default=len(demand.nodes))
    return [
        TopologyHint(nodes, demand.prefers(nodes, fewest))
        for nodes in _hints(demand, possible if _is_capped(demand) else sets, classes)
    ]


def _is_capped(demand: Demand) -> bool:
    """Whether hints must also suffice on an empty machine, which is the only limit on reuse."""
    return any(need.reusable for need in demand.needs)


def _sets(demand: Demand, classes: NodeClasses) -> list[int]:
    """The representatives; sets with nodes outside the demand are replaced by the empty set."""
    outside = ~sum(1 << node for node in demand.nodes)
    return [0 if nodes & outside else nodes for nodes in classes.representatives()]


def _possible(demand: Demand, sets: list[int], classes: NodeClasses) -> list[int]:
    """Replaces sets that would not suffice on an empty machine with the empty set."""
    full = [(need.total, (), need.amount) for need in demand.needs]
    return _enough(full, sets, classes)


def _hints(demand: Demand, sets: list[int], classes: NodeClasses) -> list[int]:
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
    """The groups in `cells` that all of their own nodes agree on."""
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
    """Replaces sets that do not meet every need with the empty set.

    A need consists of the supplies, additional supplies for exact sets, and the amount. `sets` are
    in the order of the representatives of `classes`.
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
