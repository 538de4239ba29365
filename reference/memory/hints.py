"""The Memory Manager's topology hints: the sets of NUMA nodes that could provide the memory.

(Kubernetes documentation, "Memory Manager"; the kubelet's rule for groups: a node is used either
alone or with one group of nodes.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.errors import AllocationError
from numaproof.reference.memory import policy as policies
from numaproof.reference.memory import requests
from numaproof.reference.pods.budget import EmptySharedPoolError
from numaproof.reference.topology.hints import TopologyHint
from numaproof.reference.topology.search import evaluation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.memory.policy import StaticMemoryPolicy
    from numaproof.reference.memory.state import Blocks, MemoryState
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources


def for_container(
    policy: StaticMemoryPolicy, state: MemoryState, pod: Pod, container: PodContainer
) -> Resources:
    """Returns the hints for one container, or no hints if it has no preference."""
    if not policies.is_served(pod):
        return {}
    try:
        amounts = requests.container_amounts(pod, container)
    except AllocationError:
        return {}
    blocks = state.of(pod.uid, container.name)
    if blocks is not None:
        return regenerate_hints(blocks, amounts)
    if policy.has_ended(state, pod, container):
        return {}
    return calculate_hints(state, pod.uid, amounts)


def for_pod(policy: StaticMemoryPolicy, state: MemoryState, pod: Pod) -> Resources:
    """Returns the hints for the pod as a whole, or no hints if it has no preference.

    If a container already has memory, only that memory's nodes are hints.
    """
    if not policies.is_served(pod):
        return {}
    try:
        amounts = policy.peak(pod)
    except AllocationError:
        return {}
    if policy.keeps(state, pod):
        return regenerate_hints(state.pods[pod.uid] or (), amounts)
    if pod.budget is not None:
        try:
            requests.check_budget(pod, amounts)
        except EmptySharedPoolError:
            return dict.fromkeys(amounts, ())
    for container in pod.containers:
        blocks = state.of(pod.uid, container.name)
        if blocks is not None:
            return regenerate_hints(blocks, amounts)
    return calculate_hints(state, pod.uid, amounts)


def calculate_hints(state: MemoryState, uid: str, amounts: Mapping[str, int]) -> Resources:
    """Returns the same hints for each of `amounts`: sets of nodes that can provide all of them.

    Requirements: MEM-HINT-002, MEM-HINT-005, MEM-HINT-006, TOPO-ORDER-004.
    """
    demand = state.demand(uid, amounts)
    if not amounts or not evaluation.satisfiable(demand):
        return {}
    return dict.fromkeys(amounts, demand)


def regenerate_hints(blocks: Blocks, amounts: Mapping[str, int]) -> Resources:
    """Returns the nodes of allocated memory as hints, or no hints if the amounts differ.

    Requirements: MEM-HINT-007, MEM-RESTART-004, TOPO-RESTART-001.
    """
    if len(blocks) != len(amounts):
        return {}
    if any(amounts.get(block.kind) != block.size for block in blocks):
        return {}
    hints = {block.kind: (TopologyHint(block.nodes, preferred=True),) for block in blocks}
    return {kind: hints[kind] for kind in amounts}
