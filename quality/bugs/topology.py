"""Bugs in the Topology Manager, hint merging and pod-level resources."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import product
from operator import and_
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference import node as managers
from numaproof.reference import operations
from numaproof.reference.deviations.pods import ClassBySums, DefaultsBesideLimits
from numaproof.reference.errors import AdmissionError
from numaproof.reference.pods import containers as pod_containers
from numaproof.reference.pods.containers import PodContainer
from numaproof.reference.pods.pod_level import PodRules
from numaproof.reference.topology import options, policy, scope
from numaproof.reference.topology.distances import average
from numaproof.reference.topology.hints import ANYWHERE, TopologyHint
from numaproof.reference.topology.merge import IMPOSSIBLE, NO_PREFERENCE, Rules
from numaproof.reference.topology.policy import TopologyPolicy
from numaproof.reference.topology.search import evaluation, merge
from quality.seeding import Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

seeds = SubjectBugs("topology")


# Policies


def _judging(changes: Changes, change: Callable[[TopologyPolicy, TopologyHint, bool], Any]) -> None:
    """Changes a policy's affinity and decision."""
    changes.around(TopologyPolicy, "merge", lambda rule, self: change(self, *rule()))


@seeds("TOPO-POLICY-003").by(_judging)
def restricted_admits_what_is_not_preferred(
    self: Any, affinity: TopologyHint, admitted: Any
) -> Any:
    return (affinity, admitted or self.name == policy.RESTRICTED)


@seeds("TOPO-POLICY-002")
def best_effort_refuses_what_is_not_preferred(changes: Changes) -> None:
    _judging(changes, lambda self, affinity, admitted: (affinity, affinity.preferred))


@seeds("TOPO-POLICY-004", "TOPO-MERGE-012").after(policy, "of_nodes")
def single_numa_node_merges_like_restricted(topology_policy: TopologyPolicy) -> TopologyPolicy:
    return replace(topology_policy, rules=replace(topology_policy.rules, single=False))


@seeds("TOPO-MERGE-012").around(Rules, "filter_hints")
def single_numa_node_counts_hints_that_are_not_preferred(rule: Any, self: Any, hints: Any) -> Any:
    return [
        hint
        for hint in hints
        if not self.single or hint.nodes == ANYWHERE or hint.nodes.bit_count() == 1
    ]


@seeds("TOPO-POLICY-009").by(_judging)
def single_numa_node_keeps_all_nodes(self: Any, affinity: TopologyHint, admitted: Any) -> Any:
    nodes = self.rules.nodes if affinity.nodes == ANYWHERE else affinity.nodes
    return TopologyHint(nodes, affinity.preferred), admitted


@seeds("TOPO-POLICY-008").around(scope, "admit")
def the_affinity_is_not_kept(rule: Any) -> Any:
    return rule(keep=lambda container, affinity: None)


@seeds("TOPO-ERROR-001").around(scope, "affinity_of")
def a_refused_affinity_is_unexpected(rule: Any) -> Any:
    try:
        return rule()
    except AdmissionError as error:
        raise AdmissionError("UnexpectedAdmissionError", str(error)) from None


@seeds("NODE-REFUSED-002").around(managers.StartedNode, "rejected_pod_status")
def the_status_of_a_refused_pod_has_one_reason(rule: Any) -> Any:
    status = rule()
    return status and msgspec.structs.replace(status, reason="UnexpectedAdmissionError")


@seeds("TOPO-MERGE-014").around(policy, "of_nodes")
def node_ids_are_taken_for_places(rule: Any, rows: Any) -> Any:
    return rule(rows={place: rows[node] for place, node in enumerate(sorted(rows))})


# Scopes


def _force_scope(changes: Changes, which: str) -> None:
    changes.around(scope, "admit", lambda rule: rule(scope=which))


@seeds("TOPO-SCOPE-002", "TOPO-SCOPE-004").of(_force_scope, "container")
def scope_pod_is_ignored() -> None: ...


@seeds("TOPO-SCOPE-001").of(_force_scope, "pod")
def scope_container_is_ignored() -> None: ...


@seeds("TOPO-SCOPE-002").around(scope, "admit")
def scope_pod_keeps_the_affinity_of_the_first_container(
    rule: Any, scope: str, pod: Any, keep: Any
) -> None:
    def keep_first(container: Any, affinity: Any) -> None:
        if container is pod.containers[0]:
            keep(container, affinity)

    rule(keep=keep_first if scope == "pod" else keep)


@shape(pod_containers, "peak")
def _pod_request(choose: Callable[[Any], bool], rule: Any, containers: Any) -> Any:
    """Counts only some containers in a pod's peak request."""
    return rule(containers=tuple(filter(choose, containers)))


@seeds("TOPO-SCOPE-003").around(pod_containers, "peak")
def a_pod_asks_for_the_sum_of_all_containers(rule: Any, containers: Any, amount: Any) -> Any:
    return sum((amount(container) for container in containers), start=rule(containers=()))


@seeds("TOPO-SCOPE-003").of(_pod_request, lambda container: not container.init)
def a_pod_asks_for_nothing_for_init_containers() -> None: ...


@seeds("#119407", "TOPO-SCOPE-003").of(_pod_request, lambda container: not container.sidecar)
def a_pod_asks_for_nothing_for_sidecars() -> None: ...


# Options


def _override_options(changes: Changes, **fields: Any) -> None:
    changes.around(options, "parse", lambda rule: replace(rule(), **fields))


@seeds("#135541", "TOPO-OPT-003").of(_override_options, most_nodes=1000)
def any_number_of_nodes_is_taken() -> None: ...


@seeds("TOPO-OPT-003", "TOPO-OPT-004").around(policy, "on_machine")
def a_node_beyond_the_limit_is_taken(rule: Any, options: Any) -> Any:
    return rule(options=replace(options, most_nodes=options.most_nodes + 1))


@seeds("TOPO-OPT-004").of(_override_options, most_nodes=options.DEFAULT_MAX_ALLOWABLE_NUMA_NODES)
def the_limit_of_nodes_cannot_be_raised() -> None: ...


@seeds("TOPO-ERROR-007").around(options, "read_most_nodes")
def a_limit_of_fewer_than_eight_nodes_is_taken(rule: Any, text: Any) -> Any:
    return int(text) if text.isdecimal() else rule()


@seeds("TOPO-ERROR-010", kubernetes="1.34").around(options, "check_available")
def hidden_topology_options_are_available(rule: Any) -> Any:
    return rule(gates=None)


# Order of the providers


@seeds("TOPO-ORDER-002").around(scope, "admit")
def providers_allocate_in_another_order(rule: Any, providers: Any) -> Any:
    return rule(providers=providers[::-1])


@seeds("TOPO-SCOPE-001").around(scope, "affinity_of")
def the_first_containers_hints_serve_all(rule: Any, pod: Any, container: Any) -> Any:
    return rule(container=container and pod.containers[0])


@seeds("NODE-REFUSED-001").around(managers.StartedNode, "admit")
def what_a_refused_pod_was_given_leaks(rule: Any, self: managers.StartedNode) -> Any:
    try:
        return rule()
    except AdmissionError:
        taken = self.memory.state.nodes
        self.remove_stale_state("reconcile")
        self.memory.state = replace(self.memory.state, nodes=taken)
        raise


seeds.about("merging")


_MAX_COMBINED = 4096


# Results


@seeds("PR #108052", "TOPO-MERGE-004")
def preferred_hints_need_not_be_equal(changes: Changes) -> None:
    def anyhow(rule: Any, rules: Rules, lists: Any) -> Any:
        preferred = [[hint.nodes for hint in hints if hint.preferred] for hints in lists]
        combined = reduce(lambda size, masks: size * len(masks), preferred, 1)
        if combined > _MAX_COMBINED:
            return rule()
        return {reduce(and_, masks, rules.nodes) for masks in product(*preferred)}

    # The fast search is also used on small machines.
    changes.replace(evaluation, "MAX_ENUMERATED", 0)
    changes.around(merge, "preferred_results", anyhow)


def _apart(rules: Rules, nodes: int) -> float:
    """Returns the average distance between a result's nodes, or 0 if distances don't count."""
    return 0 if rules.distances is None else average(nodes, rules.distances.table)


@shape(Rules, "sort_tied")
def _ordering(key: Callable[[float, int], Any], rule: Any, self: Any, tied_sets: Any) -> Any:
    """Changes which of several results with the same number of nodes wins."""
    return sorted(tied_sets, key=lambda nodes: key(_apart(self, nodes), nodes))


@seeds("TOPO-MERGE-003").after(merge, "preferred_results")
def the_widest_preferred_affinity_wins(results: set[int]) -> set[int]:
    most = max(map(int.bit_count, results), default=0)
    return {nodes for nodes in results if nodes.bit_count() == most}


@seeds("TOPO-MERGE-008").of(_ordering, lambda apart, nodes: (apart, -nodes))
def the_highest_of_equal_affinities_wins() -> None: ...


@seeds("TOPO-OPT-001").of(_ordering, lambda apart, nodes: nodes)
def the_closest_nodes_do_not_win() -> None: ...


@seeds("TOPO-OPT-001").of(_ordering, lambda apart, nodes: (-apart, nodes))
def the_farthest_nodes_win() -> None: ...


@seeds("TOPO-OPT-005").around(merge, "preferred_results")
def distance_counts_before_the_number_of_nodes(rule: Any, rules: Rules) -> set[int]:
    found = {nodes for nodes in rule() if nodes}
    if rules.distances is None or not found:
        return found
    near = {nodes: _apart(rules, nodes) for nodes in found}
    return {nodes for nodes in found if near[nodes] == min(near.values())}


@seeds("TOPO-OPT-002").around(policy, "of_nodes")
def distances_always_count(rule: Any, options: Any, rows: Any) -> Any:
    known = all(row is not None for row in rows.values())
    closest = options.closest or known
    return rule(options=replace(options, closest=closest))


@shape(evaluation, "merge")
def _listing(change: Callable[[Any], Any], rule: Any, providers: Any) -> Any:
    """Changes the providers' answers before they are merged."""
    return rule(providers=change(list(providers)))


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


@seeds("#83697", "#83775", "TOPO-MERGE-001").by(_listing)
def a_provider_without_preference_is_unsatisfied(providers: Any) -> Any:
    return [resources or {"": IMPOSSIBLE} for resources in providers]


@seeds("TOPO-MERGE-010").of(_listing, lambda providers: providers[:-1])
def the_last_provider_is_not_heard() -> None: ...


@seeds("TOPO-MERGE-011").by(_listing)
def one_resource_of_a_provider_is_heard(providers: Any) -> Any:
    return [dict(list((one or {}).items())[:1]) for one in providers]


@seeds("#139430", "TOPO-MERGE-009").replace(Rules, "target", lambda self, lists: 1)
def the_least_needy_provider_decides() -> None: ...


@seeds("TOPO-MERGE-002").around(evaluation, "merge")
def an_affinity_of_all_nodes_is_preferred(rule: Any, rules: Any) -> Any:
    return _preferred_if_all(rules, rule())


def _preferred_if_all(rules: Rules, best: TopologyHint) -> TopologyHint:
    return TopologyHint(best.nodes, preferred=True) if best.nodes == rules.nodes else best


# Hints


@seeds("TOPO-MERGE-005").around(evaluation, "merge")
def nobody_asked_is_nobody_satisfied(rule: Any, rules: Any, providers: Any) -> Any:
    return rule() if providers else TopologyHint(rules.nodes, preferred=False)


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


@seeds("TOPO-MERGE-010").of(_listing, lambda providers: providers[:2] + providers[3:])
def one_of_several_providers_is_not_heard() -> None: ...


@seeds("TOPO-POLICY-006").around(operations, "merge")
def policy_none_merges_like_best_effort(rule: Any, args: Any) -> Any:
    return rule(
        args=msgspec.structs.replace(args, policy=policy.BEST_EFFORT)
        if args.policy == policy.NONE
        else args
    )


seeds.about("pod-level")


@seeds("CPU-STATIC-026")
def containers_make_up_for_one_another(changes: Changes) -> None:
    changes.replace(PodRules, "qos_class", staticmethod(ClassBySums.qos_class))


@seeds("PR #137150", "NODE-PODLEVEL-016")
def empty_pod_level_resources_decide_the_class(changes: Changes) -> None:
    changes.replace(PodRules, "decide", staticmethod(lambda pod: True))


@seeds("NODE-PODLEVEL-017")
def pod_level_requests_are_missing_without_limits(changes: Changes) -> None:
    changes.replace(PodRules, "as_one", staticmethod(DefaultsBesideLimits.as_one))


@seeds("NODE-PODLEVEL-018")
def pod_level_limits_are_not_filled_in(changes: Changes) -> None:
    as_one = PodRules.as_one

    def without_default_limits(
        requests: Mapping[str, Any], limits: Mapping[str, Any], members: Any
    ) -> PodContainer:
        return PodContainer("", as_one(requests, limits, members).requests, limits)

    changes.replace(PodRules, "as_one", staticmethod(without_default_limits))
