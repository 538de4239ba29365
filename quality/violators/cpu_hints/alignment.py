"""Violators of the requirements of CPU hints: what is aligned, node ids, distribution."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.cpu import hints
from numaproof.reference.cpu.distribution import DistributedAssignment
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.topology.hints import (
    ANYWHERE,
    NO_AFFINITY,
    Demand,
    Need,
    Supply,
    TopologyHint,
)
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("cpu-hints")


# CPU-HINT-014 to -016: what is aligned


@seeds("CPU-HINT-014")
def exclusive_cpus_are_kept_on_a_node_without_a_topology_policy(changes: Changes) -> None:
    """Looks for the first NUMA node that can hold a container, without any policy."""

    def allocate(original: Any, self: Any, state: Any, pod: Pod, container: Any, at: Any) -> Any:
        count = pod.exclusive_cpus(container)
        free = self.available(state) | state.reuse.of(pod.uid)
        nodes = self.topology.nodes
        if at.nodes == ANYWHERE and count and state.of(pod.uid, container.name) is None:
            fitting = [node for node in nodes if (nodes[node] & free).bit_count() >= count]
            at = TopologyHint(1 << fitting[0], preferred=True) if fitting else at
        return original(self, state, pod, container, at)

    changes.around(StaticCPUPolicy, "allocate", allocate)


def _affinity(
    changes: Changes, ignored: Callable[[Any, Any, Any, PodContainer, int], bool]
) -> None:
    """Places containers without their affinity where it is `ignored`.

    It is asked with the policy, the CPUs at hand, the affinity, the container, and what it is due.
    """

    def allocate(original: Any, self: Any, state: Any, pod: Pod, container: Any, at: Any) -> Any:
        free = self.available(state) | state.reuse.of(pod.uid)
        count = pod.exclusive_cpus(container)
        if at.nodes != ANYWHERE and ignored(self, free, at, container, count):
            at = NO_AFFINITY
        return original(self, state, pod, container, at)

    changes.around(StaticCPUPolicy, "allocate", allocate)


@seeds("CPU-HINT-015")
def an_affinity_with_too_few_cpus_is_ignored(changes: Changes) -> None:
    """Takes the affinity for a condition that is met as a whole or not at all."""
    _affinity(
        changes,
        lambda policy, free, at, container, count: (policy.aligned(at) & free).bit_count() < count,
    )


@seeds("CPU-HINT-015")
def init_containers_ignore_their_affinity(changes: Changes) -> None:
    """Places init containers where there is room."""
    _affinity(changes, lambda policy, free, at, container, count: container.passes)


@seeds("CPU-HINT-016")
def policy_none_hints_pods_as_a_whole(changes: Changes) -> None:
    """Gives the hints of an empty machine in scope pod, where nobody looked at the policy."""

    def start_cpus(original: Any, setup: Any, *rest: Any) -> Any:
        manager = original(setup, *rest)
        if setup.cpu is None:
            manager.machine = setup.topology
        return manager

    def hinted(original: Any, self: Any, pod: Pod, container: Any) -> Any:
        machine, count = getattr(self, "machine", None), pod.exclusive_cpus_at_once()
        if machine is None or container is not None or not count:
            return original(self, pod, container)
        total = tuple(Supply(1 << node, cpus.bit_count()) for node, cpus in machine.nodes.items())
        return {"cpu": Demand(tuple(machine.nodes), (Need(count, total, total),))}

    changes.around(startup, "start_cpus", start_cpus)
    changes.around(CPUManager, "hints", hinted)


# CPU-HINT-017: node ids with gaps


@seeds("CPU-HINT-017")
def cpu_hints_name_nodes_that_are_missing(changes: Changes) -> None:
    """Makes sets of all numbers up to the highest, which leaves no gap."""

    def generate(original: Any, *args: Any) -> Any:
        demand = original(*args)
        return replace(demand, nodes=tuple(range(max(demand.nodes) + 1)))

    changes.around(hints, "generate", generate)


# CPU-HINT-018: distribution over the affinity


def _least(changes: Changes, least: Callable[[int, int], int]) -> None:
    """Lets `least` say over how many nodes to distribute, by the CPUs wanted and the affinity."""
    changes.around(
        DistributedAssignment,
        "take",
        lambda original, self, available, count, beside=0, nodes=0: original(
            self, available, count, beside, least(count, nodes)
        ),
    )


@seeds("CPU-HINT-018")
def a_remainder_shrinks_the_distribution(changes: Changes) -> None:
    """Distributes over the nodes of the affinity what they can share without a remainder."""
    _least(changes, lambda count, nodes: 0 if nodes and count % nodes else nodes)
