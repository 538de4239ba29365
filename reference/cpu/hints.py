"""The CPU Manager's topology hints: the NUMA nodes that could provide the CPUs of a request.

A hint is a set of nodes with enough free CPUs. It is preferred if no smaller set of nodes would
suffice on an empty machine. (Kubernetes documentation, "Topology Manager: how it works".)

CPU sets are bit masks in this module.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from numaproof.reference.cpu.policy import check_budget
from numaproof.reference.cpu.topology import touching
from numaproof.reference.pods.budget import EmptySharedPoolError
from numaproof.reference.topology.hints import Demand, Need, Supply

if TYPE_CHECKING:
    from numaproof.reference.cpu.policy import StaticCPUPolicy
    from numaproof.reference.cpu.state import CPUState
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources

UNSATISFIABLE: Resources = {"cpu": ()}
"""No set of nodes is suitable, for example because a container holds a different number of CPUs."""


def for_container(
    policy: StaticCPUPolicy, state: CPUState, pod: Pod, container: PodContainer
) -> Resources:
    """Returns the hints for one container, or no hints if it does not get exclusive CPUs.

    Requirements: CPU-HINT-001, CPU-HINT-002, CPU-HINT-003, CPU-HINT-005, CPU-HINT-010,
    CPU-HINT-011, TOPO-RESTART-001, TOPO-RESTART-002.
    """
    count = pod.exclusive_cpus(container)
    if count == 0:
        return {}
    held = state.of(pod.uid, container.name)
    if held is None:
        return {"cpu": _reusing(policy, policy.available(state), state.reuse.of(pod.uid), count)}
    if held.bit_count() != count:
        return UNSATISFIABLE
    return {"cpu": generate(policy, held, 0, count)}


def for_pod(policy: StaticCPUPolicy, state: CPUState, pod: Pod) -> Resources:
    """Returns the hints for the whole pod, or no hints if it does not get exclusive CPUs.

    Requirements: CPU-HINT-002, CPU-HINT-009, CPU-HINT-011, CPU-HINT-012, CPU-RESTART-009,
    NODE-PODLEVEL-011, TOPO-RESTART-001, TOPO-RESTART-002.
    """
    count = pod.peak_exclusive_cpus()
    if count == 0:
        return {}
    if policy.keeps(state, pod):
        return {"cpu": generate(policy, state.pods[pod.uid], 0, count)}
    if pod.budget is not None:
        try:
            check_budget(pod)
        except EmptySharedPoolError:
            return UNSATISFIABLE
    held = 0
    for container in pod.containers:
        own = state.of(pod.uid, container.name)
        if own is not None:
            if own.bit_count() != pod.exclusive_cpus(container):
                return UNSATISFIABLE
            held |= own
    if held.bit_count() == count:
        return {"cpu": generate(policy, held, 0, count)}
    return {"cpu": generate(policy, policy.available(state), state.reuse.of(pod.uid) | held, count)}


def _reusing(policy: StaticCPUPolicy, available: int, reusable: int, count: int) -> Demand:
    near = generate(policy, available, reusable, count)
    return near if not reusable or policy.must_reuse(near) else replace(near, touching=())


def generate(policy: StaticCPUPolicy, available: int, reusable: int, count: int) -> Demand:
    """Returns the hints for `count` CPUs: the node sets that have enough, including all `reusable`.

    Requirements: CPU-HINT-006, CPU-HINT-008, CPU-HINT-009, CPU-HINT-017, CPU-OPT-ALIGNSOCKET-002.
    """
    nodes = policy.topology.nodes
    total = {node: cpus.bit_count() for node, cpus in nodes.items()}
    free = {
        node: policy.countable(cpus & available, cpus & reusable) for node, cpus in nodes.items()
    }
    by_socket = policy.options.by_socket and policy.topology.socket_count
    return Demand(
        nodes=tuple(nodes),
        needs=(Need(count, _supplies(free), _supplies(total)),),
        touching=tuple(1 << node for node in touching(nodes, reusable)),
        sockets=_sockets(policy) if by_socket else (),
        per_socket=len(nodes) // policy.topology.socket_count if by_socket else 0,
    )


def _supplies(counts: dict[int, int]) -> tuple[Supply, ...]:
    return tuple(Supply(1 << node, count) for node, count in counts.items())


def _sockets(policy: StaticCPUPolicy) -> tuple[int, ...]:
    topology = policy.topology
    return tuple(
        sum(1 << node for node in touching(topology.nodes, cpus))
        for cpus in topology.sockets.values()
    )
