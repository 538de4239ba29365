"""Bugs of merging: which hints are heard, which results are preferred, which of them wins."""

from __future__ import annotations

import dataclasses
from functools import reduce
from itertools import product
from operator import and_
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference import operations
from numaproof.reference.topology import policy
from numaproof.reference.topology.distances import average
from numaproof.reference.topology.hints import TopologyHint
from numaproof.reference.topology.merge import IMPOSSIBLE, NO_PREFERENCE, Rules
from numaproof.reference.topology.search import evaluation, merge
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("merging")

_MOST_COMBINED = 4096


# Results


@seeds("PR #108052", "TOPO-MERGE-004")
def preferred_hints_need_not_be_equal(changes: Changes) -> None:
    def anyhow(original: Any, rules: Rules, lists: Any) -> Any:
        preferred = [[hint.nodes for hint in hints if hint.preferred] for hints in lists]
        combined = reduce(lambda size, masks: size * len(masks), preferred, 1)
        if combined > _MOST_COMBINED:
            return original(rules, lists)
        return {reduce(and_, masks, rules.nodes) for masks in product(*preferred)}

    # The search decides on small machines, too.
    changes.replace(evaluation, "MOST_ENUMERATED", 0)
    changes.around(merge, "preferred_results", anyhow)


def _apart(rules: Rules, nodes: int) -> float:
    """The average distance of a result's nodes, where distances count."""
    return 0 if rules.distances is None else average(nodes, rules.distances.table)


def _ordering(changes: Changes, key: Callable[[float, int], Any]) -> None:
    """Changes which of the results with equally many nodes wins."""
    changes.around(
        Rules,
        "ordered",
        lambda original, self, tied: sorted(
            tied, key=lambda nodes: key(_apart(self, nodes), nodes)
        ),
    )


@seeds("TOPO-MERGE-003")
def the_widest_preferred_affinity_wins(changes: Changes) -> None:
    def widest(original: Any, rules: Rules, lists: Any) -> set[int]:
        found: set[int] = original(rules, lists)
        most = max(map(int.bit_count, found), default=0)
        return {nodes for nodes in found if nodes.bit_count() == most}

    changes.around(merge, "preferred_results", widest)


@seeds("TOPO-MERGE-008")
def the_highest_of_equal_affinities_wins(changes: Changes) -> None:
    _ordering(changes, lambda apart, nodes: (apart, -nodes))


@seeds("TOPO-OPT-001")
def the_closest_nodes_do_not_win(changes: Changes) -> None:
    _ordering(changes, lambda apart, nodes: nodes)


@seeds("TOPO-OPT-001")
def the_farthest_nodes_win(changes: Changes) -> None:
    _ordering(changes, lambda apart, nodes: (-apart, nodes))


@seeds("TOPO-OPT-005")
def distance_counts_before_the_number_of_nodes(changes: Changes) -> None:
    def nearest(original: Any, rules: Rules, lists: Any) -> set[int]:
        found = {nodes for nodes in original(rules, lists) if nodes}
        if rules.distances is None or not found:
            return found
        near = {nodes: _apart(rules, nodes) for nodes in found}
        return {nodes for nodes in found if near[nodes] == min(near.values())}

    changes.around(merge, "preferred_results", nearest)


@seeds("TOPO-OPT-002")
def distances_always_count(changes: Changes) -> None:
    def eager(original: Any, name: str, chosen: Any, rows: Any, *rest: Any) -> Any:
        known = all(row is not None for row in rows.values())
        closest = chosen.closest or known
        return original(name, dataclasses.replace(chosen, closest=closest), rows, *rest)

    changes.around(policy, "of_nodes", eager)


def _listing(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Changes the providers' answers before they are merged."""
    changes.around(
        evaluation,
        "merge",
        lambda original, rules, providers: original(rules, change(list(providers))),
    )


def _each_resource(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda providers: [
        {name: change(hints) for name, hints in (resources or {}).items()}
        for resources in providers
    ]


@seeds("#112234", "TOPO-MERGE-005")
def a_resource_without_preference_is_nowhere(changes: Changes) -> None:
    _listing(changes, _each_resource(lambda hints: IMPOSSIBLE if hints is None else hints))


@seeds("#83697", "TOPO-MERGE-002")
def a_resource_that_is_nowhere_has_no_preference(changes: Changes) -> None:
    _listing(changes, _each_resource(lambda hints: NO_PREFERENCE if hints == () else hints))


@seeds("#83697", "#83775", "TOPO-MERGE-001")
def a_provider_without_preference_is_unsatisfied(changes: Changes) -> None:
    _listing(
        changes,
        lambda providers: [resources or {"": IMPOSSIBLE} for resources in providers],
    )


@seeds("TOPO-MERGE-010")
def the_last_provider_is_not_heard(changes: Changes) -> None:
    _listing(changes, lambda providers: providers[:-1])


@seeds("TOPO-MERGE-011")
def one_resource_of_a_provider_is_heard(changes: Changes) -> None:
    _listing(
        changes,
        lambda providers: [dict(list((one or {}).items())[:1]) for one in providers],
    )


@seeds("#139430", "TOPO-MERGE-009")
def the_least_needy_provider_decides(changes: Changes) -> None:
    changes.replace(Rules, "target", lambda self, lists: 1)


@seeds("TOPO-MERGE-002")
def an_affinity_of_all_nodes_is_preferred(changes: Changes) -> None:
    changes.around(
        evaluation,
        "merge",
        lambda original, rules, providers: _preferred_if_all(rules, original(rules, providers)),
    )


def _preferred_if_all(rules: Rules, best: TopologyHint) -> TopologyHint:
    return TopologyHint(best.nodes, preferred=True) if best.nodes == rules.nodes else best


# Hints


@seeds("TOPO-MERGE-005")
def nobody_asked_is_nobody_satisfied(changes: Changes) -> None:
    changes.around(
        evaluation,
        "merge",
        lambda original, rules, providers: (
            original(rules, providers) if providers else TopologyHint(rules.nodes, preferred=False)
        ),
    )


@seeds("TOPO-MERGE-004", "TOPO-MERGE-003")
def hints_for_several_nodes_are_never_preferred(changes: Changes) -> None:
    def modest(hints: Any) -> Any:
        listed = hints if isinstance(hints, tuple) else ()
        return tuple(one._replace(preferred=one.nodes.bit_count() == 1) for one in listed) or hints

    _listing(changes, _each_resource(modest))


@seeds("TOPO-MERGE-010")
def the_last_of_equal_hints_counts(changes: Changes) -> None:
    def latest(hints: Any) -> Any:
        if not isinstance(hints, tuple):
            return hints
        return tuple({one.nodes: one for one in hints}.values())

    _listing(changes, _each_resource(latest))


@seeds("TOPO-MERGE-010")
def one_of_several_providers_is_not_heard(changes: Changes) -> None:
    _listing(changes, lambda providers: providers[:2] + providers[3:])


@seeds("TOPO-POLICY-006")
def policy_none_merges_like_best_effort(changes: Changes) -> None:
    changes.around(
        operations,
        "merge",
        lambda original, args, *rest: original(
            msgspec.structs.replace(args, policy=policy.BEST_EFFORT)
            if args.policy == policy.NONE
            else args,
            *rest,
        ),
    )
