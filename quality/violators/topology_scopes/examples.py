"""Violators of the examples of the Topology Manager's documentation, each breaking one of them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from numaproof.reference import startup
from numaproof.reference.cpu import hints as cpu_hints
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.devices import policy
from numaproof.reference.devices.hints import DeviceHints
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.errors import AdmissionError
from numaproof.reference.pods import qos, quantity
from numaproof.reference.topology import merge as merging
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import Demand, TopologyHint
from numaproof.reference.topology.search import evaluation
from quality.seeding import Changes, SubjectBugs

seeds = SubjectBugs("topology-scopes")


def _impossible(changes: Changes, klass: str) -> None:
    """Lets the static policy answer that pods of a QoS class fit nowhere."""

    def for_container(original: Any, *args: Any) -> Any:
        return cpu_hints.UNSATISFIABLE if args[3].qos == klass else original(*args)

    changes.around(cpu_hints, "for_container", for_container)
    changes.around(cpu_hints, "for_pod", for_container)


@seeds("TOPO-EXAMPLE-001")
def best_effort_pods_get_an_empty_list_of_cpu_hints(changes: Changes) -> None:
    """An author returns the list of nodes with the CPUs asked for, and none are asked for."""
    _impossible(changes, "BestEffort")


@seeds("TOPO-EXAMPLE-001")
def pods_without_requests_are_not_preferred_anywhere(changes: Changes) -> None:
    """An author makes a hint of no nodes for such a pod, and leaves its preference unset."""

    def hints(original: Any, self: Any, pod: Any, container: Any) -> Any:
        if pod.qos == "BestEffort" and not any(one.limits for one in pod.containers):
            return {"cpu": merging.IMPOSSIBLE}
        return original(self, pod, container)

    def listed(original: Any, hints: Any) -> Any:
        return () if hints == merging.IMPOSSIBLE else original(hints)

    changes.around(CPUManager, "hints", hints)
    changes.around(evaluation, "listed", listed)


@seeds("TOPO-EXAMPLE-002")
def burstable_pods_get_an_empty_list_of_cpu_hints(changes: Changes) -> None:
    """An author has hints for exclusive CPUs alone, and an error for other pods that ask."""
    _impossible(changes, "Burstable")


@seeds("TOPO-EXAMPLE-002")
def memory_requests_do_not_decide_the_qos_class(changes: Changes) -> None:
    """An author compares requests and limits of CPUs, and wants memory to be limited."""

    def class_of(original: Any, members: Any) -> Any:
        return original(
            tuple(
                dataclasses.replace(one, requests={**one.requests, "memory": one.limits["memory"]})
                if "memory" in one.limits
                else one
                for one in members
            )
        )

    changes.around(qos, "class_of", class_of)


def _fraction(pod: Any, container: Any) -> bool:
    """Whether a container of a Guaranteed pod asks for CPUs that are not whole."""
    if pod.qos != "Guaranteed" or container is None:
        return False
    return quantity.whole_cpus(container.requests.get("cpu", 0)) is None


@seeds("TOPO-EXAMPLE-003")
def devices_have_no_hints_beside_exclusive_cpus(changes: Changes) -> None:
    """An author finds CPUs to decide, and devices to follow."""
    changes.around(
        DeviceManager,
        "hints",
        lambda original, self, pod, container: (
            {}
            if container is not None and pod.exclusive_cpus(container)
            else original(self, pod, container)
        ),
    )


@seeds("TOPO-EXAMPLE-003")
def exclusive_cpus_have_no_hints_beside_devices(changes: Changes) -> None:
    """An author lets the provider that is asked first decide, if it has hints at all."""
    changes.around(
        cpu_hints,
        "for_container",
        lambda original, policy, state, pod, container: (
            {}
            if any("/" in resource for resource in container.limits)
            else original(policy, state, pod, container)
        ),
    )


@seeds("TOPO-EXAMPLE-004")
def fractions_of_cpus_round_up_for_hints(changes: Changes) -> None:
    """An author asks for nodes with a CPU to spare, though none becomes exclusive."""

    def for_container(original: Any, policy: Any, state: Any, pod: Any, container: Any) -> Any:
        if not _fraction(pod, container):
            return original(policy, state, pod, container)
        count = math.ceil(quantity.parse(container.requests.get("cpu", 0)))
        return {"cpu": cpu_hints.generate(policy, policy.available(state), 0, count)}

    changes.around(cpu_hints, "for_container", for_container)


@seeds("TOPO-EXAMPLE-004")
def devices_have_no_hints_beside_fractions_of_cpus(changes: Changes) -> None:
    """An author takes the CPU Manager's default hint for the choice of the pod."""
    changes.around(
        DeviceManager,
        "hints",
        lambda original, self, pod, container: (
            {} if _fraction(pod, container) else original(self, pod, container)
        ),
    )


@seeds("TOPO-EXAMPLE-005")
def best_effort_pods_get_hints_for_one_kind_of_devices(changes: Changes) -> None:
    """An author returns at the first kind that has hints."""

    def for_container(original: Any, self: Any, state: Any, pod: Any, container: Any) -> Any:
        found = original(self, state, pod, container)
        return dict(list(found.items())[:1]) if pod.qos == "BestEffort" else found

    changes.around(DeviceHints, "for_container", for_container)


@seeds("TOPO-EXAMPLE-005")
def every_kind_of_devices_must_have_as_many_as_all_together(changes: Changes) -> None:
    """An author counts the devices of a BestEffort container, whatever their kind."""

    def for_container(original: Any, self: Any, state: Any, pod: Any, container: Any) -> Any:
        asked = policy.requested(state, container)
        if pod.qos == "BestEffort" and not any(state.of(pod.uid, container.name)):
            every = dict.fromkeys(asked, sum(asked.values()))
            container = dataclasses.replace(container, limits={**container.limits, **every})
        return original(self, state, pod, container)

    changes.around(DeviceHints, "for_container", for_container)


@seeds("TOPO-EXAMPLE-006")
def the_none_policy_of_cpus_hints_at_all_nodes(changes: Changes) -> None:
    """An author returns all nodes by name for whole CPUs, which no device is near alike."""

    def start(original: Any, *args: Any) -> Any:
        node = original(*args)
        if node.setup.cpu is None:
            node.cpus.everywhere = sum(1 << one for one in node.setup.nodes if one >= 0)
        return node

    def hints(original: Any, self: Any, pod: Any, container: Any) -> Any:
        everywhere = vars(self).get("everywhere")
        if everywhere and container is not None and pod.exclusive_cpus(container):
            return {"cpu": (TopologyHint(everywhere, preferred=True),)}
        return original(self, pod, container)

    changes.around(startup, "start", start)
    changes.around(CPUManager, "hints", hints)


@seeds("TOPO-EXAMPLE-006")
def the_none_policy_of_cpus_has_no_place_for_fractions(changes: Changes) -> None:
    """An author returns an empty list for what no policy could ever pin."""

    def start(original: Any, *args: Any) -> Any:
        node = original(*args)
        node.cpus.unpinned = node.setup.cpu is None
        return node

    def hints(original: Any, self: Any, pod: Any, container: Any) -> Any:
        if vars(self).get("unpinned") and _fraction(pod, container):
            return {"cpu": ()}
        return original(self, pod, container)

    changes.around(startup, "start", start)
    changes.around(CPUManager, "hints", hints)


@seeds("TOPO-EXAMPLE-007")
def whatever_fits_the_node_as_a_whole_is_admitted(changes: Changes) -> None:
    """An author trusts the scheduler: a pod that it sent and that has room must not come back."""

    def room(hints: Any) -> bool:
        return evaluation.satisfiable(hints) if isinstance(hints, Demand) else bool(hints)

    def affinity_of(original: Any, policy: Any, providers: Any, pod: Any, container: Any) -> Any:
        try:
            return original(policy, providers, pod, container)
        except AdmissionError:
            said = [provider.hints(pod, container) for provider in providers]
            if not all(map(room, merging.by_resource(said))):
                raise
            return policy.merge(said)[0]

    changes.around(scope, "affinity_of", affinity_of)
