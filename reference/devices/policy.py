"""Allocating devices to a container.

(Kubernetes documentation, "Device Plugins" and "Topology Manager"; for reuse, "Resource sharing
within containers".) Where a kubelet takes any of several devices, the lowest id is taken here, but
for those that are first_choice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from numaproof.reference.devices.state import NONE, DeviceState, ReusableDevices
from numaproof.reference.errors import AllocationError
from numaproof.reference.pods import quantity
from numaproof.reference.topology.hints import ANYWHERE

if TYPE_CHECKING:
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod

PreferredDevices: TypeAlias = Mapping[str, Collection[str]]
"""Ids of devices by resource."""

_NOTHING: PreferredDevices = MappingProxyType({})


class DeviceRequest(NamedTuple):
    """A number of devices of one resource, for a container; those first_choice before their like.

    `preferred` are those that the plugin would have allocated, in order.
    """

    uid: str
    container: str
    resource: str
    amount: int
    first_choice: frozenset[str] = NONE
    preferred: tuple[str, ...] = ()

    def preference(self, device: str) -> int:
        """The device's place among the preferred ones; that after the last for all others."""
        return self.preferred.index(device) if device in self.preferred else len(self.preferred)

    def order(self, device: str) -> tuple[bool, str]:
        """In which order devices are taken that would do as well as each other."""
        return device not in self.first_choice, device


class Near(NamedTuple):
    """Where devices should be: masks of NUMA nodes, for free ones and for reused ones."""

    free: int = ANYWHERE
    reusable: int = ANYWHERE


class DeviceError(AllocationError):
    """Devices cannot be allocated.

    `state` is what the failure leaves behind: what the container got before stays in its hands
    until its pod is off the node.
    """

    def __init__(self, message: str, state: DeviceState) -> None:
        """Takes the kubelet's text and the state after the failure."""
        super().__init__(message)
        self.state = state


def requested_devices(state: DeviceState, container: PodContainer) -> dict[str, int]:
    """How many devices of each resource the container's limits ask for, by name in order.

    A request that is no whole number is rounded up.

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
    first_choice: PreferredDevices = _NOTHING,
) -> DeviceState:
    """The state once the container has the devices that it asks for.

    Devices near the nodes that `near` has are taken first.
    `first_choice` are ids by resource that are taken before others that would do as well. The state
    must have lost what is stale, with this pod on the node. Resources that
    no plugin serves are none of the Device Manager's: they are passed over.

    Raises:
        DeviceError: a resource cannot be allocated.

    Requirements: DEV-INIT-001, DEV-INIT-003.
    """
    kept = state.reuse.devices if state.reuse.uid == pod.uid else {}
    state = state.with_reuse(ReusableDevices(pod.uid, kept))
    for resource, count in requested_devices(state, container).items():
        first = frozenset(first_choice.get(resource, ()))
        request = DeviceRequest(pod.uid, container.name, resource, count, first)
        state = allocate_resource(state, request, near)
    reuse = dict(kept)
    for resource, ids in state.of(pod.uid, container.name).items():
        before = reuse.get(resource, NONE)
        reuse[resource] = before | ids if container.runs_to_completion else before - ids
    return state.with_reuse(ReusableDevices(pod.uid, reuse))


def allocate_resource(state: DeviceState, request: DeviceRequest, near: Near) -> DeviceState:
    """The state once a container has the devices of one resource that it asks for.

    What it holds already stays; what its pod can reuse comes first.

    Raises:
        DeviceError: the request changed, devices fell ill, or too few are available.

    Requirements: DEV-ALLOCATE-005, DEV-ALLOCATE-008, DEV-ERROR-001, DEV-ERROR-002, DEV-HEALTH-005.
    """
    uid, name, resource, count, *_ = request
    held = state.of(uid, name).get(resource)
    if held is not None and len(held) != count:
        raise DeviceError(
            f'pod "{uid}" container "{name}" changed request for resource "{resource}" '
            f"from {len(held)} to {count}",
            state,
        )
    check_health(state, resource, held or NONE)
    if held is not None or not count:
        return state
    reusable = state.reuse.of(uid, resource)
    first = frozenset(by_affinity(state, request, reusable, near.reusable)[:count])
    state = state.take(resource, first)
    needed = count - len(first)
    available = state.available(resource)
    if len(available) < needed:
        raise DeviceError(
            f"requested number of devices unavailable for {resource}. "
            f"Requested: {needed}, Available: {len(available)}",
            state,
        )
    # What is reused is none of the plugin's business.
    request = request._replace(preferred=state.lists[resource].preferred)
    chosen = first.union(by_affinity(state, request, available, near.free)[:needed])
    return state.give(uid, name, resource, chosen)


def check_health(state: DeviceState, resource: str, held_devices: frozenset[str]) -> None:
    """Checks that devices can be allocated, and that those held are still healthy.

    Raises:
        DeviceError: the resource has no plugin or no healthy device, or a held one fell ill.

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
    """The devices in the order they are taken: near the affinity, preferred, far, near no node.

    Of the devices near the affinity, preferred ones come first.

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
