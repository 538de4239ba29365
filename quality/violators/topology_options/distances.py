"""Violators of the Topology Manager's policy options and of its limit of NUMA nodes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.topology import distances, options
from numaproof.reference.topology import merge as merging
from numaproof.reference.topology import policy as policies
from numaproof.reference.topology.distances import Distances
from numaproof.reference.topology.search import evaluation
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numaproof.reference.topology.hints import TopologyHint
    from numaproof.reference.topology.merge import Rules
    from numaproof.reference.topology.policy import TopologyPolicy

seeds = SubjectBugs("topology-options")

MOST_NODES = options.MOST_NODES_BY_DEFAULT
# Distances that count, and that do not


def made_policy(changes: Changes, change: Callable[[TopologyPolicy, Any], TopologyPolicy]) -> None:
    """Lets another policy merge; `change` makes it of the policy and the rows of distances."""

    def made(original: Any, name: str, chosen: Any, rows: Any, *kind: Any) -> TopologyPolicy:
        return change(original(name, chosen, rows, *kind), rows)

    changes.around(policies, "of_nodes", made)


def with_distances(policy: TopologyPolicy, found: Distances | None) -> TopologyPolicy:
    return dataclasses.replace(policy, rules=dataclasses.replace(policy.rules, distances=found))


def _always(changes: Changes, when: Callable[[TopologyPolicy], bool]) -> None:
    """Compares distances without being asked, if the machine tells them and `when` says so."""

    def change(policy: TopologyPolicy, rows: Any) -> TopologyPolicy:
        told = len(rows) > 1 and all(row is not None for row in rows.values())
        if policy.rules.single or policy.rules.distances or not told or not when(policy):
            return policy
        return with_distances(policy, Distances(dict(rows)))

    made_policy(changes, change)


@seeds("TOPO-OPT-002")
def restricted_always_compares_distances(changes: Changes) -> None:
    """Its author takes the closest nodes for what restricted is about."""
    _always(changes, lambda policy: policy.name == "restricted")


# The limit of NUMA nodes


def _limit(changes: Changes, most: Callable[[str, Any, Any], int]) -> None:
    """Allows another number of nodes; `most` makes it of policy, options and machine."""

    def on_machine(original: Any, name: str, chosen: Any, machine: Any, *kind: Any) -> Any:
        allowed = dataclasses.replace(chosen, most_nodes=most(name, chosen, machine))
        return original(name, allowed, machine, *kind)

    changes.around(policies, "on_machine", on_machine)


@seeds("TOPO-OPT-003")
def ninth_node_is_allowed(changes: Changes) -> None:
    """Its author refuses more nodes than node number 8."""
    _limit(
        changes,
        lambda name, chosen, machine: chosen.most_nodes + (chosen.most_nodes == MOST_NODES),
    )


@seeds("TOPO-OPT-003")
def nodes_without_cpus_do_not_count(changes: Changes) -> None:
    """Its author counts the nodes of CPUs."""

    def most(_name: str, chosen: Any, machine: Any) -> int:
        empty = sum(1 for node in machine.topology or () if not node.cores)
        return int(chosen.most_nodes) + (chosen.most_nodes == MOST_NODES and empty)

    _limit(changes, most)


@seeds("TOPO-OPT-004")
def limit_is_raised_to_twice_the_default_at_most(changes: Changes) -> None:
    """Its author caps what takes too long."""
    _limit(changes, lambda name, chosen, machine: min(chosen.most_nodes, 2 * MOST_NODES))


# What distances may decide


def _compared(changes: Changes, key: Callable[[Rules, TopologyHint, int], Any]) -> None:
    """Chooses among all results by another order, where distances count and nodes are few."""

    def merge(original: Any, rules: Rules, providers: Sequence[Any]) -> TopologyHint:
        if rules.distances is None or rules.nodes.bit_count() > MOST_NODES:
            return original(rules, providers)  # type: ignore[no-any-return]
        lists = [
            rules.counted(evaluation.listed(hints) or merging.IMPOSSIBLE)
            for hints in merging.by_resource(providers)
        ]
        target = rules.target(lists)
        found = merging.results(rules, lists)
        if not found:
            return original(rules, providers)  # type: ignore[no-any-return]
        return min(found, key=lambda result: (key(rules, result, target), result.nodes))

    changes.around(evaluation, "merge", merge)


def _distance(rules: Rules, result: TopologyHint) -> float:
    return distances.average(result.nodes, rules.distances.table) if rules.distances else 0


@seeds("TOPO-OPT-005")
def closer_affinity_beats_one_of_the_right_size(changes: Changes) -> None:
    """Its author compares distances between all affinities that are not preferred."""
    _compared(
        changes,
        lambda rules, result, target: (
            rules.rank(result, target)
            if result.preferred
            else (1, _distance(rules, result), rules.rank(result, target))
        ),
    )
