"""CFS quotas: the containers that the container runtime holds to their CPU limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.reference.pods import qos, quantity

if TYPE_CHECKING:
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod


@dataclass(frozen=True, slots=True)
class Quotas:
    """How a node sets CFS quotas.

    `is_enforced` is the field ``cpuCFSQuota`` of the configuration. If `spares_exclusive` is true,
    containers with exclusive CPUs are not limited.
    """

    is_enforced: bool
    spares_exclusive: bool

    def limits(self, pod: Pod, container: PodContainer, cpus: int | None) -> bool:
        """Whether the container runtime limits the container; `cpus` are the CPUs assigned to it.

        Requirements: CPU-GATE-012, CPU-NONE-003, CPU-STATIC-020.
        """
        if not self.is_enforced or not pod.cpu_limit(container):
            return False
        return not (self.spares_exclusive and _has_cpus_of_its_own(pod, container, cpus))


def _has_cpus_of_its_own(pod: Pod, container: PodContainer, cpus: int | None) -> bool:
    """Whether the container has CPUs of its own, rather than CPUs shared with its pod."""
    if pod.budget is None:
        return bool(cpus)
    whole = quantity.whole_cpus(container.limits.get("cpu", 0)) is not None
    return cpus is not None and whole and qos.class_of((container,)) == "Guaranteed"
