"""Allocating devices to a container.

(Kubernetes documentation, "Device Plugins" and "Topology Manager"; for reuse, "Resource sharing
within containers".) Where a kubelet may take any of several devices, the reference takes the first
choice if there is one, and otherwise the lowest id.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain, combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from numaproof.protocol.messages import PLUGIN_FAILURE
from numaproof.reference.devices.state import NONE, DeviceState, ReusableDevices
from numaproof.reference.errors import AllocationError
from numaproof.reference.pods import quantity
from numaproof.reference.topology.hints import ANYWHERE

if TYPE_CHECKING:
    from numaproof.reference.choices import Decisions
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod

PreferredDevices: TypeAlias = Mapping[str, Collection[str]]
"""Ids of devices by resource."""

_NOTHING: PreferredDevices = MappingProxyType({})


class Preferences(NamedTuple):
    """What comes before equally good devices: certain devices, or what `decisions` choose."""

    devices: PreferredDevices = _NOTHING
    decisions: Decisions | None = None


_NO_PREFERENCES = Preferences()


class DeviceRequest(NamedTuple):
    """A container's request for a number of devices of one resource.

    Devices in `first_choice` come before equally good ones; `decisions`, if any, choose instead.
    `preferred` is the plugin's preferred allocation, in order.
    """

    uid: str
    container: str
    resource: str
    amount: int
    first_choice: frozenset[str] = NONE
    decisions: Decisions | None = None
    preferred: tuple[str, ...] = ()

    def preference(self, device: str) -> int:
        """The device's position among the preferred devices; all others come after them."""
        return self.preferred.index(device) if device in self.preferred else len(self.preferred)

    def order(self, device: str) -> tuple[bool, str]:
        return device not in self.first_choice, device


class Near(NamedTuple):
    """Masks of the NUMA nodes from which free and reusable devices should be taken."""

    free: int = ANYWHERE
    reusable: int = ANYWHERE


class DeviceError(AllocationError):
    """Devices cannot be allocated.

    `state` is the state after the failure: the container keeps the devices that it was already
    given until its pod leaves the node.
    """

    def __init__(self, message: str, state: DeviceState) -> None:
        super().__init__(message)
        self.state = state


def requested_devices(state: DeviceState, container: PodContainer) -> dict[str, int]:
    """The number of devices in the container's limits, by resource, sorted by name.

    Fractional amounts are rounded up.

    Requirements: DEV-ALLOCATE-003.
    """
    return {
        resource: quantity.value(container.limits[resource])
        for resource in sorted(container.limits)
        if state.serves(resource)
    }


def allocate(
    state: DeviceState,
    pod: Pod,
    container: PodContainer,
    near: Near,
    preferences: Preferences = _NO_PREFERENCES,
) -> DeviceState:
    """Allocates the container's devices.

    Devices on the nodes in `near` come first, and those in `preferences` before equally good ones.
    Stale allocations must be removed from the state first, and the pod must be on the node.
    Resources without a device plugin are skipped.

    Raises:
        DeviceError: a resource cannot be allocated.

    Requirements: DEV-INIT-001, DEV-INIT-003.
    """
    kept = state.reuse.devices if state.reuse.uid == pod.uid else {}
    state = state.with_reuse(ReusableDevices(pod.uid, kept))
    for resource, count in requested_devices(state, container).items():
        first = frozenset(preferences.devices.get(resource, ()))
        decisions = preferences.decisions
        request = DeviceRequest(pod.uid, container.name, resource, count, first, decisions)
        state = allocate_resource(state, request, near)
    return update_reuse(state, pod, container)


def keep(state: DeviceState, pod: Pod, container: PodContainer) -> DeviceState:
    """Leaves a container that runs the devices that it has, whatever their plugins report.

    Raises:
        DeviceError: the request changed.

    Requirements: NODE-RESTART-003, NODE-RESTART-006.
    """
    for resource, count in requested_devices(state, container).items():
        check_amount(state, DeviceRequest(pod.uid, container.name, resource, count))
    return update_reuse(state, pod, container)


def update_reuse(state: DeviceState, pod: Pod, container: PodContainer) -> DeviceState:
    """Returns the state with what later containers of the pod can reuse after this one."""
    reuse = dict(state.reuse.devices) if state.reuse.uid == pod.uid else {}
    for resource, ids in state.of(pod.uid, container.name).items():
        before = reuse.get(resource, NONE)
        reuse[resource] = before | ids if container.runs_to_completion else before - ids
    return state.with_reuse(ReusableDevices(pod.uid, reuse))


def allocate_resource(state: DeviceState, request: DeviceRequest, near: Near) -> DeviceState:
    """Allocates a container's devices of one resource.

    The container keeps devices that it already holds. Devices that its pod can reuse come first.

    Raises:
        DeviceError: the request changed, a device is unhealthy, too few are available, or the
            plugin fails.

    Requirements: DEV-ALLOCATE-005, DEV-ALLOCATE-008, DEV-ERROR-001, DEV-ERROR-002, DEV-ERROR-004,
    DEV-HEALTH-005.
    """
    uid, name, resource, count, *_ = request
    check_amount(state, request)
    held = state.of(uid, name).get(resource)
    check_health(state, resource, held or NONE)
    if held is not None or not count:
        return state
    reusable = state.reuse.of(uid, resource)
    first = _choose(state, request, reusable, near.reusable, count)
    before, state = state, state.take(resource, first)
    needed = count - len(first)
    available = state.available(resource)
    if len(available) < needed:
        raise DeviceError(
            f"requested number of devices unavailable for {resource}. "
            f"Requested: {needed}, Available: {len(available)}",
            state,
        )
    # The plugin has no say in which devices are reused.
    request = request._replace(preferred=state.lists[resource].preferred)
    chosen = first | _choose(state, request, available, near.free, needed)
    if state.lists[resource].fails:
        raise DeviceError(f"rpc error: code = Unknown desc = {PLUGIN_FAILURE}", before)
    return state.give(uid, name, resource, chosen)


def _choose(
    state: DeviceState,
    request: DeviceRequest,
    available: frozenset[str],
    affinity: int,
    count: int,
) -> frozenset[str]:
    """Chooses `count` devices, or all if there are fewer."""
    own = frozenset(by_affinity(state, request, available, affinity)[:count])
    if request.decisions is None or count >= len(available):
        return own
    nodes = state.lists[request.resource].nodes
    alike: dict[int | None, list[str]] = {}
    for device in sorted(available):
        alike.setdefault(nodes[device], []).append(device)
    # Devices on the same nodes are interchangeable.
    firsts = chain(*(devices[:count] for devices in alike.values()))
    others = (
        by_affinity(state, request._replace(first_choice=frozenset(some)), available, affinity)
        for some in combinations(firsts, count)
    )
    return request.decisions.pick(own, (frozenset(one[:count]) for one in others))


def check_amount(state: DeviceState, request: DeviceRequest) -> None:
    """Checks that the container requests as many devices of the resource as it holds, if any.

    Raises:
        DeviceError: the request changed.

    Requirements: DEV-ERROR-002.
    """
    held = state.of(request.uid, request.container).get(request.resource)
    if held is not None and len(held) != request.amount:
        raise DeviceError(
            f'pod "{request.uid}" container "{request.container}" changed request for resource '
            f'"{request.resource}" from {len(held)} to {request.amount}',
            state,
        )


def check_health(state: DeviceState, resource: str, held_devices: frozenset[str]) -> None:
    """Checks that the resource has healthy devices, and that the held devices are healthy.

    Raises:
        DeviceError: the resource has no plugin or no healthy device, or a held device is unhealthy.

    Requirements: DEV-ERROR-003, DEV-HEALTH-003, DEV-HEALTH-005.
    """
    devices = state.lists.get(resource)
    if devices is None:
        raise DeviceError(f"cannot allocate unregistered device {resource}", state)
    if not devices.healthy:
        raise DeviceError(
            f"no healthy devices present; cannot allocate unhealthy devices {resource}", state
        )
    if not held_devices <= devices.healthy:
        raise DeviceError(
            "previously allocated devices are no longer healthy; cannot allocate unhealthy "
            f"devices {resource}",
            state,
        )


def by_affinity(
    state: DeviceState, request: DeviceRequest, available: frozenset[str], affinity: int
) -> list[str]:
    """Sorts devices: first those on the affinity's nodes, then all others.

    In both groups, devices that the plugin prefers come first, and devices without a node come
    last.

    Requirements: DEV-ALLOCATE-001, DEV-ALLOCATE-006, DEV-ALLOCATE-007.
    """
    if affinity == ANYWHERE:
        return sorted(
            available, key=lambda device: (request.preference(device), *request.order(device))
        )
    nodes = state.lists[request.resource].nodes

    def rank(device: str) -> tuple[bool, int, bool, bool, str]:
        near = nodes[device] or 0
        far = not near & affinity
        return far, request.preference(device), not near, *request.order(device)

    return sorted(available, key=rank)
