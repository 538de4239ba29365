"""Mutants of device allocation and hints."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference.checkpoints import devices as checkpoint
from numaproof.reference.devices import policy
from numaproof.reference.devices.hints import DeviceHints, DeviceNeed
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.devices.policy import DeviceError, Near
from numaproof.reference.devices.state import NONE, Devices, DeviceState, devices_by_resource
from numaproof.reference.manager import unexpected_admission_error
from numaproof.reference.topology.hints import ANYWHERE, Demand, Need, Supply, TopologyHint
from numaproof.reference.topology.search import evaluation
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("devices")


# Allocation


@shape(policy, "allocate")
def _anywhere(free: Change, rule: Any, pod: Any, container: Any, near: Any) -> Any:
    """Allocates devices without affinity if `free` is true for the pod and container."""
    return rule(near=Near() if free(pod, container) else near)


@shape(policy, "allocate")
def _without_devices(nothing: Change, rule: Any, state: Any, pod: Any, container: Any) -> Any:
    """Allocates no devices if `nothing` is true for the pod and container."""
    return state if nothing(pod, container) else rule()


@shape(policy, "by_affinity")
def _rank(rank: Change, rule: Any, state: Any, request: Any, available: Any, affinity: Any) -> Any:
    """Sorts devices by `rank`, given the nodes of the device and of the affinity."""
    if affinity == ANYWHERE:
        return rule()
    nodes = state.lists[request.resource].nodes
    return sorted(
        available, key=lambda device: (rank(nodes[device] or 0, affinity), request.order(device))
    )


# The affinity


@seeds("DEV-ALLOCATE-001").of(_anywhere, lambda _, container: container.runs_to_completion)
def devices_of_init_containers_ignore_the_affinity() -> None:
    """Ignores the affinity of init containers."""


@seeds("DEV-ALLOCATE-001").of(_anywhere, lambda _, container: container.sidecar)
def devices_of_sidecars_ignore_the_affinity() -> None:
    """Ignores the affinity of sidecars."""


@seeds("DEV-ALLOCATE-006").by(_rank)
def devices_without_topology_come_before_far_ones(near: int, affinity: int) -> Any:
    """Prefers devices without topology to devices on other nodes."""
    return 0 if near & affinity else 1 if not near else 2


@seeds("DEV-ALLOCATE-006").of(_rank, lambda near, affinity: 0 if near & affinity else 1)
def far_devices_and_those_without_topology_come_in_one_group() -> None:
    """Treats devices without topology like devices on other nodes."""


@seeds("DEV-ALLOCATE-006").around(DeviceManager, "allocate")
def devices_follow_no_affinity_that_is_not_preferred(rule: Any, affinity: Any) -> Any:
    """Ignores affinities that aren't preferred."""
    return rule(affinity=affinity if affinity.preferred else TopologyHint(ANYWHERE, False))


@seeds("DEV-ALLOCATE-006").around(DeviceManager, "near")
def devices_follow_only_the_first_node_of_an_affinity(rule: Any, affinity: Any) -> Any:
    """Uses only the first node of the affinity."""
    return rule(affinity=affinity._replace(nodes=affinity.nodes & -affinity.nodes))


# One container per device


@seeds("DEV-ALLOCATE-002").after(DeviceState, "report")
def new_lists_make_devices_in_use_free(after: Any, lists: Any) -> Any:
    """Frees devices in use when a plugin sends a new list."""
    reported = {one.resource for one in lists}
    taken = {name: ids for name, ids in after.allocated_devices.items() if name not in reported}
    return replace(after, allocated_devices=taken) if after.held_devices else after


@seeds("DEV-ALLOCATE-002").around(
    checkpoint, "load", lambda rule: replace(rule(), allocated_devices={})
)
def restored_devices_count_as_free() -> None:
    """Restores which devices are held, but not that they are allocated."""


@seeds("DEV-ALLOCATE-002").after(DeviceState, "release")
def removals_forget_devices_of_containers_of_the_same_name(after: Any) -> Any:
    """Forgets devices held by containers with equal names in different pods."""
    by_name = {name: ids for pod in after.held_devices.values() for name, ids in pod.items()}
    return replace(after, allocated_devices=devices_by_resource({"": by_name}))


@seeds("DEV-ALLOCATE-002").after(policy, "allocate")
def app_containers_of_a_pod_share_devices(after: Any, pod: Any, container: Any) -> Any:
    """Lets the app containers of a pod share devices."""
    if container.init:
        return after
    reuse = dict(after.reuse.devices)
    for resource, ids in after.of(pod.uid, container.name).items():
        reuse[resource] = reuse.get(resource, NONE) | ids
    return after.with_reuse(after.reuse._replace(devices=reuse))


# The number that the limits request


@seeds("DEV-ALLOCATE-003").of(_without_devices, lambda pod, _: pod.qos == "BestEffort")
def best_effort_pods_get_no_devices() -> None:
    """Allocates no devices to BestEffort pods."""


@seeds("DEV-ALLOCATE-003").of(_without_devices, lambda pod, _: pod.qos == "Burstable")
def burstable_pods_get_no_devices() -> None:
    """Allocates no devices to Burstable pods."""


@seeds("DEV-ALLOCATE-003").of(_without_devices, lambda _, container: container.sidecar)
def sidecars_get_no_devices() -> None:
    """Allocates no devices to sidecars."""


@seeds("DEV-ALLOCATE-003").of(_without_devices, lambda _, container: container.runs_to_completion)
def init_containers_get_no_devices() -> None:
    """Allocates no devices to init containers."""


@seeds("DEV-ALLOCATE-003").after(DeviceState, "give")
def devices_of_the_last_resource_replace_the_others(
    after: Any, uid: str, container: str, resource: str, ids: frozenset[str]
) -> Any:
    """Keeps only the devices of the last resource."""
    pod = {**after.held_devices[uid], container: {resource: ids}}
    return replace(after, held_devices={**after.held_devices, uid: pod})


@seeds("DEV-ALLOCATE-004").around(DeviceManager, "allocate")
def unserved_resources_are_refused_without_any_plugin(rule: Any, self: Any, container: Any) -> None:
    """Rejects unknown resources on nodes without device plugins."""
    if not self.state.lists:
        for resource in sorted(container.limits):
            if "/" in resource:
                missing = f"requested number of devices unavailable for {resource}"
                raise unexpected_admission_error(DeviceError(missing, self.state))
    rule()


# Readmission


@seeds("DEV-ALLOCATE-005").around(policy, "allocate_resource")
def pods_admitted_again_take_devices_anew(rule: Any, state: Any, request: Any) -> Any:
    """Releases and reallocates devices on readmission."""
    uid, name, resource, count, *_ = request
    mine = state.of(uid, name)
    held = mine.get(resource, NONE)
    healthy = resource in state.lists and held <= state.lists[resource].healthy
    if not held or len(held) != count or not healthy:
        return rule()
    others = {other: ids for other, ids in mine.items() if other != resource}
    freed = replace(
        state,
        held_devices={**state.held_devices, uid: {**state.held_devices[uid], name: others}},
        allocated_devices={
            **state.allocated_devices,
            resource: state.allocated_devices.get(resource, NONE) - held,
        },
    )
    return rule(state=freed)


@seeds("DEV-ALLOCATE-005").around(policy, "allocate_resource")
def pods_that_want_fewer_devices_are_admitted_again(rule: Any, state: Any, request: Any) -> Any:
    """Readmits containers that request fewer devices than they hold."""
    held = state.of(request.uid, request.container).get(request.resource, NONE)
    if request.amount < len(held):
        return state
    return rule()


@seeds("DEV-ALLOCATE-005").around(policy, "allocate_resource")
def pods_that_want_more_devices_get_the_difference(
    rule: Any, state: Any, request: Any, near: Any
) -> Any:
    """Allocates the difference if a readmitted container requests more devices."""
    uid, name, resource, count, *_ = request
    held = state.of(uid, name).get(resource, NONE)
    free = state.available(resource)
    missing = count - len(held)
    if not held or missing <= 0 or len(free) < missing:
        return rule()
    more = policy.by_affinity(state, request, free, near.free)[:missing]
    return state.give(uid, name, resource, held.union(more))


# Hints


def _hints(changes: Changes, make_hints: Callable[[Any, Any, Any, Any], Any]) -> None:
    """Lets `make_hints` compute the hints for one resource."""
    changes.around(DeviceHints, "of_resource", make_hints)


def _demands(
    changes: Changes, change: Callable[[Demand, Need, DeviceState, DeviceNeed], Any]
) -> None:
    """Lets `change` replace existing hints."""

    def make_hints(rule: Any, self: Any, state: Any, need: Any) -> Any:
        found = rule(self, state, need)
        return change(found, found.needs[0], state, need) if isinstance(found, Demand) else found

    _hints(changes, make_hints)


def _change_list(state: DeviceState, resource: str, **fields: Any) -> DeviceState:
    """Returns the state with changed fields in a resource's device list."""
    devices = replace(state.lists[resource], **fields)
    return replace(state, lists={**state.lists, resource: devices})


def _with(demand: Demand, **fields: Any) -> Demand:
    """Returns the demand with changed fields in its need."""
    return replace(demand, needs=(replace(demand.needs[0], **fields),))


# Devices without topology


@seeds("DEV-HINT-004")
def one_device_without_topology_leaves_its_resource_unaligned(changes: Changes) -> None:
    """Treats a resource as unaligned if any device has no topology."""
    changes.replace(
        Devices,
        "has_topology",
        property(lambda self: bool(self.nodes) and all(self.nodes.values())),
    )


@seeds("DEV-HINT-004").by(_hints)
def devices_without_topology_count_for_every_set_in_hints(
    rule: Any, self: Any, state: Any, need: Any
) -> Any:
    """Counts devices without topology on every set of nodes."""
    devices = state.lists.get(need.resource)
    if devices is None or not devices.has_topology:
        return rule(self, state, need)
    everywhere = 0
    for mask in devices.nodes.values():
        everywhere |= mask or 0
    nodes = {device: mask or everywhere for device, mask in devices.nodes.items()}
    return rule(self, _change_list(state, need.resource, nodes=nodes), need)


# Sets of nodes, and which are preferred


@seeds("DEV-HINT-005").by(_hints)
def too_few_free_devices_are_no_preference(rule: Any, self: Any, state: Any, need: Any) -> Any:
    """Returns no hints instead of an empty list if too few devices are free."""
    found = rule(self, state, need)
    return None if found == () and not need.held_devices else found


@seeds("DEV-HINT-006").by(_demands)
def devices_of_two_nodes_count_twice_for_both(demand: Demand, need: Need, *_: Any) -> Any:
    """Counts a device with two nodes twice."""
    return _with(demand, free=_by_node(need.free), total=_by_node(need.total))


def _by_node(supplies: tuple[Supply, ...]) -> tuple[Supply, ...]:
    return tuple(
        Supply(1 << node, supply.amount)
        for supply in supplies
        for node in range(supply.nodes.bit_length())
        if supply.nodes >> node & 1
    )


@seeds("DEV-HINT-006")
def devices_of_several_nodes_count_for_the_first_one(changes: Changes) -> None:
    """Uses only the first node of a device."""

    def first(supplies: tuple[Supply, ...]) -> tuple[Supply, ...]:
        return tuple(supply._replace(nodes=supply.nodes & -supply.nodes) for supply in supplies)

    def change(demand: Demand, need: Need, *_: Any) -> Any:
        return _with(demand, free=first(need.free), total=first(need.total))

    _demands(changes, change)


@seeds("DEV-HINT-006").by(_demands)
def devices_of_several_nodes_count_only_for_sets_with_all_of_them(
    demand: Demand, need: Need, *_: Any
) -> Any:
    """Counts a device only for sets that contain all of its nodes."""

    def within(nodes: int) -> int:
        return sum(one.amount for one in need.free if not one.nodes & ~nodes)

    return tuple(
        hint for hint in evaluation.list_hints(demand) if within(hint.nodes) >= need.amount
    )


@seeds("DEV-HINT-007").by(_hints)
def unhealthy_devices_are_free_in_hints(rule: Any, self: Any, state: Any, need: Any) -> Any:
    """Counts unhealthy devices as free."""
    devices = state.lists.get(need.resource)
    if devices is not None and devices.healthy:
        state = _change_list(state, need.resource, healthy=frozenset(devices.nodes))
    return rule(self, state, need)


# Containers with devices, whole pods, and resources that aren't requested


@shape(DeviceHints, "for_pod")
def _pods(change: Callable[[Any, Any], Any], rule: Any, pod: Any) -> Any:
    """Lets `change` replace the containers that make up a pod's request."""
    containers = tuple(change(pod, container) for container in pod.containers)
    return rule(pod=replace(pod, containers=containers))


@seeds("DEV-HINT-009").by(_pods)
def device_hints_of_pods_leave_out_what_only_sidecars_name(pod: Any, container: Any) -> Any:
    """Ignores resources that only sidecars request."""
    named = {name for one in pod.containers if not one.sidecar for name in one.limits}
    limits = {name: amount for name, amount in container.limits.items() if name in named}
    return replace(container, limits=limits)


# The plugin's preference


@seeds("DEV-ALLOCATE-008").around(policy, "by_affinity")
def plugins_are_not_asked_what_they_prefer(rule: Any, request: Any) -> Any:
    """Doesn't ask plugins for their preferred devices."""
    return rule(request=request._replace(preferred=()))


@seeds("DEV-ALLOCATE-008").around(policy, "by_affinity")
def preferred_devices_are_in_no_order(rule: Any, request: Any) -> Any:
    """Ignores the order of preferred devices."""
    preferred = tuple(sorted(request.preferred))
    return rule(request=request._replace(preferred=preferred))


@seeds("DEV-ALLOCATE-008").around(policy, "by_affinity")
def plugins_are_asked_for_single_devices_alone(rule: Any, request: Any) -> Any:
    """Asks plugins only for requests for a single device."""
    if request.amount > 1:
        request = request._replace(preferred=())
    return rule(request=request)


@seeds("DEV-ALLOCATE-008").around(policy, "by_affinity")
def plugins_are_asked_only_where_nothing_is_aligned(rule: Any, request: Any, affinity: Any) -> Any:
    """Asks plugins only if there is no affinity."""
    if affinity != ANYWHERE:
        request = request._replace(preferred=())
    return rule(request=request)


@seeds("DEV-ALLOCATE-008").after(policy, "by_affinity")
def preferred_devices_come_before_near_ones(device_order: Any, request: Any) -> Any:
    """Prefers the plugin's devices to devices on the affinity's nodes."""
    return sorted(device_order, key=request.preference)
