"""Violators of the requirements of devices from report to restart, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.devices import policy
from numaproof.reference.devices.state import (
    NONE,
    Devices,
    DeviceState,
    ReusableDevices,
    all_held,
)
from numaproof.reference.node import StartedNode
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

seeds = SubjectBugs("devices-life")


# Health


def _reported(changes: Changes, change: Callable[[Any, str, Devices, Devices], Devices]) -> None:
    """Lets `change` make another list of what a plugin reports, given the earlier list, too."""

    def report(original: Any, self: DeviceState, lists: Any) -> Any:
        after = original(self, lists)
        known = dict(after.lists)
        for resource in {one.resource for one in lists}:
            before = self.lists.get(resource, Devices())
            known[resource] = change(after, resource, before, known[resource])
        return dataclasses.replace(after, lists=known)

    changes.around(DeviceState, "report", report)


@seeds("DEV-HEALTH-002")
def free_devices_that_are_no_longer_reported_stay_available(changes: Changes) -> None:
    """A plausible author adds a new list to the one before."""

    def change(state: Any, resource: str, before: Devices, reported: Devices) -> Devices:
        gone = before.healthy - state.taken.get(resource, NONE) - frozenset(reported.nodes)
        nodes = {device: before.nodes[device] for device in sorted(gone)}
        return Devices({**reported.nodes, **nodes}, reported.healthy | gone)

    _reported(changes, change)


def _taken_away(changes: Changes, gone: Callable[[Devices, str], bool]) -> None:
    """Lets a new list take these devices from the containers that hold them."""

    def report(original: Any, self: DeviceState, lists: Any) -> Any:
        after = original(self, lists)
        names = {one.resource for one in lists}

        def left(resource: str, ids: frozenset[str]) -> frozenset[str]:
            devices = after.lists[resource] if resource in names else None
            return frozenset(one for one in ids if not (devices and gone(devices, one)))

        held = {
            uid: {
                name: {resource: left(resource, ids) for resource, ids in mine.items()}
                for name, mine in pod.items()
            }
            for uid, pod in after.held.items()
        }
        return dataclasses.replace(after, held=held, taken=all_held(held))

    changes.around(DeviceState, "report", report)


@seeds("DEV-HEALTH-003")
def containers_lose_devices_that_fall_ill(changes: Changes) -> None:
    """A plausible author takes an ill device out of every list that it is in."""
    _taken_away(changes, lambda devices, one: one in devices.nodes and one not in devices.healthy)


@seeds("DEV-HEALTH-003")
def containers_lose_devices_that_are_no_longer_reported(changes: Changes) -> None:
    """A plausible author forgets a device altogether once its plugin does."""
    _taken_away(changes, lambda devices, one: one not in devices.nodes)


def _held_and_healthy(changes: Changes, fine: Callable[[Devices, str], bool]) -> None:
    """Lets a container be admitted again with these devices, too."""

    def check_health(original: Any, state: Any, resource: str, held: frozenset[str]) -> None:
        devices = state.lists.get(resource)
        if devices is not None and held and all(fine(devices, one) for one in held):
            return
        original(state, resource, held)

    changes.around(policy, "check_health", check_health)


@seeds("DEV-HEALTH-005")
def pods_with_devices_no_longer_reported_are_admitted_again(changes: Changes) -> None:
    """A plausible author looks for held devices among the ill ones, where unknown ones are not."""
    _held_and_healthy(
        changes, lambda devices, one: one in devices.healthy or one not in devices.nodes
    )


@seeds("DEV-HEALTH-004")
def devices_keep_the_nodes_of_their_first_list(changes: Changes) -> None:
    """A plausible author never looks at the topology of a known device again."""

    def change(_: Any, __: str, before: Devices, reported: Devices) -> Devices:
        nodes = {one: before.nodes.get(one, mask) for one, mask in reported.nodes.items()}
        return dataclasses.replace(reported, nodes=nodes)

    _reported(changes, change)


# Init containers and sidecars


def _allocating(changes: Changes, changed: Callable[..., Any]) -> None:
    """Lets `changed` allocate for a container: original, state, pod, container and the rest."""
    changes.around(policy, "allocate", changed)


def _kept(state: DeviceState, uid: str) -> Mapping[str, frozenset[str]]:
    """What the pod's containers may take again."""
    return state.reuse.devices if state.reuse.uid == uid else {}


@seeds("DEV-INIT-001")
def only_the_first_app_container_reuses_devices(changes: Changes) -> None:
    """A plausible author drops what is left over once an app container was served."""

    def allocate(original: Any, state: Any, pod: Any, container: Any, *rest: Any) -> Any:
        after = original(state, pod, container, *rest)
        return after if container.init else after.with_reuse(ReusableDevices(pod.uid, {}))

    _allocating(changes, allocate)


@seeds("DEV-INIT-001")
def sidecars_reuse_no_devices(changes: Changes) -> None:
    """A plausible author thinks only of app containers when init containers have ended."""

    def allocate(original: Any, state: Any, pod: Any, container: Any, *rest: Any) -> Any:
        if not container.sidecar:
            return original(state, pod, container, *rest)
        kept = _kept(state, pod.uid)
        after = original(state.with_reuse(ReusableDevices()), pod, container, *rest)
        return after.with_reuse(ReusableDevices(pod.uid, kept))

    _allocating(changes, allocate)


def _given_back(node: StartedNode, uid: str, *names: str) -> None:
    """Takes the devices back from these containers of a pod that is on the node."""
    state = node.device_manager.state
    pod = {name: mine for name, mine in state.held.get(uid, {}).items() if name not in names}
    held = {**state.held, uid: pod}
    node.device_manager.state = dataclasses.replace(state, held=held, taken=all_held(held))


def _ended(changes: Changes, returns: Callable[[StartedNode, Any, Any], bool]) -> None:
    """Lets these containers (given with node and pod) give their devices back when they end."""

    def remove(original: Any, self: StartedNode, args: Any) -> Any:
        done = original(self, args)
        if args.container is not None:
            pod = self.pods[args.uid]
            if returns(self, pod, pod.container(args.container)):
                _given_back(self, args.uid, args.container)
        return done

    changes.around(StartedNode, "remove", remove)


@seeds("DEV-INIT-002")
def init_containers_give_their_devices_back_when_they_end(changes: Changes) -> None:
    """A plausible author frees devices like CPUs, as soon as a container has ended."""
    _ended(changes, lambda _, __, container: container.passes)


@seeds("DEV-INIT-003")
def devices_of_sidecars_are_reused_like_those_of_init_containers(changes: Changes) -> None:
    """A plausible author sees that a sidecar is an init container, and not that it stays."""

    def allocate(original: Any, state: Any, pod: Any, container: Any, *rest: Any) -> Any:
        return original(state, pod, dataclasses.replace(container, sidecar=False), *rest)

    _allocating(changes, allocate)


@seeds("DEV-INIT-003")
def devices_that_a_sidecar_reuses_are_reused_once_more(changes: Changes) -> None:
    """A plausible author notes only for app containers which devices were taken again."""

    def allocate(original: Any, state: Any, pod: Any, container: Any, *rest: Any) -> Any:
        kept = _kept(state, pod.uid)
        after = original(state, pod, container, *rest)
        return after.with_reuse(ReusableDevices(pod.uid, kept)) if container.sidecar else after

    _allocating(changes, allocate)
