"""Observes an admission: each manager's hints, the merged hints, and the allocation that failed.

The managers' states are immutable values, so a shallow copy of a manager is independent of it.
The functions that admit pods run here on copies, and the node does not change.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from numaproof.reference.errors import AdmissionError
from numaproof.reference.topology import scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numaproof.reference.manager import Manager
    from numaproof.reference.node import StartedNode
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources, TopologyHint
    from numaproof.reference.topology.policy import TopologyPolicy


@dataclass(frozen=True, slots=True)
class ObservedHints:
    """A manager's hints, and the manager as it was when it was asked.

    `container` is None for the pod as a whole.
    """

    container: PodContainer | None
    manager: Manager[Any]
    resources: Resources


@dataclass(frozen=True, slots=True)
class ObservedMerge:
    """The hints for a container or for the pod, the merged hint, and whether it is admitted."""

    container: PodContainer | None
    hints: tuple[ObservedHints, ...]
    affinity: TopologyHint
    admitted: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed allocation, and the manager as it was before.

    `container` is None for the pod as a whole.
    """

    container: PodContainer | None
    manager: Manager[Any]
    affinity: TopologyHint
    error: AdmissionError


@dataclass(frozen=True, slots=True)
class ObservedAdmission:
    """Everything that happened at an admission, in order; `failed` is None if nothing failed."""

    pod: Pod
    merges: tuple[ObservedMerge, ...]
    failed: Failed | None

    @property
    def admitted(self) -> bool:
        """Whether the pod was admitted."""
        return self.failed is None and all(one.admitted for one in self.merges)


class _ObservedManager:
    """A manager that records its hints and a failed allocation."""

    def __init__(self, manager: Manager[Any], hinted: list[ObservedHints]) -> None:
        self._manager = manager
        self._hinted = hinted
        self.failed: Failed | None = None

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        found = self._manager.hints(pod, container)
        self._hinted.append(ObservedHints(container, copy.copy(self._manager), found))
        return found

    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        self._try(container, affinity, lambda: self._manager.allocate(pod, container, affinity))

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        self._try(None, affinity, lambda: self._manager.allocate_pod(pod, affinity))

    def _try(
        self, container: PodContainer | None, affinity: TopologyHint, allocate: Callable[[], None]
    ) -> None:
        before = copy.copy(self._manager)
        try:
            allocate()
        except AdmissionError as error:
            self.failed = Failed(container, before, affinity, error)
            raise


def snapshot(node: StartedNode) -> StartedNode:
    """A copy of the node that does not change when pods are admitted to the original."""
    twin = copy.copy(node)
    twin.pods = dict(node.pods)
    twin.device_manager = copy.copy(node.device_manager)
    twin.cpus = copy.copy(node.cpus)
    twin.memory = copy.copy(node.memory)
    return twin


def observe(node: StartedNode, pod: Pod, policy: TopologyPolicy | None) -> ObservedAdmission:
    """What would happen if the pod were admitted now; the node does not change.

    `policy` is the Topology Manager's policy: the node's own, or another one to try.
    """
    hinted: list[ObservedHints] = []
    managers = snapshot(node).providers
    for manager in managers:
        manager.remove_stale_state({**node.pods, pod.uid: pod}, "reconcile")
    watches = [_ObservedManager(manager, hinted) for manager in managers]
    with suppress(AdmissionError):
        scope.admit(policy, node.setup.scope, watches, pod, lambda *_: None)
    failed = next((one.failed for one in watches if one.failed), None)
    return ObservedAdmission(pod, tuple(_merges(policy, hinted)), failed)


def _merges(policy: TopologyPolicy | None, hinted: list[ObservedHints]) -> Iterator[ObservedMerge]:
    for container, group in groupby(hinted, key=lambda one: one.container):
        asked = tuple(group)
        if policy is not None:
            affinity, admitted = policy.merge([one.resources for one in asked])
            yield ObservedMerge(container, asked, affinity, admitted)
