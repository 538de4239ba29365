"""What plugins request for each device, and what a container's configuration must include.

For each device, a plugin requests everything that the interface offers, under the name of the
device's file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.kubelet.protobuf import Message

_FOLDER = "/dev/"


def device_file(resource: str, name: str) -> str:
    """The path of a device's file, inside and outside of a container."""
    return f"{_FOLDER}{resource}/{name}"


def response(files: Iterable[str]) -> Message:
    """A plugin's answer to the allocation of devices to one container."""
    paths = [*files]
    return {
        "devices": [
            {"container_path": one, "host_path": one, "permissions": "rw"} for one in paths
        ],
        "mounts": [{"container_path": one, "host_path": one} for one in paths],
        "envs": dict.fromkeys(paths, "set"),
        "annotations": dict.fromkeys(paths, "set"),
        "cdi_devices": [{"name": one} for one in paths],
    }


def by_kind(config: Message) -> Iterator[tuple[str, set[str]]]:
    """Yields each kind of entry in a container's configuration, and the device files it names."""
    yield "device files", {one["host_path"] for one in config.get("devices", [])}
    yield "mounts", _of_devices(one["host_path"] for one in config.get("mounts", []))
    yield "environment variables", _of_devices(one["key"] for one in config.get("envs", []))
    yield "annotations", _of_devices(config.get("annotations", {}))
    yield "CDI devices", {one["name"] for one in config.get("CDI_devices", [])}


def _of_devices(names: Iterable[str]) -> set[str]:
    return {one for one in names if one.startswith(_FOLDER)}
