"""A device plugin says to a kubelet what real ones do."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import msgspec
import pytest

from builders.devices import NIC, device_resource
from numaproof.kubelet import sockets
from numaproof.kubelet.device_plugins import SCHEMA, DevicePlugin
from numaproof.protocol.messages import PLUGIN_FAILURE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from numaproof.kubelet.protobuf import Message
    from numaproof.protocol.messages import DeviceResource

OPTIONS = {"get_preferred_allocation_available": True, "pre_start_required": True}
REPORT = device_resource(a=[0], b=[1], c=[0, 1], d=None, e=(), unhealthy="b")


class Registration(grpc.GenericRpcHandler):
    """The part of a kubelet with which plugins register."""

    def __init__(self) -> None:
        self.requests: asyncio.Queue[tuple[str, Message]] = asyncio.Queue()

    def service(self, details: Any) -> Any:
        """Takes note of every request."""

        async def answer(request: Message, _context: Any) -> bytes:
            self.requests.put_nowait((details.method, request))
            return b""

        return grpc.unary_unary_rpc_method_handler(
            answer, lambda data: SCHEMA.decode("RegisterRequest", data)
        )


class Kubelet:
    """A kubelet that a plugin has registered with."""

    def __init__(self, plugin: DevicePlugin, channel: grpc.aio.Channel, request: Any) -> None:
        self.plugin = plugin
        self.request: tuple[str, Message] = request
        self._channel = channel

    async def ask(self, call: str, request: str, response: str, **message: Any) -> Message:
        """The plugin's response to a call."""
        method: Any = self._channel.unary_unary(
            f"/v1beta1.DevicePlugin/{call}",
            request_serializer=lambda message: SCHEMA.encode(request, message),
            response_deserializer=lambda data: SCHEMA.decode(response, data),
        )
        answer: Message = await method(message)
        return answer

    def lists(self) -> Any:
        """The plugin's lists of devices."""
        method: Any = self._channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch",
            response_deserializer=lambda data: SCHEMA.decode("ListAndWatchResponse", data),
        )
        return method(b"")


@asynccontextmanager
async def running(folder: Path, report: DeviceResource = REPORT) -> AsyncIterator[Kubelet]:
    """A kubelet with a plugin in a folder."""
    registration = Registration()
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([registration])
    plugin = DevicePlugin(folder, "plugin0.sock", report)
    try:
        with sockets.short_path(folder) as path:
            server.add_insecure_port(f"unix:{path}/kubelet.sock")
            await server.start()
            await plugin.start()
            await plugin.register()
            request = await registration.requests.get()
            async with sockets.channel(path, "plugin0.sock") as channel:
                yield Kubelet(plugin, channel, request)
    finally:
        await plugin.stop()
        await server.stop(0)


async def test_a_plugin_registers_its_resource(tmp_path: Path) -> None:
    async with running(tmp_path) as kubelet:
        assert kubelet.request == (
            "/v1beta1.Registration/Register",
            {
                "version": "v1beta1",
                "endpoint": "plugin0.sock",
                "resource_name": NIC,
                "options": OPTIONS,
            },
        )


async def test_a_plugin_says_what_it_is(tmp_path: Path) -> None:
    async with running(tmp_path) as kubelet:
        assert await kubelet.ask("GetInfo", "Empty", "PluginInfo") == {
            "type": "DevicePlugin",
            "name": NIC,
            "supported_versions": ["v1beta1"],
        }
        assert await kubelet.ask("NotifyRegistrationStatus", "Empty", "Empty") == {}


async def test_a_plugin_works_in_a_folder_with_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    async with running(folder) as kubelet:
        options = await kubelet.ask("GetDevicePluginOptions", "Empty", "DevicePluginOptions")
        assert options == OPTIONS
        assert (folder / "plugin0.sock").is_socket()


async def test_devices_are_listed_again_when_they_change(tmp_path: Path) -> None:
    async with running(tmp_path) as kubelet:
        lists = kubelet.lists()
        assert (await lists.read())["devices"] == [
            {"ID": "a", "health": "Healthy", "topology": {"nodes": [{}]}},
            {"ID": "b", "health": "Unhealthy", "topology": {"nodes": [{"ID": 1}]}},
            {"ID": "c", "health": "Healthy", "topology": {"nodes": [{}, {"ID": 1}]}},
            {"ID": "d", "health": "Healthy"},
            {"ID": "e", "health": "Healthy", "topology": {}},
        ]
        kubelet.plugin.update(device_resource(z=None))
        assert (await lists.read())["devices"] == [{"ID": "z", "health": "Healthy"}]
        kubelet.plugin.update(device_resource())
        assert await lists.read() == {}


async def test_a_plugin_that_stops_disappears(tmp_path: Path) -> None:
    async with running(tmp_path) as kubelet:
        lists = kubelet.lists()
        await lists.read()
        await kubelet.plugin.stop()
        assert not (tmp_path / "plugin0.sock").exists()
        with pytest.raises(grpc.aio.AioRpcError):
            await lists.read()


@pytest.mark.parametrize(
    ("available", "included", "size", "chosen"),
    [
        ("a b c", "", 2, "c a"),
        ("a b c", "", 0, ""),
        ("a b", "b", 1, "b"),
        ("a b c", "b", 2, "b c"),
        ("a b c", "b c", 3, "b c a"),
        ("a b c", "a b", 1, "a b"),
        ("b", "", 1, ""),
        ("a c", "", 5, "c a"),
    ],
)
async def test_a_plugin_prefers_the_devices_that_come_first_in_its_order(
    available: str, included: str, size: int, chosen: str, tmp_path: Path
) -> None:
    report = msgspec.structs.replace(REPORT, preferred=("c", "a", "x"))
    request = {
        "available_deviceIDs": available.split(),
        "must_include_deviceIDs": included.split(),
        "allocation_size": size,
    }
    async with running(tmp_path, report) as kubelet:
        answer = await kubelet.ask(
            "GetPreferredAllocation",
            "PreferredAllocationRequest",
            "PreferredAllocationResponse",
            container_requests=[request],
        )
        (response,) = answer["container_responses"]
        assert response.get("deviceIDs", []) == chosen.split()


async def test_every_container_gets_its_devices_in_every_way(tmp_path: Path) -> None:
    async with running(tmp_path) as kubelet:
        requests = [{"devices_ids": ["a"]}, {"devices_ids": ["b", "c"]}]
        answer = await kubelet.ask(
            "Allocate", "AllocateRequest", "AllocateResponse", container_requests=requests
        )
        first, second = answer["container_responses"]
        a, b, c = (f"/dev/{NIC}/{name}" for name in "abc")
        assert first == {
            "devices": [{"container_path": a, "host_path": a, "permissions": "rw"}],
            "mounts": [{"container_path": a, "host_path": a}],
            "envs": {a: "set"},
            "annotations": {a: "set"},
            "cdi_devices": [{"name": a}],
        }
        assert [one["host_path"] for one in second["devices"]] == [b, c]


async def test_a_plugin_notes_the_devices_that_it_prepares(tmp_path: Path) -> None:
    async with running(tmp_path) as kubelet:
        for names in (["a"], ["b"]):
            await kubelet.ask(
                "PreStartContainer", "PreStartContainerRequest", "Empty", devices_ids=names
            )
        assert kubelet.plugin.prepared_files == {f"/dev/{NIC}/a", f"/dev/{NIC}/b"}


@pytest.mark.parametrize(
    ("before", "after", "leaves"),
    [
        ("", "a b c d e", True),
        ("b", "a b c d e", True),
        ("", "a", False),
        ("a b c d e", "a b c d e", False),
    ],
)
def test_a_plugin_may_leave_if_all_devices_become_unhealthy(
    before: str, after: str, *, leaves: bool, tmp_path: Path
) -> None:
    def report(unhealthy: str) -> DeviceResource:
        return device_resource(a=[0], b=[1], c=[0, 1], d=None, e=(), unhealthy=unhealthy)

    assert DevicePlugin(tmp_path, "x", report(before)).leaves(report(after)) is leaves


@pytest.mark.parametrize("other", [device_resource(), device_resource(a=[1], unhealthy="a")])
def test_a_plugin_stays_if_its_devices_become_others(other: DeviceResource, tmp_path: Path) -> None:
    assert not DevicePlugin(tmp_path, "x", device_resource(a=[0])).leaves(other)


async def test_a_plugin_that_fails_allocates_nothing(tmp_path: Path) -> None:
    report = msgspec.structs.replace(REPORT, fails=True)
    async with running(tmp_path, report) as kubelet:
        with pytest.raises(grpc.aio.AioRpcError, match=PLUGIN_FAILURE) as failed:
            await kubelet.ask("Allocate", "AllocateRequest", "AllocateResponse")
        assert failed.value.code() == grpc.StatusCode.UNKNOWN


async def test_other_calls_are_not_implemented(tmp_path: Path) -> None:
    async with running(tmp_path) as kubelet:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await kubelet.ask("NoSuchCall", "Empty", "Empty")
        assert failed.value.code() == grpc.StatusCode.UNIMPLEMENTED


async def test_a_plugin_that_never_started_can_stop(tmp_path: Path) -> None:
    await DevicePlugin(tmp_path, "plugin0.sock", REPORT).stop()


def test_healthy_devices_have_an_entry_for_each_node(tmp_path: Path) -> None:
    plugin = DevicePlugin(tmp_path, "plugin0.sock", REPORT)
    assert {*plugin.healthy()} == {
        (NIC, "a", 0),
        (NIC, "c", 0),
        (NIC, "c", 1),
        (NIC, "d", None),
    }
