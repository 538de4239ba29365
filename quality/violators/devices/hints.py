"""Violators of the requirements of device hints, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.departures.devices import AllNodesConsidered
from numaproof.reference.devices.hints import DeviceHints, DeviceNeed
from numaproof.reference.devices.state import NONE, Devices
from numaproof.reference.topology.hints import Demand, Need, Supply, TopologyHint
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


def _supplies(state: DeviceState, resource: str, ids: frozenset[str]) -> tuple[Supply, ...]:
    """What these devices are for sets of nodes."""
    nodes = state.lists[resource].nodes
    return tuple(Supply(mask, 1) for device in sorted(ids) if (mask := nodes.get(device)))


# Without topology


@seeds("DEV-HINT-001")
def empty_lists_of_nodes_are_a_topology(changes: Changes) -> None:
    """A plausible author asks whether there is a topology, not whether it names a node."""
    changes.replace(
        Devices,
        "aligned",
        property(lambda self: any(mask is not None for mask in self.nodes.values())),
    )


@seeds("DEV-HINT-001")
def devices_without_topology_have_a_hint_for_every_node(changes: Changes) -> None:
    """A plausible author takes a device without topology for one that is near every node."""

    def changed(original: Any, self: Any, state: Any, need: Any) -> Any:
        found = original(self, state, need)
        if found is not None or need.amount == 0:
            return found
        return tuple(TopologyHint(1 << node, True) for node in sorted(self.nodes))

    _hints(changes, changed)


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


@seeds("DEV-HINT-002")
def only_the_smallest_sets_have_device_hints(changes: Changes) -> None:
    """A plausible author stops at the first size of sets that has enough devices."""

    def smallest(demand: Demand, *_: Any) -> Any:
        hints = evaluation.listed(demand)
        fewest = min((hint.nodes.bit_count() for hint in hints), default=0)
        return tuple(hint for hint in hints if hint.nodes.bit_count() == fewest)

    _demands(changes, smallest)


@seeds("DEV-HINT-002")
def devices_of_other_containers_do_not_count_for_preferred_hints(changes: Changes) -> None:
    """A plausible author prefers what has fewest nodes now, where others hold devices."""

    def change(demand: Demand, _: Need, state: DeviceState, need: DeviceNeed) -> Any:
        known = frozenset(state.lists[need.resource].nodes)
        others = state.taken.get(need.resource, NONE) - need.held - need.reusable
        return _with(demand, total=_supplies(state, need.resource, known - others))

    _demands(changes, change)


@seeds("DEV-HINT-002")
def device_hints_of_one_node_alone_are_preferred(changes: Changes) -> None:
    """A plausible author prefers single nodes, whatever number of devices is asked for."""

    def change(demand: Demand, *_: Any) -> Any:
        return tuple(
            hint._replace(preferred=hint.nodes.bit_count() == 1)
            for hint in evaluation.listed(demand)
        )

    _demands(changes, change)


@seeds("DEV-HINT-003")
def device_hints_name_nodes_without_devices(changes: Changes) -> None:
    """A plausible author makes sets of all nodes of the machine, as before 1.36."""
    changes.replace(DeviceHints, "considered", lambda self, near: tuple(sorted(self.nodes)))


@seeds("DEV-HINT-003")
def device_hints_name_only_nodes_with_free_devices(changes: Changes) -> None:
    """A plausible author leaves out nodes whose devices are all in use."""

    def change(demand: Demand, need: Need, *_: Any) -> Any:
        near = 0
        for supply in need.free:
            near |= supply.nodes
        nodes = tuple(node for node in demand.nodes if near >> node & 1)
        return dataclasses.replace(demand, nodes=nodes) if nodes else ()

    _demands(changes, change)


@seeds("DEV-HINT-003", kubernetes="1.35")
def earlier_releases_hint_only_at_nodes_with_devices(changes: Changes) -> None:
    """A plausible author makes hints in every release as the newest one does."""
    changes.replace(AllNodesConsidered, "considered", DeviceHints.considered)


@seeds("DEV-HINT-005")
def too_few_free_devices_are_no_preference(changes: Changes) -> None:
    """A plausible author leaves it to the allocation to refuse what there is too little of."""

    def changed(original: Any, self: Any, state: Any, need: Any) -> Any:
        found = original(self, state, need)
        return None if found == () and not need.held else found

    _hints(changes, changed)


@seeds("DEV-HINT-005")
def too_few_devices_without_topology_have_no_hints(changes: Changes) -> None:
    """A plausible author looks at the number before the topology."""

    def changed(original: Any, self: Any, state: Any, need: Any) -> Any:
        found = original(self, state, need)
        free = state.available(need.resource) | need.reusable | need.held
        return () if found is None and len(free) < need.amount else found

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


@seeds("DEV-HINT-007")
def unhealthy_devices_do_not_count_for_preferred_hints(changes: Changes) -> None:
    """A plausible author leaves unhealthy devices out of everything."""

    def change(demand: Demand, _: Need, state: DeviceState, need: DeviceNeed) -> Any:
        healthy = state.lists[need.resource].healthy
        return _with(demand, total=_supplies(state, need.resource, healthy))

    _demands(changes, change)


# Containers with devices, whole pods, resources that are not asked for


@seeds("DEV-HINT-008")
def hints_of_containers_with_devices_name_free_devices_too(changes: Changes) -> None:
    """A plausible author adds what a container has to what is free."""

    def changed(original: Any, self: Any, state: Any, need: Any) -> Any:
        if not need.held or len(need.held) != need.amount:
            return original(self, state, need)
        taken = {**state.taken, need.resource: state.taken.get(need.resource, NONE) - need.held}
        freed = dataclasses.replace(state, taken=taken)
        return original(self, freed, need._replace(held=NONE, reusable=NONE))

    _hints(changes, changed)


@seeds("DEV-HINT-008")
def changed_device_requests_have_hints_for_free_devices(changes: Changes) -> None:
    """A plausible author serves a container with another request as a new one."""

    def changed(original: Any, self: Any, state: Any, need: Any) -> Any:
        if need.held and len(need.held) != need.amount:
            need = need._replace(held=NONE)
        return original(self, state, need)

    _hints(changes, changed)


def _pods(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets the request of a pod as a whole be made from other containers."""

    def for_pod(original: Any, self: Any, state: Any, pod: Any) -> Any:
        containers = tuple(change(pod, container) for container in pod.containers)
        return original(self, state, dataclasses.replace(pod, containers=containers))

    changes.around(DeviceHints, "for_pod", for_pod)


@seeds("DEV-HINT-009")
def device_hints_of_pods_add_init_containers_up(changes: Changes) -> None:
    """A plausible author sums up all containers of the pod."""
    _pods(changes, lambda _, one: dataclasses.replace(one, init=False, sidecar=False))


@seeds("DEV-HINT-009")
def device_hints_of_pods_take_sidecars_for_init_containers(changes: Changes) -> None:
    """A plausible author forgets that sidecars run beside the app containers."""
    _pods(changes, lambda _, one: dataclasses.replace(one, sidecar=False))


@seeds("DEV-HINT-009")
def device_hints_of_pods_leave_out_what_only_init_containers_name(changes: Changes) -> None:
    """A plausible author takes the names of resources from the app containers."""

    def change(pod: Any, container: Any) -> Any:
        named = {name for one in pod.containers if not one.init for name in one.limits}
        limits = {name: amount for name, amount in container.limits.items() if name in named}
        return dataclasses.replace(container, limits=limits)

    _pods(changes, change)


@seeds("DEV-HINT-009")
def device_hints_of_pods_leave_out_what_only_sidecars_name(changes: Changes) -> None:
    """A plausible author takes the names of resources from app and init containers."""

    def change(pod: Any, container: Any) -> Any:
        named = {name for one in pod.containers if not one.sidecar for name in one.limits}
        limits = {name: amount for name, amount in container.limits.items() if name in named}
        return dataclasses.replace(container, limits=limits)

    _pods(changes, change)


@seeds("DEV-HINT-010")
def unserved_resources_have_an_empty_list_of_hints(changes: Changes) -> None:
    """A plausible author finds no device of such a resource, and so no set of nodes."""

    def for_container(original: Any, self: Any, state: Any, pod: Any, container: Any) -> Any:
        found = dict(original(self, state, pod, container))
        for resource in container.limits:
            if "/" in resource and not state.serves(resource):
                found[resource] = ()
        return found

    changes.around(DeviceHints, "for_container", for_container)


@seeds("DEV-HINT-010")
def resources_that_are_not_requested_have_hints(changes: Changes) -> None:
    """A plausible author makes hints for each resource that a plugin serves."""

    def for_container(original: Any, self: Any, state: Any, pod: Any, container: Any) -> Any:
        found = dict(original(self, state, pod, container))
        for resource in sorted(state.lists):
            if resource not in container.limits:
                found[resource] = self.of_resource(state, DeviceNeed(resource, 1, NONE))
        return found

    changes.around(DeviceHints, "for_container", for_container)
