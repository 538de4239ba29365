"""Where kubelets remove stale state at other times than documented.

It is public as https://github.com/kubernetes/kubernetes/issues/107074.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol.releases import between
from numaproof.reference.deviations.deviation import UndocumentedBehaviour
from numaproof.reference.manager import Manager

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.manager import Occasion
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources, TopologyHint


class LastPodKept(Manager[Any]):
    """Takes nothing back from the pod that it was last asked about."""

    deviation = UndocumentedBehaviour(
        between("1.30", "1.31"),
        "A reconcile pass takes nothing back from the pod that was last asked about, even if it "
        "was refused: its exclusive CPUs lie idle until another pod comes.",
        "last-pod-kept",
    )

    _asked: Mapping[str, Pod] = {}
    _present: Mapping[str, Pod] | None = None

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        """As documented, after what the pod last asked about held is taken back."""
        self._turn_to(pod)
        return super().hints(pod, container)  # type: ignore[safe-super]

    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        """As documented, likewise."""
        self._turn_to(pod)
        super().allocate(pod, container, affinity)  # type: ignore[safe-super]

    def remove_stale_state(self, pods: Mapping[str, Pod], when: Occasion) -> None:
        """Spares the pod last asked about, unless all is to go now.

        Before an admission it waits for what it is asked: the pod in question keeps what it holds.
        """
        if when == "admission":
            self._present = pods
            return
        if when == "now":
            self._asked, self._present = {}, None
        super().remove_stale_state({**self._asked, **pods}, when)

    def _turn_to(self, pod: Pod) -> None:
        self._asked = {pod.uid: pod}
        if self._present is not None:
            self.remove_stale_state(self._present, "reconcile")
            self._present = None


DEVIATIONS = (LastPodKept,)
