"""The Device Manager's checkpoint: the devices that containers hold, across restarts.

It has the same data as the kubelet's file of the same name. Only the Device Manager reads it, so it
has no checksum here. An unreadable file is ignored, as in the kubelet.
"""

from __future__ import annotations

import msgspec

from numaproof.protocol import codec
from numaproof.reference.devices.state import Devices, DeviceState, devices_by_resource

FILE_NAME = "device-plugins/kubelet_internal_checkpoint"
"""The file's path below the state directory."""


class _Entry(msgspec.Struct, frozen=True, rename="pascal"):
    pod: str
    container: str
    resource: str
    devices: tuple[str, ...]


class _Data(msgspec.Struct, frozen=True, rename="pascal"):
    pod_device_entries: tuple[_Entry, ...]
    registered_devices: dict[str, tuple[str, ...]]


def dump(state: DeviceState) -> bytes:
    """Encodes the devices that containers hold, and the healthy devices of each resource."""
    entries = tuple(
        _Entry(uid, name, resource, tuple(sorted(ids)))
        for uid, containers in sorted(state.held_devices.items())
        for name, devices in sorted(containers.items())
        for resource, ids in sorted(devices.items())
    )
    registered = {
        resource: tuple(sorted(devices.healthy))
        for resource, devices in sorted(state.lists.items())
    }
    return msgspec.json.encode(_Data(entries, registered))


def load(content: bytes | None) -> DeviceState:
    """Decodes the file's contents, or returns an empty state if there is no file.

    Resources in the file are known, but have no devices until their plugins report them.

    Requirements: DEV-RESTART-001, DEV-RESTART-003, DEV-RESTART-004.
    """
    if content is None:
        return DeviceState()
    try:
        data = codec.decode(content, _Data)
    except codec.ProtocolError:
        return DeviceState()
    held: dict[str, dict[str, dict[str, frozenset[str]]]] = {}
    for entry in data.pod_device_entries:
        container = held.setdefault(entry.pod, {}).setdefault(entry.container, {})
        container[entry.resource] = frozenset(entry.devices)
    return DeviceState(
        {name: Devices() for name in data.registered_devices}, held, devices_by_resource(held)
    )
