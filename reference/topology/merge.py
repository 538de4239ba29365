"""Merging topology hints: one set of NUMA nodes for all that a container asks for.

A result takes one hint of each resource and intersects their nodes with all nodes of the machine.
It is preferred when all of these hints are, and name the same nodes. Of all results with a node,
the best one is the merged hint. (Kubernetes documentation, "Topology Manager: how it works", and
where it is silent, kubelet, HintMerger.)

This is the definition: it looks at every result. Among too many results for that,
`numaproof.reference.topology.search.evaluation` finds the same winner.

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from numaproof.reference.topology.hints import ANYWHERE, TopologyHint, list_hints

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from numaproof.reference.topology.distances import Distances
    from numaproof.reference.topology.hints import Hints, Resources

NO_PREFERENCE = (TopologyHint(ANYWHERE, preferred=True),)
"""The hints of a provider or a resource that does not care about nodes."""

IMPOSSIBLE = (TopologyHint(ANYWHERE, preferred=False),)
"""The hints of a resource that no set of nodes can provide: no result with it is preferred."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a policy merges by.

    Attributes:
        nodes: all nodes of the machine.
        distances: the distances of nodes, where the closest are wanted.
        single: only preferred hints of one node count (policy single-numa-node).
    """

    nodes: int
    distances: Distances | None = None
    single: bool = False

    def filter_hints(self, hints: Sequence[TopologyHint]) -> Sequence[TopologyHint]:
        """Those of a resource's hints that the policy takes into account.

        Requirements: TOPO-MERGE-012.
        """
        if not self.single:
            return hints
        return [
            hint
            for hint in hints
            if hint.preferred and (hint.nodes == ANYWHERE or hint.nodes.bit_count() == 1)
        ]

    def target(self, lists: Iterable[Sequence[TopologyHint]]) -> int:
        """The size that results not preferred should have.

        It is the number of nodes that the most demanding resource needs at least: the largest of
        the sizes that the resources' narrowest hints have.

        Requirements: MEM-GROUP-008.
        """
        sizes = (
            [hint.nodes.bit_count() for hint in hints if hint.nodes != ANYWHERE] for hints in lists
        )
        return max((min(of_one) for of_one in sizes if of_one), default=0)

    def rank(self, result: TopologyHint, target: int) -> tuple[bool, int]:
        """What decides first between two results, the less the better; results may tie.

        A preferred result comes before any other, the fewer nodes the better. Otherwise one of
        exactly `target` nodes is best; then one with fewer, the more the better; then one with
        more, the fewer the better.

        Requirements: TOPO-MERGE-003, TOPO-MERGE-006, TOPO-MERGE-009, TOPO-OPT-018.
        """
        size = result.nodes.bit_count()
        if result.preferred or size > target:
            return not result.preferred, size
        return True, target - size

    def sort_tied(self, tied_sets: Collection[int]) -> list[int]:
        """Results of the same rank, the best first: by distance if wanted, then by low ids.

        Requirements: TOPO-MERGE-008, TOPO-OPT-002, TOPO-OPT-005.
        """
        return sorted(tied_sets) if self.distances is None else self.distances.sort_sets(tied_sets)


def merge(rules: Rules, providers: Sequence[Resources | None]) -> TopologyHint:
    """The best result; if none has a node, all nodes of the machine, not preferred.

    Requirements: TOPO-MERGE-002, TOPO-MERGE-007, TOPO-MERGE-010.
    """
    lists = [
        rules.filter_hints(list_hints(hints) or IMPOSSIBLE) for hints in by_resource(providers)
    ]
    found = results(rules, lists)
    if not found:
        return TopologyHint(rules.nodes, preferred=False)
    target = rules.target(lists)
    best = min(rules.rank(result, target) for result in found)
    tied = [result for result in found if rules.rank(result, target) == best]
    winner, *_ = rules.sort_tied([result.nodes for result in tied])
    return TopologyHint(winner, tied[0].preferred)


def by_resource(providers: Iterable[Resources | None]) -> Iterator[Hints]:
    """The hints of every resource; a provider without any counts as one without preference.

    Requirements: TOPO-MERGE-001, TOPO-MERGE-005, TOPO-MERGE-011, TOPO-POLICY-011.
    """
    for resources in providers:
        for hints in resources.values() if resources else (None,):
            yield NO_PREFERENCE if hints is None else hints


class _Partial(NamedTuple):
    """A result of the hints taken so far.

    `common_nodes` are the nodes that all of them name: ANYWHERE if none names any, None if they
    differ.
    """

    nodes: int
    preferred: bool
    common_nodes: int | None

    def with_hint(self, hint: TopologyHint) -> _Partial:
        named = self.common_nodes
        if named == ANYWHERE:
            named = hint.nodes
        elif hint.nodes not in (ANYWHERE, named):
            named = None
        return _Partial(self.nodes & hint.nodes, self.preferred and hint.preferred, named)


def results(rules: Rules, lists: Iterable[Sequence[TopologyHint]]) -> set[TopologyHint]:
    """All results that have a node.

    Requirements: TOPO-MERGE-004, TOPO-MERGE-013.
    """
    partial = {_Partial(rules.nodes, preferred=True, common_nodes=ANYWHERE)}
    for hints in lists:
        partial = {one.with_hint(hint) for one in partial for hint in hints}
    return {
        TopologyHint(one.nodes, one.preferred and one.common_nodes is not None)
        for one in partial
        if one.nodes
    }
