"""What a pod that is admitted again after a restart keeps, by the rules of all managers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod


class Holdings(Protocol):
    """What a manager has handed out."""

    @property
    def pods(self) -> Mapping[str, Any]:
        """What pods have as a whole, by uid."""

    def of(self, uid: str, name: str, /) -> Any:
        """What a container has; None for nothing."""


class Readmission:
    """The part of a policy that says what need not be handed out again."""

    __slots__ = ()

    def keeps(self, state: Holdings, pod: Pod) -> bool:
        """Whether the pod has what it keeps as a whole.

        Requirements: CPU-RESTART-009.
        """
        return pod.uid in state.pods

    def has_ended(self, state: Holdings, pod: Pod, container: PodContainer) -> bool:
        """Whether this init container has finished: an app container of its pod holds its own.

        Requirements: CPU-INIT-009, MEM-RESTART-003.
        """
        if not container.runs_to_completion:
            return False
        apps = (other for other in pod.containers if not other.init)
        return any(state.of(pod.uid, app.name) is not None for app in apps)
