"""Violators of the requirements of the Topology Manager's scopes, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.devices.hints import DeviceHints
from numaproof.reference.kubelet import configuration
from numaproof.reference.memory import requests
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.pods import containers
from numaproof.reference.pods.pod import Pod
from numaproof.reference.topology import policy as policies
from numaproof.reference.topology import scope
from numaproof.reference.topology.policy import KeptHint, TopologyPolicy
from quality.seeding import Changes, SubjectBugs
from quality.violators.topology_merging.policies import (
    aligning_without_policy,
    place_by_hints,
)

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("topology-scopes")


# Which scope


def _defaulting(changes: Changes, default: Callable[[Any], str]) -> None:
    """Lets `default` say which scope a configuration has that names none."""

    def load(original: Any, given: Any, *rest: Any) -> Any:
        if not given.get("topologyManagerScope"):
            given = {**given, "topologyManagerScope": default(given)}
        return original(given, *rest)

    changes.around(configuration, "load", load)


@seeds("TOPO-SCOPE-001")
def pod_is_the_default_scope(changes: Changes) -> None:
    """An author finds the pod the natural unit of alignment."""
    _defaulting(changes, lambda _: "pod")


@seeds("TOPO-SCOPE-001")
def pod_is_the_default_scope_of_single_numa_node(changes: Changes) -> None:
    """An author reads single-numa-node as one node for the whole pod."""
    single = policies.SINGLE_NUMA_NODE
    _defaulting(
        changes,
        lambda given: "pod" if given.get("topologyManagerPolicy") == single else "container",
    )


@seeds("TOPO-SCOPE-008")
def the_pod_scope_places_by_hints_without_a_policy(changes: Changes) -> None:
    """An author asks for hints wherever a scope asks for alignment."""
    aligning_without_policy(changes, lambda config: config.topology_scope == "pod", place_by_hints)


@seeds("TOPO-SCOPE-008")
def the_pod_scope_keeps_all_nodes_without_a_policy(changes: Changes) -> None:
    """An author keeps one affinity for the pod before looking at the policy."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        for container in pod.containers:
            keep(container, KeptHint(policy.rules.nodes, preferred=True))
        original(None, how, providers, pod, keep)

    aligning_without_policy(changes, lambda config: config.topology_scope == "pod", admit)


@seeds("TOPO-SCOPE-008")
def the_pod_scope_shares_out_budgets_without_a_policy(changes: Changes) -> None:
    """An author gives a pod its resources as a whole wherever the scope is pod."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        if policy is not None or how != "pod" or pod.budget is None:
            original(policy, how, providers, pod, keep)
            return
        for provider in providers:
            provider.allocate_pod(pod, scope.NO_AFFINITY)

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


@seeds("TOPO-SCOPE-002")
def sidecars_have_their_own_affinity_in_the_pod_scope(changes: Changes) -> None:
    """An author aligns app containers and what comes before them, and sidecars do neither."""
    _apart(changes, lambda _, container: container.sidecar)


@seeds("TOPO-SCOPE-002")
def containers_in_the_shared_pool_have_their_own_affinity(changes: Changes) -> None:
    """An author gives the pod's affinity to containers that are pinned by it."""
    _apart(changes, lambda pod, container: pod.exclusive_cpus(container) == 0)


def _placing(changes: Changes, near: Callable[[Pod, Any], bool]) -> None:
    """Lets only containers for which `near` is true be placed by the pod's affinity."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        if not _aligned(policy, how, pod):
            original(policy, how, providers, pod, keep)
            return
        together = scope.affinity_of(policy, providers, pod, None)
        for container in pod.containers:
            keep(container, together)
            used = together if near(pod, container) else scope.NO_AFFINITY
            for provider in providers:
                provider.allocate(pod, container, used)

    changes.around(scope, "admit", admit)


@seeds("TOPO-SCOPE-007")
def only_the_first_container_is_placed_by_the_affinity(changes: Changes) -> None:
    """An author takes the affinity out of the store when it is first used."""
    _placing(changes, lambda pod, container: container == pod.containers[0])


@seeds("TOPO-SCOPE-007")
def sidecars_are_placed_anywhere_in_the_pod_scope(changes: Changes) -> None:
    """An author looks the affinity up for init containers that end and app containers."""
    _placing(changes, lambda _, container: not container.sidecar)


@seeds("TOPO-SCOPE-007")
def memory_is_placed_by_container_in_the_pod_scope(changes: Changes) -> None:
    """An author has the Memory Manager look for each container's best node."""
    shared: list[bool] = []

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        shared.append(_aligned(policy, how, pod))
        original(policy, how, providers, pod, keep)

    def allocate(original: Any, self: Any, pod: Any, container: Any, affinity: Any) -> None:
        original(self, pod, container, scope.NO_AFFINITY if shared[-1:] == [True] else affinity)

    changes.around(scope, "admit", admit)
    changes.around(MemoryManager, "allocate", allocate)


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


@seeds("TOPO-SCOPE-003")
def a_pod_asks_for_the_devices_of_its_largest_container(changes: Changes) -> None:
    """An author takes the largest request of all containers, app containers included."""

    def for_pod(original: Any, self: Any, state: Any, pod: Pod) -> Any:
        apart = tuple(dataclasses.replace(one, init=True) for one in pod.containers)
        whole = any(one.sidecar for one in pod.containers)
        return original(self, state, pod if whole else dataclasses.replace(pod, containers=apart))

    changes.around(DeviceHints, "for_pod", for_pod)


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
def sidecars_count_as_init_containers_that_end(changes: Changes) -> None:
    """An author does not look at the restart policy of init containers."""
    _needing(
        changes,
        lambda needs, nothing: max(
            _apps(needs, nothing), *(need for one, need in needs if one.init)
        ),
    )


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


@seeds("TOPO-SCOPE-006")
def sidecars_count_with_earlier_init_containers_too(changes: Changes) -> None:
    """An author adds all sidecars to every init container, whichever starts first."""
    _needing(
        changes,
        lambda needs, nothing: (
            _sidecars(needs, nothing)
            + max([_apps(needs, nothing)] + [need for one, need in needs if one.passes])
        ),
    )


@seeds("TOPO-SCOPE-006")
def sidecars_do_not_count_with_app_containers(changes: Changes) -> None:
    """An author adds sidecars to init containers that start after them, and stops there."""

    def at_once(needs: Any, nothing: Any) -> Any:
        running = most = nothing
        for one, need in needs:
            if one.init:
                most = max(most, running + need)
            if one.sidecar:
                running += need
        return max(most, _apps(needs, nothing))

    _needing(changes, at_once)


@seeds("TOPO-SCOPE-004")
def what_does_not_fit_as_a_pod_is_tried_by_container(changes: Changes) -> None:
    """An author takes scope pod for a preference, and aligns containers one by one without it."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        if _aligned(policy, how, pod) and policy.name == policies.SINGLE_NUMA_NODE:
            said = [provider.hints(pod, None) for provider in providers]
            how = how if policy.merge(said)[1] else "container"
        original(policy, how, providers, pod, keep)

    changes.around(scope, "admit", admit)


@seeds("TOPO-SCOPE-004")
def only_cpus_must_fit_together_on_one_node(changes: Changes) -> None:
    """An author asks the CPU Manager about the pod, and other managers about its containers."""

    def affinity_of(original: Any, policy: Any, providers: Any, pod: Any, container: Any) -> Any:
        if container is not None or policy.name != policies.SINGLE_NUMA_NODE:
            return original(policy, providers, pod, container)
        if pod.budget is not None:
            return original(policy, providers, pod, container)
        cpus = [one.hints(pod, None) for one in providers if isinstance(one, CPUManager)]
        kept, admitted = policy.merge(cpus)
        for single in pod.containers:
            said = [one.hints(pod, single) for one in providers if not isinstance(one, CPUManager)]
            own, fits = policy.merge([*cpus, *said])
            admitted = admitted and fits
            kept = own if kept.nodes is None else kept
        return kept if admitted else original(policy, providers, pod, container)

    changes.around(scope, "affinity_of", affinity_of)


# One container after another


@seeds("TOPO-SCOPE-005")
def later_containers_stay_near_the_first(changes: Changes) -> None:
    """An author groups containers on the nodes of the first one where they can be."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        if policy is None or policy.negative or how != "container":
            original(policy, how, providers, pod, keep)
            return
        group: KeptHint | None = None
        for container in pod.containers:
            affinity = scope.affinity_of(policy, providers, pod, container)
            if group is not None and group.nodes and affinity.nodes:
                rules = dataclasses.replace(policy.rules, nodes=group.nodes)
                near = TopologyPolicy(policy.name, rules, policy.negative)
                said = [provider.hints(pod, container) for provider in providers]
                if any(said):
                    inside = near.merge(said)[0]
                    inside = inside._replace(nodes=inside.nodes or group.nodes)
                    affinity = inside if inside.preferred else affinity
            group = group or affinity
            keep(container, affinity)
            for provider in providers:
                provider.allocate(pod, container, affinity)

    changes.around(scope, "admit", admit)


@seeds("TOPO-SCOPE-005")
def all_containers_are_judged_before_any_is_served(changes: Changes) -> None:
    """An author asks for the hints of all containers first, and then allocates."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        if policy is None or policy.negative or how != "container":
            original(policy, how, providers, pod, keep)
            return
        found = [(one, scope.affinity_of(policy, providers, pod, one)) for one in pod.containers]
        for container, affinity in found:
            keep(container, affinity)
            for provider in providers:
                provider.allocate(pod, container, affinity)

    changes.around(scope, "admit", admit)
