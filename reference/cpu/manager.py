"""The CPU Manager: its policy, its state and its checkpoint file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.cpu import hints as cpu_hints
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.distribution import AccountingError
from numaproof.reference.cpu.policy import SMTAlignmentError
from numaproof.reference.cpu.state import CPUState, ReusableCPUs
from numaproof.reference.errors import AdmissionError
from numaproof.reference.kubelet.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.manager import ContainerManager, unexpected
from numaproof.reference.pods.budget import EmptySharedPoolError

if TYPE_CHECKING:
    from numaproof.reference.plan import Plan
    from numaproof.reference.pods.containers import Container
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources
    from numaproof.reference.topology.policy import KeptHint


class CPUManager(ContainerManager[CPUState]):
    """The CPU Manager with its state."""

    file_name = cpu_checkpoint.FILE_NAME

    def __init__(self, plan: Plan, state: CPUState) -> None:
        """Takes the state as the start restored and wrote it."""
        super().__init__(plan, state)
        self._policy = plan.cpu
        self.reuse = ReusableCPUs()

    def hints(self, pod: Pod, container: Container | None) -> Resources:
        """Where the request could be met."""
        if self._policy is None:
            return {}
        if container is None:
            return cpu_hints.for_pod(self._policy, self.state, self.reuse, pod)
        return cpu_hints.for_container(self._policy, self.state, self.reuse, pod, container)

    def allocate(self, pod: Pod, container: Container, affinity: KeptHint) -> None:
        """Gives the container its exclusive CPUs."""
        if self._policy is None:
            return
        try:
            self.state, self.reuse = self._policy.allocate(
                self.state, self.reuse, pod, container, affinity.numa
            )
        except SMTAlignmentError as error:
            raise AdmissionError("SMTAlignmentError", str(error)) from None
        except (NotEnoughCPUsError, AccountingError) as error:
            raise unexpected(error) from None

    def allocate_pod(self, pod: Pod, affinity: KeptHint) -> None:
        """Gives the pod CPUs as a whole; it has them even where they cannot be shared out."""
        if self._policy is None:
            return
        try:
            self.state = self._policy.allocate_pod(self.state, pod, affinity.numa)
            self.state = self._policy.share_out(self.state, pod)
        except EmptySharedPoolError as error:
            raise AdmissionError("EmptyPodSharedPoolError", str(error)) from None
        except SMTAlignmentError as error:
            raise AdmissionError("SMTAlignmentError", str(error)) from None
        except (NotEnoughCPUsError, AccountingError) as error:
            raise unexpected(error) from None

    def dump(self) -> bytes:
        """The content of ``cpu_manager_state``."""
        return self._plan.cpu_file(self.state)
