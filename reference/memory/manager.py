"""The Memory Manager: its policy, its state and its checkpoint file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.manager import ContainerManager
from numaproof.reference.memory import hints
from numaproof.reference.memory.policy import StaticMemoryPolicy, is_served
from numaproof.reference.memory.state import MemoryState

if TYPE_CHECKING:
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources, TopologyHint


class MemoryManager(ContainerManager[MemoryState, StaticMemoryPolicy]):
    """The Memory Manager.

    Requirements: MEM-NONE-001.
    """

    metrics_prefix = "memory_manager"

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        """Allocates the pod's memory; counts one request for the pod, and one for each part."""
        served = self.policy is not None and is_served(pod)
        self.counts[self.requests_metric] += served
        super().allocate_pod(pod, affinity)
        if served:
            parts = (one.init or not pod.shares_budget(one) for one in pod.containers)
            self.counts[self.requests_metric] += sum(parts)

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        if self.policy is None:
            return {}
        if container is None:
            return hints.for_pod(self.policy, self.state, pod)
        return hints.for_container(self.policy, self.state, pod, container)
