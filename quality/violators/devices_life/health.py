"""Violators of the requirements of devices from report to restart, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.devices import allocation
from numaproof.reference.devices.allocation import DeviceError
from numaproof.reference.devices.manager import DeviceManager
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


@seeds("DEV-HEALTH-001")
def ill_devices_are_allocated_while_others_are_healthy(changes: Changes) -> None:
    """A plausible author asks for the health of a resource, not of each device."""

    def allocate_resource(original: Any, state: Any, request: Any, near: Any) -> Any:
        lists = state.lists
        devices = lists.get(request.resource)
        if state.of(request.uid, request.container).get(request.resource) or not (
            devices and devices.healthy
        ):
            return original(state, request, near)
        all_healthy = dataclasses.replace(devices, healthy=frozenset(devices.nodes))
        state = dataclasses.replace(state, lists={**lists, request.resource: all_healthy})
        try:
            after = original(state, request, near)
        except DeviceError as error:
            left = dataclasses.replace(error.state, lists=lists)
            raise DeviceError(str(error), left) from None
        return dataclasses.replace(after, lists=lists)

    changes.around(allocation, "allocate_resource", allocate_resource)


@seeds("DEV-HEALTH-001")
def devices_that_are_ill_in_the_first_list_are_allocated(changes: Changes) -> None:
    """A plausible author looks for devices that fall ill, and takes new ones for healthy."""

    def change(_: Any, __: str, before: Devices, reported: Devices) -> Devices:
        new = frozenset(reported.nodes) - frozenset(before.nodes)
        return dataclasses.replace(reported, healthy=reported.healthy | new)

    _reported(changes, change)


@seeds("DEV-HEALTH-002")
def recovered_devices_stay_out_of_use(changes: Changes) -> None:
    """A plausible author takes ill devices out of the pool, and never puts one back."""

    def change(_: Any, __: str, before: Devices, reported: Devices) -> Devices:
        ill = frozenset(before.nodes) - before.healthy
        return dataclasses.replace(reported, healthy=reported.healthy - ill)

    _reported(changes, change)


@seeds("DEV-HEALTH-002")
def free_devices_that_fall_ill_stay_available(changes: Changes) -> None:
    """A plausible author watches only the devices that containers hold."""

    def change(state: Any, resource: str, before: Devices, reported: Devices) -> Devices:
        free = before.healthy - state.taken.get(resource, NONE)
        known = free & frozenset(reported.nodes)
        return dataclasses.replace(reported, healthy=reported.healthy | known)

    _reported(changes, change)


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

    changes.around(allocation, "check_health", check_health)


@seeds("DEV-HEALTH-005")
def pods_with_ill_devices_are_admitted_again(changes: Changes) -> None:
    """A plausible author returns what a container holds before health is looked at."""
    _held_and_healthy(changes, lambda devices, one: one in devices.nodes)


@seeds("DEV-HEALTH-005")
def pods_with_devices_no_longer_reported_are_admitted_again(changes: Changes) -> None:
    """A plausible author looks for held devices among the ill ones, where unknown ones are not."""
    _held_and_healthy(
        changes, lambda devices, one: one in devices.healthy or one not in devices.nodes
    )


@seeds("DEV-HEALTH-004")
def lists_withdraw_the_resources_that_are_not_in_them(changes: Changes) -> None:
    """A plausible author takes one plugin's list for the lists of all."""

    def report(original: Any, self: DeviceState, lists: Any) -> Any:
        after = original(self, lists)
        names = {one.resource for one in lists}
        known = {name: it if name in names else Devices() for name, it in after.lists.items()}
        return dataclasses.replace(after, lists=known) if names else after

    changes.around(DeviceState, "report", report)


@seeds("DEV-HEALTH-004")
def devices_that_are_added_later_wait_for_a_restart(changes: Changes) -> None:
    """A plausible author takes only the health of known devices from later lists."""

    def change(_: Any, __: str, before: Devices, reported: Devices) -> Devices:
        if not before.nodes:
            return reported
        nodes = {one: mask for one, mask in reported.nodes.items() if one in before.nodes}
        return Devices(nodes, reported.healthy & frozenset(nodes))

    _reported(changes, change)


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
    changes.around(allocation, "allocate", changed)


def _kept(state: DeviceState, uid: str) -> Mapping[str, frozenset[str]]:
    """What the pod's containers may take again."""
    return state.reuse.devices if state.reuse.uid == uid else {}


@seeds("DEV-INIT-001")
def init_containers_take_fresh_devices_each(changes: Changes) -> None:
    """A plausible author lets only app containers reuse devices."""

    def allocate(original: Any, state: Any, pod: Any, container: Any, *rest: Any) -> Any:
        if not container.passes:
            return original(state, pod, container, *rest)
        kept = _kept(state, pod.uid)
        after = original(state.with_reuse(ReusableDevices()), pod, container, *rest)
        own = after.of(pod.uid, container.name)
        both = {name: kept.get(name, NONE) | own.get(name, NONE) for name in {*kept, *own}}
        return after.with_reuse(ReusableDevices(pod.uid, both))

    _allocating(changes, allocate)


@seeds("DEV-INIT-001")
def only_the_first_app_container_reuses_devices(changes: Changes) -> None:
    """A plausible author drops what is left over once an app container was served."""

    def allocate(original: Any, state: Any, pod: Any, container: Any, *rest: Any) -> Any:
        after = original(state, pod, container, *rest)
        return after if container.init else after.with_reuse(ReusableDevices(pod.uid, {}))

    _allocating(changes, allocate)


@seeds("DEV-INIT-001")
def app_containers_all_reuse_the_same_devices(changes: Changes) -> None:
    """A plausible author does not note which devices a container has taken again."""

    def allocate(original: Any, state: Any, pod: Any, container: Any, *rest: Any) -> Any:
        kept = _kept(state, pod.uid)
        after = original(state, pod, container, *rest)
        return after if container.init else after.with_reuse(ReusableDevices(pod.uid, kept))

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


@seeds("DEV-INIT-001")
def devices_are_reused_only_where_they_suffice(changes: Changes) -> None:
    """A plausible author reuses what is all that a container needs, or nothing."""

    def allocate_resource(original: Any, state: Any, request: Any, near: Any) -> Any:
        if len(state.reuse.of(request.uid, request.resource)) >= request.amount:
            return original(state, request, near)
        reuse = state.reuse
        return original(state.with_reuse(ReusableDevices()), request, near).with_reuse(reuse)

    changes.around(allocation, "allocate_resource", allocate_resource)


@seeds("DEV-INIT-002")
def left_over_devices_of_init_containers_go_to_other_pods(changes: Changes) -> None:
    """A plausible author gives back what app containers did not take again."""

    def reclaim(original: Any, self: DeviceManager, pods: Any) -> None:
        original(self, pods)
        state = self.state
        ended = {
            (uid, one.name) for uid, pod in pods.items() for one in pod.containers if one.passes
        }
        running = {
            uid: {name: mine for name, mine in pod.items() if (uid, name) not in ended}
            for uid, pod in state.held.items()
        }
        if running != state.held:
            self.state = dataclasses.replace(state, taken=all_held(running))

    changes.around(DeviceManager, "reclaim", reclaim)


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
