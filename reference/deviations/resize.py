"""Deviations in resizing pods in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol.releases import between
from numaproof.reference.deviations.deviation import UndocumentedBehaviour
from numaproof.reference.resize import Resizing, infeasible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.reference.manager import Manager
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.scope import Provider


class EveryResourceInfeasible(Resizing):
    """Refuses any resize of a Guaranteed pod.

    With a static policy, a Guaranteed pod can't be resized at all: a static CPU Manager refuses
    changes of memory, and a static Memory Manager refuses changes of CPU.
    """

    deviation = UndocumentedBehaviour(
        "resize-of-guaranteed-pod-infeasible", between("1.33", "1.33")
    )

    def check(self, allocated: Pod, target: Pod) -> None:
        if target.qos != "Guaranteed":
            return
        if self.has_static_cpus:
            raise infeasible("CPU Manager static policy")
        if self.has_static_memory:
            raise infeasible("Memory Manager static policy")


class AdmittedAgain(Resizing):
    """Lets all managers admit the resized pod like a new one.

    The pod keeps its CPUs, memory and devices, but any reason to refuse it again defers the resize.
    """

    deviation = UndocumentedBehaviour("resize-admits-again", between("1.33", "1.36"))

    def providers(self, managers: Sequence[Manager[Any]]) -> Sequence[Provider]:
        return managers
