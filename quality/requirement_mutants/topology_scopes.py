"""Mutants of the Topology Manager's scopes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.cpu import hints as cpu_hints
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.devices import policy as device_policy
from numaproof.reference.devices.hints import DeviceHints
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.devices.state import devices_by_resource
from numaproof.reference.errors import AdmissionError
from numaproof.reference.memory import hints as memory_hints
from numaproof.reference.memory import requests
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import containers, qos, quantity
from numaproof.reference.pods.pod import Pod
from numaproof.reference.topology import merge as merging
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import ANYWHERE, NO_AFFINITY, Demand, TopologyHint
from numaproof.reference.topology.policy import TopologyPolicy
from numaproof.reference.topology.scope import affinity_of
from numaproof.reference.topology.search import evaluation
from quality.requirement_mutants.topology_merging import aligning_without_policy, place_by_hints
from quality.seeding import Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("topology-scopes")


# Examples


def _impossible(changes: Changes, klass: str) -> None:
    """Reports CPUs as unsatisfiable for pods of a QoS class."""

    def for_container(rule: Any, pod: Any) -> Any:
        return cpu_hints.UNSATISFIABLE if pod.qos == klass else rule()

    changes.around(cpu_hints, "for_container", for_container)
    changes.around(cpu_hints, "for_pod", for_container)


@seeds("TOPO-EXAMPLE-001").of(_impossible, "BestEffort")
def best_effort_pods_get_an_empty_list_of_cpu_hints() -> None:
    """Returns an empty list of CPU hints for BestEffort pods."""


@seeds("TOPO-EXAMPLE-001")
def pods_without_requests_are_not_preferred_anywhere(changes: Changes) -> None:
    """Returns a non-preferred hint without nodes for pods that request nothing."""

    def hints(rule: Any, pod: Any) -> Any:
        if pod.qos == "BestEffort" and not any(one.limits for one in pod.containers):
            return {"cpu": merging.IMPOSSIBLE}
        return rule()

    def list_hints(rule: Any, hints: Any) -> Any:
        return () if hints == merging.IMPOSSIBLE else rule()

    changes.around(CPUManager, "hints", hints)
    changes.around(evaluation, "list_hints", list_hints)


@seeds("TOPO-EXAMPLE-002").of(_impossible, "Burstable")
def burstable_pods_get_an_empty_list_of_cpu_hints() -> None:
    """Returns an empty list of CPU hints for Burstable pods."""


@seeds("TOPO-EXAMPLE-002").around(qos, "class_of")
def memory_requests_do_not_decide_the_qos_class(rule: Any, containers: Any) -> Any:
    """Ignores memory requests when computing the QoS class."""
    return rule(
        containers=tuple(
            replace(one, requests={**one.requests, "memory": one.limits["memory"]})
            if "memory" in one.limits
            else one
            for one in containers
        )
    )


def _fraction(pod: Any, container: Any) -> bool:
    """Returns whether a container of a Guaranteed pod requests fractional CPUs."""
    if pod.qos != "Guaranteed" or container is None:
        return False
    return quantity.whole_cpus(container.requests.get("cpu", 0)) is None


@seeds("TOPO-EXAMPLE-003").around(DeviceManager, "hints")
def devices_have_no_hints_beside_exclusive_cpus(rule: Any, pod: Any, container: Any) -> Any:
    """Returns no device hints for containers with exclusive CPUs."""
    return {} if container is not None and pod.exclusive_cpus(container) else rule()


@seeds("TOPO-EXAMPLE-003").around(cpu_hints, "for_container")
def exclusive_cpus_have_no_hints_beside_devices(rule: Any, container: Any) -> Any:
    """Returns no CPU hints for containers with devices."""
    return {} if any("/" in resource for resource in container.limits) else rule()


@seeds("TOPO-EXAMPLE-004").around(cpu_hints, "for_container")
def fractions_of_cpus_round_up_for_hints(
    rule: Any, policy: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Returns CPU hints for fractional requests, rounded up."""
    if not _fraction(pod, container):
        return rule()
    count = math.ceil(quantity.parse(container.requests.get("cpu", 0)))
    return {"cpu": cpu_hints.generate(policy, policy.available(state), 0, count)}


@seeds("TOPO-EXAMPLE-004").around(DeviceManager, "hints")
def devices_have_no_hints_beside_fractions_of_cpus(rule: Any, pod: Any, container: Any) -> Any:
    """Returns no device hints for containers with fractional CPUs."""
    return {} if _fraction(pod, container) else rule()


@seeds("TOPO-EXAMPLE-005").after(DeviceHints, "for_container")
def best_effort_pods_get_hints_for_one_kind_of_devices(resources: Any, pod: Any) -> Any:
    """Returns hints for only one resource of a BestEffort container."""
    return dict(list(resources.items())[:1]) if pod.qos == "BestEffort" else resources


@seeds("TOPO-EXAMPLE-005").around(DeviceHints, "for_container")
def every_kind_of_devices_must_have_as_many_as_all_together(
    rule: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Requires the total number of devices of each resource in BestEffort pods."""
    asked = device_policy.requested_devices(state, container)
    if pod.qos == "BestEffort" and not any(state.of(pod.uid, container.name)):
        every = dict.fromkeys(asked, sum(asked.values()))
        container = replace(container, limits={**container.limits, **every})
    return rule(container=container)


@seeds("TOPO-EXAMPLE-006")
def the_none_policy_of_cpus_hints_at_all_nodes(changes: Changes) -> None:
    """Returns a hint with all nodes for whole CPUs under the CPU Manager's none policy."""

    def start(node: Any) -> Any:
        if node.setup.cpu is None:
            node.cpus.everywhere = sum(1 << one for one in node.setup.nodes if one >= 0)
        return node

    def hints(rule: Any, self: Any, pod: Any, container: Any) -> Any:
        everywhere = vars(self).get("everywhere")
        if everywhere and container is not None and pod.exclusive_cpus(container):
            return {"cpu": (TopologyHint(everywhere, preferred=True),)}
        return rule()

    changes.after(startup, "start", start)
    changes.around(CPUManager, "hints", hints)


@seeds("TOPO-EXAMPLE-006")
def the_none_policy_of_cpus_has_no_place_for_fractions(changes: Changes) -> None:
    """Returns an empty list for fractional CPUs under the CPU Manager's none policy."""

    def start(node: Any) -> Any:
        node.cpus.is_unpinned = node.setup.cpu is None
        return node

    def hints(rule: Any, self: Any, pod: Any, container: Any) -> Any:
        if vars(self).get("is_unpinned") and _fraction(pod, container):
            return {"cpu": ()}
        return rule()

    changes.after(startup, "start", start)
    changes.around(CPUManager, "hints", hints)


@seeds("TOPO-EXAMPLE-007")
def whatever_fits_the_node_as_a_whole_is_admitted(changes: Changes) -> None:
    """Admits pods whose resources fit on the node as a whole."""

    def room(hints: Any) -> bool:
        return evaluation.satisfiable(hints) if isinstance(hints, Demand) else bool(hints)

    def affinity_of(rule: Any, policy: Any, providers: Any, pod: Any, container: Any) -> Any:
        try:
            return rule()
        except AdmissionError:
            said = [provider.hints(pod, container) for provider in providers]
            if not all(map(room, merging.by_resource(said))):
                raise
            return policy.merge(said)[0]

    changes.around(scope, "affinity_of", affinity_of)


# Order of an admission


def _lose_resources(
    changes: Changes, owner: type, choose_lost: Callable[[Any, Pod, list[str]], tuple[str, ...]]
) -> None:
    """Keeps a manager's resources of rejected pods.

    `choose_lost` returns the names of their containers. It is called with the manager, the pod and
    the containers that were served.
    """

    def allocate(rule: Any, self: Any, container: Any) -> None:
        vars(self)["turn"] = container.name
        rule()

    def admit(rule: Any, self: StartedNode, args: Any) -> Any:
        pod = self.read_pod(args.pod)
        manager: Any = next(one for one in self.providers if isinstance(one, owner))
        devices: Any = self.device_manager
        known = pod.uid in self.pods
        devices.turn = None
        try:
            answer = rule()
        except AdmissionError:
            names = [one.name for one in pod.containers]
            if devices.turn is not None and not known and pod.budget is None:
                served = names[: names.index(devices.turn) + 1]
                kept = choose_lost(manager, pod, served)
                left = tuple(one for one in pod.containers if one.name in kept)
                if left:
                    rest = replace(pod, containers=left)
                    vars(manager).setdefault("lost", {})[pod.uid] = rest
            raise
        vars(manager).get("lost", {}).pop(pod.uid, None)
        return answer

    def remove_stale_state(rule: Any, self: Any, pods: Any) -> None:
        rule(pods={**vars(self).get("lost", {}), **pods})

    changes.around(DeviceManager, "allocate", allocate)
    changes.around(StartedNode, "admit", admit)
    changes.around(owner, "remove_stale_state", remove_stale_state)


@seeds("TOPO-ORDER-003")
def memory_of_containers_before_the_refused_one_is_lost(changes: Changes) -> None:
    """Leaks the memory of containers that were served before the pod was rejected."""
    _lose_resources(
        changes, MemoryManager, lambda manager, pod, served_names: tuple(served_names[:-1])
    )


@seeds("TOPO-ORDER-004").around(memory_hints, "calculate_hints")
def too_little_memory_is_an_empty_list_of_hints(rule: Any, amounts: Any) -> Any:
    """Returns an empty list of hints for unsatisfiable memory."""
    return rule() or dict.fromkeys(amounts, ())


@seeds("TOPO-ORDER-005").around(StaticCPUPolicy, "check_alignment")
def the_number_of_cpus_is_checked_before_whole_cores(
    rule: Any, self: StaticCPUPolicy, count: int, free: int
) -> None:
    """Checks the number of free CPUs before alignment."""
    if self.options.full_cores and count > free:
        raise NotEnoughCPUsError(count, free)
    rule()


# After a restart


@shape(startup, "start", Changes.after)
def _after_start(on_start: Callable[[Any, Any], None], node: Any, args: Any) -> Any:
    """Calls `on_start` with the node and its request after each start."""
    on_start(node, args)
    return node


@seeds("TOPO-RESTART-001").replace(memory_hints, "regenerate_hints", lambda blocks, amounts: {})
def memory_has_no_say_in_the_affinity_after_a_restart() -> None:
    """Returns no memory hints for containers that hold memory."""


@seeds("TOPO-RESTART-001")
def app_containers_are_given_cpus_anew_after_a_restart(changes: Changes) -> None:
    """Reallocates the CPUs of restored app containers."""

    def on_start(node: Any, _args: Any) -> None:
        node.cpus.again = {
            (pod.uid, one.name)
            for pod in node.pods.values()
            for one in pod.containers
            if not one.init and pod.budget is None
        }

    def allocate(rule: Any, self: Any, pod: Any, container: Any) -> None:
        again = vars(self).get("again", set())
        if (pod.uid, container.name) in again and self.state.of(pod.uid, container.name):
            self.end(pod.uid, container.name)
        again.discard((pod.uid, container.name))
        rule()

    _after_start(changes, on_start)
    changes.around(CPUManager, "allocate", allocate)


@seeds("TOPO-RESTART-002").after(cpu_hints, "for_pod")
def the_pod_scope_judges_a_running_pod_by_free_cpus_too(
    resources: Any, policy: Any, state: Any, pod: Any
) -> Any:
    """Returns hints for free CPUs even if the pod already holds CPUs."""
    held = 0
    for container in pod.containers:
        held |= state.of(pod.uid, container.name) or 0
    count = pod.peak_exclusive_cpus()
    if pod.budget is not None or not held or held.bit_count() != count:
        return resources
    return {"cpu": cpu_hints.generate(policy, policy.available(state) | held, 0, count)}


def _anew(changes: Changes, owner: type, which: Callable[[Any], bool]) -> None:
    """Reallocates resources of a manager if `which` is true for a container that holds some."""

    def allocate(rule: Any, self: Any, pod: Any, container: Any, affinity: Any) -> None:
        held = pod.budget is None and self.state.of(pod.uid, container.name)
        if held and which(container) and not any(one.runs_to_completion for one in pod.containers):
            self.end(pod.uid, container.name)
        rule(self, pod, container, affinity)

    changes.around(owner, "allocate", allocate)


@seeds("TOPO-RESTART-003").of(_anew, CPUManager, lambda container: container.sidecar)
def sidecars_that_are_admitted_again_get_cpus_anew() -> None:
    """Reallocates the CPUs of readmitted sidecars."""


@seeds("TOPO-RESTART-003").of(_anew, MemoryManager, lambda container: not container.init)
def app_containers_that_are_admitted_again_get_memory_anew() -> None:
    """Reallocates the memory of readmitted app containers."""


@seeds("TOPO-RESTART-003").around(DeviceManager, "allocate")
def containers_that_are_admitted_again_get_devices_anew(
    rule: Any, self: Any, pod: Any, container: Any
) -> None:
    """Reallocates the devices of readmitted containers."""
    mine = self.state.held_devices.get(pod.uid, {})
    if container.name in mine and not any(one.runs_to_completion for one in pod.containers):
        left = {name: held for name, held in mine.items() if name != container.name}
        held = {**self.state.held_devices, pod.uid: left}
        self.state = replace(
            self.state, held_devices=held, allocated_devices=devices_by_resource(held)
        )
    rule()


# The scope


@seeds("TOPO-SCOPE-008")
def the_pod_scope_places_by_hints_without_a_policy(changes: Changes) -> None:
    """Allocates according to hints with the pod scope, even under the none policy."""
    aligning_without_policy(changes, lambda config: config.topology_scope == "pod", place_by_hints)


@seeds("TOPO-SCOPE-008").around(scope, "admit")
def the_pod_scope_shares_out_budgets_without_a_policy(
    rule: Any, policy: Any, scope: str, providers: Any, pod: Any, keep: Any
) -> None:
    """Allocates pod-level resources with the pod scope, even under the none policy."""
    if policy is not None or scope != "pod" or pod.budget is None:
        rule()
        return
    for provider in providers:
        provider.allocate_pod(pod, NO_AFFINITY)


# One affinity for all containers


def _has_common_affinity(policy: Any, scope: str, pod: Any) -> bool:
    """Returns whether the pod's containers share an affinity."""
    return policy is not None and not policy.negative and scope == "pod" and pod.budget is None


def _apart(changes: Changes, alone: Callable[[Pod, Any], bool]) -> None:
    """Computes a separate affinity for containers for which `alone` is true with the pod scope."""

    def admit(rule: Any, policy: Any, scope: str, providers: Any, pod: Any, keep: Any) -> None:
        if not _has_common_affinity(policy, scope, pod):
            rule()
            return
        together = affinity_of(policy, providers, pod, None)
        for container in pod.containers:
            own = together
            if alone(pod, container):
                said = [provider.hints(pod, container) for provider in providers]
                own = policy.merge(said)[0]
            keep(container, own)
            for provider in providers:
                provider.allocate(pod, container, own)

    changes.around(scope, "admit", admit)


@seeds("TOPO-SCOPE-002").of(_apart, lambda _, container: container.runs_to_completion)
def init_containers_have_their_own_affinity_in_the_pod_scope() -> None:
    """Computes separate affinities for init containers with the pod scope."""


@seeds("TOPO-SCOPE-007").around(scope, "admit")
def sidecars_are_placed_anywhere_in_the_pod_scope(
    rule: Any, policy: Any, scope: str, providers: Any, pod: Any, keep: Any
) -> None:
    """Ignores the affinity of sidecars with the pod scope."""
    if not _has_common_affinity(policy, scope, pod):
        rule()
        return
    together = affinity_of(policy, providers, pod, None)
    for container in pod.containers:
        keep(container, together)
        used = together if not container.sidecar else NO_AFFINITY
        for provider in providers:
            provider.allocate(pod, container, used)


# A pod's total request


@seeds("TOPO-SCOPE-003").around(Pod, "peak_exclusive_cpus")
def cpus_of_init_containers_add_to_those_of_app_containers(rule: Any, self: Pod) -> Any:
    """Adds the CPUs of init containers to those of app containers."""
    if self.budget is not None or any(one.sidecar for one in self.containers):
        return rule()
    return sum(map(self.exclusive_cpus, self.containers))


@seeds("TOPO-SCOPE-003").around(requests, "peak")
def memory_of_init_containers_does_not_count(rule: Any, pod: Pod) -> Any:
    """Ignores the memory of init containers."""
    staying = tuple(one for one in pod.containers if not one.runs_to_completion)
    return rule(pod=replace(pod, containers=staying))


@shape(containers, "peak")
def _needing(peak: Callable[..., Any], rule: Any, containers: Any, amount: Any) -> Any:
    """Lets `peak` compute the request of pods with sidecars."""
    if not any(one.sidecar for one in containers):
        return rule()
    nothing = rule(containers=())
    return peak([(one, amount(one)) for one in containers], nothing)


def _apps(needs: Any, nothing: Any) -> Any:
    return sum((need for one, need in needs if not one.init), nothing)


def _sidecars(needs: Any, nothing: Any) -> Any:
    return sum((need for one, need in needs if one.sidecar), nothing)


@seeds("TOPO-SCOPE-006").by(_needing)
def sidecars_do_not_count_with_later_init_containers(needs: Any, nothing: Any) -> Any:
    """Doesn't add sidecars to init containers that start later."""
    return max(
        [_apps(needs, nothing) + _sidecars(needs, nothing)]
        + [need for one, need in needs if one.runs_to_completion]
    )


# One container after another


@seeds("TOPO-SCOPE-005").around(scope, "admit")
def later_containers_stay_near_the_first(
    rule: Any, policy: Any, scope: str, providers: Any, pod: Any, keep: Any
) -> None:
    """Keeps later containers on the first container's nodes if possible."""
    if policy is None or policy.negative or scope != "container":
        rule()
        return
    group: TopologyHint | None = None
    for container in pod.containers:
        affinity = affinity_of(policy, providers, pod, container)
        if group is not None and ANYWHERE not in (group.nodes, affinity.nodes):
            rules = replace(policy.rules, nodes=group.nodes)
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
