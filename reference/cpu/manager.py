"""The CPU Manager: its policy, its state and its checkpoint file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from numaproof.reference.cpu import hints as cpu_hints
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.distribution import AccountingError
from numaproof.reference.cpu.state import CPUState, ReusableCPUs
from numaproof.reference.manager import ContainerManager, unexpected

if TYPE_CHECKING:
    from numaproof.reference.cpu.policy import StaticCPUPolicy
    from numaproof.reference.kubelet.checkpoints.files import CheckpointFile
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources
    from numaproof.reference.topology.policy import KeptHint


class CPUManager(ContainerManager[CPUState]):
    """The CPU Manager; its `policy` is None for the policy none."""

    def __init__(
        self, policy: StaticCPUPolicy | None, state: CPUState, file: CheckpointFile[CPUState]
    ) -> None:
        """Takes the state that the start restored from the checkpoint `file`."""
        super().__init__(state, file)
        self.policy = policy
        self.reuse = ReusableCPUs()

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        """Where the request could be met.

        Requirements: CPU-HINT-004, CPU-HINT-012, CPU-HINT-016.
        """
        if self.policy is None:
            return {}
        if container is None:
            return cpu_hints.for_pod(self.policy, self.state, self.reuse, pod)
        return cpu_hints.for_container(self.policy, self.state, self.reuse, pod, container)

    def allocate(self, pod: Pod, container: PodContainer, affinity: KeptHint) -> None:
        """Gives the container its exclusive CPUs.

        Requirements: CPU-NONE-002, CPU-STATIC-014.
        """
        if self.policy is None:
            return
        try:
            self.state, self.reuse = self.policy.allocate(
                self.state, self.reuse, pod, container, affinity.numa
            )
        except (NotEnoughCPUsError, AccountingError) as error:
            raise unexpected(error) from None

    def allocate_pod(self, pod: Pod, affinity: KeptHint) -> None:
        """Gives the pod CPUs as a whole; it has them even where they cannot be shared out."""
        if self.policy is None:
            return
        try:
            self.state = self.policy.allocate_pod(self.state, pod, affinity.numa)
            self.state = self.policy.share_out(self.state, pod)
        except (NotEnoughCPUsError, AccountingError) as error:
            raise unexpected(error) from None

    def adopt(self, other: Self) -> None:
        """Takes over what another manager has reserved and allocated, and what can be reused."""
        super().adopt(other)
        self.reuse = other.reuse
        if self.policy and other.policy:
            self.policy = self.policy.reserving(other.policy.reserved)

    def end(self, uid: str, name: str) -> None:
        """Takes back the container's CPUs; the policy none gave it none, and takes none back."""
        if self.policy is not None:
            super().end(uid, name)
