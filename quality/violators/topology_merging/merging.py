"""Violators of the requirements of the Topology Manager's merge, each breaking one sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.protocol import messages
from numaproof.reference import operations
from numaproof.reference.topology import merge as merging
from numaproof.reference.topology import policy as policies
from numaproof.reference.topology.hints import ANYWHERE, Demand, TopologyHint
from numaproof.reference.topology.merge import IMPOSSIBLE, Rules
from numaproof.reference.topology.policy import TopologyPolicy
from numaproof.reference.topology.search import evaluation
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

seeds = SubjectBugs("topology-merging")

_MANY = 200_000
"""Combinations of hints, too many to look at one by one."""

_WIDE = 8
"""Nodes of a machine, likewise with more."""


def lists_of(rules: Rules, providers: Any) -> list[Any]:
    """The hints that count, resource by resource."""
    return [
        rules.counted(evaluation.listed(hints) or IMPOSSIBLE)
        for hints in merging.by_resource(providers)
    ]


def _is_large(rules: Rules, providers: Any, most: int) -> bool:
    if rules.nodes.bit_count() > _WIDE:
        return True
    return math.prod(map(len, lists_of(rules, providers))) > most


def merging_by(
    changes: Changes, merge: Callable[[Any, Rules, Any], TopologyHint], most: int = _MANY
) -> None:
    """Lets `merge` answer wherever hints are merged and have at most so many combinations."""

    def instead(original: Any, rules: Rules, providers: Any) -> Any:
        if _is_large(rules, providers, most):
            return original(rules, providers)
        return merge(original, rules, providers)

    changes.around(evaluation, "merge", instead)


def by_definition(changes: Changes) -> None:
    """Has the definition merge, so that a change of it shows on machines of many nodes."""
    merging_by(changes, lambda _, rules, providers: merging.merge(rules, providers))


def saying(changes: Changes, change: Callable[[Rules, Any], Any]) -> None:
    """Lets the merge see what `change` makes of the providers' answers."""
    changes.around(
        evaluation,
        "merge",
        lambda original, rules, providers: original(rules, change(rules, providers)),
    )


def hearing(changes: Changes, change: Callable[[Rules, TopologyHint], Any]) -> None:
    """Lets the merge see other hints than those that are listed; None for hints to leave out."""

    def heard(rules: Rules, hints: Any) -> Any:
        if hints is None or isinstance(hints, Demand):
            return hints
        changed = (change(rules, hint) for hint in hints)
        return tuple(hint for hint in changed if hint is not None)

    saying(
        changes,
        lambda rules, providers: [
            {name: heard(rules, hints) for name, hints in (resources or {}).items()}
            for resources in providers
        ],
    )


def silent(resources: Any) -> bool:
    """Whether a provider has no preference at all."""
    return all(hints is None for hints in (resources or {}).values())


class _Way(NamedTuple):
    """One way to combine hints: the nodes in common, and what was combined.

    Whether every hint is preferred; some that names nodes; every one that does not name any;
    whether of any two one lies within the other; and the nodes that all name.
    """

    nodes: int
    every: bool = True
    some: bool = False
    free: bool = True
    nested: bool = True
    named: int | None = ANYWHERE

    def taking(self, hint: TopologyHint) -> _Way:
        nodes = self.nodes & hint.nodes
        free = hint.nodes == ANYWHERE
        named: int | None = hint.nodes if self.named in (ANYWHERE, hint.nodes) else None
        inside = hint.nodes if self.named == ANYWHERE else nodes
        return _Way(
            nodes,
            self.every and hint.preferred,
            self.some or (hint.preferred and not free),
            self.free and (hint.preferred or not free),
            self.nested and (free or inside in (self.nodes, hint.nodes)),
            self.named if free else named,
        )


def preferring(changes: Changes, preferred: Callable[[_Way], bool]) -> None:
    """Lets `preferred` say which combinations are preferred."""

    def results(_original: Any, rules: Rules, lists: Iterable[Any]) -> set[TopologyHint]:
        ways = {_Way(rules.nodes)}
        for hints in lists:
            ways = {way.taking(hint) for way in ways for hint in hints}
        return {TopologyHint(way.nodes, preferred(way)) for way in ways if way.nodes}

    changes.around(merging, "results", results)
    by_definition(changes)


def ranking(changes: Changes, rank: Callable[[Any, TopologyHint, int], Any]) -> None:
    """Lets `rank` order the results; it is given the true order first."""
    changes.around(
        Rules, "rank", lambda original, self, *args: rank(lambda *one: original(self, *one), *args)
    )
    by_definition(changes)


# Providers without a preference


@seeds("TOPO-MERGE-001")
def null_for_a_resource_stands_for_a_hint_of_every_node(changes: Changes) -> None:
    """An author fills in the default hint for null, and the nodes it names differ from others."""
    saying(
        changes,
        lambda rules, providers: [
            {
                name: (TopologyHint(rules.nodes, preferred=True),) if hints is None else hints
                for name, hints in (resources or {}).items()
            }
            for resources in providers
        ],
    )


@seeds("TOPO-MERGE-001")
def providers_without_preference_count_as_the_most_demanding(changes: Changes) -> None:
    """An author counts all nodes as what a provider without a preference needs at least."""

    def target(original: Any, self: Rules, lists: Iterable[Any]) -> Any:
        every = list(lists)
        free = any(hints == merging.NO_PREFERENCE for hints in every)
        return self.nodes.bit_count() if free else original(self, every)

    changes.around(Rules, "target", target)


@seeds("TOPO-MERGE-001")
def an_empty_answer_keeps_others_from_being_preferred(changes: Changes) -> None:
    """An author marks a provider that returned an empty answer as one that prefers nothing."""

    def merge(original: Any, rules: Rules, providers: Any) -> Any:
        best = original(rules, providers)
        said = [bool(resources) for resources in providers]
        return best._replace(preferred=best.preferred and (all(said) or not any(said)))

    changes.around(evaluation, "merge", merge)


@seeds("TOPO-MERGE-005")
def null_for_every_resource_is_not_preferred(changes: Changes) -> None:
    """An author has the default hint for empty answers, and forgets answers full of nulls."""

    def merge(original: Any, rules: Rules, providers: Any) -> Any:
        best = original(rules, providers)
        nulls = any(providers) and all(map(silent, providers))
        return best._replace(preferred=False) if nulls else best

    changes.around(evaluation, "merge", merge)


@seeds("TOPO-MERGE-005")
def empty_answers_from_all_merge_to_the_first_node(changes: Changes) -> None:
    """An author looks for the narrowest set, and with no hints to narrow it, takes one node."""

    def merge(original: Any, rules: Rules, providers: Any) -> Any:
        if any(providers):
            return original(rules, providers)
        return TopologyHint(rules.nodes & -rules.nodes, preferred=True)

    changes.around(evaluation, "merge", merge)


@seeds("TOPO-MERGE-005")
def silence_of_all_providers_is_not_preferred(changes: Changes) -> None:
    """An author's list of answers is empty when no provider returned one; nothing is preferred."""

    def merge(original: Any, args: Any, release: Any) -> Any:
        merged = original(args, release)
        if args.policy == policies.NONE or any(one is not None for one in args.providers):
            return merged
        hint = messages.Hint(merged.hint.numa, preferred=False)
        return messages.Merged(hint, admit=args.policy == policies.BEST_EFFORT)

    changes.around(operations, "merge", merge)


# Resources that cannot be had


@seeds("TOPO-MERGE-002")
def an_empty_list_beside_other_resources_is_overlooked(changes: Changes) -> None:
    """An author walks through the hints of a provider and never sees a list without any."""
    saying(
        changes,
        lambda _, providers: [
            {name: hints for name, hints in (resources or {}).items() if hints != ()}
            if any(hints != () for hints in (resources or {}).values())
            else resources
            for resources in providers
        ],
    )


@seeds("TOPO-MERGE-002")
def an_empty_list_means_no_preference(changes: Changes) -> None:
    """An author tests a list for truth, and takes an empty one for null."""

    def unheard(hints: Any) -> Any:
        if isinstance(hints, Demand):
            return hints if evaluation.satisfiable(hints) else None
        return hints or None

    saying(
        changes,
        lambda _, providers: [
            {name: unheard(hints) for name, hints in (resources or {}).items()}
            for resources in providers
        ],
    )


@seeds("TOPO-MERGE-002")
def best_effort_rejects_over_an_empty_list(changes: Changes) -> None:
    """An author reads "can't be satisfied" as a reason to reject under every policy."""

    def merge(original: Any, self: TopologyPolicy, providers: Any) -> Any:
        kept, admitted = original(self, providers)
        empty = any(
            not evaluation.satisfiable(hints) if isinstance(hints, Demand) else not hints
            for hints in merging.by_resource(providers)
        )
        return kept, admitted and not empty

    changes.around(TopologyPolicy, "merge", merge)


# Which result wins


@seeds("TOPO-MERGE-003")
def preferred_affinities_compare_as_numbers_alone(changes: Changes) -> None:
    """An author takes the smallest mask of the preferred ones, without counting its nodes."""
    ranking(
        changes,
        lambda rank, result, target: (0, 0) if result.preferred else rank(result, target),
    )


@seeds("TOPO-MERGE-003")
def of_preferred_affinities_the_widest_wins(changes: Changes) -> None:
    """An author gives a container as many nodes as it may have."""
    ranking(
        changes,
        lambda rank, result, target: (
            (0, -result.nodes.bit_count()) if result.preferred else rank(result, target)
        ),
    )


@seeds("TOPO-MERGE-004")
def hints_of_different_nodes_merge_to_a_preferred_one(changes: Changes) -> None:
    """An author follows the kubelet before 1.24: preferred hints make a preferred result."""
    preferring(changes, lambda way: way.every)


@seeds("TOPO-MERGE-004")
def nested_affinities_merge_to_a_preferred_one(changes: Changes) -> None:
    """An author reads "equal" as "one inside the other"."""
    preferring(changes, lambda way: way.every and way.nested)


@seeds("TOPO-MERGE-004")
def one_preferred_hint_makes_equal_ones_preferred(changes: Changes) -> None:
    """An author joins the preferences with "or" once the affinities are equal."""
    preferring(
        changes,
        lambda way: way.named is not None and (way.every or (way.some and way.free)),
    )


@seeds("TOPO-MERGE-006")
def a_narrower_affinity_beats_a_preferred_one(changes: Changes) -> None:
    """An author compares the number of nodes first, and the preference between equals."""

    def merge(original: Any, rules: Rules, providers: Any) -> Any:
        best = original(rules, providers)
        found = merging.results(rules, lists_of(rules, providers))
        narrower = [one.nodes for one in found if one.nodes.bit_count() < best.nodes.bit_count()]
        if not best.preferred or not narrower:
            return best
        fewest = min(map(int.bit_count, narrower))
        tied = [nodes for nodes in narrower if nodes.bit_count() == fewest]
        return TopologyHint(rules.ordered(tied)[0], preferred=False)

    merging_by(changes, merge)


@seeds("TOPO-MERGE-007")
def hints_without_a_common_node_fall_back_preferred(changes: Changes) -> None:
    """An author falls back to the default hint, which is preferred."""

    def merge(original: Any, rules: Rules, providers: Any) -> Any:
        best = original(rules, providers)
        disjoint = not rules.single and not merging.results(rules, lists_of(rules, providers))
        return best._replace(preferred=True) if disjoint else best

    merging_by(changes, merge)


@seeds("TOPO-MERGE-007")
def hints_without_a_common_node_fall_back_to_the_first(changes: Changes) -> None:
    """An author starts from the first provider's best hint, and keeps it if nothing fits."""

    def merge(original: Any, rules: Rules, providers: Any) -> Any:
        lists = lists_of(rules, providers)
        named = [hint.nodes for hints in lists for hint in hints if hint.nodes != ANYWHERE]
        if rules.single or not named or merging.results(rules, lists):
            return original(rules, providers)
        return TopologyHint(named[0] & rules.nodes or rules.nodes, preferred=False)

    merging_by(changes, merge)


@seeds("TOPO-MERGE-007")
def an_affinity_of_no_nodes_is_the_narrowest(changes: Changes) -> None:
    """An author does not skip empty intersections, and none is narrower."""

    def merge(original: Any, rules: Rules, providers: Any) -> Any:
        best = original(rules, providers)
        masks = {rules.nodes}
        for hints in lists_of(rules, providers):
            masks = {mask & hint.nodes for mask in masks for hint in hints}
        return best if best.preferred or 0 not in masks else TopologyHint(0, preferred=False)

    merging_by(changes, merge)
