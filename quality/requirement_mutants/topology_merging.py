"""Violators of merging hints."""

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
"""Combinations of hints, too many to look at one by one."""

_WIDE = 8
"""Nodes of a machine, likewise with more."""


def lists_of(rules: Rules, providers: Any) -> list[Any]:
    """The hints that count, resource by resource."""
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
    """Lets `merge` answer wherever hints are merged and have at most so many combinations."""

    def instead(rule: Any, rules: Rules, providers: Any) -> Any:
        if _is_large(rules, providers, most):
            return rule()
        return merge(rule, rules, providers)

    changes.around(evaluation, "merge", instead)


def by_definition(changes: Changes) -> None:
    """Has the definition merge, so that a change of it shows on machines of many nodes."""
    merging_by(changes, lambda _, rules, providers: merging.merge(rules, providers))


@shape(evaluation, "merge")
def change_providers(
    change: Callable[[Rules, Any], Any], rule: Any, rules: Any, providers: Any
) -> Any:
    """Lets the merge see what `change` makes of the providers' answers."""
    return rule(providers=change(rules, providers))


def change_merged_hints(changes: Changes, change: Callable[[Rules, TopologyHint], Any]) -> None:
    """Lets the merge see other hints than those that are listed; None for hints to leave out."""

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
    """Whether a provider has no preference at all."""
    return all(hints is None for hints in (resources or {}).values())


def ranking(changes: Changes, rank: Callable[[Any, TopologyHint, int], Any]) -> None:
    """Lets `rank` order the results; it is given the true order first."""
    changes.around(
        Rules, "rank", lambda rule, self, *args: rank(lambda *one: rule(self, *one), *args)
    )
    by_definition(changes)


# Providers without a preference


@seeds("TOPO-MERGE-001").around(Rules, "target")
def providers_without_preference_count_as_the_most_demanding(
    rule: Any, self: Rules, lists: Iterable[Any]
) -> Any:
    """Counts all nodes as what a provider without a preference needs at least."""
    every = list(lists)
    free = any(hints == merging.NO_PREFERENCE for hints in every)
    return self.nodes.bit_count() if free else rule(lists=every)


# Resources that cannot be had


@seeds("TOPO-MERGE-002").by(change_providers)
def an_empty_list_beside_other_resources_is_overlooked(_: Rules, providers: Any) -> Any:
    """Walks through the hints of a provider and never sees a list without any."""
    return [
        {name: hints for name, hints in (resources or {}).items() if hints != ()}
        if any(hints != () for hints in (resources or {}).values())
        else resources
        for resources in providers
    ]


# Which result wins


@seeds("TOPO-MERGE-006").by(merging_by)
def a_narrower_affinity_beats_a_preferred_one(rule: Any, rules: Rules, providers: Any) -> Any:
    """Compares the number of nodes first, and the preference between equals."""
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
    """Falls back to the default hint, which is preferred."""
    best = rule(rules, providers)
    disjoint = not rules.single and not merging.results(rules, lists_of(rules, providers))
    return best._replace(preferred=True) if disjoint else best


@seeds("TOPO-MERGE-007").by(merging_by)
def hints_without_a_common_node_fall_back_to_the_first(
    rule: Any, rules: Rules, providers: Any
) -> Any:
    """Starts from the first provider's best hint, and keeps it if nothing fits."""
    lists = lists_of(rules, providers)
    named = [hint.nodes for hints in lists for hint in hints if hint.nodes != ANYWHERE]
    if rules.single or not named or merging.results(rules, lists):
        return rule(rules, providers)
    return TopologyHint(named[0] & rules.nodes or rules.nodes, preferred=False)


# Hints that name no nodes


@seeds("TOPO-MERGE-013").by(change_merged_hints)
def a_hint_without_nodes_does_no_harm_to_the_preference(_: Any, hint: Any) -> Any:
    """Skips hints without nodes, preferred or not."""
    return hint._replace(preferred=True) if hint.nodes == ANYWHERE else hint


# What is stored, and used


@shape(TopologyPolicy, "merge")
def _change_affinity(
    name: str, choose_affinity: Change, rule: Any, self: TopologyPolicy, providers: Any
) -> Any:
    """Lets `choose_affinity` say what affinity the policy `name` finds."""
    kept, admitted = rule()
    return (choose_affinity(kept, self, providers) if self.name == name else kept), admitted


@seeds("TOPO-POLICY-007").by(_change_affinity, policies.BEST_EFFORT)
def best_effort_keeps_all_nodes_where_none_is_preferred(affinity: Any, policy: Any, _: Any) -> Any:
    """Falls back to the whole machine, though fewer nodes would do."""
    return affinity if affinity.preferred else TopologyHint(policy.rules.nodes, preferred=False)


@seeds("TOPO-POLICY-008").around(scope, "admit")
def restricted_keeps_the_affinity_and_does_not_use_it(
    rule: Any, policy: Any, scope: str, providers: Any, pod: Any, keep: Any
) -> None:
    """Stores the affinity after the containers have been allocated."""
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
    """Stores affinities for containers that stay."""

    def instead(container: Any, affinity: TopologyHint) -> None:
        if policy.name == policies.RESTRICTED:
            affinity = NO_AFFINITY if container.runs_to_completion else affinity
        keep(container, affinity)

    rule(keep=instead)


def _under(changes: Changes, name: str) -> Callable[[TopologyHint], bool]:
    """Whether the policy `name` admits now, and prefers an affinity."""
    current = changes.record_argument(scope, "admit", "policy")
    return lambda affinity: (
        affinity.preferred and any(one and one.name == name for one in current[-1:])
    )


@seeds("TOPO-POLICY-010")
def devices_ignore_the_affinity_of_best_effort(changes: Changes) -> None:
    """Has devices follow the affinity only where policies insist on it."""
    applies = _under(changes, policies.BEST_EFFORT)

    def allocate(rule: Any, affinity: TopologyHint) -> None:
        rule(affinity=NO_AFFINITY if applies(affinity) else affinity)

    changes.around(DeviceManager, "allocate", allocate)


# Policies


_ANY_NUMBER = 1 << 62


def refusal() -> AdmissionError:
    """The refusal of a pod for its affinity."""
    return AdmissionError(
        "TopologyAffinityError", "Resources cannot be allocated with Topology locality"
    )


# The policy none


@shape(configuration, "load")
def _defaulting(policy: Callable[[Any], str], rule: Any, kubelet_config: Any) -> Any:
    """Lets `policy` say which one a configuration has that names none."""
    if not kubelet_config.get("topologyManagerPolicy"):
        kubelet_config = {**kubelet_config, "topologyManagerPolicy": policy(kubelet_config)}
    return rule(kubelet_config=kubelet_config)


@seeds("TOPO-POLICY-001").by(_defaulting)
def naming_a_scope_turns_the_default_policy_into_restricted(kubelet_config: Any) -> Any:
    """Takes a configured scope for a wish for alignment."""
    return policies.RESTRICTED if kubelet_config.get("topologyManagerScope") else policies.NONE


def aligning_without_policy(
    changes: Changes, applies: Callable[[Any], bool], admit: Callable[..., None]
) -> None:
    """Lets `admit` admit under policy none, given a policy none that merges and admits all.

    `applies` says for which configurations.
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
    """Has every container placed by its hints, and keeps no affinity."""
    rule(policy, "container", providers, pod, lambda *_: None)


# What a policy admits


def _judging(changes: Changes, name: str, judge: Callable[..., Any]) -> None:
    """Lets `judge` say for which pods and containers the policy `name` rejects nothing."""

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
    """Lets every policy reject in scope pod."""
    if container is None and not affinity.preferred:
        raise refusal()
    return affinity


@seeds("TOPO-POLICY-003").by(_judging, policies.RESTRICTED)
def restricted_does_not_judge_init_containers(_: Any, container: Any) -> Any:
    """Finds that containers which end soon may run anywhere."""
    return container is not None and container.init


@seeds("TOPO-POLICY-004").by(_judging, policies.SINGLE_NUMA_NODE)
def single_numa_node_does_not_judge_sidecars(_: Any, container: Any) -> Any:
    """Walks through app containers and init containers that end."""
    return container is not None and container.sidecar


@seeds("TOPO-POLICY-004").by(_judging, policies.SINGLE_NUMA_NODE)
def single_numa_node_judges_the_first_app_container_alone(pod: Any, container: Any) -> bool:
    """Checks the main container of a pod."""
    apps = [one.name for one in pod.containers if not one.init]
    return container is not None and container.name in apps[1:]


def _has_hints(providers: Any) -> bool:
    return not all(map(silent, providers))


@seeds("TOPO-POLICY-005").around(TopologyPolicy, "merge")
def restricted_rejects_whatever_needs_two_nodes(rule: Any, self: Any, providers: Any) -> Any:
    """Calls only a single node preferred."""
    kept, admitted = rule()
    if self.name == policies.RESTRICTED:
        admitted = admitted and (kept.nodes.bit_count() == 1 or not _has_hints(providers))
    return (kept, admitted)


@seeds("TOPO-POLICY-011").around(DeviceManager, "hints")
def devices_of_burstable_pods_are_not_considered(rule: Any, pod: Any) -> Any:
    """Has the Device Manager speak for Guaranteed pods and BestEffort ones."""
    return {} if pod.qos == "Burstable" else rule()


@seeds("TOPO-POLICY-011").after(scope, "affinity_of")
def restricted_rejects_pods_without_hints_in_the_pod_scope(
    affinity: Any, policy: Any, providers: Any, pod: Any, container: Any
) -> Any:
    """Requires an affinity for the pod, and there is nothing to derive it from."""
    said = [provider.hints(pod, container) for provider in providers]
    if container is None and policy.name == policies.RESTRICTED and not _has_hints(said):
        raise refusal()
    return affinity
