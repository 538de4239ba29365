"""Violators of the requirements of CPU hints, each breaking one sentence."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.cpu import hints
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.topology import union
from numaproof.reference.deviations.cpu import ReusableCPUsCountedTwice
from numaproof.reference.pods import quantity
from numaproof.reference.topology.hints import Demand, Supply, TopologyHint
from numaproof.reference.topology.search import evaluation
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("cpu-hints")

_MOST_LISTED = 12


def _listed(
    changes: Changes, change: Callable[[Sequence[TopologyHint]], Sequence[TopologyHint]]
) -> None:
    """Lets `change` make another list of the hints for CPUs, where they can be listed."""

    def listed(original: Any, self: Any, pod: Pod, container: Any) -> Any:
        found = original(self, pod, container)
        demand = found.get("cpu")
        if not isinstance(demand, Demand) or len(demand.nodes) > _MOST_LISTED:
            return found
        return {"cpu": tuple(change(evaluation.listed(demand)))}

    changes.around(CPUManager, "hints", listed)


def _hinted(changes: Changes, instead: Callable[[Any, Any, Any, Pod, PodContainer], Any]) -> None:
    """Lets `instead` give the hints of a container, given how they are worked out.

    It is asked with that, the policy, the state, the pod and the container.
    """

    def for_container(
        original: Any, policy: Any, state: Any, pod: Pod, container: PodContainer
    ) -> Any:
        def by_the_rules() -> Any:
            return original(policy, state, pod, container)

        return instead(by_the_rules, policy, state, pod, container)

    changes.around(hints, "for_container", for_container)


def _asks(container: PodContainer) -> Any:
    return quantity.parse(container.requests.get("cpu", 0))


def _is_fraction(pod: Pod, container: PodContainer) -> bool:
    return pod.qos == "Guaranteed" and not pod.shared_pool and _asks(container).denominator != 1


# CPU-HINT-001: every set of nodes


@seeds("CPU-HINT-001")
def init_containers_have_no_cpu_hints(changes: Changes) -> None:
    """Aligns what keeps running, and lets init containers run anywhere."""
    _hinted(
        changes,
        lambda rules, policy, state, pod, container: {} if container.passes else rules(),
    )


# CPU-HINT-002, -003 and -005: no preference


@seeds("CPU-HINT-002")
def whole_cpus_of_burstable_pods_are_hinted(changes: Changes) -> None:
    """Asks for a whole number of CPUs, and not for the class of the pod."""
    for name in ("for_container", "for_pod"):
        changes.around(
            hints,
            name,
            lambda original, policy, state, pod, *rest: original(
                policy,
                state,
                replace(pod, qos="Guaranteed") if pod.qos == "Burstable" else pod,
                *rest,
            ),
        )


@seeds("CPU-HINT-003")
def fractions_of_a_cpu_are_hinted_rounded_up(changes: Changes) -> None:
    """Wants nodes where a fractional request fits, though nothing is pinned there."""

    def rounded(rules: Any, policy: Any, state: Any, pod: Pod, container: PodContainer) -> Any:
        if not _is_fraction(pod, container):
            return rules()
        free = policy.available(state)
        return {"cpu": hints.generate(policy, free, 0, math.ceil(_asks(container)))}

    _hinted(changes, rounded)


def _asks_for_devices(container: PodContainer) -> bool:
    return any("/" in resource for resource in container.requests)


@seeds("CPU-HINT-005")
def best_effort_containers_with_devices_want_a_free_cpu_near_them(changes: Changes) -> None:
    """Has a container with devices run beside them, on a node with a free CPU."""

    def near(rules: Any, policy: Any, state: Any, pod: Pod, container: PodContainer) -> Any:
        if pod.qos != "BestEffort" or not _asks_for_devices(container):
            return rules()
        return {"cpu": hints.generate(policy, policy.available(state), 0, 1)}

    _hinted(changes, near)


# CPU-HINT-004: policy none


def _under_none(changes: Changes, instead: Callable[[Any, Pod, PodContainer], Any]) -> None:
    """Lets `instead` give the hints of Guaranteed containers under policy none.

    It is asked with the machine's CPUs, the pod and the container.
    """

    def start_cpus(original: Any, setup: Any, *rest: Any) -> Any:
        manager = original(setup, *rest)
        if setup.cpu is None:
            manager.machine = setup.topology
        return manager

    def hinted(original: Any, self: Any, pod: Pod, container: Any) -> Any:
        machine = getattr(self, "machine", None)
        if machine is None or container is None or pod.qos != "Guaranteed" or pod.shared_pool:
            return original(self, pod, container)
        return instead(machine, pod, container)

    changes.around(startup, "start_cpus", start_cpus)
    changes.around(CPUManager, "hints", hinted)


@seeds("CPU-HINT-004")
def policy_none_has_no_nodes_for_whole_cpus(changes: Changes) -> None:
    """Has no hints to offer, and answers with an empty list."""
    _under_none(
        changes,
        lambda machine, pod, container: (
            hints.UNSATISFIABLE if pod.exclusive_cpus(container) else {}
        ),
    )


# CPU-HINT-006: preferred


def _totals(changes: Changes, total: Callable[[Any, int, Any], int]) -> None:
    """Lets `total` say how many CPUs of a node count for the preference.

    It is asked with the policy, the mask of the node's CPUs, and those of all nodes.
    """

    def generate(original: Any, policy: Any, *rest: Any) -> Any:
        demand = original(policy, *rest)
        nodes = policy.topology.nodes
        supplies = tuple(
            Supply(1 << node, total(policy, cpus, nodes)) for node, cpus in nodes.items()
        )
        return replace(demand, needs=tuple(replace(need, total=supplies) for need in demand.needs))

    changes.around(hints, "generate", generate)


@seeds("CPU-HINT-006")
def nodes_count_with_their_average_size_for_the_preference(changes: Changes) -> None:
    """Divides the CPUs of the machine by its nodes, which need not be alike."""
    _totals(changes, lambda policy, cpus, nodes: union(nodes.values()).bit_count() // len(nodes))


@seeds("CPU-HINT-006")
def cpus_in_use_do_not_count_for_the_preference(changes: Changes) -> None:
    """Counts the CPUs of a node that are free or reserved."""

    def generate(original: Any, policy: Any, available: int, reusable: int, count: int) -> Any:
        demand = original(policy, available, reusable, count)
        mine = available | reusable | policy.reserved
        supplies = tuple(
            Supply(1 << node, (cpus & mine).bit_count())
            for node, cpus in policy.topology.nodes.items()
        )
        return replace(demand, needs=tuple(replace(need, total=supplies) for need in demand.needs))

    changes.around(hints, "generate", generate)


# CPU-HINT-007: the order


@seeds("CPU-HINT-007")
def cpu_hints_are_ordered_by_their_masks(changes: Changes) -> None:
    """Counts masks up from one."""
    _listed(changes, lambda found: sorted(found, key=lambda hint: hint.nodes))


@seeds("CPU-HINT-007")
def the_widest_cpu_hints_come_first(changes: Changes) -> None:
    """Starts with all nodes, and takes one away after the other."""
    _listed(changes, lambda found: sorted(found, key=lambda hint: -hint.nodes.bit_count()))


@seeds("CPU-HINT-007")
def cpu_hints_of_a_size_come_from_the_highest_node(changes: Changes) -> None:
    """Orders the sets of a size by their masks, the highest first."""
    _listed(
        changes,
        lambda found: sorted(found, key=lambda hint: (hint.nodes.bit_count(), -hint.nodes)),
    )


# CPU-HINT-008: what counts


@seeds("CPU-HINT-008")
def reserved_cpus_count_in_the_hints_of_a_pod(changes: Changes) -> None:
    """Takes the whole shared pool for free CPUs in scope pod."""

    def for_pod(original: Any, policy: Any, state: Any, pod: Pod) -> Any:
        bare = replace(policy, reserved=0)
        return original(bare, state, pod)

    changes.around(hints, "for_pod", for_pod)


@seeds("CPU-HINT-008")
def what_another_pod_can_reuse_counts_as_free(changes: Changes) -> None:
    """Adds the CPUs of ended init containers, whoever they belong to."""

    def for_container(original: Any, policy: Any, state: Any, *rest: Any) -> Any:
        if state.reuse.uid != rest[0].uid and state.of(rest[0].uid, rest[1].name) is None:
            state = replace(state, shared=state.shared | state.reuse.cpus)
        return original(policy, state, *rest)

    changes.around(hints, "for_container", for_container)


@seeds("CPU-HINT-008")
def what_the_pod_can_reuse_does_not_count(changes: Changes) -> None:
    """Counts the CPUs of the shared pool, near those that can be reused."""
    for rule in (StaticCPUPolicy, ReusableCPUsCountedTwice):
        changes.replace(
            rule, "how_many", lambda self, free, reusable: (free & ~reusable).bit_count()
        )
