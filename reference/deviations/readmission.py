"""Where kubelets serve a pod again that is admitted after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.releases import between
from numaproof.reference.deviations.deviation import ALL, AT_ONCE, ISSUES, RESTARTS, Defect
from numaproof.reference.pods.readmission import Readmission

if TYPE_CHECKING:
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.pods.readmission import Holdings


class EndedInitServed(Readmission):
    """Serves init containers that have finished."""

    deviation = Defect(
        "ended-init-served-again",
        ALL,
        AT_ONCE,
        f"{ISSUES}107906",
        "A pod that is admitted again after a restart is given CPUs and memory for init containers "
        "that ended long ago; where these are not free the running pod is refused.",
    )

    def has_ended(self, state: Holdings, pod: Pod, container: PodContainer) -> bool:
        """Never."""
        del state, pod, container
        return False


class PodLevelTakenAnew(Readmission):
    """Takes anew what a pod has as a whole."""

    deviation = Defect(
        "pod-level-cpus-taken-anew",
        between("1.36"),
        RESTARTS,
        f"{ISSUES}140989",
        "With the alpha gate PodLevelResourceManagers and scope pod, a pod with resources of its "
        "own that is admitted again after a restart is given other CPUs and memory, and the CPUs "
        "that it had are lost.",
    )

    def keeps(self, state: Holdings, pod: Pod) -> bool:
        """Never."""
        del state, pod
        return False


DEVIATIONS = (EndedInitServed, PodLevelTakenAnew)
