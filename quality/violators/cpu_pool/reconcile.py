"""Violators of what the container runtime is told of CPU sets, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference import startup
from numaproof.reference.node import StartedNode
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

seeds = SubjectBugs("cpu-pool")

_Place = tuple[str, str]


def _passing(
    changes: Changes, change: Callable[[Any, dict[_Place, int], tuple[Any, ...]], Iterable[Any]]
) -> None:
    """Lets a pass make other updates.

    `change` is given the node, what the runtime had been told before, and the updates.
    """

    def reconcile(original: Any, self: Any, args: Any) -> Any:
        before = dict(self.told)
        answer = original(self, args)
        if not self.setup.cpu:
            return answer
        return messages.Reconciled(tuple(change(self, before, answer.updates)))

    changes.around(StartedNode, "reconcile", reconcile)


def _skipping(changes: Changes, skips: Callable[[Any, Any, int, int | None], bool]) -> None:
    """Lets updates be left out, for good.

    `skips` is given the pod, the container, its CPUs and those told before, None for nothing.
    """

    def change(node: Any, before: dict[_Place, int], updates: tuple[Any, ...]) -> Iterable[Any]:
        for update in updates:
            pod = node.pods[update.uid]
            container = pod.container(update.container)
            last = before.get((update.uid, update.container))
            if not skips(pod, container, update.cpus.mask, last):
                yield update

    _passing(changes, change)


# Who is told


def _is_exclusive(node: Any, uid: str, name: str) -> bool:
    return node.cpus.state.of(uid, name) is not None


@seeds("CPU-RECONCILE-001")
def sidecars_are_not_reconciled(changes: Changes) -> None:
    """Init containers have ended when the loop comes by."""
    _skipping(changes, lambda pod, container, cpus, last: container.sidecar)


@seeds("CPU-RECONCILE-001")
def init_containers_are_not_reconciled(changes: Changes) -> None:
    """Init containers have ended when the loop comes by."""
    _skipping(changes, lambda pod, container, cpus, last: container.passes)


@seeds("CPU-RECONCILE-001")
def guaranteed_pods_on_the_pool_are_not_reconciled(changes: Changes) -> None:
    """Guaranteed pods have exclusive CPUs, and the others are on the pool."""
    _passing(
        changes,
        lambda node, before, updates: (
            each
            for each in updates
            if node.pods[each.uid].qos != "Guaranteed"
            or _is_exclusive(node, each.uid, each.container)
        ),
    )


@seeds("CPU-RECONCILE-004")
def fractional_containers_are_told_once(changes: Changes) -> None:
    """The CPUs of Guaranteed pods never change."""
    _skipping(
        changes,
        lambda pod, container, cpus, last: pod.qos == "Guaranteed" and last is not None,
    )


@seeds("CPU-RECONCILE-004")
def sidecars_are_told_once(changes: Changes) -> None:
    """Init containers do not live to see another pool."""
    _skipping(
        changes,
        lambda pod, container, cpus, last: container.init and last is not None,
    )


# What is repeated


def _repeating(changes: Changes, again: Callable[[Any, _Place, tuple[Any, ...]], bool]) -> None:
    """Lets updates be repeated; `again` is given the node, the container and the new updates."""

    def change(node: Any, before: dict[_Place, int], updates: tuple[Any, ...]) -> Iterable[Any]:
        fresh = {(each.uid, each.container): each for each in updates}
        for pod in node.pods.values():
            for container in pod.containers:
                place = (pod.uid, container.name)
                if place in fresh:
                    yield fresh[place]
                elif place in before and place in node.told and again(node, place, updates):
                    yield messages.CPUUpdate(*place, CPUSet.from_mask(node.told[place]))

    _passing(changes, change)


@seeds("CPU-RECONCILE-005")
def containers_of_one_pod_are_told_together(changes: Changes) -> None:
    """A pod is updated as a whole."""
    _repeating(changes, lambda node, place, updates: any(each.uid == place[0] for each in updates))


# The order


# After a restart


def _known_after_restart(changes: Changes, known: Callable[[Any, _Place, Any], bool]) -> None:
    """Lets a start believe that some containers had been told; `known` is given node and place."""

    def start(original: Any, *args: Any) -> Any:
        node = original(*args)
        for pod in node.pods.values():
            for container in pod.containers:
                place = (pod.uid, container.name)
                if node.setup.cpu and known(node, place, container):
                    node.told[place] = node.cpus.state.where(*place)
        return node

    changes.around(startup, "start", start)


@seeds("CPU-RECONCILE-007")
def restored_sidecars_are_not_told_again(changes: Changes) -> None:
    """Init containers have ended before a restart."""
    _known_after_restart(changes, lambda node, place, container: container.init)


# Empty sets


def _told_of_nothing(changes: Changes, cpus: Callable[[Any], int]) -> None:
    """Lets containers without CPUs be updated, once, with other `cpus`."""

    def change(node: Any, before: dict[_Place, int], updates: tuple[Any, ...]) -> Iterable[Any]:
        fresh = {(each.uid, each.container): each for each in updates}
        for pod in node.pods.values():
            for container in pod.containers:
                place = (pod.uid, container.name)
                if place in fresh:
                    yield fresh[place]
                elif not node.cpus.state.where(*place) and place not in node.ended:
                    node.told[place] = 0
                    if before.get(place) != 0:
                        yield messages.CPUUpdate(*place, CPUSet.from_mask(cpus(node)))

    _passing(changes, change)


@seeds("CPU-RECONCILE-008")
def empty_cpu_sets_are_told(changes: Changes) -> None:
    """The runtime is told whatever the set is."""
    _told_of_nothing(changes, lambda node: 0)
