"""Merging topology hints by searching for the best result instead of enumerating all of them.

The search follows the order of the comparison (`Rules.rank`): preferred results first, then the
others by size. It checks fewer results, and is still exact:

- *Representatives.* Swapping interchangeable nodes (`numaproof.reference.topology.search.symmetry`)
  does not change the set of results. If a set is a result, so are all sets with the same number of
  nodes from each class. They have the same size and the same distances, so the one with the lowest
  ids is the best, and only representatives can win.
- *Preferred results* are the sets that every list prefers. A hint without nodes matches any set.
- *Other results.* If there are no preferred results, every non-empty intersection is an ordinary
  result. A set is an intersection if each list has a hint that includes it, and every node outside
  it is excluded by at least one of these hints. Only the smallest of the hints that include it
  matter, because they exclude the most. Interchangeable nodes of a hint can be swapped within each
  class. The number of nodes of a class that remain to be excluded shrinks most if a hint excludes
  only such nodes, which swapping always makes possible. So it is enough to count the excluded nodes
  of each class (`NodeClasses.smallest_intersection`).

If sets are ordered by more than distances and ids (`Distances.by_table_alone`), no nodes are
interchangeable, and the search finds all results of a size before it compares them.

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from numaproof.protocol.sets import NUMASet
from numaproof.reference.topology.hints import ANYWHERE, Demand, TopologyHint
from numaproof.reference.topology.merge import IMPOSSIBLE, by_resource
from numaproof.reference.topology.search.enumeration import among, signatures
from numaproof.reference.topology.search.symmetry import NodeClasses, classify

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numaproof.reference.topology.hints import Hints, Resources
    from numaproof.reference.topology.merge import Rules


def merge(rules: Rules, providers: Sequence[Resources | None]) -> TopologyHint:
    """Returns the best result; if there is none, all nodes of the machine (not preferred).

    Raises:
        UnsupportedError: there are too many sets of nodes.

    Requirements: TOPO-MERGE-002, TOPO-MERGE-003, TOPO-MERGE-006, TOPO-MERGE-007, TOPO-MERGE-009,
    TOPO-MERGE-010, TOPO-MERGE-012, TOPO-OPT-006, TOPO-OPT-009, TOPO-OPT-012, TOPO-POLICY-010.
    """
    given = tuple(by_resource(providers))
    classes = _interchangeable(rules, given)
    lists = [rules.filter_hints(_representatives(hints, classes)) for hints in given]
    unmet = TopologyHint(rules.nodes, preferred=False)
    if not all(lists):
        return unmet
    preferred = [nodes for nodes in preferred_results(rules, lists) if nodes]
    if preferred:
        fewest = min(map(int.bit_count, preferred))
        tied = [nodes for nodes in preferred if nodes.bit_count() == fewest]
        return TopologyHint(rules.sort_tied(tied)[0], preferred=True)
    masks = [{hint.nodes & rules.nodes for hint in hints} for hints in lists]
    pairwise = rules.distances is None or rules.distances.by_table_alone
    for candidates in _candidates(rules, classes, rules.target(lists)):
        tied = candidates
        if not pairwise:
            tied = [
                nodes for nodes in candidates if _is_reachable(nodes, rules.nodes, masks, classes)
            ]
        for nodes in rules.sort_tied(tied):
            if _is_reachable(nodes, rules.nodes, masks, classes):
                return TopologyHint(nodes, preferred=False)
    return unmet


def preferred_results(rules: Rules, lists: Sequence[Sequence[TopologyHint]]) -> set[int]:
    """The results of hints that are all preferred and name the same nodes."""
    wanted = [{hint.nodes for hint in hints if hint.preferred} for hints in lists]
    strict = [masks for masks in wanted if ANYWHERE not in masks]
    if strict:
        return {nodes & rules.nodes for nodes in set.intersection(*strict)}
    return {nodes & rules.nodes for masks in wanted for nodes in masks} | {rules.nodes}


def _interchangeable(rules: Rules, lists: Sequence[Hints]) -> NodeClasses:
    """The classes of nodes that neither the lists, the machine nor the distances distinguish."""
    named = [0]
    common = [ANYWHERE]
    nodes = rules.nodes
    for hints in lists:
        if isinstance(hints, Demand):
            nodes |= reduce(or_, (1 << node for node in hints.nodes), 0)
        else:
            masks = [hint.nodes for hint in hints if hint.nodes != ANYWHERE]
            named.append(reduce(or_, masks, 0))
            common.append(reduce(and_, masks, ANYWHERE))
            nodes |= named[-1]
    if rules.distances is not None and not rules.distances.by_table_alone:
        return NodeClasses.all_distinct(NUMASet.from_mask(nodes))
    # Several resources can share a demand.
    demands = {id(hints): hints for hints in lists if isinstance(hints, Demand)}
    known = [signatures(demand) for demand in demands.values()]
    # A node that only some hints of a list name differs from all others.
    apart = reduce(or_, (some & ~all_of for some, all_of in zip(named, common, strict=True)), 0)

    def signature(node: int) -> Hashable:
        if apart >> node & 1:
            return node
        inside = tuple(some >> node & 1 for some in (rules.nodes, rules.first_choice, *named))
        return inside, tuple(said.get(node) for said in known)

    if rules.distances is None:
        return classify(NUMASet.from_mask(nodes), signature)
    table = rules.distances.table
    found = classify(NUMASet.from_mask(rules.nodes), signature, table).classes
    outside = NodeClasses.all_distinct(NUMASet.from_mask(nodes & ~rules.nodes)).classes
    return NodeClasses((*found, *outside))


def _representatives(hints: Hints, classes: NodeClasses) -> Sequence[TopologyHint]:
    return (among(hints, classes) if isinstance(hints, Demand) else hints) or IMPOSSIBLE


def _candidates(rules: Rules, classes: NodeClasses, target: int) -> Iterator[list[int]]:
    """Yields the sets that could be the result, grouped by size, in the order of the comparison."""
    by_size: dict[int, list[int]] = {}
    for nodes in classes.representatives():
        if nodes and not nodes & ~rules.nodes:
            by_size.setdefault(nodes.bit_count(), []).append(nodes)
    return iter(
        sorted(
            by_size.values(),
            key=lambda sets: rules.rank(TopologyHint(sets[0], preferred=False), target),
        )
    )


def _is_reachable(nodes: int, every: int, lists: Sequence[set[int]], classes: NodeClasses) -> bool:
    """Whether `nodes` is the intersection of one hint from each list."""
    around = []
    for masks in lists:
        fitting = [mask for mask in masks if not nodes & ~mask]
        if not fitting:
            return False
        around.append(fitting)
    if any(nodes in masks for masks in lists) or nodes == every:
        return True
    # Only counts matter within a class, so the remaining nodes are represented by the lowest ids.
    left = {classes.lowest(every & ~nodes)}
    for fitting in around:
        smallest = _smallest(fitting)
        left = {
            classes.smallest_intersection(outside, mask) for outside in left for mask in smallest
        }
        if 0 in left:
            return True
    return False


def _smallest(masks: list[int]) -> list[int]:
    """The masks that do not include any other mask."""
    found: list[int] = []
    for mask in sorted(masks, key=int.bit_count):
        if all(other & ~mask for other in found):
            found.append(mask)
    return found
