"""Where kubelets limit containers by CFS quota otherwise than documented."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.releases import between
from numaproof.reference.config.quota import Quotas
from numaproof.reference.deviations.deviation import ISSUES, Defect

if TYPE_CHECKING:
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod


class QuotaDespiteExclusiveCPUs(Quotas):
    """Limits containers with exclusive CPUs as it does all others."""

    deviation = Defect(
        "quota-limits-exclusive-cpus",
        between("1.30", "1.32"),
        "CFS quota is not used to bound the CPU usage of these containers as their usage is bound "
        "by the scheduling domain itself.",
        f"{ISSUES}70585",
        "A container with two exclusive CPUs has a CFS quota of two CPUs, and is throttled on "
        "CPUs that nobody else may use.",
    )

    def limits(self, pod: Pod, container: PodContainer, cpus: int | None) -> bool:
        """Whether there is a limit to enforce, whoever has the CPUs."""
        del cpus
        return self.enforced and bool(pod.cpu_limit(container))


DEVIATIONS: tuple[type, ...] = (QuotaDespiteExclusiveCPUs,)
