"""Deviations in node behaviour: at startup, at admission, and after pods are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol.releases import between
from numaproof.reference.deviations.deviation import (
    ALL,
    AT_ONCE,
    ISSUES,
    RESTARTS,
    Defect,
    UndocumentedBehaviour,
)
from numaproof.reference.manager import Manager
from numaproof.reference.pods.readmission import Readmission

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.manager import Occasion
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.pods.readmission import Holdings
    from numaproof.reference.topology.hints import Resources, TopologyHint


class EndedInitServed(Readmission):
    """Allocates resources to init containers that have ended.

    After a restart, a readmitted pod is allocated CPUs and memory for init containers that
    completed long ago. If these resources are not free, the running pod is refused.
    """

    deviation = Defect("ended-init-served-again", ALL, AT_ONCE, f"{ISSUES}107906")

    def has_ended(self, state: Holdings, pod: Pod, container: PodContainer) -> bool:
        return False


class PodLevelTakenAnew(Readmission):
    """Allocates pod-level resources again.

    With the alpha gate PodLevelResourceManagers and the pod scope, a pod with pod-level resources
    that is readmitted after a restart gets different CPUs and memory, and its previous CPUs are
    lost.
    """

    deviation = Defect("pod-level-cpus-taken-anew", between("1.36"), RESTARTS, f"{ISSUES}140989")

    def keeps(self, state: Holdings, pod: Pod) -> bool:
        return False


class LastPodKept(Manager[Any]):
    """Keeps everything held by the pod whose hints or allocation was requested last.

    A reconcile pass reclaims nothing from the pod whose hints or allocation were requested last,
    even if it was refused. Its exclusive CPUs stay unused until another pod arrives.
    """

    # https://github.com/kubernetes/kubernetes/issues/107074
    deviation = UndocumentedBehaviour("last-pod-kept", between("1.30", "1.31"))

    _last_pod: Mapping[str, Pod] = {}
    _present: Mapping[str, Pod] | None = None

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        self._switch_to(pod)
        return super().hints(pod, container)  # type: ignore[safe-super]

    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        self._switch_to(pod)
        super().allocate(pod, container, affinity)  # type: ignore[safe-super]

    def remove_stale_state(self, pods: Mapping[str, Pod], when: Occasion) -> None:
        """Keeps the resources of the last pod, unless they must be released now.

        Before an admission, nothing is released until a manager is asked for a pod's hints or
        allocation; that pod keeps its resources.
        """
        if when == "admission":
            self._present = pods
            return
        if when == "now":
            self._last_pod, self._present = {}, None
        super().remove_stale_state({**self._last_pod, **pods}, when)

    def _switch_to(self, pod: Pod) -> None:
        self._last_pod = {pod.uid: pod}
        if self._present is not None:
            self.remove_stale_state(self._present, "reconcile")
            self._present = None


GATES_PANIC = Defect(
    "bad-feature-gates-panic",
    between("1.32"),
    "A feature gate that the release does not know must be refused.",
    what="Unknown, locked or contradictory feature gates in the configuration file cause a panic "
    "while the configuration's defaults are being set.",
    answers=False,
)
