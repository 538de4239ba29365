"""The resources that a pod keeps when it is admitted again after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod


class Holdings(Protocol):
    """A manager's allocations."""

    @property
    def pods(self) -> Mapping[str, Any]:
        """The allocations of whole pods, by uid."""

    def of(self, uid: str, name: str, /) -> Any:
        """Returns a container's allocation, or None."""


class Readmission:
    """The part of a policy that decides what need not be allocated again."""

    __slots__ = ()

    def keeps(self, state: Holdings, pod: Pod) -> bool:
        """Whether the pod already has its pod-level allocation.

        Requirements: CPU-RESTART-009.
        """
        return pod.uid in state.pods

    def has_ended(self, state: Holdings, pod: Pod, container: PodContainer) -> bool:
        """Whether an init container has ended: an app container of its pod has an allocation.

        Requirements: CPU-INIT-009, MEM-RESTART-003.
        """
        if not container.runs_to_completion:
            return False
        apps = (other for other in pod.containers if not other.init)
        return any(state.of(pod.uid, app.name) is not None for app in apps)
