"""Violators of the requirements of the Topology Manager's merge, continued: ties, single nodes."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.topology import merge as merging
from numaproof.reference.topology import policy as policies
from numaproof.reference.topology.hints import ANYWHERE, Demand, TopologyHint
from numaproof.reference.topology.merge import Rules
from numaproof.reference.topology.search import evaluation
from quality.seeding import Changes, SubjectBugs
from quality.violators.topology_merging.merging import (
    by_definition,
    hearing,
    lists_of,
    merging_by,
    ranking,
    saying,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

seeds = SubjectBugs("topology-merging")


# Ties, and results that are not preferred


def _ordering(changes: Changes, key: Callable[[int], Any]) -> None:
    """Lets `key` order sets of one size, where distances do not."""

    def ordered(original: Any, self: Rules, tied: Any) -> Any:
        return original(self, tied) if self.distances else sorted(tied, key=key)

    changes.around(Rules, "ordered", ordered)
    by_definition(changes)


@seeds("TOPO-MERGE-008")
def equally_wide_affinities_compare_as_lists_of_ids(changes: Changes) -> None:
    """An author keeps sets as sorted lists, and takes nodes 0 and 3 before 1 and 2."""
    _ordering(changes, lambda nodes: tuple(NUMASet.from_mask(nodes)))


@seeds("TOPO-MERGE-008")
def equally_wide_affinities_compare_from_the_highest_node(changes: Changes) -> None:
    """An author writes node 0 as the first character of a bit string."""
    _ordering(changes, lambda nodes: -nodes)


@seeds("TOPO-MERGE-009")
def without_a_preferred_affinity_the_narrowest_wins(changes: Changes) -> None:
    """An author follows the kubelet before 1.24, which knew no size to aim at."""
    ranking(
        changes,
        lambda rank, result, target: (
            rank(result, target) if result.preferred else (1, result.nodes.bit_count())
        ),
    )


@seeds("TOPO-MERGE-009")
def the_least_demanding_resource_sets_the_size(changes: Changes) -> None:
    """An author takes the least of the narrowest hints where the largest is meant."""

    def target(_original: Any, _self: Rules, lists: Iterable[Any]) -> int:
        sizes = [
            [hint.nodes.bit_count() for hint in hints if hint.nodes != ANYWHERE] for hints in lists
        ]
        return min((min(one) for one in sizes if one), default=0)

    changes.around(Rules, "target", target)


@seeds("TOPO-MERGE-009")
def a_wider_affinity_comes_before_a_narrower_one(changes: Changes) -> None:
    """An author would rather give too many nodes than too few."""

    def rank(rank: Any, result: TopologyHint, target: int) -> Any:
        level, size = rank(result, target)
        return {2: 3, 3: 2}.get(level, level), size

    ranking(changes, rank)


@seeds("TOPO-MERGE-009")
def of_narrower_affinities_the_narrowest_wins(changes: Changes) -> None:
    """An author takes the fewest nodes among those that are too few."""

    def rank(rank: Any, result: TopologyHint, target: int) -> Any:
        too_few = not result.preferred and result.nodes.bit_count() < target
        level, size = rank(result, target)
        return level, -size if too_few else size

    ranking(changes, rank)


def _combinations(rules: Rules, lists: list[Any]) -> list[TopologyHint]:
    """The result of every combination of hints, in the order of providers and hints."""
    return [
        result
        for hints in itertools.product(*lists)
        for result in merging.results(rules, [[hint] for hint in hints])
    ]


@seeds("TOPO-MERGE-010")
def of_equally_good_results_the_first_met_wins(changes: Changes) -> None:
    """An author keeps the best so far, and compares sizes alone: the order of hints decides."""

    def merge(original: Any, rules: Rules, providers: Any) -> Any:
        best = original(rules, providers)
        lists = lists_of(rules, providers)
        target = rules.target(lists)
        if rules.distances:
            return best
        wanted = rules.rank(best, target)
        met = (one for one in _combinations(rules, lists) if rules.rank(one, target) == wanted)
        return next(met, best)

    merging_by(changes, merge, most=2_000)


@seeds("TOPO-MERGE-010")
def repeated_hints_outvote_others(changes: Changes) -> None:
    """An author counts in how many ways a set comes about, and prefers the most frequent."""

    def merge(original: Any, rules: Rules, providers: Any) -> Any:
        best = original(rules, providers)
        lists = lists_of(rules, providers)
        target = rules.target(lists)
        if rules.distances or all(len(set(hints)) == len(hints) for hints in lists):
            return best
        wanted = rules.rank(best, target)
        votes = Counter(
            one for one in _combinations(rules, lists) if rules.rank(one, target) == wanted
        )
        return min(votes, key=lambda one: (-votes[one], one.nodes), default=best)

    merging_by(changes, merge, most=2_000)


@seeds("TOPO-MERGE-010")
def the_last_provider_sets_the_size_to_aim_at(changes: Changes) -> None:
    """An author overwrites the size with each provider, so that their order matters."""

    def target(original: Any, self: Rules, lists: Iterable[Any]) -> Any:
        return original(self, list(lists)[-1:])

    changes.around(Rules, "target", target)


# Resources of one provider


@seeds("TOPO-MERGE-011")
def only_the_first_resource_of_a_provider_counts(changes: Changes) -> None:
    """An author expects a provider to answer for one resource."""
    saying(
        changes,
        lambda _, providers: [dict(list((resources or {}).items())[:1]) for resources in providers],
    )


@seeds("TOPO-MERGE-011")
def hints_of_a_provider_are_one_list(changes: Changes) -> None:
    """An author flattens a provider's answer, so that any of its resources will do."""

    def flat(resources: Any) -> Any:
        lists = [hints for hints in (resources or {}).values() if hints is not None]
        if not lists:
            return resources
        return {"all": tuple(hint for hints in lists for hint in evaluation.listed(hints))}

    saying(changes, lambda _, providers: [flat(resources) for resources in providers])


@seeds("TOPO-MERGE-011")
def null_for_one_resource_silences_the_provider(changes: Changes) -> None:
    """An author takes null for one resource as the provider's answer for all."""
    saying(
        changes,
        lambda _, providers: [
            {} if None in (resources or {}).values() else resources for resources in providers
        ],
    )


# What single-numa-node counts


def _counting(changes: Changes, counted: Callable[[TopologyHint], bool]) -> None:
    """Lets `counted` say which hints single-numa-node takes into account."""
    changes.around(
        Rules,
        "counted",
        lambda original, self, hints: (
            [hint for hint in hints if counted(hint)] if self.single else original(self, hints)
        ),
    )


def _one_or_none(hint: TopologyHint) -> bool:
    return hint.nodes == ANYWHERE or hint.nodes.bit_count() == 1


@seeds("TOPO-MERGE-012")
def single_numa_node_counts_whatever_names_a_node(changes: Changes) -> None:
    """An author filters by the number of nodes alone."""
    _counting(changes, _one_or_none)


@seeds("TOPO-MERGE-012")
def single_numa_node_counts_preferred_hints_of_many_nodes(changes: Changes) -> None:
    """An author filters by preference alone, which one node mostly has."""
    _counting(changes, lambda hint: hint.preferred)


@seeds("TOPO-MERGE-012")
def single_numa_node_passes_over_hints_without_nodes(changes: Changes) -> None:
    """An author wants exactly one node of a hint, and none is not one."""
    hearing(
        changes,
        lambda rules, hint: None if rules.single and hint.nodes == ANYWHERE else hint,
    )


# Hints that name no nodes


@seeds("TOPO-MERGE-013")
def a_hint_without_nodes_names_them_all(changes: Changes) -> None:
    """An author writes all nodes where a hint has none, and compares them with others."""
    hearing(
        changes,
        lambda rules, hint: hint._replace(nodes=rules.nodes) if hint.nodes == ANYWHERE else hint,
    )


@seeds("TOPO-MERGE-013")
def a_hint_without_nodes_fits_nothing(changes: Changes) -> None:
    """An author takes null for the empty set, which has no node in common with any."""
    hearing(changes, lambda _, hint: hint._replace(nodes=0) if hint.nodes == ANYWHERE else hint)


@seeds("TOPO-MERGE-013")
def a_hint_without_nodes_does_no_harm_to_the_preference(changes: Changes) -> None:
    """An author skips hints without nodes, preferred or not."""
    hearing(
        changes,
        lambda _, hint: hint._replace(preferred=True) if hint.nodes == ANYWHERE else hint,
    )


# Ids of nodes


def _machine(changes: Changes, nodes: Callable[[list[int]], int]) -> None:
    """Lets `nodes` make the mask of the machine out of the ids of its nodes."""

    def of_nodes(original: Any, name: str, options: Any, rows: Any, *rest: Any) -> Any:
        made = original(name, options, rows, *rest)
        if made.negative or options.closest:
            return made
        return policies.TopologyPolicy(
            name, Rules(nodes(list(rows)), None, made.rules.single), made.negative
        )

    def allocate(original: Any, self: MemoryManager, *args: Any) -> None:
        *rest, affinity = args
        known = sum(1 << node for node in self.state.nodes)
        if known and affinity.nodes is not None:
            affinity = affinity._replace(nodes=affinity.nodes & known or None)
        original(self, *rest, affinity)

    changes.around(policies, "of_nodes", of_nodes)
    # The Memory Manager would look such a node up.
    changes.around(MemoryManager, "allocate", allocate)
    changes.around(MemoryManager, "allocate_pod", allocate)


@seeds("TOPO-MERGE-014")
def nodes_are_numbered_without_gaps(changes: Changes) -> None:
    """An author counts the nodes, and takes them for 0 to that number."""
    _machine(changes, lambda ids: (1 << len(ids)) - 1)


@seeds("TOPO-MERGE-014")
def ids_in_the_gaps_between_nodes_are_nodes(changes: Changes) -> None:
    """An author takes all ids up to the highest as nodes of the machine."""
    _machine(changes, lambda ids: (1 << max(ids, default=-1) + 1) - 1)


@seeds("TOPO-MERGE-014")
def nodes_that_the_machine_lacks_stay_in_the_affinity(changes: Changes) -> None:
    """An author starts from the first hint, not from the nodes of the machine."""

    def merge(original: Any, rules: Rules, providers: Any) -> Any:
        named = 0
        for hints in merging.by_resource(providers):
            if not isinstance(hints, Demand):
                for hint in hints:
                    named |= 0 if hint.nodes == ANYWHERE else hint.nodes
        if rules.distances or not named & ~rules.nodes:
            return original(rules, providers)
        return original(Rules(rules.nodes | named, None, rules.single), providers)

    changes.around(evaluation, "merge", merge)
