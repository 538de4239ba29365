"""Merging topology hints: the best of all results, looked for and not enumerated.

A result takes one hint of each list and intersects their nodes with all nodes of the machine. It
is preferred when all of the hints are, and name the same nodes. The best result is found in the
order of the comparison (Kubernetes documentation, "Topology Manager: how it works"; kubelet,
HintMerger):

1. a preferred one before any other, then the fitter: fewer nodes, then (with
   ``prefer-closest-numa-nodes``) the smaller average distance, then lower ids;
2. otherwise one with exactly `best` nodes, the largest of what each list needs at least; then
   one with fewer, the more the better; then one with more, the fewer the better; then the fitter;
3. without any result that has a node, all nodes, not preferred.

Why looking at less is exact:

- *Representatives.* The hints, the machine's nodes and the distances stay as they are when twins
  (`numaproof.reference.topology.search.symmetry`) are swapped, so the results do too, and with a
  set every set is a result that has as many nodes of each class. They agree in number
  and distance; the one with the lowest ids is the best of them. So only representatives can win.
- *Preferred results* are the sets that every list prefers. A hint without nodes goes with any.
- *Other results.* Where there is no preferred one, every intersection that has a node is an
  ordinary result. A set is an intersection if each list has a hint around it, and every node
  outside it is left out by one of these. Around a given set only the smallest hints matter, as
  a smaller one leaves out more. Hints may be laid with twins swapped, each class by itself; the
  nodes of a class that are still to be left out shrink most when a hint leaves out only such
  nodes, and it can, for its place in the class is free. So counting the nodes left out in each
  class (`Twins.kept`) decides.

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from numaproof.protocol.sets import NUMASet
from numaproof.reference.topology.hints import ANYWHERE, Family, Hint
from numaproof.reference.topology.search.symmetry import Twins, classify

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from numaproof.reference.topology.hints import Hints, Resources

NO_PREFERENCE = (Hint(ANYWHERE, preferred=True),)
IMPOSSIBLE = (Hint(ANYWHERE, preferred=False),)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a policy merges by.

    `nodes` are all nodes of the machine; `distances`, by node and node, are given where the
    closest nodes are wanted; `single` leaves only preferred hints of one node. `misread` are
    distances that kubelets take for the true ones, among the nodes that they find any for
    (`numaproof.reference.departures.defects.CLOSEST_BY_POSITION`).
    """

    nodes: int
    distances: Mapping[int, Mapping[int, int]] | None = None
    single: bool = False
    misread: Mapping[int, Mapping[int, int]] | None = None

    def fitness(self, nodes: int) -> tuple[int, float, int]:
        """The less, the fitter."""
        size = nodes.bit_count()
        if self.distances is None:
            return size, 0.0, nodes
        members = tuple(NUMASet.from_mask(nodes))
        total = sum(self.distances[one][other] for one in members for other in members)
        return size, total / (size * size), nodes

    def comparing(self, results: Iterable[int]) -> Rules:
        """The rules by which a kubelet compares these results of one size.

        Where one has a node that it finds no distances for it panics, and nothing is misread.
        """
        if self.misread is None or any(nodes & ~NUMASet(self.misread).mask for nodes in results):
            return self
        return replace(self, distances=self.misread)


def merge(rules: Rules, providers: Sequence[Resources | None]) -> Hint:
    """The best result of all; it always has nodes, unless the machine has none."""
    given = tuple(_lists(providers))
    twins = _twins(rules, given)
    lists = [_filtered(rules, _representatives(hints, twins)) for hints in given]
    unmet = Hint(rules.nodes, preferred=False)
    if not all(lists):
        return unmet
    preferred = [nodes for nodes in _preferred(rules, lists) if nodes]
    if preferred:
        fewest = min(map(int.bit_count, preferred))
        preferred = [nodes for nodes in preferred if nodes.bit_count() == fewest]
        return Hint(min(preferred, key=rules.comparing(preferred).fitness), preferred=True)
    best = max(map(_least, lists), default=0)
    masks = [{hint.nodes & rules.nodes for hint in hints} for hints in lists]
    for candidates in _candidates(rules, twins, best):
        found = candidates
        if rules.misread is not None:
            # What a kubelet reads depends on all results of the size, not on the best alone.
            found = [nodes for nodes in found if _reached(nodes, rules.nodes, masks, twins)]
        for nodes in sorted(found, key=rules.comparing(found).fitness):
            if _reached(nodes, rules.nodes, masks, twins):
                return Hint(nodes, preferred=False)
    return unmet


def _lists(providers: Iterable[Resources | None]) -> Iterator[Hints]:
    for resources in providers:
        if not resources:
            yield NO_PREFERENCE
            continue
        for hints in resources.values():
            if hints is None:
                yield NO_PREFERENCE
            else:
                yield hints if isinstance(hints, Family) else hints or IMPOSSIBLE


def _twins(rules: Rules, lists: Sequence[Hints]) -> Twins:
    """The nodes that no list, not the machine and no distance tells apart."""
    named = [0]
    common = [ANYWHERE]
    nodes = rules.nodes
    for hints in lists:
        if isinstance(hints, Family):
            nodes |= reduce(or_, (1 << node for node in hints.nodes), 0)
        else:
            masks = [hint.nodes for hint in hints if hint.nodes != ANYWHERE]
            named.append(reduce(or_, masks, 0))
            common.append(reduce(and_, masks, ANYWHERE))
            nodes |= named[-1]
    known = [hints.signatures for hints in lists if isinstance(hints, Family)]
    # A node that is in some hints of a list and not in others is told apart from all.
    apart = reduce(or_, (some & ~all_of for some, all_of in zip(named, common, strict=True)), 0)

    def signature(node: int) -> Hashable:
        if apart >> node & 1:
            return node
        inside = tuple(some >> node & 1 for some in (rules.nodes, *named))
        return inside, tuple(signatures.get(node) for signatures in known)

    if rules.misread is not None:
        # It is the ids themselves that tell nodes apart.
        return Twins(tuple((node,) for node in NUMASet.from_mask(nodes)))
    distances = rules.distances
    if distances is not None and nodes & ~rules.nodes:
        outside = nodes & ~rules.nodes
        inside = classify(NUMASet.from_mask(rules.nodes), signature, distances).classes
        return Twins((*inside, *((node,) for node in NUMASet.from_mask(outside))))
    return classify(NUMASet.from_mask(nodes), signature, distances)


def _representatives(hints: Hints, twins: Twins) -> Sequence[Hint]:
    return hints.among(twins) or IMPOSSIBLE if isinstance(hints, Family) else hints


def _filtered(rules: Rules, hints: Sequence[Hint]) -> Sequence[Hint]:
    if not rules.single:
        return hints
    return [
        hint
        for hint in hints
        if hint.preferred and (hint.nodes == ANYWHERE or hint.nodes.bit_count() == 1)
    ]


def _least(hints: Sequence[Hint]) -> int:
    """The least number of nodes that a hint names; 0 where none names any."""
    return min((hint.nodes.bit_count() for hint in hints if hint.nodes != ANYWHERE), default=0)


def _preferred(rules: Rules, lists: Sequence[Sequence[Hint]]) -> set[int]:
    """The results in which all hints are preferred and equal."""
    wanted = [{hint.nodes for hint in hints if hint.preferred} for hints in lists]
    strict = [masks for masks in wanted if ANYWHERE not in masks]
    if strict:
        return {nodes & rules.nodes for nodes in set.intersection(*strict)}
    return {nodes & rules.nodes for masks in wanted for nodes in masks} | {rules.nodes}


def _candidates(rules: Rules, twins: Twins, best: int) -> Iterator[list[int]]:
    """Sets that could be the result, by their sizes in the order of the comparison."""
    by_size: dict[int, list[int]] = {}
    for nodes in twins.representatives():
        if nodes and not nodes & ~rules.nodes:
            by_size.setdefault(nodes.bit_count(), []).append(nodes)
    largest = rules.nodes.bit_count()
    for size in (best, *range(best - 1, 0, -1), *range(best + 1, largest + 1)):
        yield by_size.get(size, [])


def _reached(nodes: int, every: int, lists: Sequence[set[int]], twins: Twins) -> bool:
    """Whether `nodes` is the intersection of a hint of each list."""
    around = []
    for masks in lists:
        fitting = [mask for mask in masks if not nodes & ~mask]
        if not fitting:
            return False
        around.append(fitting)
    if any(nodes in masks for masks in lists) or nodes == every:
        return True
    # Only counts matter within a class, so what is left keeps to its lowest places.
    left = {twins.lowest(every & ~nodes)}
    for fitting in around:
        smallest = _smallest(fitting)
        left = {twins.kept(outside, mask) for outside in left for mask in smallest}
        if 0 in left:
            return True
    return False


def _smallest(masks: list[int]) -> list[int]:
    """Those that have no other of them within."""
    found: list[int] = []
    for mask in sorted(masks, key=int.bit_count):
        if all(other & ~mask for other in found):
            found.append(mask)
    return found
