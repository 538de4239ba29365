"""The CPU Manager's topology hints: on which NUMA nodes a request could be met.

A hint is a set of nodes that has enough free CPUs; it is preferred when no smaller set of nodes
would do on an empty machine. (Kubernetes documentation, "Topology Manager: how it works".)

Sets of CPUs are bit masks in this module.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from numaproof.protocol.messages import Hint
from numaproof.protocol.sets import NUMASet
from numaproof.reference.machine.topology import touching, union

if TYPE_CHECKING:
    from numaproof.protocol.messages import ProviderHints
    from numaproof.reference.cpu.policy import StaticPolicy
    from numaproof.reference.cpu.state import CPUState, Reuse
    from numaproof.reference.kubernetes.pods import Container, Pod

UNSATISFIABLE: ProviderHints = {"cpu": ()}
"""No set of nodes can do: what a container holds is not what it asks for."""


def for_container(
    policy: StaticPolicy, state: CPUState, reuse: Reuse, pod: Pod, container: Container
) -> ProviderHints:
    """The hints for one container; empty where it is due no exclusive CPUs."""
    count = pod.exclusive_cpus(container)
    if count == 0:
        return {}
    held = state.of(pod.uid, container.name)
    if held is None:
        return {"cpu": generate(policy, policy.available(state), reuse.of(pod.uid), count)}
    if held.bit_count() != count:
        return UNSATISFIABLE
    return {"cpu": generate(policy, held, 0, count)}


def for_pod(policy: StaticPolicy, state: CPUState, reuse: Reuse, pod: Pod) -> ProviderHints:
    """The hints for the pod as a whole; empty where it is due no exclusive CPUs."""
    count = pod.exclusive_cpus_at_once()
    if count == 0:
        return {}
    held = 0
    for container in pod.containers:
        own = state.of(pod.uid, container.name)
        if own is not None:
            if own.bit_count() != pod.exclusive_cpus(container):
                return UNSATISFIABLE
            held |= own
    if held.bit_count() == count:
        return {"cpu": generate(policy, held, 0, count)}
    return {"cpu": generate(policy, policy.available(state), reuse.of(pod.uid) | held, count)}


def generate(policy: StaticPolicy, available: int, reusable: int, count: int) -> tuple[Hint, ...]:
    """The hints for `count` CPUs: all sets of nodes that hold `reusable` and have enough.

    Sets of fewer nodes come first, those of one size in ascending order of ids.
    """
    nodes = policy.topology.nodes
    total = {node: cpus.bit_count() for node, cpus in nodes.items()}
    free = {
        node: (cpus & available).bit_count() + (cpus & reusable).bit_count()
        for node, cpus in nodes.items()
    }
    needed = NUMASet(touching(nodes, reusable)).mask
    fewest = len(nodes)
    found: list[tuple[int, tuple[int, ...]]] = []
    for size in range(1, len(nodes) + 1):
        for members in combinations(nodes, size):
            if size < fewest and sum(total[node] for node in members) >= count:
                fewest = size
            if sum(free[node] for node in members) < count:
                continue
            mask = sum(1 << node for node in members)
            if not needed & ~mask:
                found.append((mask, members))
    return tuple(
        Hint(NUMASet.from_mask(mask), _preferred(policy, members, fewest))
        for mask, members in found
    )


def _preferred(policy: StaticPolicy, members: tuple[int, ...], fewest: int) -> bool:
    if len(members) == fewest:
        return True
    topology = policy.topology
    if not policy.options.by_socket or not topology.socket_count:
        return False
    per_socket = len(topology.nodes) // topology.socket_count
    if not per_socket:
        return False
    cpus = union(topology.nodes[node] for node in members)
    return len(topology.sockets_of_nodes(cpus)) == -(-fewest // per_socket)
