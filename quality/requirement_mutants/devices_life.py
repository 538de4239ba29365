"""Violators of devices from their report to a restart."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.checkpoints import devices as checkpoint
from numaproof.reference.devices import policy
from numaproof.reference.devices.policy import DeviceError
from numaproof.reference.devices.state import (
    NONE,
    Devices,
    DeviceState,
    ReusableDevices,
    devices_by_resource,
)
from numaproof.reference.errors import AdmissionError
from numaproof.reference.node import StartedNode
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import NO_AFFINITY
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

seeds = SubjectBugs("devices-life")


# Removal


@shape(DeviceState, "release", Changes.after)
def _free_some(some: Callable[[Any], Any], after: Any, self: DeviceState, uid: str) -> Any:
    """Lets a pod that is gone free `some` of the devices that its containers held."""
    free = devices_by_resource({uid: some(self.held_devices[uid])})
    taken = {name: ids - free.get(name, NONE) for name, ids in self.allocated_devices.items()}
    return replace(after, allocated_devices=taken)


@seeds("DEV-REMOVE-001").by(_free_some)
def removed_pods_free_only_the_first_resource_of_a_container(pod: Any) -> Any:
    """Returns from the loop over resources too early."""
    return {
        name: {resource: mine[resource] for resource in sorted(mine)[:1]}
        for name, mine in pod.items()
    }


@seeds("DEV-REMOVE-001").of(_free_some, lambda pod: dict(list(pod.items())[-1:]))
def removed_pods_free_only_the_devices_of_their_last_container() -> None:
    """Keeps one set of devices for each pod, which containers overwrite."""


def _give_back(node: StartedNode, uid: str, *names: str) -> None:
    """Takes the devices back from these containers of a pod that is on the node."""
    state = node.device_manager.state
    pod = {
        name: mine for name, mine in state.held_devices.get(uid, {}).items() if name not in names
    }
    held = {**state.held_devices, uid: pod}
    node.device_manager.state = replace(
        state, held_devices=held, allocated_devices=devices_by_resource(held)
    )


@shape(StartedNode, "remove", Changes.after)
def _return_on_end(returns: Change, answer: Any, self: StartedNode, args: Any) -> Any:
    """Lets these containers of a pod give their devices back when one has ended."""
    if args.container is not None:
        names = returns(self, self.pods[args.uid], args.container)
        if names:
            _give_back(self, args.uid, *names)
    return answer


@seeds("DEV-REMOVE-002").by(_return_on_end)
def sidecars_give_their_devices_back_when_they_end(_: StartedNode, pod: Any, name: str) -> Any:
    """Finds that nobody reuses a sidecar's devices, and frees them."""
    return (name,) if pod.container(name).sidecar else ()


@seeds("DEV-REMOVE-002").by(_return_on_end)
def devices_of_a_pod_are_free_once_all_its_containers_have_ended(
    node: StartedNode, pod: Any, _: str
) -> tuple[str, ...]:
    """Takes a pod whose containers have all ended for one that is gone."""
    names = tuple(container.name for container in pod.containers)
    return names if all((pod.uid, name) in node.ended_containers for name in names) else ()


_LOST = "lost/"
"""Begins the uids under which the devices are kept that nobody takes back."""


def _lose(node: StartedNode, uid: str) -> None:
    """Leaves what the pod has allocated for good."""
    state = node.device_manager.state
    held = dict(state.held_devices)
    mine = held.pop(uid, None)
    if mine:
        held[_LOST + uid] = mine
        node.device_manager.state = replace(state, held_devices=held)


@shape(DeviceState, "release")
def _never_released(rule: Any, self: Any, uid: str) -> Any:
    return self if uid.startswith(_LOST) else rule()


def _leak_rejected(changes: Changes, leaks: Callable[[AdmissionError], bool]) -> None:
    """Lets devices stay allocated for pods that are rejected so."""

    def admit(rule: Any, self: StartedNode, args: Any) -> Any:
        try:
            return rule()
        except AdmissionError as error:
            if leaks(error):
                _lose(self, args.pod["metadata"]["uid"])
            raise

    changes.around(StartedNode, "admit", admit)
    _never_released(changes)


@seeds("DEV-REMOVE-003").of(_leak_rejected, lambda error: "[memorymanager]" in str(error))
def pods_that_lack_memory_leave_their_devices_allocated() -> None:
    """Undoes what the CPU Manager refuses, and forgets the Memory Manager."""


@seeds("DEV-REMOVE-003").of(_leak_rejected, lambda error: error.reason == "TopologyAffinityError")
def pods_without_common_nodes_leave_devices_of_earlier_containers() -> None:
    """Expects nothing to be allocated when the Topology Manager rejects."""


# Restart


@shape(checkpoint, "load", Changes.after)
def _filter_restored(keep: Callable[[Any], Any], device_state: Any) -> Any:
    """Lets a restart keep of each pod's devices only these."""
    held = {uid: keep(pod) for uid, pod in device_state.held_devices.items()}
    return replace(device_state, held_devices=held, allocated_devices=devices_by_resource(held))


@seeds("DEV-RESTART-001").of(_filter_restored, lambda pod: dict(list(pod.items())[-1:]))
def restarts_keep_the_devices_of_one_container_of_a_pod() -> None:
    """Reads the file into a map by pod, which containers overwrite."""


@seeds("DEV-RESTART-001").by(_filter_restored)
def restarts_keep_one_resource_of_a_container(pod: Any) -> Any:
    """Reads the file into a map by container, which resources overwrite."""
    return {name: dict(list(mine.items())[-1:]) for name, mine in pod.items()}


@seeds("DEV-RESTART-004").around(scope, "admit")
def restored_devices_come_without_their_affinity(
    rule: Any, providers: Any, pod: Any, keep: Any
) -> None:
    """Asks for no hints where a container has its devices already."""
    before = providers[0].state

    def forget(container: Any, affinity: Any) -> None:
        held = before.of(pod.uid, container.name)
        keep(container, NO_AFFINITY if held else affinity)

    rule(keep=forget)


@seeds("DEV-RESTART-002")
def devices_of_pods_gone_at_a_restart_stay_allocated(changes: Changes) -> None:
    """Frees devices when a pod is removed, which nobody saw here."""

    def start(node: Any) -> Any:
        for uid in sorted(set(node.device_manager.state.held_devices) - set(node.pods)):
            _lose(node, uid)
        return node

    changes.after(startup, "start", start)
    _never_released(changes)


# Refusals


@shape(policy, "allocate_resource")
def _reword_error(text: str, change: Change, rule: Any, state: Any, request: Any) -> Any:
    """Lets a refusal that matches `text` say what `change` makes of match, state and request."""
    try:
        return rule()
    except DeviceError as error:
        found = re.search(text, str(error))
        if found is None:
            raise
        raise DeviceError(change(found, state, request), error.state) from None


_SHORT = r"Requested: (\d+), Available: (\d+)"


@seeds("DEV-ERROR-001").by(_reword_error, _SHORT)
def device_shortages_tell_the_whole_request(message_match: Any, _: Any, request: Any) -> str:
    """Tells what the container asks for, not what it lacks beside reuse."""
    start = message_match.string[: message_match.start()]
    return f"{start}Requested: {request.amount}, Available: {message_match[2]}"


@seeds("DEV-ERROR-002").by(_reword_error, r"from (\d+) to (\d+)$")
def changed_device_requests_tell_the_numbers_the_wrong_way_round(
    message_match: Any, *_: Any
) -> Any:
    """Swaps what is asked for and what is held."""
    before = message_match.string[: message_match.start()]
    return f"{before}from {message_match[2]} to {message_match[1]}"


@seeds("DEV-ERROR-003").by(_reword_error, "no longer healthy")
def held_devices_that_fell_ill_are_told_as_no_healthy_devices(_: Any, __: Any, request: Any) -> Any:
    """Has one message for everything that health is the cause of."""
    return f"no healthy devices present; cannot allocate unhealthy devices {request.resource}"


# Health


@shape(DeviceState, "report", Changes.after)
def _change_report(change: Change, after: Any, self: DeviceState, lists: Any) -> Any:
    """Lets `change` make another list of what a plugin reports, given the earlier list, too."""
    known = dict(after.lists)
    for resource in {one.resource for one in lists}:
        before = self.lists.get(resource, Devices())
        known[resource] = change(after, resource, before, known[resource])
    return replace(after, lists=known)


@seeds("DEV-HEALTH-002").by(_change_report)
def free_devices_that_are_no_longer_reported_stay_available(
    state: Any, resource: str, before: Devices, new_list: Devices
) -> Devices:
    """Adds a new list to the one before."""
    gone = before.healthy - state.allocated_devices.get(resource, NONE) - frozenset(new_list.nodes)
    nodes = {device: before.nodes[device] for device in sorted(gone)}
    return Devices({**new_list.nodes, **nodes}, new_list.healthy | gone)


@shape(DeviceState, "report", Changes.after)
def _take_away(is_lost: Callable[[Devices, str], bool], after: Any, lists: Any) -> Any:
    """Lets a new list take these devices from the containers that hold them."""
    names = {one.resource for one in lists}

    def remaining_ids(resource: str, ids: frozenset[str]) -> frozenset[str]:
        devices = after.lists[resource] if resource in names else None
        return frozenset(one for one in ids if not (devices and is_lost(devices, one)))

    held = {
        uid: {
            name: {resource: remaining_ids(resource, ids) for resource, ids in mine.items()}
            for name, mine in pod.items()
        }
        for uid, pod in after.held_devices.items()
    }
    return replace(after, held_devices=held, allocated_devices=devices_by_resource(held))


@seeds("DEV-HEALTH-003").by(_take_away)
def containers_lose_devices_that_fall_ill(devices: Devices, device: str) -> Any:
    """Takes an ill device out of every list that it is in."""
    return device in devices.nodes and device not in devices.healthy


@seeds("DEV-HEALTH-003").of(_take_away, lambda devices, device: device not in devices.nodes)
def containers_lose_devices_that_are_no_longer_reported() -> None:
    """Forgets a device altogether once its plugin does."""


def _held_and_healthy(changes: Changes, fine: Callable[[Devices, str], bool]) -> None:
    """Lets a container be admitted again with these devices, too."""

    def check_health(rule: Any, state: Any, resource: str, held_devices: frozenset[str]) -> None:
        devices = state.lists.get(resource)
        if devices is not None and held_devices and all(fine(devices, one) for one in held_devices):
            return
        rule()

    changes.around(policy, "check_health", check_health)


@seeds("DEV-HEALTH-005").by(_held_and_healthy)
def pods_with_devices_no_longer_reported_are_admitted_again(devices: Devices, device: str) -> Any:
    """Looks for held devices among the ill ones, where unknown ones are not."""
    return device in devices.healthy or device not in devices.nodes


@seeds("DEV-HEALTH-004").by(_change_report)
def devices_keep_the_nodes_of_their_first_list(_: Any, __: Any, before: Any, new_list: Any) -> Any:
    """Never looks at the topology of a known device again."""
    nodes = {one: before.nodes.get(one, mask) for one, mask in new_list.nodes.items()}
    return replace(new_list, nodes=nodes)


# Init containers and sidecars


def _allocating(changes: Changes, allocate: Callable[..., Any]) -> None:
    """Lets `allocate` allocate for a container: rule, state, pod, container and the rest."""
    changes.around(policy, "allocate", allocate)


def _reusable_devices(state: DeviceState, uid: str) -> Mapping[str, frozenset[str]]:
    """What the pod's containers may take again."""
    return state.reuse.devices if state.reuse.uid == uid else {}


@seeds("DEV-INIT-001").by(_allocating)
def only_the_first_app_container_reuses_devices(
    rule: Any, state: Any, pod: Any, container: Any, *rest: Any
) -> Any:
    """Drops what is left over once an app container was served."""
    after = rule(state, pod, container, *rest)
    return after if container.init else after.with_reuse(ReusableDevices(pod.uid, {}))


@seeds("DEV-INIT-001").by(_allocating)
def sidecars_reuse_no_devices(rule: Any, state: Any, pod: Any, container: Any, *rest: Any) -> Any:
    """Considers app containers alone when init containers have ended."""
    if not container.sidecar:
        return rule(state, pod, container, *rest)
    kept = _reusable_devices(state, pod.uid)
    after = rule(state.with_reuse(ReusableDevices()), pod, container, *rest)
    return after.with_reuse(ReusableDevices(pod.uid, kept))


@seeds("DEV-INIT-002").after(StartedNode, "remove")
def init_containers_give_their_devices_back_when_they_end(answer: Any, self: Any, args: Any) -> Any:
    """Frees devices like CPUs, as soon as a container has ended."""
    if args.container is not None:
        pod = self.pods[args.uid]
        if pod.container(args.container).runs_to_completion:
            _give_back(self, args.uid, args.container)
    return answer


@seeds("DEV-INIT-003").by(_allocating)
def devices_of_sidecars_are_reused_like_those_of_init_containers(
    rule: Any, state: Any, pod: Any, container: Any, *rest: Any
) -> Any:
    """Treats a sidecar as an init container, which does not stay."""
    return rule(state, pod, replace(container, sidecar=False), *rest)


@seeds("DEV-INIT-003").by(_allocating)
def devices_that_a_sidecar_reuses_are_reused_once_more(
    rule: Any, state: Any, pod: Any, container: Any, *rest: Any
) -> Any:
    """Notes only for app containers which devices were taken again."""
    kept = _reusable_devices(state, pod.uid)
    after = rule(state, pod, container, *rest)
    return after.with_reuse(ReusableDevices(pod.uid, kept)) if container.sidecar else after
