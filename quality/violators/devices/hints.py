"""Violators of the requirements of device hints, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.devices.hints import DeviceHints, DeviceNeed
from numaproof.reference.devices.state import Devices
from numaproof.reference.topology.hints import Demand, Need, Supply
from numaproof.reference.topology.search import evaluation
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.devices.state import DeviceState

seeds = SubjectBugs("devices")


def _hints(changes: Changes, changed: Callable[[Any, Any, Any, Any], Any]) -> None:
    """Lets `changed` make the hints for devices of one resource."""
    changes.around(DeviceHints, "of_resource", changed)


def _demands(
    changes: Changes, change: Callable[[Demand, Need, DeviceState, DeviceNeed], Any]
) -> None:
    """Lets `change` make other hints of those that there are."""

    def changed(original: Any, self: Any, state: Any, need: Any) -> Any:
        found = original(self, state, need)
        return change(found, found.needs[0], state, need) if isinstance(found, Demand) else found

    _hints(changes, changed)


def _relisted(state: DeviceState, resource: str, **fields: Any) -> DeviceState:
    """The state in which the list of a resource says something else."""
    devices = dataclasses.replace(state.lists[resource], **fields)
    return dataclasses.replace(state, lists={**state.lists, resource: devices})


def _with(demand: Demand, **fields: Any) -> Demand:
    """The demand with another need."""
    return dataclasses.replace(demand, needs=(dataclasses.replace(demand.needs[0], **fields),))


# Without topology


@seeds("DEV-HINT-004")
def one_device_without_topology_leaves_its_resource_unaligned(changes: Changes) -> None:
    """A plausible author aligns a resource only if all its devices have nodes."""
    changes.replace(
        Devices,
        "aligned",
        property(lambda self: bool(self.nodes) and all(self.nodes.values())),
    )


@seeds("DEV-HINT-004")
def devices_without_topology_count_for_every_set_in_hints(changes: Changes) -> None:
    """A plausible author lets devices without nodes fill up any set of nodes."""

    def changed(original: Any, self: Any, state: Any, need: Any) -> Any:
        devices = state.lists.get(need.resource)
        if devices is None or not devices.aligned:
            return original(self, state, need)
        everywhere = 0
        for mask in devices.nodes.values():
            everywhere |= mask or 0
        nodes = {device: mask or everywhere for device, mask in devices.nodes.items()}
        return original(self, _relisted(state, need.resource, nodes=nodes), need)

    _hints(changes, changed)


# Which sets, and which are preferred


@seeds("DEV-HINT-005")
def too_few_free_devices_are_no_preference(changes: Changes) -> None:
    """A plausible author leaves it to the allocation to refuse what there is too little of."""

    def changed(original: Any, self: Any, state: Any, need: Any) -> Any:
        found = original(self, state, need)
        return None if found == () and not need.held else found

    _hints(changes, changed)


@seeds("DEV-HINT-006")
def devices_of_two_nodes_count_twice_for_both(changes: Changes) -> None:
    """A plausible author adds up the devices of each node of a set."""

    def change(demand: Demand, need: Need, *_: Any) -> Any:
        return _with(demand, free=_by_node(need.free), total=_by_node(need.total))

    _demands(changes, change)


def _by_node(supplies: tuple[Supply, ...]) -> tuple[Supply, ...]:
    return tuple(
        Supply(1 << node, supply.amount)
        for supply in supplies
        for node in range(supply.nodes.bit_length())
        if supply.nodes >> node & 1
    )


@seeds("DEV-HINT-006")
def devices_of_several_nodes_count_for_the_first_one(changes: Changes) -> None:
    """A plausible author reads only the first node of a device's topology."""

    def first(supplies: tuple[Supply, ...]) -> tuple[Supply, ...]:
        return tuple(supply._replace(nodes=supply.nodes & -supply.nodes) for supply in supplies)

    def change(demand: Demand, need: Need, *_: Any) -> Any:
        return _with(demand, free=first(need.free), total=first(need.total))

    _demands(changes, change)


@seeds("DEV-HINT-006")
def devices_of_several_nodes_count_only_for_sets_with_all_of_them(changes: Changes) -> None:
    """A plausible author asks whether a set has all nodes of the device."""

    def change(demand: Demand, need: Need, *_: Any) -> Any:
        def within(nodes: int) -> int:
            return sum(one.amount for one in need.free if not one.nodes & ~nodes)

        return tuple(
            hint for hint in evaluation.listed(demand) if within(hint.nodes) >= need.amount
        )

    _demands(changes, change)


@seeds("DEV-HINT-007")
def unhealthy_devices_are_free_in_hints(changes: Changes) -> None:
    """A plausible author takes health into account when devices are allocated, not before."""

    def changed(original: Any, self: Any, state: Any, need: Any) -> Any:
        devices = state.lists.get(need.resource)
        if devices is not None and devices.healthy:
            state = _relisted(state, need.resource, healthy=frozenset(devices.nodes))
        return original(self, state, need)

    _hints(changes, changed)


# Containers with devices, whole pods, resources that are not asked for


def _pods(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets the request of a pod as a whole be made from other containers."""

    def for_pod(original: Any, self: Any, state: Any, pod: Any) -> Any:
        containers = tuple(change(pod, container) for container in pod.containers)
        return original(self, state, dataclasses.replace(pod, containers=containers))

    changes.around(DeviceHints, "for_pod", for_pod)


@seeds("DEV-HINT-009")
def device_hints_of_pods_leave_out_what_only_sidecars_name(changes: Changes) -> None:
    """A plausible author takes the names of resources from app and init containers."""

    def change(pod: Any, container: Any) -> Any:
        named = {name for one in pod.containers if not one.sidecar for name in one.limits}
        limits = {name: amount for name, amount in container.limits.items() if name in named}
        return dataclasses.replace(container, limits=limits)

    _pods(changes, change)
