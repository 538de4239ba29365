"""What the Device Manager keeps: the plugins' lists, who holds which devices, what may be reused.

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.protocol.messages import DeviceResource

ByResource: TypeAlias = Mapping[str, frozenset[str]]
"""Ids of devices by the name of their resource."""

HeldDevices: TypeAlias = Mapping[str, Mapping[str, ByResource]]
"""Devices by pod uid, container name and resource."""

NONE: frozenset[str] = frozenset()
_EMPTY: Mapping[str, frozenset[str]] = MappingProxyType({})


class ReusableDevices(NamedTuple):
    """Devices of a pod's ended init containers, free for its next containers.

    Kept for the pod that was last allocated to, and for no other.
    """

    uid: str = ""
    devices: ByResource = _EMPTY

    def of(self, uid: str, resource: str) -> frozenset[str]:
        """The devices that containers of this pod may take again."""
        return self.devices.get(resource, NONE) if uid == self.uid else NONE


_NO_REUSE = ReusableDevices()


@dataclass(frozen=True, slots=True)
class Devices:
    """What a plugin last reported for its resource.

    `nodes` has every device's NUMA nodes by its id: None where the plugin reports no topology, 0
    where it reports one without nodes. A resource whose plugin is not back since the last restart
    has no devices. `preferred` are ids in the order in which the plugin would have them allocated.
    """

    nodes: Mapping[str, int | None] = field(default_factory=dict)
    healthy: frozenset[str] = NONE
    preferred: tuple[str, ...] = ()

    @property
    def has_topology(self) -> bool:
        """Whether any device is near a NUMA node, so that the resource can be aligned at all.

        Requirements: DEV-HINT-001, DEV-HINT-004.
        """
        return any(self.nodes.values())


@dataclass(frozen=True, slots=True)
class DeviceState:
    """What device plugins list, what containers hold, and what is allocated.

    `lists` and `allocated_devices` are by resource, `held_devices` by container.

    `allocated_devices` is worked out of `held_devices` when pods go; between two such times it may
    hold more.
    """

    lists: Mapping[str, Devices] = field(default_factory=dict)
    held_devices: HeldDevices = field(default_factory=dict)
    allocated_devices: ByResource = field(default_factory=dict)
    reuse: ReusableDevices = _NO_REUSE

    def report(self, lists: Iterable[DeviceResource]) -> DeviceState:
        """The state once plugins reported `lists`; resources not in them stay as they are.

        Requirements: DEV-HEALTH-004.
        """
        known = dict(self.lists)
        for one in lists:
            known[one.resource] = Devices(
                {
                    device.id: None if device.numa is None else device.numa.mask
                    for device in one.ids
                },
                frozenset(device.id for device in one.ids if device.healthy),
                one.preferred,
            )
        return replace(self, lists=known)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Every pod that holds devices: pods on the node keep those of ended containers."""
        for uid in self.held_devices:
            yield uid, ""

    def release(self, uid: str, _name: str) -> DeviceState:
        """The state without what the pod's containers hold.

        Requirements: DEV-INIT-002, DEV-REMOVE-001, DEV-RESTART-002.
        """
        held = {
            other: containers for other, containers in self.held_devices.items() if other != uid
        }
        return replace(self, held_devices=held, allocated_devices=devices_by_resource(held))

    def with_reuse(self, reuse: ReusableDevices) -> DeviceState:
        """The state in which this may be taken again."""
        return DeviceState(self.lists, self.held_devices, self.allocated_devices, reuse)

    def of(self, uid: str, container: str) -> ByResource:
        """The devices that the container holds."""
        return self.held_devices.get(uid, {}).get(container, _EMPTY)

    def of_pod(self, uid: str, resource: str) -> frozenset[str]:
        """The devices of one resource that the containers of a pod hold together."""
        containers = self.held_devices.get(uid, {}).values()
        return NONE.union(*(devices.get(resource, NONE) for devices in containers))

    def available(self, resource: str) -> frozenset[str]:
        """The healthy devices that nobody has.

        Requirements: DEV-ALLOCATE-002, DEV-HEALTH-001, DEV-HEALTH-002.
        """
        return self.lists.get(resource, Devices()).healthy - self.allocated_devices.get(
            resource, NONE
        )

    def serves(self, resource: str) -> bool:
        """Whether the resource is one of devices: a plugin serves it, or a container holds one.

        Requirements: DEV-ALLOCATE-003, DEV-ALLOCATE-004.
        """
        return resource in self.lists or resource in self.allocated_devices

    def give(self, uid: str, container: str, resource: str, ids: frozenset[str]) -> DeviceState:
        """The state with the devices `ids` in the container's hands."""
        pod = self.held_devices.get(uid, {})
        mine = {**pod.get(container, {}), resource: ids}
        return replace(
            self, held_devices={**self.held_devices, uid: {**pod, container: mine}}
        ).take(resource, ids)

    def take(self, resource: str, ids: frozenset[str]) -> DeviceState:
        """The state with the devices `ids` out of reach, though no container holds them yet."""
        return replace(
            self,
            allocated_devices={
                **self.allocated_devices,
                resource: self.allocated_devices.get(resource, NONE) | ids,
            },
        )


def devices_by_resource(held_devices: HeldDevices) -> ByResource:
    """The devices that any container holds."""
    found: dict[str, frozenset[str]] = {}
    for containers in held_devices.values():
        for devices in containers.values():
            for resource, ids in devices.items():
                found[resource] = found.get(resource, NONE) | ids
    return found
