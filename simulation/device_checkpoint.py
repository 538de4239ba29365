"""Checks the Device Manager's ``kubelet_internal_checkpoint`` as a kubelet writes it.

A kubelet starts with any such file. If it can't read the file, it forgets which devices containers
hold, and may assign them to other containers.

Source: pkg/kubelet/cm/devicemanager of Kubernetes 1.30 to 1.37 (`readCheckpoint`), and its package
checkpoint (`Data`; in 1.30, also `DataV1`).
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.inputs.plurals import plural
from numaproof.protocol.sets import NUMASet
from numaproof.reference.checkpoints.files import checksum
from numaproof.reference.devices.state import Devices, DeviceState, devices_by_resource
from numaproof.reference.golang import decoding, dumping
from numaproof.simulation.checkpoint_damage import syntax_damage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME = "kubelet_internal_checkpoint"

_NO_TOPOLOGY = -1
"""The node of devices whose plugin reports no topology."""

_IDS = decoding.Array(decoding.Text(), "[]string")
_LAST_WITH_LISTS = "1.30"
"""The last release that reads the format of Kubernetes 1.19, without NUMA nodes."""


def _fields(device_ids: decoding.Kind) -> dict[str, decoding.Kind]:
    entry = decoding.Fields(
        "checkpoint.PodDevicesEntry",
        {
            "PodUID": decoding.Text(),
            "ContainerName": decoding.Text(),
            "ResourceName": decoding.Text(),
            "DeviceIDs": device_ids,
            "AllocResp": decoding.Array(decoding.Signed(), "[]uint8"),
        },
    )
    return {
        "PodDeviceEntries": decoding.Array(entry, "[]checkpoint.PodDevicesEntry"),
        "RegisteredDevices": decoding.Map(_IDS, "map[string][]string"),
    }


_BY_NODE = _fields(decoding.Map(_IDS, "checkpoint.DevicesPerNUMA", integer_keys=True))
_LISTS = _fields(_IDS)


def is_device_checkpoint(fields: Mapping[str, Any]) -> bool:
    """Returns whether a file's fields are those of the Device Manager's checkpoint."""
    return "PodDeviceEntries" in fields or (
        isinstance(fields.get("Data"), dict) and "PodDeviceEntries" in fields["Data"]
    )


def findings(content: bytes, kubernetes: str) -> Iterator[str]:
    """Yields what is wrong with a file for a kubelet of the release."""
    problem = _unreadable(content, kubernetes)
    if problem:
        yield f"{problem}; the kubelet starts, but forgets which containers hold devices"
        return
    holders: dict[tuple[str, str], str] = {}
    data = json.loads(content)["Data"]
    registered = data.get("RegisteredDevices") or {}
    for entry in data.get("PodDeviceEntries") or ():
        resource, ids = entry["ResourceName"], entry["DeviceIDs"] or {}
        owner = f"pod {entry['PodUID']}, container {entry['ContainerName']}"
        for device in (
            ids if isinstance(ids, list) else (one for row in ids.values() for one in row)
        ):
            other = holders.setdefault((resource, device), owner)
            if other != owner:
                yield f"{resource}: {device} is held by {other} and by {owner}"
            if device not in (registered.get(resource) or ()):
                yield f"{resource}: {device} is held by {owner}, but was not healthy or registered"


def summary(content: bytes) -> str:
    """Returns how many devices containers hold according to a readable file; empty otherwise."""
    try:
        data = json.loads(content)["Data"]
        entries = data["PodDeviceEntries"] or ()
        pods = {entry["PodUID"] for entry in entries}
        resources = sorted({entry["ResourceName"] for entry in entries})
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    if not pods:
        return "no container holds devices"
    return f"devices are held by {plural(len(pods), 'pod')}: {', '.join(resources)}"


class RecordedDevices(NamedTuple):
    """The devices in a checkpoint.

    Attributes:
        held: the ids by pod uid, container and resource.
        healthy: the ids of each resource's healthy devices.
        nodes: the NUMA nodes of held devices, by resource and id; None without topology. The file
            does not have the nodes of free devices.
    """

    allocations: Mapping[str, Mapping[str, Mapping[str, frozenset[str]]]]
    healthy: Mapping[str, frozenset[str]]
    nodes: Mapping[tuple[str, str], NUMASet | None]

    def state(self) -> DeviceState:
        """Returns the Device Manager's state after reading the checkpoint."""
        lists = {name: Devices(healthy=ids) for name, ids in self.healthy.items()}
        return DeviceState(lists, self.allocations, devices_by_resource(self.allocations))


def recorded_devices(content: bytes, kubernetes: str) -> RecordedDevices | None:
    """Returns the devices in a file; None if a kubelet of the release cannot read it."""
    if _unreadable(content, kubernetes):
        return None
    data = json.loads(content)["Data"]
    allocations: dict[str, dict[str, dict[str, frozenset[str]]]] = {}
    nodes: dict[tuple[str, str], set[int]] = {}
    for entry in data["PodDeviceEntries"] or ():
        resource, by_node = entry["ResourceName"], _by_node(entry["DeviceIDs"])
        for node, ids in by_node.items():
            for device in ids:
                nodes.setdefault((resource, device), set()).add(node)
        container = allocations.setdefault(entry["PodUID"], {}).setdefault(
            entry["ContainerName"], {}
        )
        container[resource] = frozenset(one for ids in by_node.values() for one in ids)
    healthy = data["RegisteredDevices"] or {}
    return RecordedDevices(
        allocations,
        {resource: frozenset(ids or ()) for resource, ids in healthy.items()},
        {
            device: None if near == {_NO_TOPOLOGY} else NUMASet(near - {_NO_TOPOLOGY})
            for device, near in nodes.items()
        },
    )


def _by_node(ids: Any) -> dict[int, list[str]]:
    """The devices by node; the format of Kubernetes 1.19 has no nodes."""
    if isinstance(ids, list):
        return {_NO_TOPOLOGY: ids}
    return {int(node): row or [] for node, row in (ids or {}).items()}


def entries(fields: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Returns the devices that a file records, by pod uid, container and resource.

    `fields` are the file's fields. Malformed entries are skipped.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    data = fields.get("Data")
    listed = data.get("PodDeviceEntries") if isinstance(data, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        match entry:
            case {
                "PodUID": str(uid),
                "ContainerName": str(name),
                "ResourceName": str(resource),
                "DeviceIDs": ids,
            }:
                found.setdefault(uid, {}).setdefault(name, {})[resource] = ids
    return found


def _unreadable(content: bytes, kubernetes: str) -> str:
    if syntax := syntax_damage(content):
        return syntax
    found = json.loads(content)
    if not isinstance(found, dict) or not isinstance(found.get("Data"), dict):
        return "not the file of a kubelet, which has the fields Data and Checksum"
    for fields, lists in ((_BY_NODE, False), (_LISTS, True)):
        try:
            dump = dumping.dumper_of_fields(fields)(_typed(found["Data"], lists=lists))
        except (TypeError, ValueError, KeyError, AttributeError, binascii.Error):
            continue
        if checksum(f"(checkpoint.checkpointData){dump}") == found.get("Checksum"):
            if lists and kubernetes != _LAST_WITH_LISTS:
                return (
                    "written by Kubernetes 1.19 or earlier in a format that Kubernetes"
                    f" {kubernetes} does not read"
                )
            return ""
    return "checksum mismatch: the file is damaged, or was changed"


def _typed(data: Mapping[str, Any], *, lists: bool) -> dict[str, Any]:
    """The values of Go's fields: numbers of nodes, and bytes instead of their text."""
    entries = data.get("PodDeviceEntries")
    return {
        "PodDeviceEntries": None
        if entries is None
        else [_entry(one, lists=lists) for one in entries],
        "RegisteredDevices": data.get("RegisteredDevices"),
    }


def _entry(entry: Mapping[str, Any], *, lists: bool) -> dict[str, Any]:
    ids, response = entry["DeviceIDs"], entry["AllocResp"]
    if isinstance(ids, list) != lists and ids is not None:
        raise TypeError
    return {
        **{name: str(entry[name]) for name in ("PodUID", "ContainerName", "ResourceName")},
        "DeviceIDs": ids if lists or ids is None else {int(node): row for node, row in ids.items()},
        "AllocResp": None if response is None else list(base64.b64decode(response, validate=True)),
    }
