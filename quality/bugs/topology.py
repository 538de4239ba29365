"""Bugs of the Topology Manager: policies, scopes, options, what is kept and refused."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference import node as managers
from numaproof.reference.errors import AdmissionError
from numaproof.reference.pods import containers as pod_containers
from numaproof.reference.topology import options, policy, scope
from numaproof.reference.topology.hints import ANYWHERE, TopologyHint
from numaproof.reference.topology.merge import Rules
from numaproof.reference.topology.policy import TopologyPolicy
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("topology")

# Policies


def _judging(changes: Changes, change: Callable[[TopologyPolicy, TopologyHint, bool], Any]) -> None:
    """Changes what a policy keeps and admits."""
    changes.around(
        TopologyPolicy,
        "merge",
        lambda original, self, providers: change(self, *original(self, providers)),
    )


@seeds("TOPO-POLICY-003")
def restricted_admits_what_is_not_preferred(changes: Changes) -> None:
    _judging(
        changes,
        lambda self, kept, admitted: (kept, admitted or self.name == policy.RESTRICTED),
    )


@seeds("TOPO-POLICY-002")
def best_effort_refuses_what_is_not_preferred(changes: Changes) -> None:
    _judging(changes, lambda self, kept, admitted: (kept, kept.preferred))


@seeds("TOPO-POLICY-004", "TOPO-MERGE-012")
def single_numa_node_merges_like_restricted(changes: Changes) -> None:
    def wide(original: Any, *args: Any) -> TopologyPolicy:
        made: TopologyPolicy = original(*args)
        return dataclasses.replace(made, rules=dataclasses.replace(made.rules, single=False))

    changes.around(policy, "of_nodes", wide)


@seeds("TOPO-MERGE-012")
def single_numa_node_counts_hints_that_are_not_preferred(changes: Changes) -> None:
    changes.around(
        Rules,
        "counted",
        lambda original, self, hints: [
            hint
            for hint in hints
            if not self.single or hint.nodes == ANYWHERE or hint.nodes.bit_count() == 1
        ],
    )


@seeds("TOPO-POLICY-009")
def single_numa_node_keeps_all_nodes(changes: Changes) -> None:
    def keeping(self: TopologyPolicy, kept: TopologyHint, admitted: bool) -> Any:  # noqa: FBT001 - as judged
        return TopologyHint(
            self.rules.nodes if kept.nodes == ANYWHERE else kept.nodes, kept.preferred
        ), (admitted)

    _judging(changes, keeping)


@seeds("TOPO-POLICY-008")
def the_affinity_is_not_kept(changes: Changes) -> None:
    changes.around(
        scope,
        "admit",
        lambda original, made, which, providers, pod, keep: original(
            made, which, providers, pod, lambda container, affinity: None
        ),
    )


@seeds("TOPO-ERROR-001")
def a_refused_affinity_is_unexpected(changes: Changes) -> None:
    def other(original: Any, *args: Any) -> Any:
        try:
            return original(*args)
        except AdmissionError as error:
            raise AdmissionError("UnexpectedAdmissionError", str(error)) from None

    changes.around(scope, "affinity_of", other)


@seeds("TOPO-MERGE-014")
def node_ids_are_taken_for_places(changes: Changes) -> None:
    changes.around(
        policy,
        "of_nodes",
        lambda original, name, chosen, rows, *rest: original(
            name, chosen, {place: rows[node] for place, node in enumerate(sorted(rows))}, *rest
        ),
    )


# Scopes


def _scoped(changes: Changes, which: str) -> None:
    changes.around(
        scope,
        "admit",
        lambda original, made, _, providers, pod, keep: original(made, which, providers, pod, keep),
    )


@seeds("TOPO-SCOPE-002", "TOPO-SCOPE-004")
def scope_pod_is_ignored(changes: Changes) -> None:
    _scoped(changes, "container")


@seeds("TOPO-SCOPE-001")
def scope_container_is_ignored(changes: Changes) -> None:
    _scoped(changes, "pod")


@seeds("TOPO-SCOPE-002")
def scope_pod_keeps_the_affinity_of_the_first_container(changes: Changes) -> None:
    def first(original: Any, made: Any, which: str, providers: Any, pod: Any, keep: Any) -> None:
        def keep_first(container: Any, affinity: Any) -> None:
            if container is pod.containers[0]:
                keep(container, affinity)

        original(made, which, providers, pod, keep_first if which == "pod" else keep)

    changes.around(scope, "admit", first)


def _pod_request(changes: Changes, choose: Callable[[Any], bool]) -> None:
    """Lets a pod ask only for what some of its containers need at once."""

    def partial(original: Any, containers: Any, amount: Any) -> Any:
        return original(tuple(filter(choose, containers)), amount)

    changes.around(pod_containers, "at_once", partial)


@seeds("TOPO-SCOPE-003")
def a_pod_asks_for_the_sum_of_all_containers(changes: Changes) -> None:
    def summed(original: Any, containers: Any, amount: Any) -> Any:
        return sum((amount(container) for container in containers), start=original((), amount))

    changes.around(pod_containers, "at_once", summed)


@seeds("TOPO-SCOPE-003")
def a_pod_asks_for_nothing_for_init_containers(changes: Changes) -> None:
    _pod_request(changes, lambda container: not container.init)


@seeds("#119407", "TOPO-SCOPE-003")
def a_pod_asks_for_nothing_for_sidecars(changes: Changes) -> None:
    _pod_request(changes, lambda container: not container.sidecar)


# Options


def _parsed(changes: Changes, **fields: Any) -> None:
    changes.around(
        options,
        "parse",
        lambda original, *args, **named: dataclasses.replace(original(*args, **named), **fields),
    )


@seeds("#135541", "TOPO-OPT-003")
def any_number_of_nodes_is_taken(changes: Changes) -> None:
    _parsed(changes, most_nodes=1000)


@seeds("TOPO-OPT-004")
def the_limit_of_nodes_cannot_be_raised(changes: Changes) -> None:
    _parsed(changes, most_nodes=options.MOST_NODES_BY_DEFAULT)


@seeds("TOPO-ERROR-007")
def a_limit_of_fewer_than_eight_nodes_is_taken(changes: Changes) -> None:
    changes.around(
        options,
        "read_most_nodes",
        lambda original, text: int(text) if text.isdecimal() else original(text),
    )


@seeds("TOPO-ERROR-010", kubernetes="1.34")
def hidden_topology_options_are_available(changes: Changes) -> None:
    changes.around(
        options,
        "check_available",
        lambda original, name, available, *_: original(name, available, None),
    )


# The providers' turn


@seeds("TOPO-ORDER-002")
def providers_allocate_in_another_order(changes: Changes) -> None:
    changes.around(
        scope,
        "admit",
        lambda original, made, which, providers, pod, keep: original(
            made, which, providers[::-1], pod, keep
        ),
    )


@seeds("TOPO-SCOPE-001")
def the_first_containers_hints_serve_all(changes: Changes) -> None:
    def once(original: Any, made: Any, providers: Any, pod: Any, container: Any) -> Any:
        return original(made, providers, pod, container and pod.containers[0])

    changes.around(scope, "affinity_of", once)


@seeds("NODE-REFUSED-001")
def what_a_refused_pod_was_given_leaks(changes: Changes) -> None:
    def leaking(original: Any, self: managers.StartedNode, args: Any) -> Any:
        try:
            return original(self, args)
        except AdmissionError:
            taken = self.memory.state.nodes
            self.remove_stale_state("reconcile")
            self.memory.state = dataclasses.replace(self.memory.state, nodes=taken)
            raise

    changes.around(managers.StartedNode, "admit", leaking)
