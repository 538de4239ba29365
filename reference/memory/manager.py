"""The Memory Manager: its policy, its state and its checkpoint file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

from numaproof.reference.manager import ContainerManager, unexpected
from numaproof.reference.memory.requests import AllocationError
from numaproof.reference.memory.state import MemoryState, ReusableMemory

if TYPE_CHECKING:
    from numaproof.reference.manager import StateFile
    from numaproof.reference.memory.policy import StaticMemoryPolicy
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources
    from numaproof.reference.topology.policy import KeptHint


class MemoryManager(ContainerManager[MemoryState]):
    """The Memory Manager; its `policy` is None for the policy None.

    Requirements: MEM-NONE-001.
    """

    def __init__(
        self,
        policy: StaticMemoryPolicy | None,
        state: MemoryState,
        file: StateFile[MemoryState],
    ) -> None:
        """Takes the state that the start restored from the checkpoint `file`."""
        super().__init__(state, file)
        self.policy = policy
        self.reuse = ReusableMemory()

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        """Where the request could be met."""
        if self.policy is None:
            return {}
        if container is None:
            return self.policy.hints_for_pod(self.state, self.reuse, pod)
        return self.policy.hints_for_container(self.state, self.reuse, pod, container)

    def allocate(self, pod: Pod, container: PodContainer, affinity: KeptHint) -> None:
        """Gives the container its memory."""
        if self.policy is None:
            return
        try:
            self.state, self.reuse = self.policy.allocate(
                self.state, self.reuse, pod, container, affinity
            )
        except AllocationError as error:
            raise unexpected(error) from None

    def allocate_pod(self, pod: Pod, affinity: KeptHint) -> None:
        """Gives the pod its memory, and its containers their parts of it."""
        if self.policy is None:
            return
        try:
            self.state = self.policy.allocate_pod(self.state, self.reuse, pod, affinity)
        except AllocationError as error:
            raise unexpected(error) from None

    def adopt(self, other: Self) -> None:
        """Takes over what another manager has reserved and allocated, and what can be reused."""
        super().adopt(other)
        self.reuse = other.reuse
        if self.policy and other.policy:
            self.policy = replace(self.policy, empty=other.policy.empty)

    def end(self, uid: str, name: str) -> None:
        """Takes back the container's memory; the policy None gave it none, and takes none back."""
        if self.policy is not None:
            super().end(uid, name)
            self.reuse = self.policy.still_reusable(self.state, self.reuse)
