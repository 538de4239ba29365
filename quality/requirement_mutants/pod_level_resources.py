"""Mutants of pod-level resources."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference.checkpoints.files import CheckpointFile
from numaproof.reference.config import gates
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.deviations.pods import EmptyPodLevelDecides
from numaproof.reference.deviations.releases import Release
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.memory import hints as memory_hints
from numaproof.reference.memory import requests
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.state import MemoryState, give_back
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import budget, pod_level, quantity
from numaproof.reference.pods.pod import Pod
from numaproof.reference.pods.pod_level import PodRules
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import NO_AFFINITY
from numaproof.reference.topology.policy import SINGLE_NUMA_NODE
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("pod-level-resources")


# Parts of the budget


@shape(Pod, "shares_budget")
def _sharing(when: Callable[[Any], bool], rule: Any, self: Any, container: Any) -> Any:
    """Gives containers no part of their own if `when` is true and the pod has a budget."""
    return rule() or (self.budget is not None and when(container))


@seeds("NODE-PODLEVEL-008").of(_sharing, lambda container: container.sidecar)
def sidecars_have_no_exclusive_part_of_a_budget() -> None:
    """Gives sidecars no exclusive part."""


@seeds("NODE-PODLEVEL-008").of(_sharing, lambda container: container.runs_to_completion)
def init_containers_have_no_exclusive_part_of_a_budget() -> None:
    """Gives init containers no exclusive part."""


@seeds("NODE-PODLEVEL-008").after(StaticCPUPolicy, "share_out")
def containers_without_a_part_run_on_all_cpus_of_the_budget(after: Any, pod: Any) -> Any:
    """Lets containers without a part run on the exclusive parts of others."""
    if pod.peak_exclusive_cpus() == 0:
        return after
    others = [one for one in pod.containers if not pod.exclusive_cpus(one)]
    state = after
    for container in others:
        state = state.share(pod.uid, container.name, state.pods[pod.uid])
    return state


@seeds("NODE-PODLEVEL-009").around(requests, "peak")
def pods_get_the_memory_of_their_containers_instead_of_their_request(rule: Any, pod: Any) -> Any:
    """Allocates the sum of the containers' memory instead of the pod's request."""
    whole = rule()
    if pod.budget is None or any(
        not requests.container_amounts(pod, one) for one in pod.containers
    ):
        return whole
    return rule(pod=replace(pod, budget=None)) or whole


@shape(budget, "check")
def _change_budget(change: Change, rule: Any, whole: Any, parts: Any) -> Any:
    """Lets `change` replace the budget and parts that are checked."""
    return rule(*change(whole, list(parts)))


@seeds("NODE-PODLEVEL-010").by(_change_budget)
def init_containers_without_a_part_need_what_app_containers_leave(whole: Any, parts: Any) -> Any:
    """Rejects pods whose app containers leave nothing for an init container."""
    return whole, [
        (replace(one, init=False) if one.runs_to_completion and not part else one, part)
        for one, part in parts
    ]


@seeds("NODE-PODLEVEL-011").by(_change_budget)
def memory_that_is_used_up_by_parts_refuses_no_pod(whole: Any, parts: Any) -> Any:
    """Doesn't check the memory budget."""
    return (whole if "cpu" in whole else {}, parts)


# Hints, and the container scope


@seeds("NODE-PODLEVEL-012").around(memory_hints, "for_pod")
def memory_hints_of_a_budget_are_for_the_sum_of_its_containers(
    rule: Any, policy: Any, state: Any, pod: Any
) -> Any:
    """Returns memory hints for the sum of the containers instead of the pod's request."""
    found = rule()
    if pod.budget is None or policy.keeps(state, pod) or not all(found.values()):
        return found
    return rule(pod=replace(pod, budget=None))


@seeds("NODE-PODLEVEL-013").around(StaticCPUPolicy, "allocate")
def scope_container_keeps_sidecars_of_budgets_in_the_pool(
    rule: Any, pod: Any, container: Any
) -> Any:
    """Keeps sidecars in the shared pool with the container scope."""
    return rule(pod=pod if pod.budget is None else replace(pod, shared_pool=container.sidecar))


# One NUMA node


def _skip_manager(changes: Changes, manager: type, when: Callable[[Any, Any], bool]) -> None:
    """Skips a manager under the single-numa-node policy if `when(pod, container)` is true."""

    def affinity_of(rule: Any, policy: Any, providers: Any, pod: Any, container: Any) -> Any:
        if policy.name == SINGLE_NUMA_NODE and when(pod, container):
            providers = [one for one in providers if not isinstance(one, manager)]
        return rule(providers=providers)

    changes.around(scope, "affinity_of", affinity_of)


@seeds("NODE-ALIGN-001").by(_skip_manager, DeviceManager)
def single_numa_node_does_not_ask_where_devices_of_sidecars_are(_: Any, container: Any) -> Any:
    """Doesn't align the devices of sidecars under the single-numa-node policy."""
    return bool(container and container.sidecar)


@seeds("NODE-ALIGN-001").of(_skip_manager, DeviceManager, lambda pod, _: pod.qos != "Guaranteed")
def single_numa_node_aligns_devices_of_guaranteed_pods_alone() -> None:
    """Aligns only the devices of Guaranteed pods under the single-numa-node policy."""


@seeds("NODE-ALIGN-001").by(_skip_manager, CPUManager)
def single_numa_node_does_not_ask_where_cpus_of_init_containers_are(_: Any, container: Any) -> Any:
    """Doesn't align the CPUs of init containers under the single-numa-node policy."""
    return bool(container and container.runs_to_completion)


def _ignore_affinity(changes: Changes, manager: type, when: Callable[[Any, Any], bool]) -> None:
    """Ignores the affinity in a manager if `when` is true for the pod and container."""
    changes.around(
        manager,
        "allocate",
        lambda rule, self, pod, container, affinity: rule(
            self, pod, container, NO_AFFINITY if when(pod, container) else affinity
        ),
    )


@seeds("NODE-ALIGN-002").by(_ignore_affinity, CPUManager)
def app_containers_after_the_first_take_cpus_anywhere(pod: Any, container: Any) -> bool:
    """Ignores the affinity of all app containers but the first."""
    apps = [one.name for one in pod.containers if not one.init]
    return container.name in apps[1:]


@seeds("NODE-ALIGN-002").of(_ignore_affinity, CPUManager, lambda _, container: container.sidecar)
def sidecars_take_cpus_anywhere() -> None:
    """Ignores the affinity of sidecars."""


@seeds("NODE-ALIGN-002").of(
    _ignore_affinity, CPUManager, lambda _, container: container.runs_to_completion
)
def init_containers_take_cpus_anywhere() -> None:
    """Ignores the affinity of init containers."""


@seeds("NODE-ALIGN-002").of(_ignore_affinity, MemoryManager, lambda _, container: container.init)
def memory_of_init_containers_is_pinned_by_the_default_hint() -> None:
    """Ignores the affinity when pinning the memory of init containers."""


@seeds("NODE-ALIGN-002").around(StaticCPUPolicy, "aligned_cpus")
def cpus_follow_only_the_first_node_of_an_affinity(rule: Any, affinity: Any) -> Any:
    """Uses only the first node of an affinity."""
    return rule(affinity=affinity._replace(nodes=affinity.nodes & -affinity.nodes))


@seeds("NODE-ALIGN-002").around(StaticCPUPolicy, "aligned_cpus")
def align_by_socket_takes_cpus_of_any_socket(rule: Any, self: Any) -> Any:
    """Takes CPUs from any socket with align-by-socket."""
    return self.topology.cpus if self.options.by_socket else rule()


# Neither exclusive CPUs nor pinned memory


def _outside_shared_pool(pod: Any) -> Any:
    """Returns the pod as if it weren't kept in the shared pool."""
    return replace(pod, shared_pool=False)


def _allocated(changes: Changes, manager: type, when: Callable[[Any], bool]) -> None:
    """Lets a manager ignore pod-level resources if `when` is true for the container."""
    changes.around(
        manager,
        "allocate",
        lambda rule, self, pod, container, affinity: rule(
            self, _outside_shared_pool(pod) if when(container) else pod, container, affinity
        ),
    )


@seeds("NODE-PODLEVEL-002").of(_allocated, CPUManager, lambda container: not container.init)
def app_containers_with_pod_level_resources_have_exclusive_cpus() -> None:
    """Allocates exclusive CPUs to app containers of pods with pod-level resources."""


@seeds("NODE-PODLEVEL-002").of(
    _allocated, CPUManager, lambda container: container.runs_to_completion
)
def init_containers_with_pod_level_resources_have_exclusive_cpus() -> None:
    """Allocates exclusive CPUs to init containers of pods with pod-level resources."""


@seeds("NODE-PODLEVEL-002").of(_allocated, CPUManager, lambda container: container.sidecar)
def sidecars_with_pod_level_resources_have_exclusive_cpus() -> None:
    """Allocates exclusive CPUs to sidecars of pods with pod-level resources."""


@seeds("NODE-PODLEVEL-002").of(_allocated, MemoryManager, lambda _: True)
def containers_with_pod_level_resources_have_pinned_memory() -> None:
    """Pins the memory of pods with pod-level resources."""


def _own_resources(pod: Any) -> bool:
    return bool(pod.shared_pool or pod.budget is not None)


@seeds("NODE-PODLEVEL-003").around(DeviceManager, "hints")
def devices_beside_pod_level_resources_have_no_hints(rule: Any, pod: Any) -> Any:
    """Returns no device hints for pods with pod-level resources."""
    return {} if _own_resources(pod) else rule()


@seeds("NODE-PODLEVEL-003").of(_ignore_affinity, DeviceManager, lambda pod, _: _own_resources(pod))
def devices_beside_pod_level_resources_ignore_the_affinity() -> None:
    """Ignores the affinity of devices in pods with pod-level resources."""


# The QoS class and the gates


@seeds("NODE-PODLEVEL-004", kubernetes="1.36").around(EmptyPodLevelDecides, "decide")
def empty_pod_level_resources_leave_the_class_to_the_containers(rule: Any, pod: Any) -> Any:
    """Computes the class from the containers if the pod-level resources are empty."""
    return bool(pod.requests or pod.limits) and rule()


@seeds("NODE-PODLEVEL-019").after(StartedNode, "read_pod")
def pods_beside_one_with_pod_level_resources_share_the_pool(pod: Any, self: StartedNode) -> Any:
    """Keeps pods in the shared pool if another pod has pod-level resources."""
    others = (one for uid, one in self.pods.items() if uid != pod.uid)
    beside = any(_own_resources(one) for one in others)
    return replace(pod, shared_pool=True) if beside else pod


def _level(changes: Changes, on: str | None = None, off: str | None = None) -> None:
    """Overrides the effect of pod-level resources with the gate on or off."""

    def level(rule: Any, gates: Any) -> Any:
        other = on if gates.get("PodLevelResources", False) else off
        return other or rule()

    changes.around(Release, "pod_level_under", level)


@seeds("NODE-PODLEVEL-005", kubernetes="1.35").of(_level, off="QoS class")
def pod_level_resources_decide_the_class_with_the_gate_off() -> None:
    """Computes the QoS class from pod-level resources even with the gate off."""


@seeds("NODE-PODLEVEL-005").of(_level, off="ignored")
def pod_level_resources_are_ignored_with_the_gate_off() -> None:
    """Ignores pod-level resources with the gate off."""


@seeds("NODE-PODLEVEL-006", kubernetes="1.33").of(_level, off="QoS class")
def pod_level_resources_of_1_33_need_no_gate() -> None:
    """Computes the QoS class from pod-level resources before the gate is on by default."""


@seeds("NODE-PODLEVEL-007").around(gates, "dependency_problems")
def the_gate_for_pod_level_managers_needs_no_other(rule: Any, gates: Any, known_gates: Any) -> Any:
    """Accepts the gate for managers without the gate for pod-level resources."""
    name = "PodLevelResourceManagers"
    if name in known_gates and True:
        known_gates = {**known_gates, name: replace(known_gates[name], needs=())}
    return rule(known_gates=known_gates)


@seeds("NODE-PODLEVEL-007").around(gates, "enabled_gates")
def gates_that_are_not_named_are_not_missed(
    rule: Any, decoded_config: Any, known_gates: Any
) -> Any:
    """Checks dependencies only of gates in the configuration."""
    name = "PodLevelResourceManagers"
    if name in known_gates and "PodLevelResources" not in (
        decoded_config.get("featureGates") or {}
    ):
        known_gates = {**known_gates, name: replace(known_gates[name], needs=())}
    return rule(known_gates=known_gates)


# Defaults


@shape(pod_level, "requested_together")
def _together(change: Callable[[Any], Any], rule: Any, members: Any) -> Any:
    """Lets `change` replace the containers whose requests are added up."""
    return rule(members=tuple(change(one) for one in members))


@seeds("NODE-PODLEVEL-017").of(
    _together, lambda container: replace(container, init=False, sidecar=False)
)
def pod_level_requests_add_init_containers_up() -> None:
    """Adds up the requests of all containers, including init containers."""


@seeds("NODE-PODLEVEL-017").of(_together, lambda container: replace(container, sidecar=False))
def pod_level_requests_take_sidecars_for_init_containers() -> None:
    """Treats sidecars as ordinary init containers in the pod's request."""


def _limits_together(members: Any) -> dict[str, str]:
    """Returns the sum of the containers' CPU and memory limits."""
    limiting = tuple(replace(one, requests=one.limits) for one in members)
    return pod_level.requested_together(limiting)


@seeds("NODE-PODLEVEL-018").around(PodRules, "as_one")
def pod_level_limits_have_defaults_if_any_container_limits(
    rule: Any, requests: Any, limits: Any, members: Any
) -> Any:
    """Defaults pod-level limits even if some containers have no limit."""
    found = rule(requests, limits, members)
    more = dict(found.limits)
    for name, amount in _limits_together(members).items():
        if name in found.requests and name not in more:
            more[name] = max(amount, found.requests[name], key=quantity.parse)
    return replace(found, limits=more) if requests or limits else found


# The last container, and checkpoints


@seeds("NODE-PODLEVEL-014").around(MemoryState, "release")
def memory_of_a_budget_returns_with_its_first_container(
    rule: Any, self: MemoryState, uid: str, name: str
) -> Any:
    """Releases the pod's memory when its first container ends."""
    if self.of(uid, name) is None or not self.pods.get(uid):
        return rule()
    nodes = dict(self.nodes)
    for block in self.pods[uid] or ():
        size = block.size
        for node in NUMASet.from_mask(block.nodes):
            size -= give_back(nodes, node, block.kind, size)
    freed = MemoryState(nodes, self.entries, {**self.pods, uid: ()}, self.reuse)
    return rule(self=freed)


@shape(StartedNode, "remove")
def _keep_until_removal(restore: Change, rule: Any, self: StartedNode, args: Any) -> Any:
    """Lets `restore` keep resources after the last container ends, until the pod is removed."""
    cpus, memory = self.cpus.state, self.memory.state
    done = rule()
    if args.container is not None:
        if args.uid in cpus.pods and args.uid not in self.cpus.state.pods:
            restore(self, cpus, None)
        if args.uid in memory.pods and args.uid not in self.memory.state.pods:
            restore(self, None, memory)
        self.save()
    return done


@seeds("NODE-PODLEVEL-014").by(_keep_until_removal)
def cpus_of_a_budget_stay_until_the_pod_leaves_the_node(node: Any, cpus: Any, _: Any) -> None:
    """Keeps the pod's CPUs until it is removed."""
    node.cpus.state = cpus or node.cpus.state


@seeds("NODE-PODLEVEL-014").by(_keep_until_removal)
def memory_of_a_budget_stays_until_the_pod_leaves_the_node(node: Any, _: Any, memory: Any) -> None:
    """Keeps the pod's memory until it is removed."""
    node.memory.state = memory or node.memory.state


@shape(CheckpointFile, "write")
def _change_checkpoint(kind: type, change: Callable[[Any], Any], rule: Any, state: Any) -> Any:
    """Lets `change` edit the state before a manager writes it."""
    return rule(state=change(state) if isinstance(state, kind) else state)


@seeds("NODE-PODLEVEL-015").of(_change_checkpoint, CPUState, lambda state: replace(state, pods={}))
def cpu_checkpoints_have_no_pod_entries() -> None:
    """Omits pod-level entries from the CPU checkpoint."""
