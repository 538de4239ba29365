"""Deviations of the Memory Manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.releases import between
from numaproof.reference.deviations.deviation import (
    ALL,
    AT_ONCE,
    ISSUES,
    RESTARTS,
    Defect,
    UndocumentedBehaviour,
)
from numaproof.reference.memory import requests
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.requests import UNSIGNED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.memory.requests import Amounts
    from numaproof.reference.memory.state import MemoryState, NodeMemory, ReusableMemory
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod


_ALONE_OR_IN_GROUP = (
    "A node is used for single-NUMA allocations or within one group of nodes, never both."
)


class SingleNodeInGroup(StaticMemoryPolicy):
    """Takes a single node out of a group that is in use.

    A hint for one node of an active group is accepted, after which the group's nodes disagree about
    the group.
    """

    deviation = Defect("single-node-taken-out-of-group", ALL, _ALONE_OR_IN_GROUP, f"{ISSUES}113035")

    def breaks_group(self, state: MemoryState, nodes: int) -> bool:
        return nodes.bit_count() > 1 and super().breaks_group(state, nodes)


class AffinityBreaksGroup(StaticMemoryPolicy):
    """Accepts any nodes from the Topology Manager.

    The Topology Manager's affinity is used unchecked: nodes that are used alone become a group, or
    join another one, because of CPUs or devices.
    """

    deviation = Defect(
        "affinity-breaks-group", between("1.30", "1.31"), _ALONE_OR_IN_GROUP, f"{ISSUES}120733"
    )

    def breaks_group(self, state: MemoryState, nodes: int) -> bool:
        return False


class GroupComparedByNode(StaticMemoryPolicy):
    """Compares the checkpoint with the machine node by node.

    How a group's memory is divided among its nodes depends on earlier admissions and removals. The
    kubelet expects the division that would result from admitting pods in the order of the file, and
    otherwise refuses to start.
    """

    deviation = Defect(
        "group-compared-by-node", between("1.30", "1.31"), RESTARTS, f"{ISSUES}113130"
    )

    def agree(self, real: Mapping[int, NodeMemory], expected: Mapping[int, NodeMemory]) -> bool:
        return real == expected


class ReservationWraps(StaticMemoryPolicy):
    """Wraps around if a reservation exceeds a node's memory.

    If reservedMemory and huge pages together exceed a node's memory, the difference wraps around
    and the node has almost 2**64 bytes to allocate.
    """

    deviation = Defect(
        "reservation-beyond-node-wraps",
        ALL,
        "The Memory Manager guarantees memory only from what is not reserved on a NUMA node.",
    )

    @staticmethod
    def remaining_bytes(total: int, reserved_bytes: int) -> int:
        return (total - reserved_bytes) % UNSIGNED


class InitOnlyPagesNotHinted(StaticMemoryPolicy):
    """Ignores memory types that only init containers request.

    With the pod scope, the Memory Manager's hints omit resources that only init containers request,
    such as huge pages.
    """

    deviation = Defect("init-only-huge-pages-not-hinted", ALL, AT_ONCE, f"{ISSUES}140814")

    def peak(self, pod: Pod) -> Amounts:
        amounts = super().peak(pod)
        if pod.budget is not None:
            return amounts
        apps = (container for container in pod.containers if not container.init)
        asked = {kind for app in apps for kind in requests.container_amounts(pod, app)}
        return {kind: size for kind, size in amounts.items() if kind in asked}


class EmptyPartsServed(StaticMemoryPolicy):
    """Allocates memory of size zero to containers without requests.

    A container without memory requests gets nodes and a checkpoint entry without memory. If no
    nodes can be found, its pod is refused.
    """

    deviation = UndocumentedBehaviour("empty-memory-parts-served", between("1.30", "1.36"))

    def requests_memory(self, pod: Pod, container: PodContainer) -> bool:
        return True


class ReusableAfterRemoval(StaticMemoryPolicy):
    """Lets a pod reuse the memory of a removed pod that had the same uid.

    The memory of a removed pod's init containers stays reusable until another pod is admitted. If a
    pod with the same UID arrives first, it gets this memory without a reservation, and other
    pods can get it too.
    """

    deviation = Defect(
        "reusable-memory-outlives-pod",
        ALL,
        "The Memory Manager reserves a container's memory on its NUMA nodes.",
    )

    def still_reusable(self, state: MemoryState) -> ReusableMemory:
        return state.reuse


NULL_STATE_PANIC = Defect(
    "null-in-machine-state-panic",
    ALL,
    "The kubelet refuses to start with an error if its checkpoint does not match the machine.",
    what="A null node or memory type in memory_manager_state, with a correct checksum, causes a "
    "panic when the checkpoint is compared with the machine.",
    answers=False,
)

MISSING_PAGES_PANIC = Defect(
    "missing-huge-pages-panic",
    ALL,
    "A pod whose memory cannot be allocated is not admitted.",
    what="A Guaranteed pod that requests huge pages of a size that a node does not have causes a "
    "panic.",
    answers=False,
)

MEMORYLESS_PANIC = Defect(
    "hugepages-without-memory-panic",
    between("1.32", "1.33"),
    "A pod whose memory cannot be allocated is not admitted.",
    what="A container that requests huge pages but no memory, in a pod that is Guaranteed by its "
    "pod-level resources, causes a panic if the PodLevelResources gate is on.",
    answers=False,
)
