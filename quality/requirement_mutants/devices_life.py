"""Mutants of device health, removal and restarts."""

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
    """Frees only `some` of a removed pod's devices."""
    free = devices_by_resource({uid: some(self.held_devices[uid])})
    taken = {name: ids - free.get(name, NONE) for name, ids in self.allocated_devices.items()}
    return replace(after, allocated_devices=taken)


@seeds("DEV-REMOVE-001").by(_free_some)
def removed_pods_free_only_the_first_resource_of_a_container(pod: Any) -> Any:
    """Frees only the first resource of each container."""
    return {
        name: {resource: mine[resource] for resource in sorted(mine)[:1]}
        for name, mine in pod.items()
    }


@seeds("DEV-REMOVE-001").of(_free_some, lambda pod: dict(list(pod.items())[-1:]))
def removed_pods_free_only_the_devices_of_their_last_container() -> None:
    """Frees only the devices of the last container."""


def _give_back(node: StartedNode, uid: str, *names: str) -> None:
    """Releases the devices of some containers of a pod that stays on the node."""
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
    """Releases the devices of the containers that `returns` lists when a container ends."""
    if args.container is not None:
        names = returns(self, self.pods[args.uid], args.container)
        if names:
            _give_back(self, args.uid, *names)
    return answer


@seeds("DEV-REMOVE-002").by(_return_on_end)
def sidecars_give_their_devices_back_when_they_end(_: StartedNode, pod: Any, name: str) -> Any:
    """Releases a sidecar's devices when it ends."""
    return (name,) if pod.container(name).sidecar else ()


@seeds("DEV-REMOVE-002").by(_return_on_end)
def devices_of_a_pod_are_free_once_all_its_containers_have_ended(
    node: StartedNode, pod: Any, _: str
) -> tuple[str, ...]:
    """Releases a pod's devices when all of its containers have ended."""
    names = tuple(container.name for container in pod.containers)
    return names if all((pod.uid, name) in node.ended_containers for name in names) else ()


_LOST = "lost/"
"""Prefix of the pod uids whose devices are never released."""


def _lose(node: StartedNode, uid: str) -> None:
    """Keeps the pod's devices allocated forever."""
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
    """Leaks the devices of rejected pods if `leaks` is true for the error."""

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
    """Leaks the devices of pods that the Memory Manager rejects."""


@seeds("DEV-REMOVE-003").of(_leak_rejected, lambda error: error.reason == "TopologyAffinityError")
def pods_without_common_nodes_leave_devices_of_earlier_containers() -> None:
    """Leaks the devices of pods rejected with TopologyAffinityError."""


# Restarts


@shape(checkpoint, "load", Changes.after)
def _filter_restored(keep: Callable[[Any], Any], device_state: Any) -> Any:
    """Restores only the devices that `keep` returns for each pod."""
    held = {uid: keep(pod) for uid, pod in device_state.held_devices.items()}
    return replace(device_state, held_devices=held, allocated_devices=devices_by_resource(held))


@seeds("DEV-RESTART-001").of(_filter_restored, lambda pod: dict(list(pod.items())[-1:]))
def restarts_keep_the_devices_of_one_container_of_a_pod() -> None:
    """Restores only the devices of each pod's last container."""


@seeds("DEV-RESTART-001").by(_filter_restored)
def restarts_keep_one_resource_of_a_container(pod: Any) -> Any:
    """Restores only one resource of each container."""
    return {name: dict(list(mine.items())[-1:]) for name, mine in pod.items()}


@seeds("DEV-RESTART-004").around(scope, "admit")
def restored_devices_come_without_their_affinity(
    rule: Any, providers: Any, pod: Any, keep: Any
) -> None:
    """Doesn't store the affinity of containers whose devices were restored."""
    before = providers[0].state

    def forget(container: Any, affinity: Any) -> None:
        held = before.of(pod.uid, container.name)
        keep(container, NO_AFFINITY if held else affinity)

    rule(keep=forget)


@seeds("DEV-RESTART-002")
def devices_of_pods_gone_at_a_restart_stay_allocated(changes: Changes) -> None:
    """Leaks the devices of pods that left during a restart."""

    def start(node: Any) -> Any:
        for uid in sorted(set(node.device_manager.state.held_devices) - set(node.pods)):
            _lose(node, uid)
        return node

    changes.after(startup, "start", start)
    _never_released(changes)


# Rejections


@shape(policy, "allocate_resource")
def _reword_error(text: str, change: Change, rule: Any, state: Any, request: Any) -> Any:
    """Replaces errors that match `text` with `change` of the match, state and request."""
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
    """Reports the whole request, including reused devices."""
    start = message_match.string[: message_match.start()]
    return f"{start}Requested: {request.amount}, Available: {message_match[2]}"


@seeds("DEV-ERROR-002").by(_reword_error, r"from (\d+) to (\d+)$")
def changed_device_requests_tell_the_numbers_the_wrong_way_round(
    message_match: Any, *_: Any
) -> Any:
    """Swaps the requested and held counts."""
    before = message_match.string[: message_match.start()]
    return f"{before}from {message_match[2]} to {message_match[1]}"


@seeds("DEV-ERROR-003").by(_reword_error, "no longer healthy")
def held_devices_that_fell_ill_are_told_as_no_healthy_devices(_: Any, __: Any, request: Any) -> Any:
    """Reports unhealthy held devices like free ones."""
    return f"no healthy devices present; cannot allocate unhealthy devices {request.resource}"


# Health


@shape(DeviceState, "report", Changes.after)
def _change_report(change: Change, after: Any, self: DeviceState, lists: Any) -> Any:
    """Lets `change` replace a reported list, given the previous one."""
    known = dict(after.lists)
    for resource in {one.resource for one in lists}:
        before = self.lists.get(resource, Devices())
        known[resource] = change(after, resource, before, known[resource])
    return replace(after, lists=known)


@seeds("DEV-HEALTH-002").by(_change_report)
def free_devices_that_are_no_longer_reported_stay_available(
    state: Any, resource: str, before: Devices, new_list: Devices
) -> Devices:
    """Keeps devices that the plugin no longer reports."""
    gone = before.healthy - state.allocated_devices.get(resource, NONE) - frozenset(new_list.nodes)
    nodes = {device: before.nodes[device] for device in sorted(gone)}
    return Devices({**new_list.nodes, **nodes}, new_list.healthy | gone)


@shape(DeviceState, "report", Changes.after)
def _take_away(is_lost: Callable[[Devices, str], bool], after: Any, lists: Any) -> Any:
    """Takes devices for which `is_lost` is true from their containers."""
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
    """Takes unhealthy devices from their containers."""
    return device in devices.nodes and device not in devices.healthy


@seeds("DEV-HEALTH-003").of(_take_away, lambda devices, device: device not in devices.nodes)
def containers_lose_devices_that_are_no_longer_reported() -> None:
    """Takes devices that the plugin no longer reports from their containers."""


def _held_and_healthy(changes: Changes, fine: Callable[[Devices, str], bool]) -> None:
    """Readmits containers if `fine` is true for all of their devices."""

    def check_health(rule: Any, state: Any, resource: str, held_devices: frozenset[str]) -> None:
        devices = state.lists.get(resource)
        if devices is not None and held_devices and all(fine(devices, one) for one in held_devices):
            return
        rule()

    changes.around(policy, "check_health", check_health)


@seeds("DEV-HEALTH-005").by(_held_and_healthy)
def pods_with_devices_no_longer_reported_are_admitted_again(devices: Devices, device: str) -> Any:
    """Readmits containers with devices that the plugin no longer reports."""
    return device in devices.healthy or device not in devices.nodes


@seeds("DEV-HEALTH-004").by(_change_report)
def devices_keep_the_nodes_of_their_first_list(_: Any, __: Any, before: Any, new_list: Any) -> Any:
    """Ignores changes to a known device's topology."""
    nodes = {one: before.nodes.get(one, mask) for one, mask in new_list.nodes.items()}
    return replace(new_list, nodes=nodes)


@seeds("DEV-HEALTH-004", level="invariants").by(_change_report)
def empty_lists_are_ignored(_: Any, __: Any, before: Devices, new_list: Devices) -> Devices:
    """Keeps the last list if a plugin reports no devices."""
    return new_list if new_list.nodes else before


# Init containers and sidecars


def _allocating(changes: Changes, allocate: Callable[..., Any]) -> None:
    """Lets `allocate` replace a container's allocation."""
    changes.around(policy, "allocate", allocate)


def _reusable_devices(state: DeviceState, uid: str) -> Mapping[str, frozenset[str]]:
    """Returns the devices that the pod's containers can reuse."""
    return state.reuse.devices if state.reuse.uid == uid else {}


@seeds("DEV-INIT-001").by(_allocating)
def only_the_first_app_container_reuses_devices(
    rule: Any, state: Any, pod: Any, container: Any, *rest: Any
) -> Any:
    """Lets only the first app container reuse devices."""
    after = rule(state, pod, container, *rest)
    return after if container.init else after.with_reuse(ReusableDevices(pod.uid, {}))


@seeds("DEV-INIT-001").by(_allocating)
def sidecars_reuse_no_devices(rule: Any, state: Any, pod: Any, container: Any, *rest: Any) -> Any:
    """Doesn't let sidecars reuse devices."""
    if not container.sidecar:
        return rule(state, pod, container, *rest)
    kept = _reusable_devices(state, pod.uid)
    after = rule(state.with_reuse(ReusableDevices()), pod, container, *rest)
    return after.with_reuse(ReusableDevices(pod.uid, kept))


@seeds("DEV-INIT-002").after(StartedNode, "remove")
def init_containers_give_their_devices_back_when_they_end(answer: Any, self: Any, args: Any) -> Any:
    """Releases an init container's devices when it ends."""
    if args.container is not None:
        pod = self.pods[args.uid]
        if pod.container(args.container).runs_to_completion:
            _give_back(self, args.uid, args.container)
    return answer


@seeds("DEV-INIT-003").by(_allocating)
def devices_of_sidecars_are_reused_like_those_of_init_containers(
    rule: Any, state: Any, pod: Any, container: Any, *rest: Any
) -> Any:
    """Lets other containers reuse a sidecar's devices."""
    return rule(state, pod, replace(container, sidecar=False), *rest)


@seeds("DEV-INIT-003").by(_allocating)
def devices_that_a_sidecar_reuses_are_reused_once_more(
    rule: Any, state: Any, pod: Any, container: Any, *rest: Any
) -> Any:
    """Keeps devices reusable after a sidecar has taken them."""
    kept = _reusable_devices(state, pod.uid)
    after = rule(state, pod, container, *rest)
    return after.with_reuse(ReusableDevices(pod.uid, kept)) if container.sidecar else after


# Plugins that fail


def _without_failures(state: DeviceState) -> DeviceState:
    """Returns the state with plugins that don't fail."""
    return replace(
        state, lists={name: replace(one, fails=False) for name, one in state.lists.items()}
    )


@seeds("DEV-ERROR-004").around(policy, "allocate_resource")
def plugins_may_fail_for_single_devices(rule: Any, state: DeviceState, request: Any) -> Any:
    """Ignores the failure of a plugin that is asked for one device."""
    if request.amount > 1:
        return rule()
    return replace(rule(state=_without_failures(state)), lists=state.lists)


@seeds("DEV-ERROR-004").around(policy, "allocate")
def plugins_may_fail_for_init_containers(rule: Any, state: DeviceState, container: Any) -> Any:
    """Ignores the failure of a plugin that is asked for an init container's devices."""
    if not container.runs_to_completion:
        return rule()
    return replace(rule(state=_without_failures(state)), lists=state.lists)


@seeds("DEV-ERROR-004").around(policy, "allocate_resource")
def the_error_of_a_plugin_is_lost(rule: Any) -> Any:
    """Replaces the plugin's error in the message."""
    try:
        return rule()
    except DeviceError as error:
        if "rpc error" not in str(error):
            raise
        raise DeviceError("the plugin failed", error.state) from None
