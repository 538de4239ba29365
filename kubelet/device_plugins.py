"""Device plugins: gRPC servers that register with a kubelet and report devices to it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import grpc
from msgspec.structs import replace

from numaproof.kubelet import device_access, sockets
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
_OPTIONS: Message = {"get_preferred_allocation_available": True, "pre_start_required": True}


@dataclass
class DevicePlugin:
    """A device plugin for one resource, whose devices may change.

    Args:
        folder: the folder of the plugin's own socket.
        endpoint: the name of that socket.
        report: the resource and its devices.

    Attributes:
        prepared_files: the files of the devices that the kubelet has announced before it created a
            container.
    """

    folder: Path
    endpoint: str
    report: DeviceResource
    prepared_files: set[str] = field(default_factory=set)
    _change: asyncio.Event = field(default_factory=asyncio.Event)
    _server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Serves the plugin's calls. A kubelet that watches the folder asks who the plugin is."""
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers([_Handler(self)])
        with sockets.short_path(self.folder) as folder:
            self._server.add_insecure_port(f"unix:{folder}/{self.endpoint}")
            await self._server.start()

    async def register(self) -> None:
        """Registers with the kubelet, whose socket is in the same folder."""
        with sockets.short_path(self.folder) as folder:
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
        """Disappears at once, with its socket."""
        if self._server is not None:
            await self._server.stop(None)
            (self.folder / self.endpoint).unlink(missing_ok=True)

    def update(self, report: DeviceResource) -> None:
        """Reports a new list of devices."""
        self.report = report
        self._change.set()

    def leaves(self, report: DeviceResource) -> bool:
        """Whether a report is what a kubelet concludes from the end of the plugin.

        That is so if all devices have become unhealthy, and nothing else has changed.
        """
        return any(one.healthy for one in self.report.ids) and report == replace(
            self.report, ids=tuple(replace(one, healthy=False) for one in self.report.ids)
        )

    def healthy(self) -> Iterator[tuple[str, str, int | None]]:
        """The resource, the device and each node of every healthy device; None if unknown.

        The kubelet leaves out devices whose set of nodes is known to be empty.
        """
        for device in self.report.ids:
            if device.healthy:
                for node in (None,) if device.numa is None else device.numa:
                    yield self.report.resource, device.id, node

    # The plugin's calls

    def info(self, _: Message) -> Message:
        """What the plugin is, for a kubelet that has found its socket."""
        name = self.report.resource
        return {"type": "DevicePlugin", "name": name, "supported_versions": [_VERSION]}

    def note_registration(self, _: Message) -> Message:
        """Takes note that the kubelet has registered the plugin."""
        return {}

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
        """Requests access to the allocated devices, which the kubelet must pass on to the runtime.

        Raises:
            CallError: the plugin fails to allocate.
        """
        if self.report.fails:
            raise CallError(PLUGIN_FAILURE)
        return {
            "container_responses": [
                device_access.response(self._files(one))
                for one in request.get("container_requests", [])
            ]
        }

    def pre_start(self, request: Message) -> Message:
        """Notes the devices of a container that is about to be created."""
        self.prepared_files.update(self._files(request))
        return {}

    def _files(self, request: Message) -> Iterator[str]:
        for name in request.get("devices_ids", []):
            yield device_access.device_file(self.report.resource, name)


_CALLS = {
    "GetInfo": ("info", "Empty", "PluginInfo"),
    "NotifyRegistrationStatus": ("note_registration", "Empty", "Empty"),
    "GetDevicePluginOptions": ("options", "Empty", "DevicePluginOptions"),
    "GetPreferredAllocation": (
        "prefer",
        "PreferredAllocationRequest",
        "PreferredAllocationResponse",
    ),
    "Allocate": ("allocate", "AllocateRequest", "AllocateResponse"),
    "PreStartContainer": ("pre_start", "PreStartContainerRequest", "Empty"),
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
