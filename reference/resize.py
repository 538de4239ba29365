"""Resizing a pod in place: what is infeasible, and what the managers decide about the rest.

No release up to 1.37 changes the CPUs or memory of a container that has its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numaproof.reference.errors import AdmissionError, UnsupportedError
from numaproof.reference.pods import quantity
from numaproof.reference.pods.pod import PodError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from numaproof.reference.manager import Manager
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources, TopologyHint
    from numaproof.reference.topology.scope import Provider


@dataclass(frozen=True, slots=True)
class Resizing:
    """How a node resizes pods.

    Attributes:
        is_enabled: whether the gate ``InPlacePodVerticalScaling`` is on.
        has_static_cpus, has_static_memory: whether the policy of the CPU Manager is ``static``, and
            that of the Memory Manager ``Static``.
        allows_cpus, allows_memory: whether the gates ``InPlacePodVerticalScalingExclusiveCPUs``
            and ``InPlacePodVerticalScalingExclusiveMemory`` are on.
    """

    is_enabled: bool
    has_static_cpus: bool
    has_static_memory: bool
    allows_cpus: bool
    allows_memory: bool

    def is_change(self, allocated: Pod, target: Pod) -> bool:
        """Whether a pod requests other resources than it has.

        Raises:
            PodError: the pod has other containers.
            UnsupportedError: the node doesn't resize pods, or not this one.
        """
        if not self.is_enabled:
            raise UnsupportedError("resizing pods in place")
        if target.is_static:
            raise UnsupportedError("resizing static pods")
        if target.budget is not None or target.shared_pool or target.limits:
            raise UnsupportedError("resizing pods with pod-level resources")
        if (self.allows_cpus and self.has_static_cpus) or (
            self.allows_memory and self.has_static_memory
        ):
            raise UnsupportedError("resizing pods with exclusive resources")
        if [one.name for one in allocated.containers] != [one.name for one in target.containers]:
            raise PodError(f"a resize can't change the containers of pod {target.uid!r}")
        return any(
            _amount(had, resource) != _amount(wants, resource)
            for old, new in zip(allocated.containers, target.containers, strict=True)
            for had, wants in ((old.requests, new.requests), (old.limits, new.limits))
            for resource in ("cpu", "memory")
        )

    def check(self, allocated: Pod, target: Pod) -> None:
        """Refuses resizes of Guaranteed pods that static policies rule out.

        Raises:
            AdmissionError: the resize is infeasible.

        Requirements: NODE-RESIZE-001, NODE-RESIZE-002, NODE-RESIZE-003, NODE-RESIZE-004.
        """
        if target.qos != "Guaranteed":
            return
        if self.has_static_cpus and _differs(allocated, target, "cpu"):
            raise infeasible('CPU Manager policy "static"')
        if self.has_static_memory and _differs(allocated, target, "memory"):
            raise infeasible('Memory Manager policy "Static"')

    def providers(self, managers: Sequence[Manager[Any]]) -> Sequence[Provider]:
        """Returns the managers, Device Manager first, as far as they decide about a resize.

        Requirements: NODE-RESIZE-005.
        """
        return (_HintsOnly(managers[0]),)


@dataclass(frozen=True, slots=True)
class _HintsOnly:
    """A manager that gives hints for a resize, but allocates nothing."""

    manager: Manager[Any]

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        return self.manager.hints(pod, container)

    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        pass

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        pass


def _differs(allocated: Pod, target: Pod, resource: str) -> bool:
    """Whether a container requests another amount; limits equal requests in Guaranteed pods."""
    return any(
        _amount(old.requests, resource) != _amount(new.requests, resource)
        for old, new in zip(allocated.containers, target.containers, strict=True)
    )


def _amount(quantities: Mapping[str, Any], resource: str) -> Fraction:
    return quantity.parse(quantities.get(resource, 0))


def infeasible(policy: str) -> AdmissionError:
    return AdmissionError(
        "Infeasible", f"Resize is infeasible for Guaranteed Pods alongside {policy}"
    )
