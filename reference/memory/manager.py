"""The Memory Manager: its policy, its state and its checkpoint file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.manager import ContainerManager
from numaproof.reference.memory import hints
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.state import MemoryState

if TYPE_CHECKING:
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources


class MemoryManager(ContainerManager[MemoryState, StaticMemoryPolicy]):
    """The Memory Manager.

    Requirements: MEM-NONE-001.
    """

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        if self.policy is None:
            return {}
        if container is None:
            return hints.for_pod(self.policy, self.state, pod)
        return hints.for_container(self.policy, self.state, pod, container)
