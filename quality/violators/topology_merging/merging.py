"""Violators of the requirements of the Topology Manager's merge, each breaking one sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numaproof.reference.topology import merge as merging
from numaproof.reference.topology.hints import ANYWHERE, Demand, TopologyHint
from numaproof.reference.topology.merge import IMPOSSIBLE, Rules
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


def ranking(changes: Changes, rank: Callable[[Any, TopologyHint, int], Any]) -> None:
    """Lets `rank` order the results; it is given the true order first."""
    changes.around(
        Rules, "rank", lambda original, self, *args: rank(lambda *one: original(self, *one), *args)
    )
    by_definition(changes)


# Providers without a preference


@seeds("TOPO-MERGE-001")
def providers_without_preference_count_as_the_most_demanding(changes: Changes) -> None:
    """An author counts all nodes as what a provider without a preference needs at least."""

    def target(original: Any, self: Rules, lists: Iterable[Any]) -> Any:
        every = list(lists)
        free = any(hints == merging.NO_PREFERENCE for hints in every)
        return self.nodes.bit_count() if free else original(self, every)

    changes.around(Rules, "target", target)


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


# Which result wins


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
