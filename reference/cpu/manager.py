"""The CPU Manager: its policy, its state and its checkpoint file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.cpu import hints
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.manager import ContainerManager

if TYPE_CHECKING:
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources, TopologyHint


class CPUManager(ContainerManager[CPUState, StaticCPUPolicy]):
    """The CPU Manager.

    Requirements: CPU-NONE-002, CPU-STATIC-014.
    """

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        """Returns the hints for a container, or for the whole pod.

        Requirements: CPU-HINT-004, CPU-HINT-012, CPU-HINT-016.
        """
        if self.policy is None:
            return {}
        if container is None:
            return hints.for_pod(self.policy, self.state, pod)
        return hints.for_container(self.policy, self.state, pod, container)

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        """Allocates the pod's CPUs, which the pod keeps even if they cannot be divided."""
        super().allocate_pod(pod, affinity)
        if self.policy is not None:
            self._change(self.policy.share_out, pod)
