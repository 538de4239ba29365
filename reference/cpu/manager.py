"""The CPU Manager: its policy, its state, its checkpoint file and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from numaproof.reference.cpu import hints
from numaproof.reference.cpu.gauges import CPUGauges
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.errors import AdmissionError
from numaproof.reference.manager import ContainerManager
from numaproof.reference.metrics import ALIGNED, NOT_ALIGNED

if TYPE_CHECKING:
    from numaproof.reference.manager import StateFile
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources, TopologyHint

_CORES = "{boundary=physical_cpu,scope=container}"
_CACHES = "{boundary=uncore_cache,scope=container}"


class CPUManager(ContainerManager[CPUState, StaticCPUPolicy]):
    """The CPU Manager.

    Requirements: CPU-NONE-002, CPU-STATIC-014.
    """

    metrics_prefix = "cpu_manager"

    def __init__(
        self,
        policy: StaticCPUPolicy | None,
        state: CPUState,
        file: StateFile[CPUState],
        gauges: type[CPUGauges] = CPUGauges,
    ) -> None:
        super().__init__(policy, state, file)
        self.gauges = gauges(policy, state) if policy is not None else None

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        """Returns the hints for a container, or for the whole pod.

        Requirements: CPU-HINT-004, CPU-HINT-012, CPU-HINT-016.
        """
        if self.policy is None:
            return {}
        if container is None:
            return hints.for_pod(self.policy, self.state, pod)
        return hints.for_container(self.policy, self.state, pod, container)

    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        """Allocates the container's CPUs, and counts which allocations are aligned.

        Requirements: CPU-STATIC-001, NODE-METRIC-001, NODE-METRIC-002, NODE-METRIC-003,
        NODE-METRIC-004, NODE-METRIC-005, NODE-METRIC-006, NODE-METRIC-007.
        """
        if self.policy is None or not pod.exclusive_cpus(container):
            super().allocate(pod, container, affinity)
            return
        before = self.state
        cores = int(self.policy.options.full_cores)
        try:
            super().allocate(pod, container, affinity)
        except AdmissionError:
            self.counts[NOT_ALIGNED + _CORES] += cores
            raise
        self.counts[ALIGNED + _CORES] += cores
        cpus = self.state.of(pod.uid, container.name)
        if cpus and before.of(pod.uid, container.name) is None:
            caches = self.policy.topology.uncores.values()
            self.counts[ALIGNED + _CACHES] += any(not cpus & ~own for own in caches)
            self._note(before, pod.uid, cpus)

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        """Allocates the pod's CPUs, which the pod keeps even if they cannot be divided."""
        before = self.state
        super().allocate_pod(pod, affinity)
        if self.policy is not None:
            self._note(before, pod.uid, self.state.pods.get(pod.uid, 0))
            own = sum(bool(pod.exclusive_cpus(one)) for one in pod.containers)
            self._change(own, self.policy.share_out, pod)

    def release(self, uid: str, name: str) -> None:
        before = self.state
        super().release(uid, name)
        self._note(before, uid, 0)

    def _note(self, before: CPUState, uid: str, cpus: int) -> None:
        if self.gauges is not None and self.state is not before:
            self.gauges.note_change(before, self.state, uid, cpus)

    def adopt(self, other: Self) -> None:
        super().adopt(other)
        if self.gauges is not None and other.gauges is not None:
            self.gauges.adopt(other.gauges)

    def metrics(self) -> dict[str, int]:
        """The manager's metrics; without a policy, its gauges are zero."""
        gauges = self.gauges.read(self.state) if self.gauges is not None else {}
        return {**self.counts, **gauges}
