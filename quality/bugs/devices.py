"""Bugs of the Device Manager: health, who holds what, reuse, affinity, hints."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.reference import node as managers
from numaproof.reference.devices import policy
from numaproof.reference.devices.hints import DeviceHints
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.devices.state import Devices, DeviceState, ReusableDevices, all_held
from numaproof.reference.pods import quantity
from numaproof.reference.topology.hints import ANYWHERE
from numaproof.reference.topology.search import evaluation
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("devices")


# Health and lists


@seeds("DEV-HEALTH-001")
def unhealthy_devices_are_given(changes: Changes) -> None:
    def healed(original: Any, self: DeviceState, lists: Any) -> DeviceState:
        state: DeviceState = original(self, lists)
        known = {
            name: dataclasses.replace(one, healthy=frozenset(one.nodes))
            for name, one in state.lists.items()
        }
        return dataclasses.replace(state, lists=known)

    changes.around(DeviceState, "report", healed)


@seeds("DEV-HEALTH-005", "DEV-RESTART-003")
def a_pod_stays_with_devices_that_fell_ill(changes: Changes) -> None:
    changes.around(
        policy,
        "check_health",
        lambda original, state, resource, held: None if held else original(state, resource, held),
    )


@seeds("DEV-HEALTH-003")
def a_device_that_fell_ill_is_taken_away(changes: Changes) -> None:
    def taking(original: Any, self: DeviceState, lists: Any) -> DeviceState:
        state: DeviceState = original(self, lists)
        well = {resource: devices.healthy for resource, devices in state.lists.items()}
        held = {
            uid: {
                name: {resource: ids & well.get(resource, ids) for resource, ids in own.items()}
                for name, own in containers.items()
            }
            for uid, containers in state.held.items()
        }
        return dataclasses.replace(state, held=held)

    changes.around(DeviceState, "report", taking)


@seeds("DEV-HEALTH-001")
def a_new_report_is_not_heard(changes: Changes) -> None:
    changes.replace(managers.StartedNode, "devices", _deaf)


def _deaf(self: managers.StartedNode, _args: messages.DevicesArgs) -> messages.Done:
    self.save()
    return messages.Done()


@seeds("DEV-HEALTH-004")
def a_report_of_one_resource_takes_the_others_away(changes: Changes) -> None:
    changes.around(
        DeviceState,
        "report",
        lambda original, self, lists: original(dataclasses.replace(self, lists={}), lists),
    )


# Allocation


@seeds("DEV-ALLOCATE-002")
def devices_are_given_twice(changes: Changes) -> None:
    changes.replace(
        DeviceState,
        "available",
        lambda self, resource: self.lists.get(resource, Devices()).healthy,
    )


def _ordering(changes: Changes, key: Callable[[int], bool]) -> None:
    """Orders devices by their nodes before anything else."""

    def ordered(original: Any, state: DeviceState, request: Any, *rest: Any) -> list[str]:
        order: list[str] = original(state, request, *rest)
        nodes = state.lists[request.resource].nodes
        return sorted(order, key=lambda device: key(nodes[device] or 0))

    changes.around(policy, "by_affinity", ordered)


@seeds("PR #101893", "DEV-ALLOCATE-001")
def devices_ignore_the_affinity(changes: Changes) -> None:
    changes.around(
        policy,
        "by_affinity",
        lambda original, state, request, available, affinity: original(
            state, request, available, ANYWHERE
        ),
    )


@seeds("PR #101893", "DEV-ALLOCATE-007")
def devices_near_several_nodes_count_as_far(changes: Changes) -> None:
    _ordering(changes, lambda nodes: nodes.bit_count() > 1)


@seeds("DEV-ALLOCATE-006")
def devices_without_topology_come_first(changes: Changes) -> None:
    _ordering(changes, bool)


@seeds("DEV-ALLOCATE-003")
def one_device_of_several_is_given(changes: Changes) -> None:
    changes.around(
        policy,
        "requested",
        lambda original, state, container: {
            resource: min(count, 1) for resource, count in original(state, container).items()
        },
    )


@seeds("DEV-ALLOCATE-003")
def zero_devices_are_one(changes: Changes) -> None:
    changes.around(
        policy,
        "requested",
        lambda original, state, container: {
            resource: count or 1 for resource, count in original(state, container).items()
        },
    )


@seeds("DEV-ALLOCATE-004")
def a_resource_without_a_plugin_cannot_be_had(changes: Changes) -> None:
    def strict(original: Any, state: DeviceState, container: Any) -> dict[str, int]:
        names = [name for name in container.limits if "/" in name]
        unknown = {name: quantity.value(container.limits[name]) for name in names}
        return {**unknown, **original(state, container)}

    changes.around(policy, "requested", strict)


@seeds("DEV-ALLOCATE-003")
def too_few_devices_are_enough(changes: Changes) -> None:
    def modest(original: Any, state: DeviceState, request: Any, *rest: Any) -> DeviceState:
        had = state.of(request.uid, request.container).get(request.resource)
        there = len(
            state.available(request.resource) | state.reuse.of(request.uid, request.resource)
        )
        if had is None and there:
            request = request._replace(amount=min(request.amount, there))
        after: DeviceState = original(state, request, *rest)
        return after

    changes.around(policy, "allocate_resource", modest)


# Containers of one pod


def _with_container(changes: Changes, change: Callable[[Any], Any]) -> None:
    changes.around(
        policy,
        "allocate",
        lambda original, state, pod, container, *rest: original(
            state, pod, change(container), *rest
        ),
    )


@seeds("DEV-INIT-001")
def init_devices_are_not_reused(changes: Changes) -> None:
    changes.replace(ReusableDevices, "of", lambda self, uid, resource: frozenset())


@seeds("#119442", "DEV-INIT-003")
def sidecar_devices_are_reused(changes: Changes) -> None:
    _with_container(changes, lambda container: dataclasses.replace(container, sidecar=False))


@seeds("DEV-ALLOCATE-002", "DEV-INIT-001")
def app_devices_are_reused(changes: Changes) -> None:
    _with_container(
        changes, lambda container: dataclasses.replace(container, init=True, sidecar=False)
    )


# Removal


@seeds("DEV-REMOVE-001")
def removed_pods_keep_their_devices(changes: Changes) -> None:
    changes.replace(DeviceManager, "remove_stale_state", lambda self, pods, when: None)


@seeds("DEV-REMOVE-001")
def devices_of_removed_pods_leak(changes: Changes) -> None:
    def leaking(original: Any, self: DeviceState, uid: str, name: str) -> DeviceState:
        after: DeviceState = original(self, uid, name)
        return dataclasses.replace(after, taken=self.taken)

    changes.around(DeviceState, "release", leaking)


@seeds("DEV-REMOVE-002")
def ended_containers_lose_their_devices(changes: Changes) -> None:
    def hasty(original: Any, self: managers.StartedNode, args: messages.RemoveArgs) -> Any:
        answer = original(self, args)
        kept = self.device_manager.state
        if args.container is not None and args.uid in kept.held:
            pod = {name: own for name, own in kept.held[args.uid].items() if name != args.container}
            held = {**kept.held, args.uid: pod}
            self.device_manager.state = dataclasses.replace(kept, held=held, taken=all_held(held))
        return answer

    changes.around(managers.StartedNode, "remove", hasty)


# Hints


def _hints_from(changes: Changes, change: Callable[[DeviceState], DeviceState]) -> None:
    changes.around(
        DeviceHints,
        "of_resource",
        lambda original, self, state, need: original(self, change(state), need),
    )


@seeds("DEV-HINT-002")
def device_hints_ignore_what_is_taken(changes: Changes) -> None:
    _hints_from(changes, lambda state: dataclasses.replace(state, taken={}))


@seeds("#112234", "DEV-HINT-001")
def devices_without_topology_are_nowhere(changes: Changes) -> None:
    def nowhere(original: Any, *args: Any) -> Any:
        found = original(*args)
        return () if found is None else found

    changes.around(DeviceHints, "of_resource", nowhere)


@seeds("#139430", "DEV-HINT-002")
def device_hints_prefer_what_is_fewest_now(changes: Changes) -> None:
    def by_now(original: Any, *args: Any) -> Any:
        found = original(*args)
        if not found:
            return found
        needs = tuple(dataclasses.replace(need, total=need.free) for need in found.needs)
        return dataclasses.replace(found, needs=needs)

    changes.around(DeviceHints, "of_resource", by_now)


@seeds("#109595", "DEV-HINT-008")
def device_hints_forget_what_is_held(changes: Changes) -> None:
    changes.around(
        DeviceHints,
        "of_resource",
        lambda original, self, state, need: original(self, state, need._replace(held=frozenset())),
    )


@seeds("DEV-HINT-002")
def device_hints_are_the_preferred_ones_alone(changes: Changes) -> None:
    def preferred(original: Any, *args: Any) -> Any:
        found = original(*args)
        if found is None:
            return None
        return tuple(hint for hint in evaluation.listed(found) if hint.preferred)

    changes.around(DeviceHints, "of_resource", preferred)


@seeds("DEV-HINT-009")
def a_pod_asks_for_the_devices_of_its_first_container(changes: Changes) -> None:
    changes.around(
        DeviceHints,
        "for_pod",
        lambda original, self, state, pod: original(
            self, state, dataclasses.replace(pod, containers=pod.containers[:1])
        ),
    )


@seeds("DEV-HINT-010")
def devices_that_nobody_asks_for_are_hinted(changes: Changes) -> None:
    changes.around(
        DeviceHints,
        "for_container",
        lambda original, self, state, *rest: {
            **dict.fromkeys(state.lists),
            **original(self, state, *rest),
        },
    )
