"""The Device Manager's state: plugins' devices, their holders, and reusable devices.

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
"""Device ids by resource."""

HeldDevices: TypeAlias = Mapping[str, Mapping[str, ByResource]]
"""Devices by pod uid, container name and resource."""

NONE: frozenset[str] = frozenset()
_EMPTY: Mapping[str, frozenset[str]] = MappingProxyType({})


class ReusableDevices(NamedTuple):
    """Devices of a pod's ended init containers, which the pod's next containers can reuse.

    They are kept only for the pod of the last allocation.
    """

    uid: str = ""
    devices: ByResource = _EMPTY

    def of(self, uid: str, resource: str) -> frozenset[str]:
        return self.devices.get(resource, NONE) if uid == self.uid else NONE


_NO_REUSE = ReusableDevices()


@dataclass(frozen=True, slots=True)
class Devices:
    """A plugin's last report for its resource.

    `nodes` maps each device's id to its NUMA nodes: None if the plugin reports no topology, or 0 if
    it reports a topology without nodes. `preferred` are the ids in the plugin's preferred
    allocation, in order; if `fails` is true, it fails to allocate. A resource has no devices after
    a restart until its plugin reports again.
    """

    nodes: Mapping[str, int | None] = field(default_factory=dict)
    healthy: frozenset[str] = NONE
    preferred: tuple[str, ...] = ()
    fails: bool = False

    @property
    def has_topology(self) -> bool:
        """Whether any device is near a NUMA node; if not, the resource cannot be aligned.

        Requirements: DEV-HINT-001, DEV-HINT-004.
        """
        return any(self.nodes.values())


@dataclass(frozen=True, slots=True)
class DeviceState:
    """The reported devices, the devices that containers hold, and the allocated devices.

    `lists` and `allocated_devices` are keyed by resource; `held_devices` is keyed by container.

    `allocated_devices` is recomputed from `held_devices` when a pod is released. In the meantime,
    it may include devices that no container holds.
    """

    lists: Mapping[str, Devices] = field(default_factory=dict)
    held_devices: HeldDevices = field(default_factory=dict)
    allocated_devices: ByResource = field(default_factory=dict)
    reuse: ReusableDevices = _NO_REUSE

    def report(self, lists: Iterable[DeviceResource]) -> DeviceState:
        """Stores the plugins' reports; resources that are not in `lists` do not change.

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
                one.fails,
            )
        return replace(self, lists=known)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yields every pod that holds devices, including devices of ended containers."""
        for uid in self.held_devices:
            yield uid, ""

    def release(self, uid: str, _name: str) -> DeviceState:
        """Removes all devices of the pod's containers, so that there are none to reuse.

        Requirements: DEV-INIT-002, DEV-REMOVE-001, DEV-RESTART-002.
        """
        held = {
            other: containers for other, containers in self.held_devices.items() if other != uid
        }
        reuse = _NO_REUSE if self.reuse.uid == uid else self.reuse
        return DeviceState(self.lists, held, devices_by_resource(held), reuse)

    def with_reuse(self, reuse: ReusableDevices) -> DeviceState:
        return DeviceState(self.lists, self.held_devices, self.allocated_devices, reuse)

    def of(self, uid: str, container: str) -> ByResource:
        return self.held_devices.get(uid, {}).get(container, _EMPTY)

    def of_pod(self, uid: str, resource: str) -> frozenset[str]:
        containers = self.held_devices.get(uid, {}).values()
        return NONE.union(*(devices.get(resource, NONE) for devices in containers))

    def available(self, resource: str) -> frozenset[str]:
        """The healthy devices that are not allocated.

        Requirements: DEV-ALLOCATE-002, DEV-HEALTH-001, DEV-HEALTH-002.
        """
        return self.lists.get(resource, Devices()).healthy - self.allocated_devices.get(
            resource, NONE
        )

    def serves(self, resource: str) -> bool:
        """Whether a plugin serves the resource, or a container holds a device of it.

        Requirements: DEV-ALLOCATE-003, DEV-ALLOCATE-004.
        """
        return resource in self.lists or resource in self.allocated_devices

    def give(self, uid: str, container: str, resource: str, ids: frozenset[str]) -> DeviceState:
        pod = self.held_devices.get(uid, {})
        mine = {**pod.get(container, {}), resource: ids}
        return replace(
            self, held_devices={**self.held_devices, uid: {**pod, container: mine}}
        ).take(resource, ids)

    def take(self, resource: str, ids: frozenset[str]) -> DeviceState:
        """Marks the devices `ids` as allocated, although no container holds them yet."""
        return replace(
            self,
            allocated_devices={
                **self.allocated_devices,
                resource: self.allocated_devices.get(resource, NONE) | ids,
            },
        )


def devices_by_resource(held_devices: HeldDevices) -> ByResource:
    found: dict[str, frozenset[str]] = {}
    for containers in held_devices.values():
        for devices in containers.values():
            for resource, ids in devices.items():
                found[resource] = found.get(resource, NONE) | ids
    return found
