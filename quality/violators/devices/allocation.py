"""Violators of the requirements of device hints and allocation, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.checkpoints import devices as checkpoint
from numaproof.reference.devices import policy
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.devices.policy import DeviceError, Near
from numaproof.reference.devices.state import NONE, DeviceState, all_held
from numaproof.reference.manager import unexpected
from numaproof.reference.topology.hints import ANYWHERE, TopologyHint
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("devices")


def _anywhere(changes: Changes, free: Callable[[Any, Any], bool]) -> None:
    """Lets these containers (given with their pods) take devices wherever they are."""
    changes.around(
        policy,
        "allocate",
        lambda original, state, pod, container, near, *rest: original(
            state, pod, container, Near() if free(pod, container) else near, *rest
        ),
    )


def _without_devices(changes: Changes, nothing: Callable[[Any, Any], bool]) -> None:
    """Lets these containers (given with their pods) get no devices."""
    changes.around(
        policy,
        "allocate",
        lambda original, state, pod, container, *rest: (
            state if nothing(pod, container) else original(state, pod, container, *rest)
        ),
    )


def _rank(changes: Changes, rank: Callable[[int, int], int]) -> None:
    """Lets `rank` decide, by a device's nodes and those of the affinity, what is taken first."""

    def by_affinity(original: Any, state: Any, request: Any, available: Any, affinity: Any) -> Any:
        if affinity == ANYWHERE:
            return original(state, request, available, affinity)
        nodes = state.lists[request.resource].nodes
        return sorted(
            available,
            key=lambda one: (rank(nodes[one] or 0, affinity), request.order(one)),
        )

    changes.around(policy, "by_affinity", by_affinity)


# The affinity


@seeds("DEV-ALLOCATE-001")
def devices_of_init_containers_ignore_the_affinity(changes: Changes) -> None:
    """A plausible author looks hints up for app containers only."""
    _anywhere(changes, lambda _, container: container.passes)


@seeds("DEV-ALLOCATE-001")
def devices_of_sidecars_ignore_the_affinity(changes: Changes) -> None:
    """A plausible author forgets the hint on the way that sidecars take."""
    _anywhere(changes, lambda _, container: container.sidecar)


@seeds("DEV-ALLOCATE-006")
def devices_without_topology_come_before_far_ones(changes: Changes) -> None:
    """A plausible author finds a device that is nowhere better than one on a wrong node."""
    _rank(changes, lambda near, affinity: 0 if near & affinity else 1 if not near else 2)


@seeds("DEV-ALLOCATE-006")
def far_devices_and_those_without_topology_come_in_one_group(changes: Changes) -> None:
    """A plausible author sorts into two groups: on the affinity, and the rest."""
    _rank(changes, lambda near, affinity: 0 if near & affinity else 1)


@seeds("DEV-ALLOCATE-006")
def devices_follow_no_affinity_that_is_not_preferred(changes: Changes) -> None:
    """A plausible author takes a hint that is not preferred for no hint."""
    changes.around(
        DeviceManager,
        "allocate",
        lambda original, self, pod, container, affinity: original(
            self, pod, container, affinity if affinity.preferred else TopologyHint(ANYWHERE, False)
        ),
    )


@seeds("DEV-ALLOCATE-006")
def devices_follow_only_the_first_node_of_an_affinity(changes: Changes) -> None:
    """A plausible author thinks of affinities of one node."""
    changes.around(
        DeviceManager,
        "near",
        lambda original, self, affinity: original(
            self, affinity._replace(nodes=affinity.nodes & -affinity.nodes)
        ),
    )


# One container each


@seeds("DEV-ALLOCATE-002")
def new_lists_make_devices_in_use_free(changes: Changes) -> None:
    """A plausible author makes the list of free devices anew from what the plugin reports."""

    def report(original: Any, self: DeviceState, lists: Any) -> Any:
        after = original(self, lists)
        reported = {one.resource for one in lists}
        taken = {name: ids for name, ids in after.taken.items() if name not in reported}
        return dataclasses.replace(after, taken=taken) if after.held else after

    changes.around(DeviceState, "report", report)


@seeds("DEV-ALLOCATE-002")
def restored_devices_count_as_free(changes: Changes) -> None:
    """A plausible author restores who holds which devices, but not that these are taken."""
    changes.around(
        checkpoint,
        "load",
        lambda original, content: dataclasses.replace(original(content), taken={}),
    )


@seeds("DEV-ALLOCATE-002")
def removals_forget_devices_of_containers_of_the_same_name(changes: Changes) -> None:
    """A plausible author works out what is taken by container name, without the pod."""

    def release(original: Any, self: DeviceState, uid: str, name: str) -> Any:
        after = original(self, uid, name)
        by_name = {name: ids for pod in after.held.values() for name, ids in pod.items()}
        return dataclasses.replace(after, taken=all_held({"": by_name}))

    changes.around(DeviceState, "release", release)


@seeds("DEV-ALLOCATE-002")
def app_containers_of_a_pod_share_devices(changes: Changes) -> None:
    """A plausible author offers a container what any earlier container of its pod has."""

    def allocate(original: Any, state: Any, pod: Any, container: Any, *rest: Any) -> Any:
        after = original(state, pod, container, *rest)
        if container.init:
            return after
        reuse = dict(after.reuse.devices)
        for resource, ids in after.of(pod.uid, container.name).items():
            reuse[resource] = reuse.get(resource, NONE) | ids
        return after.with_reuse(after.reuse._replace(devices=reuse))

    changes.around(policy, "allocate", allocate)


# As many as the limits say


@seeds("DEV-ALLOCATE-003")
def best_effort_pods_get_no_devices(changes: Changes) -> None:
    """A plausible author skips pods without requests for CPU and memory."""
    _without_devices(changes, lambda pod, _: pod.qos == "BestEffort")


@seeds("DEV-ALLOCATE-003")
def burstable_pods_get_no_devices(changes: Changes) -> None:
    """A plausible author serves pods of the two other classes and forgets the one between."""
    _without_devices(changes, lambda pod, _: pod.qos == "Burstable")


@seeds("DEV-ALLOCATE-003")
def sidecars_get_no_devices(changes: Changes) -> None:
    """A plausible author serves init containers that end, and app containers."""
    _without_devices(changes, lambda _, container: container.sidecar)


@seeds("DEV-ALLOCATE-003")
def init_containers_get_no_devices(changes: Changes) -> None:
    """A plausible author finds that devices are for app containers."""
    _without_devices(changes, lambda _, container: container.passes)


@seeds("DEV-ALLOCATE-003")
def devices_of_the_last_resource_replace_the_others(changes: Changes) -> None:
    """A plausible author sets a container's devices where those of a resource are to be added."""

    def give(
        original: Any, self: DeviceState, uid: str, name: str, resource: str, ids: frozenset[str]
    ) -> Any:
        after = original(self, uid, name, resource, ids)
        pod = {**after.held[uid], name: {resource: ids}}
        return dataclasses.replace(after, held={**after.held, uid: pod})

    changes.around(DeviceState, "give", give)


@seeds("DEV-ALLOCATE-004")
def unserved_resources_are_refused_without_any_plugin(changes: Changes) -> None:
    """A plausible author finds no devices on a node without plugins, and calls that too few."""

    def allocate(
        original: Any, self: DeviceManager, pod: Any, container: Any, affinity: Any
    ) -> None:
        if not self.state.lists:
            for resource in sorted(container.limits):
                if "/" in resource:
                    missing = f"requested number of devices unavailable for {resource}"
                    raise unexpected(DeviceError(missing, self.state))
        original(self, pod, container, affinity)

    changes.around(DeviceManager, "allocate", allocate)


# Admitted again


@seeds("DEV-ALLOCATE-005")
def pods_admitted_again_take_devices_anew(changes: Changes) -> None:
    """A plausible author gives a container's devices back first, and then takes the first free."""

    def allocate_resource(original: Any, state: Any, request: Any, near: Any) -> Any:
        uid, name, resource, count, *_ = request
        mine = state.of(uid, name)
        held = mine.get(resource, NONE)
        healthy = resource in state.lists and held <= state.lists[resource].healthy
        if not held or len(held) != count or not healthy:
            return original(state, request, near)
        others = {other: ids for other, ids in mine.items() if other != resource}
        freed = dataclasses.replace(
            state,
            held={**state.held, uid: {**state.held[uid], name: others}},
            taken={**state.taken, resource: state.taken.get(resource, NONE) - held},
        )
        return original(freed, request, near)

    changes.around(policy, "allocate_resource", allocate_resource)


@seeds("DEV-ALLOCATE-005")
def pods_that_want_fewer_devices_are_admitted_again(changes: Changes) -> None:
    """A plausible author asks only whether a container holds enough already."""

    def allocate_resource(original: Any, state: Any, request: Any, near: Any) -> Any:
        held = state.of(request.uid, request.container).get(request.resource, NONE)
        if request.amount < len(held):
            return state
        return original(state, request, near)

    changes.around(policy, "allocate_resource", allocate_resource)


@seeds("DEV-ALLOCATE-005")
def pods_that_want_more_devices_get_the_difference(changes: Changes) -> None:
    """A plausible author allocates what is missing of the number that is asked for."""

    def allocate_resource(original: Any, state: Any, request: Any, near: Any) -> Any:
        uid, name, resource, count, *_ = request
        held = state.of(uid, name).get(resource, NONE)
        free = state.available(resource)
        missing = count - len(held)
        if not held or missing <= 0 or len(free) < missing:
            return original(state, request, near)
        more = policy.by_affinity(state, request, free, near.free)[:missing]
        return state.give(uid, name, resource, held.union(more))

    changes.around(policy, "allocate_resource", allocate_resource)
