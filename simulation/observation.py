"""An admission, watched: which hints each manager gave, what they merged to, who could not give.

The managers' states are immutable values, so a shallow copy of a manager is a manager of its own.
The same functions that admit pods run here on copies, and the node stays as it is.
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
    from numaproof.reference.node import Node
    from numaproof.reference.pods.containers import Container
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources
    from numaproof.reference.topology.policy import KeptHint, TopologyPolicy


@dataclass(frozen=True, slots=True)
class Hinted:
    """What a manager answered when it was asked for hints, and the manager as it was then.

    A container of None is the pod as a whole.
    """

    container: Container | None
    manager: Manager[Any]
    resources: Resources


@dataclass(frozen=True, slots=True)
class Merged:
    """The hints for one container or for the pod, what they merged to, and whether it will do."""

    container: Container | None
    hints: tuple[Hinted, ...]
    affinity: KeptHint
    admitted: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """A manager, as it was before it could not give a container what it is due.

    A container of None is the pod as a whole.
    """

    container: Container | None
    manager: Manager[Any]
    affinity: KeptHint
    error: AdmissionError


@dataclass(frozen=True, slots=True)
class Watched:
    """All that happened at an admission, in its order; `failed` is None where nothing did."""

    pod: Pod
    merges: tuple[Merged, ...]
    failed: Failed | None

    @property
    def admitted(self) -> bool:
        """Whether nothing stood in the way."""
        return self.failed is None and all(one.admitted for one in self.merges)


class _Watch:
    """A manager that writes down what it is asked, and what it could not give."""

    def __init__(self, manager: Manager[Any], hinted: list[Hinted]) -> None:
        self._manager = manager
        self._hinted = hinted
        self.failed: Failed | None = None

    def hints(self, pod: Pod, container: Container | None) -> Resources:
        found = self._manager.hints(pod, container)
        self._hinted.append(Hinted(container, copy.copy(self._manager), found))
        return found

    def allocate(self, pod: Pod, container: Container, affinity: KeptHint) -> None:
        self._try(container, affinity, lambda: self._manager.allocate(pod, container, affinity))

    def allocate_pod(self, pod: Pod, affinity: KeptHint) -> None:
        self._try(None, affinity, lambda: self._manager.allocate_pod(pod, affinity))

    def _try(
        self, container: Container | None, affinity: KeptHint, allocate: Callable[[], None]
    ) -> None:
        before = copy.copy(self._manager)
        try:
            allocate()
        except AdmissionError as error:
            self.failed = Failed(container, before, affinity, error)
            raise


def snapshot(node: Node) -> Node:
    """The node as it is now; it stays so when pods are admitted to the other."""
    twin = copy.copy(node)
    twin.pods = dict(node.pods)
    twin.device_manager = copy.copy(node.device_manager)
    twin.cpus = copy.copy(node.cpus)
    twin.memory = copy.copy(node.memory)
    return twin


def watch(node: Node, pod: Pod, policy: TopologyPolicy | None) -> Watched:
    """What would happen if the pod were admitted now; the node does not change.

    `policy` is the Topology Manager's: the node's own, or another to try.
    """
    hinted: list[Hinted] = []
    managers = snapshot(node).providers
    for manager in managers:
        manager.reclaim({**node.pods, pod.uid: pod})
    watches = [_Watch(manager, hinted) for manager in managers]
    with suppress(AdmissionError):
        scope.admit(policy, node.plan.scope, watches, pod, lambda *_: None)
    failed = next((one.failed for one in watches if one.failed), None)
    return Watched(pod, tuple(_merges(policy, hinted)), failed)


def _merges(policy: TopologyPolicy | None, hinted: list[Hinted]) -> Iterator[Merged]:
    for container, group in groupby(hinted, key=lambda one: one.container):
        asked = tuple(group)
        if policy is not None:
            affinity, admitted = policy.merge([one.resources for one in asked])
            yield Merged(container, asked, affinity, admitted)
