"""Invariants of devices: ownership, number, health and NUMA affinity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.judging.entitlement import device_counts, topology_policy
from numaproof.conformance.judging.invariants.view import (
    Place,
    View,
    Violation,
    format_names,
    format_place,
)
from numaproof.protocol.sets import NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol import messages


def on_state(view: View) -> Iterator[Violation]:
    """Only containers that never run at the same time may share a device."""
    holders: dict[tuple[str, str], list[Place]] = {}
    for uid, containers in view.state.pods.items():
        for name, container in containers.items():
            for resource, ids in (container.devices or {}).items():
                for one in ids:
                    holders.setdefault((resource, one), []).append((uid, name))
    for (resource, one), places in sorted(holders.items()):
        for number, left in enumerate(places):
            for right in places[number + 1 :]:
                if not view.may_share(left, right):
                    message = (
                        f"{format_place(left)} and {format_place(right)} both have {resource} {one}"
                    )
                    yield Violation(
                        "device-held-by-one", "DEV-ALLOCATE-002", message, places=(left, right)
                    )


def on_admission(
    answer: messages.Admitted, before: View | None, view: View, uid: str
) -> Iterator[Violation]:
    """Checks the devices allocated by an admission.

    Their number must match the request, new devices must be healthy, and all must be near the nodes
    of the affinity.
    """
    if uid not in view.pods:
        return
    counts = device_counts(view.pod_readings[uid], [one.resource for one in view.devices])
    had = _held_devices(before, uid)
    for name, container in answer.containers.items():
        if (uid, name) in view.ended_containers:
            continue
        held = container.devices or {}
        for resource, count in counts.get(name, {}).items():
            if len(held.get(resource, ())) != count:
                as_one = uid in view.budgets
                yield Violation(
                    "devices-of-pod-level-pods" if as_one else "devices-as-requested",
                    "DEV-ALLOCATE-003",
                    f"{uid}/{name} requested {count} of {resource} and got"
                    f" {format_names(held.get(resource, ()))}",
                    places=((uid, name),),
                )
        for one in view.devices:
            ids = held.get(one.resource, ())
            yield from _healthy((uid, name), one, [i for i in ids if (one.resource, i) not in had])
            yield from _near((uid, name), one, ids, view, container.affinity)


def _held_devices(view: View | None, uid: str) -> set[tuple[str, str]]:
    """The devices that a pod held, by resource and id."""
    return {
        (resource, one)
        for container in (view.state.pods.get(uid, {}) if view else {}).values()
        for resource, ids in (container.devices or {}).items()
        for one in ids
    }


def _healthy(
    place: Place, device_resource: messages.DeviceResource, new: list[str]
) -> Iterator[Violation]:
    healthy = {device.id for device in device_resource.ids if device.healthy}
    wrong = sorted(set(new) - healthy)
    if wrong:
        names = f"{device_resource.resource} {format_names(wrong)}"
        message = f"{format_place(place)} got unhealthy {names}"
        yield Violation("devices-given-are-healthy", "DEV-HEALTH-001", message, places=(place,))


def _near(
    place: Place,
    device_resource: messages.DeviceResource,
    ids: tuple[str, ...],
    view: View,
    affinity: messages.Hint,
) -> Iterator[Violation]:
    if topology_policy(view.config) == "none" or affinity.numa is None or not affinity.preferred:
        return
    nodes = {device.id: device.numa or NUMASet() for device in device_resource.ids}
    if not any(nodes.values()):
        return
    far = [one for one in ids if one in nodes and nodes[one].isdisjoint(affinity.numa)]
    if far:
        left = _of_init_containers(view, place, device_resource.resource)
        reused = all(one in left and not nodes[one] for one in far)
        yield Violation(
            "reused-devices-near-affinity" if reused else "devices-near-affinity",
            "DEV-ALLOCATE-001",
            f"{format_place(place)} has the affinity {affinity.numa},"
            f" but {device_resource.resource}"
            f" {format_names(far)} on other nodes",
            places=(place,),
        )


def _of_init_containers(view: View, place: Place, resource: str) -> frozenset[str]:
    """The devices that the pod's other init containers leave to later containers."""
    uid, name = place
    inits = view.passing(uid) - {name}
    held = (view.state.pods.get(uid, {}).get(init) for init in inits)
    return frozenset(
        one
        for container in held
        if container
        for one in (container.devices or {}).get(resource, ())
    )
