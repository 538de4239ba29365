"""Devices as reported by plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol import messages
from numaproof.protocol.messages import Device, DeviceResource
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.choices import Choices

if TYPE_CHECKING:
    from collections.abc import Iterable

NIC = "vendor.example/nic"


def device_resource(
    resource: str = NIC, *, unhealthy: str = "", **numa: Iterable[int] | None
) -> DeviceResource:
    """A resource with devices on these NUMA nodes; None is a device without topology."""
    return DeviceResource(
        resource,
        tuple(
            Device(name, None if nodes is None else NUMASet(nodes), name not in unhealthy.split())
            for name, nodes in numa.items()
        ),
    )


def choosing(pod: messages.Pod, resource: str, *ids: str) -> Choices:
    """Returns the choice of these devices for the container `app` of a pod."""
    nothing = messages.Hint(None, preferred=False)
    app = messages.Container(CPUSet(), CPUSet(), (), nothing, {resource: ids})
    return Choices(pods={pod["metadata"]["uid"]: {"app": app}}, only_devices=True)
