"""Mutants of merging hints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.config import configuration
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.errors import AdmissionError
from numaproof.reference.topology import merge as merging
from numaproof.reference.topology import policy as policies
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import ANYWHERE, NO_AFFINITY, Demand, TopologyHint
from numaproof.reference.topology.merge import IMPOSSIBLE, Rules
from numaproof.reference.topology.options import TopologyOptions
from numaproof.reference.topology.policy import TopologyPolicy
from numaproof.reference.topology.scope import affinity_of
from numaproof.reference.topology.search import evaluation
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

seeds = SubjectBugs("topology-merging")


# Merging


_MANY = 200_000
"""The maximum number of combinations of hints that are merged one by one."""

_WIDE = 8
"""The maximum number of nodes for which hints are merged one by one."""


def lists_of(rules: Rules, providers: Any) -> list[Any]:
    """Returns each resource's filtered hints."""
    return [
        rules.filter_hints(evaluation.list_hints(hints) or IMPOSSIBLE)
        for hints in merging.by_resource(providers)
    ]


def _is_large(rules: Rules, providers: Any, most: int) -> bool:
    if rules.nodes.bit_count() > _WIDE:
        return True
    return math.prod(map(len, lists_of(rules, providers))) > most


def merging_by(
    changes: Changes, merge: Callable[[Any, Rules, Any], TopologyHint], most: int = _MANY
) -> None:
    """Lets `merge` replace the merging of hints with at most `most` combinations."""

    def instead(rule: Any, rules: Rules, providers: Any) -> Any:
        if _is_large(rules, providers, most):
            return rule()
        return merge(rule, rules, providers)

    changes.around(evaluation, "merge", instead)


def by_definition(changes: Changes) -> None:
    """Merges according to the definition instead of using the fast search."""
    merging_by(changes, lambda _, rules, providers: merging.merge(rules, providers))


@shape(evaluation, "merge")
def change_providers(
    change: Callable[[Rules, Any], Any], rule: Any, rules: Any, providers: Any
) -> Any:
    """Lets `change` replace the providers' answers before they are merged."""
    return rule(providers=change(rules, providers))


def change_merged_hints(changes: Changes, change: Callable[[Rules, TopologyHint], Any]) -> None:
    """Lets `change` replace each listed hint before merging; None removes it."""

    def change_hints(rules: Rules, hints: Any) -> Any:
        if hints is None or isinstance(hints, Demand):
            return hints
        changed = (change(rules, hint) for hint in hints)
        return tuple(hint for hint in changed if hint is not None)

    change_providers(
        changes,
        lambda rules, providers: [
            {name: change_hints(rules, hints) for name, hints in (resources or {}).items()}
            for resources in providers
        ],
    )


def silent(resources: Any) -> bool:
    """Returns whether a provider has no preference for any resource."""
    return all(hints is None for hints in (resources or {}).values())


def ranking(changes: Changes, rank: Callable[[Any, TopologyHint, int], Any]) -> None:
    """Lets `rank` order the results, given the original order."""
    changes.around(
        Rules, "rank", lambda rule, self, *args: rank(lambda *one: rule(self, *one), *args)
    )
    by_definition(changes)


# Providers without a preference


@seeds("TOPO-MERGE-001").around(Rules, "target")
def providers_without_preference_count_as_the_most_demanding(
    rule: Any, self: Rules, lists: Iterable[Any]
) -> Any:
    """Treats providers without a preference as if they needed all nodes."""
    every = list(lists)
    free = any(hints == merging.NO_PREFERENCE for hints in every)
    return self.nodes.bit_count() if free else rule(lists=every)


# Unsatisfiable resources


@seeds("TOPO-MERGE-002").by(change_providers)
def an_empty_list_beside_other_resources_is_overlooked(_: Rules, providers: Any) -> Any:
    """Ignores an empty list if the provider has hints for other resources."""
    return [
        {name: hints for name, hints in (resources or {}).items() if hints != ()}
        if any(hints != () for hints in (resources or {}).values())
        else resources
        for resources in providers
    ]


# The best result


@seeds("TOPO-MERGE-006").by(merging_by)
def a_narrower_affinity_beats_a_preferred_one(rule: Any, rules: Rules, providers: Any) -> Any:
    """Prefers a narrower hint to a preferred one."""
    best = rule(rules, providers)
    found = merging.results(rules, lists_of(rules, providers))
    narrower = [one.nodes for one in found if one.nodes.bit_count() < best.nodes.bit_count()]
    if not best.preferred or not narrower:
        return best
    fewest = min(map(int.bit_count, narrower))
    tied = [nodes for nodes in narrower if nodes.bit_count() == fewest]
    return TopologyHint(rules.sort_tied(tied)[0], preferred=False)


@seeds("TOPO-MERGE-007").by(merging_by)
def hints_without_a_common_node_fall_back_preferred(rule: Any, rules: Rules, providers: Any) -> Any:
    """Calls the default hint preferred if the hints have no node in common."""
    best = rule(rules, providers)
    disjoint = not rules.single and not merging.results(rules, lists_of(rules, providers))
    return best._replace(preferred=True) if disjoint else best


@seeds("TOPO-MERGE-007").by(merging_by)
def hints_without_a_common_node_fall_back_to_the_first(
    rule: Any, rules: Rules, providers: Any
) -> Any:
    """Falls back to the first hint if the hints have no node in common."""
    lists = lists_of(rules, providers)
    named = [hint.nodes for hints in lists for hint in hints if hint.nodes != ANYWHERE]
    if rules.single or not named or merging.results(rules, lists):
        return rule(rules, providers)
    return TopologyHint(named[0] & rules.nodes or rules.nodes, preferred=False)


# Hints without nodes


@seeds("TOPO-MERGE-013").by(change_merged_hints)
def a_hint_without_nodes_does_no_harm_to_the_preference(_: Any, hint: Any) -> Any:
    """Treats hints without nodes as preferred."""
    return hint._replace(preferred=True) if hint.nodes == ANYWHERE else hint


# The stored affinity


@shape(TopologyPolicy, "merge")
def _change_affinity(
    name: str, choose_affinity: Change, rule: Any, self: TopologyPolicy, providers: Any
) -> Any:
    """Lets `choose_affinity` replace the affinity under the policy `name`."""
    kept, admitted = rule()
    return (choose_affinity(kept, self, providers) if self.name == name else kept), admitted


@seeds("TOPO-POLICY-007").by(_change_affinity, policies.BEST_EFFORT)
def best_effort_keeps_all_nodes_where_none_is_preferred(affinity: Any, policy: Any, _: Any) -> Any:
    """Under the best-effort policy, widens affinities that aren't preferred to all nodes."""
    return affinity if affinity.preferred else TopologyHint(policy.rules.nodes, preferred=False)


@seeds("TOPO-POLICY-008").around(scope, "admit")
def restricted_keeps_the_affinity_and_does_not_use_it(
    rule: Any, policy: Any, scope: str, providers: Any, pod: Any, keep: Any
) -> None:
    """Stores the affinity under the restricted policy but allocates without it."""
    if policy is None or policy.name != policies.RESTRICTED or pod.budget is not None:
        rule()
        return
    found = None if scope == "container" else affinity_of(policy, providers, pod, None)
    for container in pod.containers:
        keep(container, found or affinity_of(policy, providers, pod, container))
        for provider in providers:
            provider.allocate(pod, container, NO_AFFINITY)


@seeds("TOPO-POLICY-008").around(scope, "admit")
def restricted_keeps_no_affinity_of_init_containers(rule: Any, policy: Any, keep: Any) -> None:
    """Doesn't store the affinity of init containers under the restricted policy."""

    def instead(container: Any, affinity: TopologyHint) -> None:
        if policy.name == policies.RESTRICTED:
            affinity = NO_AFFINITY if container.runs_to_completion else affinity
        keep(container, affinity)

    rule(keep=instead)


def _under(changes: Changes, name: str) -> Callable[[TopologyHint], bool]:
    """Returns a function that checks whether an affinity is preferred and the policy is `name`."""
    current = changes.record_argument(scope, "admit", "policy")
    return lambda affinity: (
        affinity.preferred and any(one and one.name == name for one in current[-1:])
    )


@seeds("TOPO-POLICY-010")
def devices_ignore_the_affinity_of_best_effort(changes: Changes) -> None:
    """Ignores the affinity of devices under the best-effort policy."""
    applies = _under(changes, policies.BEST_EFFORT)

    def allocate(rule: Any, affinity: TopologyHint) -> None:
        rule(affinity=NO_AFFINITY if applies(affinity) else affinity)

    changes.around(DeviceManager, "allocate", allocate)


# Policies


_ANY_NUMBER = 1 << 62


def refusal() -> AdmissionError:
    """Returns the error for pods rejected for their affinity."""
    return AdmissionError(
        "TopologyAffinityError", "Resources cannot be allocated with Topology locality"
    )


# The none policy


@shape(configuration, "load")
def _defaulting(policy: Callable[[Any], str], rule: Any, kubelet_config: Any) -> Any:
    """Lets `policy` choose the default policy for a configuration."""
    if not kubelet_config.get("topologyManagerPolicy"):
        kubelet_config = {**kubelet_config, "topologyManagerPolicy": policy(kubelet_config)}
    return rule(kubelet_config=kubelet_config)


@seeds("TOPO-POLICY-001").by(_defaulting)
def naming_a_scope_turns_the_default_policy_into_restricted(kubelet_config: Any) -> Any:
    """Defaults to the restricted policy if a scope is configured."""
    return policies.RESTRICTED if kubelet_config.get("topologyManagerScope") else policies.NONE


def aligning_without_policy(
    changes: Changes, applies: Callable[[Any], bool], admit: Callable[..., None]
) -> None:
    """Lets `admit` admit pods under the none policy if `applies` is true for the configuration.

    `admit` is called with a policy that merges hints and admits everything.
    """

    def make(topology_policy: Any, config: Any, machine: Any) -> Any:
        nodes = machine.topology or ()
        if (
            topology_policy is not None
            or not applies(config)
            or any(node.node_id < 0 for node in nodes)
        ):
            return topology_policy
        options = TopologyOptions(most_nodes=_ANY_NUMBER)
        return policies.on_machine(policies.NONE, options, machine)

    def merge(rule: Any, self: TopologyPolicy) -> Any:
        kept, admitted = rule()
        return kept, admitted or self.name == policies.NONE

    def instead(rule: Any, policy: Any, *rest: Any) -> None:
        if policy is not None and policy.name == policies.NONE:
            admit(rule, policy, *rest)
        else:
            rule(policy, *rest)

    changes.after(startup, "make_topology_policy", make)
    changes.around(TopologyPolicy, "merge", merge)
    changes.around(scope, "admit", instead)


def place_by_hints(
    rule: Any, policy: Any, _scope: str, providers: Any, pod: Any, _keep: Any
) -> None:
    """Allocates each container according to its hints, without storing an affinity."""
    rule(policy, "container", providers, pod, lambda *_: None)


# Admission


def _judging(changes: Changes, name: str, judge: Callable[..., Any]) -> None:
    """Doesn't reject under the policy `name` if `judge` is true for the pod and container."""

    def affinity_of(rule: Any, policy: Any, providers: Any, pod: Any, container: Any) -> Any:
        try:
            return rule()
        except AdmissionError:
            if policy.name != name or not judge(pod, container):
                raise
            return policy.merge([provider.hints(pod, container) for provider in providers])[0]

    changes.around(scope, "affinity_of", affinity_of)


@seeds("TOPO-POLICY-002").after(scope, "affinity_of")
def best_effort_rejects_in_the_pod_scope(affinity: Any, container: Any) -> Any:
    """Rejects pods under the best-effort policy with the pod scope."""
    if container is None and not affinity.preferred:
        raise refusal()
    return affinity


@seeds("TOPO-POLICY-003").by(_judging, policies.RESTRICTED)
def restricted_does_not_judge_init_containers(_: Any, container: Any) -> Any:
    """Never rejects init containers under the restricted policy."""
    return container is not None and container.init


@seeds("TOPO-POLICY-004").by(_judging, policies.SINGLE_NUMA_NODE)
def single_numa_node_does_not_judge_sidecars(_: Any, container: Any) -> Any:
    """Never rejects sidecars under the single-numa-node policy."""
    return container is not None and container.sidecar


@seeds("TOPO-POLICY-004").by(_judging, policies.SINGLE_NUMA_NODE)
def single_numa_node_judges_the_first_app_container_alone(pod: Any, container: Any) -> bool:
    """Never rejects app containers after the first under the single-numa-node policy."""
    apps = [one.name for one in pod.containers if not one.init]
    return container is not None and container.name in apps[1:]


def _has_hints(providers: Any) -> bool:
    return not all(map(silent, providers))


@seeds("TOPO-POLICY-005").around(TopologyPolicy, "merge")
def restricted_rejects_whatever_needs_two_nodes(rule: Any, self: Any, providers: Any) -> Any:
    """Rejects affinities with more than one node under the restricted policy."""
    kept, admitted = rule()
    if self.name == policies.RESTRICTED:
        admitted = admitted and (kept.nodes.bit_count() == 1 or not _has_hints(providers))
    return (kept, admitted)


@seeds("TOPO-POLICY-011").around(DeviceManager, "hints")
def devices_of_burstable_pods_are_not_considered(rule: Any, pod: Any) -> Any:
    """Ignores the devices of Burstable pods."""
    return {} if pod.qos == "Burstable" else rule()


@seeds("TOPO-POLICY-011").after(scope, "affinity_of")
def restricted_rejects_pods_without_hints_in_the_pod_scope(
    affinity: Any, policy: Any, providers: Any, pod: Any, container: Any
) -> Any:
    """Rejects pods without hints under the restricted policy with the pod scope."""
    said = [provider.hints(pod, container) for provider in providers]
    if container is None and policy.name == policies.RESTRICTED and not _has_hints(said):
        raise refusal()
    return affinity
