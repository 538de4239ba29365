"""Merging topology hints into one set of NUMA nodes for all resources of a request.

A result combines one hint for each resource: it is the intersection of their nodes and the
machine's nodes. It is preferred if all of its hints are preferred and name the same nodes. The
merged hint is the best result with at least one node. (Kubernetes documentation, "Topology Manager:
how it works", and, for details that it omits, kubelet, HintMerger.)

This module is the definition: it enumerates all results. If there are too many,
`numaproof.reference.topology.search.evaluation` finds the same best result.

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
"""The hints of a provider or a resource without a preference."""

IMPOSSIBLE = (TopologyHint(ANYWHERE, preferred=False),)
"""The hints of a resource that no set of nodes can provide; no result with it is preferred."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules by which a policy merges hints.

    Attributes:
        nodes: all nodes of the machine.
        distances: the distances between nodes, if the policy prefers close nodes.
        single: whether only preferred hints with a single node are used (``single-numa-node``).
        first_choice: a set of nodes that comes before equally good ones.
    """

    nodes: int
    distances: Distances | None = None
    single: bool = False
    first_choice: int = 0

    def filter_hints(self, hints: Sequence[TopologyHint]) -> Sequence[TopologyHint]:
        """Returns the hints of a resource that the policy considers.

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
        """The ideal size of results that are not preferred.

        It is the largest size among the resources' narrowest hints, because some resource needs
        that many nodes.

        Requirements: MEM-GROUP-008.
        """
        sizes = (
            [hint.nodes.bit_count() for hint in hints if hint.nodes != ANYWHERE] for hints in lists
        )
        return max((min(of_one) for of_one in sizes if of_one), default=0)

    def rank(self, result: TopologyHint, target: int) -> tuple[bool, int]:
        """The sort key of a result (lower is better); results can tie.

        Preferred results come first, in ascending order of size. Next come results with exactly
        `target` nodes, then smaller ones (largest first), then larger ones (smallest first).

        Requirements: TOPO-MERGE-003, TOPO-MERGE-006, TOPO-MERGE-009, TOPO-OPT-018.
        """
        size = result.nodes.bit_count()
        if result.preferred or size > target:
            return not result.preferred, size
        return True, target - size

    def sort_tied(self, tied_sets: Collection[int]) -> list[int]:
        """Sorts results of equal rank, best first: by distance if the policy uses it, then by id.

        Requirements: TOPO-MERGE-008, TOPO-OPT-002, TOPO-OPT-005.
        """
        if self.distances is None:
            return sorted(tied_sets, key=lambda nodes: (nodes != self.first_choice, nodes))
        ordered = self.distances.sort_sets(tied_sets)
        return self.distances.put_first(ordered, self.first_choice)


def merge(rules: Rules, providers: Sequence[Resources | None]) -> TopologyHint:
    """Returns the best result; if there is none, all nodes of the machine (not preferred).

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
    """Yields the hints of every resource; a provider without resources has no preference.

    Requirements: TOPO-MERGE-001, TOPO-MERGE-005, TOPO-MERGE-011, TOPO-POLICY-011.
    """
    for resources in providers:
        for hints in resources.values() if resources else (None,):
            yield NO_PREFERENCE if hints is None else hints


class _Partial(NamedTuple):
    """The result of merging some of the hints.

    `common_nodes` are the nodes that all hints name: ANYWHERE if no hint names any, None if they
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
    """Returns all results with at least one node.

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
