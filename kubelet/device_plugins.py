"""Device plugins: gRPC servers that register with a kubelet and report devices to it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import grpc

from numaproof.kubelet import sockets
from numaproof.kubelet.calls import CallError, Calls
from numaproof.kubelet.protobuf import Message, Schema
from numaproof.protocol.messages import PLUGIN_FAILURE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from numaproof.protocol.messages import DeviceResource

SCHEMA = Schema((resources.files(__package__) / "device_plugin.proto").read_text("utf-8"))

KUBELET_SOCKET = "kubelet.sock"
_VERSION = "v1beta1"
_OPTIONS: Message = {"get_preferred_allocation_available": True}


def device_file(resource: str, name: str) -> str:
    """The path of a device's file, inside and outside of a container."""
    return f"/dev/{resource}/{name}"


@dataclass
class DevicePlugin:
    """A device plugin for one resource, whose devices may change.

    Args:
        folder: the kubelet's folder for the sockets of device plugins.
        endpoint: the name of the plugin's own socket.
        report: the resource and its devices.
    """

    folder: Path
    endpoint: str
    report: DeviceResource
    _change: asyncio.Event = field(default_factory=asyncio.Event)
    _server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Serves the plugin's calls and registers with the kubelet."""
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers([_Handler(self)])
        with sockets.short_path(self.folder) as folder:
            self._server.add_insecure_port(f"unix:{folder}/{self.endpoint}")
            await self._server.start()
            async with sockets.channel(folder, KUBELET_SOCKET) as channel:
                register: Any = channel.unary_unary(
                    f"/{_VERSION}.Registration/Register",
                    request_serializer=lambda message: SCHEMA.encode("RegisterRequest", message),
                    response_deserializer=lambda data: SCHEMA.decode("Empty", data),
                )
                request = {
                    "version": _VERSION,
                    "endpoint": self.endpoint,
                    "resource_name": self.report.resource,
                    "options": _OPTIONS,
                }
                await register(request, wait_for_ready=True)

    async def stop(self) -> None:
        """Disappears, as a plugin that crashes."""
        if self._server is not None:
            await self._server.stop(None)

    def update(self, report: DeviceResource) -> None:
        """Reports a new list of devices."""
        self.report = report
        self._change.set()

    def healthy(self) -> Iterator[tuple[str, str, int | None]]:
        """The resource, the device and each node of every healthy device; None if unknown.

        The kubelet leaves out devices whose set of nodes is known to be empty.
        """
        for device in self.report.ids:
            if device.healthy:
                for node in (None,) if device.numa is None else device.numa:
                    yield self.report.resource, device.id, node

    # The plugin's calls

    def options(self, _: Message) -> Message:
        """That the plugin has preferences."""
        return _OPTIONS

    async def devices(self) -> AsyncIterator[Message]:
        """The lists of devices, each as soon as it is reported."""
        while True:
            self._change.clear()
            yield {"devices": [_device(one) for one in self.report.ids]}
            await self._change.wait()

    def prefer(self, request: Message) -> Message:
        """Of the available devices, those that come first in the plugin's order."""
        return {
            "container_responses": [
                {"deviceIDs": self._preferred(one)} for one in request.get("container_requests", [])
            ]
        }

    def _preferred(self, request: Message) -> list[str]:
        chosen = list(request.get("must_include_deviceIDs", []))
        available = set(request.get("available_deviceIDs", [])).difference(chosen)
        ranked = [one for one in self.report.preferred if one in available]
        return chosen + ranked[: max(0, request.get("allocation_size", 0) - len(chosen))]

    def allocate(self, request: Message) -> Message:
        """The files in `/dev` of the allocated devices, which the runtime must get.

        Raises:
            CallError: the plugin fails to allocate.
        """
        if self.report.fails:
            raise CallError(PLUGIN_FAILURE)
        return {
            "container_responses": [
                {"devices": [self._spec(name) for name in one["devices_ids"]]}
                for one in request.get("container_requests", [])
            ]
        }

    def _spec(self, name: str) -> Message:
        path = device_file(self.report.resource, name)
        return {"container_path": path, "host_path": path, "permissions": "rw"}

    def pre_start(self, _: Message) -> Message:
        """Nothing to do before a container starts."""
        return {}


_CALLS = {
    "GetDevicePluginOptions": ("options", "Empty", "DevicePluginOptions"),
    "GetPreferredAllocation": (
        "prefer",
        "PreferredAllocationRequest",
        "PreferredAllocationResponse",
    ),
    "Allocate": ("allocate", "AllocateRequest", "AllocateResponse"),
    "PreStartContainer": ("pre_start", "Empty", "Empty"),
}
"""By its name: the method that answers a call, and the kinds of its request and response."""


class _Handler(Calls):
    def __init__(self, plugin: DevicePlugin) -> None:
        super().__init__(plugin, SCHEMA, _CALLS)
        self._plugin = plugin

    def service(self, details: Any) -> Any:
        """The handler of a call; None for calls that aren't implemented."""
        if details.method.rpartition("/")[2] != "ListAndWatch":
            return super().service(details)
        return grpc.unary_stream_rpc_method_handler(
            self._list,
            response_serializer=lambda message: SCHEMA.encode("ListAndWatchResponse", message),
        )

    async def _list(self, _request: bytes, _context: Any) -> AsyncIterator[Message]:
        async for message in self._plugin.devices():
            yield message


def _device(device: Any) -> Message:
    made: Message = {"ID": device.id, "health": "Healthy" if device.healthy else "Unhealthy"}
    if device.numa is not None:
        made["topology"] = {"nodes": [{"ID": node} for node in device.numa]}
    return made
