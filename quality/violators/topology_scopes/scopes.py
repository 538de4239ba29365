"""Violators of the requirements of the Topology Manager's scopes, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.memory import requests
from numaproof.reference.pods import containers
from numaproof.reference.pods.pod import Pod
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import ANYWHERE, NO_AFFINITY, TopologyHint
from numaproof.reference.topology.policy import TopologyPolicy
from quality.seeding import Changes, SubjectBugs
from quality.violators.topology_merging.policies import (
    aligning_without_policy,
    place_by_hints,
)

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("topology-scopes")


# Which scope


@seeds("TOPO-SCOPE-008")
def the_pod_scope_places_by_hints_without_a_policy(changes: Changes) -> None:
    """An author asks for hints wherever a scope asks for alignment."""
    aligning_without_policy(changes, lambda config: config.topology_scope == "pod", place_by_hints)


@seeds("TOPO-SCOPE-008")
def the_pod_scope_shares_out_budgets_without_a_policy(changes: Changes) -> None:
    """An author gives a pod its resources as a whole wherever the scope is pod."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        if policy is not None or how != "pod" or pod.budget is None:
            original(policy, how, providers, pod, keep)
            return
        for provider in providers:
            provider.allocate_pod(pod, NO_AFFINITY)

    changes.around(scope, "admit", admit)


# One affinity for all containers


def _aligned(policy: Any, how: str, pod: Any) -> bool:
    """Whether the containers of the pod have one affinity together."""
    return policy is not None and not policy.negative and how == "pod" and pod.budget is None


def _apart(changes: Changes, alone: Callable[[Pod, Any], bool]) -> None:
    """Lets containers for which `alone` is true have an affinity of their own in scope pod."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        if not _aligned(policy, how, pod):
            original(policy, how, providers, pod, keep)
            return
        together = scope.affinity_of(policy, providers, pod, None)
        for container in pod.containers:
            own = together
            if alone(pod, container):
                said = [provider.hints(pod, container) for provider in providers]
                own = policy.merge(said)[0]
            keep(container, own)
            for provider in providers:
                provider.allocate(pod, container, own)

    changes.around(scope, "admit", admit)


@seeds("TOPO-SCOPE-002")
def init_containers_have_their_own_affinity_in_the_pod_scope(changes: Changes) -> None:
    """An author aligns what runs at the same time, and init containers run before."""
    _apart(changes, lambda _, container: container.passes)


def _placing(changes: Changes, near: Callable[[Pod, Any], bool]) -> None:
    """Lets only containers for which `near` is true be placed by the pod's affinity."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        if not _aligned(policy, how, pod):
            original(policy, how, providers, pod, keep)
            return
        together = scope.affinity_of(policy, providers, pod, None)
        for container in pod.containers:
            keep(container, together)
            used = together if near(pod, container) else NO_AFFINITY
            for provider in providers:
                provider.allocate(pod, container, used)

    changes.around(scope, "admit", admit)


@seeds("TOPO-SCOPE-007")
def sidecars_are_placed_anywhere_in_the_pod_scope(changes: Changes) -> None:
    """An author looks the affinity up for init containers that end and app containers."""
    _placing(changes, lambda _, container: not container.sidecar)


# What a pod needs together


@seeds("TOPO-SCOPE-003")
def cpus_of_init_containers_add_to_those_of_app_containers(changes: Changes) -> None:
    """An author adds up all containers of the pod."""

    def at_once(original: Any, self: Pod) -> Any:
        if self.budget is not None or any(one.sidecar for one in self.containers):
            return original(self)
        return sum(map(self.exclusive_cpus, self.containers))

    changes.around(Pod, "exclusive_cpus_at_once", at_once)


@seeds("TOPO-SCOPE-003")
def memory_of_init_containers_does_not_count(changes: Changes) -> None:
    """An author sums up app containers, as the init containers are gone by then."""

    def at_once(original: Any, pod: Pod) -> Any:
        staying = tuple(one for one in pod.containers if not one.passes)
        return original(dataclasses.replace(pod, containers=staying))

    changes.around(requests, "at_once", at_once)


def _needing(changes: Changes, at_once: Callable[..., Any]) -> None:
    """Lets `at_once` say what containers need together, if there are sidecars among them."""

    def instead(original: Any, members: Any, amount: Any) -> Any:
        if not any(one.sidecar for one in members):
            return original(members, amount)
        nothing = original((), amount)
        return at_once(
            [(one, amount(one)) for one in members],
            nothing,
        )

    changes.around(containers, "at_once", instead)


def _apps(needs: Any, nothing: Any) -> Any:
    return sum((need for one, need in needs if not one.init), nothing)


def _sidecars(needs: Any, nothing: Any) -> Any:
    return sum((need for one, need in needs if one.sidecar), nothing)


@seeds("TOPO-SCOPE-006")
def sidecars_do_not_count_with_later_init_containers(changes: Changes) -> None:
    """An author adds sidecars to the app containers alone."""
    _needing(
        changes,
        lambda needs, nothing: max(
            [_apps(needs, nothing) + _sidecars(needs, nothing)]
            + [need for one, need in needs if one.passes]
        ),
    )


# One container after another


@seeds("TOPO-SCOPE-005")
def later_containers_stay_near_the_first(changes: Changes) -> None:
    """An author groups containers on the nodes of the first one where they can be."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        if policy is None or policy.negative or how != "container":
            original(policy, how, providers, pod, keep)
            return
        group: TopologyHint | None = None
        for container in pod.containers:
            affinity = scope.affinity_of(policy, providers, pod, container)
            if group is not None and ANYWHERE not in (group.nodes, affinity.nodes):
                rules = dataclasses.replace(policy.rules, nodes=group.nodes)
                near = TopologyPolicy(policy.name, rules, policy.negative)
                said = [provider.hints(pod, container) for provider in providers]
                if any(said):
                    inside = near.merge(said)[0]
                    if inside.nodes == ANYWHERE:
                        inside = inside._replace(nodes=group.nodes)
                    affinity = inside if inside.preferred else affinity
            group = group or affinity
            keep(container, affinity)
            for provider in providers:
                provider.allocate(pod, container, affinity)

    changes.around(scope, "admit", admit)
