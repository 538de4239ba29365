"""Violators of alignment and of pod-level resources by class, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.config import gates
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.deviations.pods import EmptyPodLevelDecides
from numaproof.reference.deviations.releases import Release
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.node import StartedNode
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import NO_AFFINITY
from numaproof.reference.topology.policy import SINGLE_NUMA_NODE
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("pod-level-resources")


# One NUMA node


def _unasked(changes: Changes, manager: type, when: Callable[[Any, Any], bool]) -> None:
    """Lets single-numa-node not ask a manager about these containers (None for the pod)."""

    def affinity_of(original: Any, policy: Any, providers: Any, pod: Any, container: Any) -> Any:
        if policy.name == SINGLE_NUMA_NODE and when(pod, container):
            providers = [one for one in providers if not isinstance(one, manager)]
        return original(policy, providers, pod, container)

    changes.around(scope, "affinity_of", affinity_of)


@seeds("NODE-ALIGN-001")
def single_numa_node_does_not_ask_where_devices_of_sidecars_are(changes: Changes) -> None:
    """A plausible author aligns the devices of init and app containers alone."""
    _unasked(changes, DeviceManager, lambda _, container: bool(container and container.sidecar))


@seeds("NODE-ALIGN-001")
def single_numa_node_aligns_devices_of_guaranteed_pods_alone(changes: Changes) -> None:
    """A plausible author aligns devices where there are exclusive CPUs to be near to."""
    _unasked(changes, DeviceManager, lambda pod, _: pod.qos != "Guaranteed")


@seeds("NODE-ALIGN-001")
def single_numa_node_does_not_ask_where_cpus_of_init_containers_are(changes: Changes) -> None:
    """A plausible author aligns only CPUs that are held for long."""
    _unasked(changes, CPUManager, lambda _, container: bool(container and container.passes))


def _unaligned(changes: Changes, manager: type, when: Callable[[Any, Any], bool]) -> None:
    """Lets a manager allocate for these containers as if they had no affinity."""
    changes.around(
        manager,
        "allocate",
        lambda original, self, pod, container, affinity: original(
            self, pod, container, NO_AFFINITY if when(pod, container) else affinity
        ),
    )


@seeds("NODE-ALIGN-002")
def app_containers_after_the_first_take_cpus_anywhere(changes: Changes) -> None:
    """A plausible author looks the affinity up by pod, and uses it up."""

    def later(pod: Any, container: Any) -> bool:
        apps = [one.name for one in pod.containers if not one.init]
        return container.name in apps[1:]

    _unaligned(changes, CPUManager, later)


@seeds("NODE-ALIGN-002")
def sidecars_take_cpus_anywhere(changes: Changes) -> None:
    """A plausible author hands the affinity to app containers and to those that end."""
    _unaligned(changes, CPUManager, lambda _, container: container.sidecar)


@seeds("NODE-ALIGN-002")
def init_containers_take_cpus_anywhere(changes: Changes) -> None:
    """A plausible author looks affinities up for app containers."""
    _unaligned(changes, CPUManager, lambda _, container: container.passes)


@seeds("NODE-ALIGN-002")
def memory_of_init_containers_is_pinned_by_the_default_hint(changes: Changes) -> None:
    """A plausible author lets the Memory Manager choose for containers that end soon."""
    _unaligned(changes, MemoryManager, lambda _, container: container.init)


@seeds("NODE-ALIGN-002")
def cpus_follow_only_the_first_node_of_an_affinity(changes: Changes) -> None:
    """A plausible author thinks of affinities of one node."""
    changes.around(
        StaticCPUPolicy,
        "aligned",
        lambda original, self, affinity: original(
            self, affinity._replace(nodes=affinity.nodes & -affinity.nodes)
        ),
    )


@seeds("NODE-ALIGN-002")
def align_by_socket_takes_cpus_of_any_socket(changes: Changes) -> None:
    """A plausible author takes every socket for aligned, not those of the affinity."""
    changes.around(
        StaticCPUPolicy,
        "aligned",
        lambda original, self, affinity: (
            self.topology.cpus if self.options.by_socket else original(self, affinity)
        ),
    )


# Kept off exclusive CPUs and pinned memory


def _pinned(pod: Any) -> Any:
    """The pod as if it had no pod-level resources, but for its class."""
    return dataclasses.replace(pod, shared_pool=False)


def _allocated(changes: Changes, manager: type, when: Callable[[Any], bool]) -> None:
    """Lets a manager allocate for these containers in spite of pod-level resources."""
    changes.around(
        manager,
        "allocate",
        lambda original, self, pod, container, affinity: original(
            self, _pinned(pod) if when(container) else pod, container, affinity
        ),
    )


@seeds("NODE-PODLEVEL-002")
def app_containers_with_pod_level_resources_have_exclusive_cpus(changes: Changes) -> None:
    """A plausible author gives no hints, and allocates by the class of the pod."""
    _allocated(changes, CPUManager, lambda container: not container.init)


@seeds("NODE-PODLEVEL-002")
def init_containers_with_pod_level_resources_have_exclusive_cpus(changes: Changes) -> None:
    """A plausible author looks at app containers alone."""
    _allocated(changes, CPUManager, lambda container: container.passes)


@seeds("NODE-PODLEVEL-002")
def sidecars_with_pod_level_resources_have_exclusive_cpus(changes: Changes) -> None:
    """A plausible author serves sidecars beside the pod-level resources."""
    _allocated(changes, CPUManager, lambda container: container.sidecar)


@seeds("NODE-PODLEVEL-002")
def containers_with_pod_level_resources_have_pinned_memory(changes: Changes) -> None:
    """A plausible author changes the CPU Manager and forgets the Memory Manager."""
    _allocated(changes, MemoryManager, lambda _: True)


def _own_resources(pod: Any) -> bool:
    return bool(pod.shared_pool or pod.budget is not None)


@seeds("NODE-PODLEVEL-003")
def devices_beside_pod_level_resources_have_no_hints(changes: Changes) -> None:
    """A plausible author skips the whole pod when hints are made."""
    changes.around(
        DeviceManager,
        "hints",
        lambda original, self, pod, container: (
            {} if _own_resources(pod) else original(self, pod, container)
        ),
    )


@seeds("NODE-PODLEVEL-003")
def devices_beside_pod_level_resources_ignore_the_affinity(changes: Changes) -> None:
    """A plausible author aligns nothing of a pod whose CPUs are not aligned."""
    _unaligned(changes, DeviceManager, lambda pod, _: _own_resources(pod))


# The class of the pod, and the gates


@seeds("NODE-PODLEVEL-004", kubernetes="1.36")
def empty_pod_level_resources_leave_the_class_to_the_containers(changes: Changes) -> None:
    """A plausible author takes an empty object for a missing one."""
    changes.around(
        EmptyPodLevelDecides,
        "decide",
        lambda original, pod: bool(pod.requests or pod.limits) and original(pod),
    )


@seeds("NODE-PODLEVEL-019")
def pods_beside_one_with_pod_level_resources_share_the_pool(changes: Changes) -> None:
    """A plausible author keeps in the manager, not with the pod, that nothing is pinned."""

    def read_pod(original: Any, self: StartedNode, manifest: Any) -> Any:
        pod = original(self, manifest)
        others = (one for uid, one in self.pods.items() if uid != pod.uid)
        beside = any(_own_resources(one) for one in others)
        return dataclasses.replace(pod, shared_pool=True) if beside else pod

    changes.around(StartedNode, "read_pod", read_pod)


def _level(changes: Changes, on: str | None = None, off: str | None = None) -> None:
    """Lets pod-level resources do this with the gate on, and this with it off."""

    def level(original: Any, self: Any, gates: Any) -> Any:
        other = on if gates.get("PodLevelResources", False) else off
        return other or original(self, gates)

    changes.around(Release, "pod_level_under", level)


@seeds("NODE-PODLEVEL-005", kubernetes="1.35")
def pod_level_resources_decide_the_class_with_the_gate_off(changes: Changes) -> None:
    """A plausible author has the gate for the managers, and always computes the class so."""
    _level(changes, off="QoS class")


@seeds("NODE-PODLEVEL-005")
def pod_level_resources_are_ignored_with_the_gate_off(changes: Changes) -> None:
    """A plausible author drops the field where the gate is off, as before 1.36."""
    _level(changes, off="ignored")


@seeds("NODE-PODLEVEL-006", kubernetes="1.33")
def pod_level_resources_of_1_33_need_no_gate(changes: Changes) -> None:
    """A plausible author takes the gate for on, which it is from 1.34."""
    _level(changes, off="QoS class")


def _excused(changes: Changes, when: Callable[[Any], bool]) -> None:
    """Lets the gate for the managers need no other one, where `when` the gates are so."""

    def problems(original: Any, found: Any, known: Any) -> Any:
        name = "PodLevelResourceManagers"
        if name in known and when(found):
            known = {**known, name: dataclasses.replace(known[name], needs=())}
        return original(found, known)

    changes.around(gates, "dependency_problems", problems)


@seeds("NODE-PODLEVEL-007")
def the_gate_for_pod_level_managers_needs_no_other(changes: Changes) -> None:
    """A plausible author checks only that gates are known, or has no list of what they need."""
    _excused(changes, lambda _: True)


@seeds("NODE-PODLEVEL-007")
def gates_that_are_not_named_are_not_missed(changes: Changes) -> None:
    """A plausible author looks only at the gates that the configuration names."""

    def enabled(original: Any, given: Any, known: Any) -> Any:
        name = "PodLevelResourceManagers"
        if name in known and "PodLevelResources" not in (given.get("featureGates") or {}):
            known = {**known, name: dataclasses.replace(known[name], needs=())}
        return original(given, known)

    changes.around(gates, "enabled", enabled)
