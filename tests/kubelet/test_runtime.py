"""The runtime answers a kubelet's calls as one that runs containers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from numaproof.kubelet import sockets
from numaproof.kubelet.runtime import (
    _CALLS,
    CREATED,
    EXITED,
    NOT_READY,
    READY,
    RUNNING,
    SCHEMA,
    Runtime,
    serve,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from numaproof.kubelet.protobuf import Message


class Client:
    """A client of a runtime, which decodes what it is sent."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def ask(self, call: str, **request: Any) -> Message:
        """The response to a call of the RuntimeService or the ImageService."""
        service = "ImageService" if "Image" in call else "RuntimeService"
        _, kind, answer = _CALLS.get(call, ("", "Empty", "Empty"))
        method: Any = self._channel.unary_unary(
            f"/runtime.v1.{service}/{call}",
            request_serializer=lambda message: SCHEMA.encode(kind, message),
            response_deserializer=lambda data: SCHEMA.decode(answer, data),
        )
        response: Message = await method(request)
        return response

    async def refusal(self, call: str, **request: Any) -> grpc.StatusCode:
        """The status of a call that fails."""
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await self.ask(call, **request)
        return failed.value.code()

    async def sandbox(self, uid: str, **labels: str) -> str:
        """Runs a sandbox; its id."""
        metadata = {"name": uid, "uid": uid, "namespace": "default"}
        config = {"metadata": metadata, "labels": labels}
        made = await self.ask("RunPodSandbox", config=config)
        return str(made["pod_sandbox_id"])

    async def container(self, sandbox: str, uid: str, name: str, **resources: Any) -> str:
        """Creates a container; its id."""
        config = {
            "metadata": {"name": name},
            "image": {"image": "image"},
            "labels": {"io.kubernetes.pod.uid": uid, "io.kubernetes.container.name": name},
            "log_path": f"{name}.log",
            "linux": {"resources": resources},
        }
        made = await self.ask("CreateContainer", pod_sandbox_id=sandbox, config=config)
        return str(made["container_id"])

    async def status(self, container: str) -> Message:
        """The status of a container."""
        answer = await self.ask("ContainerStatus", container_id=container)
        status: Message = answer["status"]
        return status


@asynccontextmanager
async def serving(runtime: Runtime, folder: Path) -> AsyncIterator[Client]:
    """A client of a runtime that answers on a socket in a folder."""
    server = await serve(runtime, folder / "cri.sock")
    try:
        with sockets.short_path(folder) as path:
            async with sockets.channel(path, "cri.sock") as channel:
                yield Client(channel)
    finally:
        await server.stop(0)


async def test_the_runtime_is_ready_and_has_every_image(tmp_path: Path) -> None:
    async with serving(Runtime(), tmp_path) as client:
        version = await client.ask("Version")
        assert (version["runtime_name"], version["runtime_api_version"]) == ("numaproof", "v1")
        status = await client.ask("Status")
        assert status["status"]["conditions"] == [
            {"type": "RuntimeReady", "status": True},
            {"type": "NetworkReady", "status": True},
        ]
        assert await client.ask("RuntimeConfig") == {"linux": {"cgroup_driver": 1}}
        image = {"image": {"image": "any"}}
        assert (await client.ask("ImageStatus", **image))["image"]["repo_tags"] == ["any"]
        assert await client.ask("PullImage", **image) == {"image_ref": "any"}
        (usage,) = (await client.ask("ImageFsInfo"))["image_filesystems"]
        assert usage["fs_id"] == {"mountpoint": "/"}
        assert await client.ask("ListImages") == {}


async def test_a_sandbox_is_ready_until_it_is_stopped(tmp_path: Path) -> None:
    runtime = Runtime()
    async with serving(runtime, tmp_path) as client:
        sandbox = await client.sandbox("uid-a", app="web")
        container = await client.container(sandbox, "uid-a", "app")
        await client.ask("StartContainer", container_id=container)
        status = (await client.ask("PodSandboxStatus", pod_sandbox_id=sandbox))["status"]
        assert status.get("state", READY) == READY
        assert status["metadata"]["uid"] == "uid-a"
        assert status["labels"] == {"app": "web"}
        assert status["network"]["ip"]
        await client.ask("StopPodSandbox", pod_sandbox_id=sandbox)
        status = (await client.ask("PodSandboxStatus", pod_sandbox_id=sandbox))["status"]
        assert status["state"] == NOT_READY
        ended = await client.status(container)
        assert (ended["state"], ended["exit_code"]) == (EXITED, 137)
        await client.ask("RemovePodSandbox", pod_sandbox_id=sandbox)
        assert await client.ask("ListPodSandbox") == await client.ask("ListContainers") == {}
        assert runtime.containers == {}


async def test_a_container_runs_from_its_start_to_its_end(tmp_path: Path) -> None:
    runtime = Runtime()
    async with serving(runtime, tmp_path) as client:
        sandbox = await client.sandbox("uid-a")
        container = await client.container(sandbox, "uid-a", "app")
        created = await client.status(container)
        assert created.get("state", CREATED) == CREATED
        assert "started_at" not in created
        assert created["log_path"] == "app.log"
        await client.ask("StartContainer", container_id=container)
        running = await client.status(container)
        assert running["state"] == RUNNING
        assert running["started_at"] >= running["created_at"]
        assert [one.place for one in runtime.running()] == [("uid-a", "app")]
        await client.ask("StopContainer", container_id=container)
        stopped = await client.status(container)
        assert (stopped["state"], stopped["exit_code"]) == (EXITED, 137)
        assert "reason" not in stopped
        await client.ask("StopContainer", container_id=container)
        assert (await client.status(container))["finished_at"] == stopped["finished_at"]
        await client.ask("RemoveContainer", container_id=container)
        assert await client.refusal("ContainerStatus", container_id=container) == (
            grpc.StatusCode.NOT_FOUND
        )


async def test_a_container_that_ends_has_succeeded(tmp_path: Path) -> None:
    runtime = Runtime()
    async with serving(runtime, tmp_path) as client:
        container = await client.container(await client.sandbox("uid-a"), "uid-a", "app")
        await client.ask("StartContainer", container_id=container)
        runtime.end(runtime.containers[container])
        status = await client.status(container)
        assert (status["state"], status["reason"]) == (EXITED, "Completed")
        assert "exit_code" not in status


async def test_some_containers_end_as_soon_as_they_run(tmp_path: Path) -> None:
    runtime = Runtime(ends_at_once=lambda uid, name: (uid, name) == ("uid-a", "prepare"))
    async with serving(runtime, tmp_path) as client:
        sandbox = await client.sandbox("uid-a")
        states = []
        for name in ("prepare", "app"):
            container = await client.container(sandbox, "uid-a", name)
            await client.ask("StartContainer", container_id=container)
            states.append((await client.status(container))["state"])
        assert states == [EXITED, RUNNING]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, ["a/one", "a/two", "b/one"]),
        ({"id": "a/two"}, ["a/two"]),
        ({"id": "no such"}, []),
        ({"pod_sandbox_id": "a"}, ["a/one", "a/two"]),
        ({"state": {"state": CREATED}}, ["a/two", "b/one"]),
        ({"state": {"state": RUNNING}}, ["a/one"]),
        ({"label_selector": {"io.kubernetes.container.name": "one"}}, ["a/one", "b/one"]),
        ({"label_selector": {"io.kubernetes.container.name": "one", "other": ""}}, []),
        ({"state": {}, "pod_sandbox_id": "b"}, ["b/one"]),
    ],
)
async def test_a_filter_selects_containers(
    wanted: Message, expected: list[str], tmp_path: Path
) -> None:
    async with serving(Runtime(), tmp_path) as client:
        ids = {name: await client.sandbox(name) for name in "ab"}
        for place in ("a/one", "a/two", "b/one"):
            pod, name = place.split("/")
            ids[place] = await client.container(ids[pod], pod, name)
        await client.ask("StartContainer", container_id=ids["a/one"])
        # Each test names sandboxes and containers; the runtime has ids for them.
        named = {k: ids.get(v, v) if isinstance(v, str) else v for k, v in wanted.items()}
        found = (await client.ask("ListContainers", filter=named)).get("containers", [])
        assert [one["id"] for one in found] == [ids[place] for place in expected]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, ["a", "b"]),
        ({"id": "b"}, ["b"]),
        ({"state": {"state": NOT_READY}}, ["b"]),
        ({"state": {}}, ["a"]),
        ({"label_selector": {"name": "a"}}, ["a"]),
    ],
)
async def test_a_filter_selects_sandboxes(
    wanted: Message, expected: list[str], tmp_path: Path
) -> None:
    async with serving(Runtime(), tmp_path) as client:
        ids = {name: await client.sandbox(name, name=name) for name in "ab"}
        await client.ask("StopPodSandbox", pod_sandbox_id=ids["b"])
        named = {k: ids.get(v, v) if isinstance(v, str) else v for k, v in wanted.items()}
        found = (await client.ask("ListPodSandbox", filter=named)).get("items", [])
        assert [one["id"] for one in found] == [ids[name] for name in expected]


async def test_the_resources_that_are_requested_are_recorded(tmp_path: Path) -> None:
    runtime = Runtime()
    async with serving(runtime, tmp_path) as client:
        sandbox = await client.sandbox("uid-a")
        container = await client.container(sandbox, "uid-a", "app", cpu_quota=-1, cpuset_cpus="1-2")
        update = {"container_id": container, "linux": {"cpuset_cpus": "3"}}
        assert await client.refusal("UpdateContainerResources", **update) == grpc.StatusCode.UNKNOWN
        assert len(runtime.requests) == 1
        await client.ask("UpdateContainerResources", **update)
        assert [(one.place, one.operation, one.resources) for one in runtime.requests] == [
            (("uid-a", "app"), "create", {"cpu_quota": -1, "cpuset_cpus": "1-2"}),
            (("uid-a", "app"), "update", {"cpuset_cpus": "3"}),
        ]
        status = await client.status(container)
        assert status["resources"]["linux"] == {"cpu_quota": -1, "cpuset_cpus": "3"}
    runtime.clear()
    assert runtime.requests == []
    assert not runtime.sandboxes
    assert not runtime.containers


@pytest.mark.parametrize(
    "call", ["StartContainer", "StopContainer", "ContainerStatus", "UpdateContainerResources"]
)
async def test_an_unknown_container_is_not_found(call: str, tmp_path: Path) -> None:
    async with serving(Runtime(), tmp_path) as client:
        assert await client.refusal(call, container_id="x") == grpc.StatusCode.NOT_FOUND


async def test_an_unknown_sandbox_is_not_found_but_can_be_stopped(tmp_path: Path) -> None:
    async with serving(Runtime(), tmp_path) as client:
        for call in ("StopPodSandbox", "RemovePodSandbox"):
            assert await client.ask(call, pod_sandbox_id="x") == {}
        assert await client.refusal("PodSandboxStatus", pod_sandbox_id="x") == (
            grpc.StatusCode.NOT_FOUND
        )
        assert await client.ask("RemoveContainer", container_id="x") == {}


async def test_a_held_pod_runs_on_until_it_is_let_go(tmp_path: Path) -> None:
    runtime = Runtime()
    changes: asyncio.Queue[None] = asyncio.Queue()
    async with serving(runtime, tmp_path) as client:
        container = await client.container(await client.sandbox("uid-a"), "uid-a", "app")
        await client.ask("StartContainer", container_id=container)
        runtime.on_change = lambda: changes.put_nowait(None)
        with runtime.holding("uid-a"):
            stop = asyncio.create_task(client.ask("StopContainer", container_id=container))
            await changes.get()
            assert runtime.stopping == {"uid-a"}
            assert (await client.status(container))["state"] == RUNNING
        await stop
        assert (await client.status(container))["state"] == EXITED
        assert runtime.stopping == set()


async def test_other_calls_are_not_implemented(tmp_path: Path) -> None:
    async with serving(Runtime(), tmp_path) as client:
        for call in ("ExecSync", "CheckpointContainer", "GetContainerEvents"):
            assert await client.refusal(call) == grpc.StatusCode.UNIMPLEMENTED


async def test_each_change_is_told(tmp_path: Path) -> None:
    told = []
    runtime = Runtime(on_change=lambda: told.append(len(runtime.containers)))
    async with serving(runtime, tmp_path) as client:
        container = await client.container(await client.sandbox("uid-a"), "uid-a", "app")
        before = len(told)
        for call in ("StartContainer", "StopContainer", "RemoveContainer"):
            await client.ask(call, container_id=container)
        assert told[before:] == [1, 1, 0]


async def test_a_pod_can_be_lost(tmp_path: Path) -> None:
    runtime = Runtime()
    async with serving(runtime, tmp_path) as client:
        lost = await client.container(await client.sandbox("uid-a"), "uid-a", "app")
        kept = await client.container(await client.sandbox("uid-b"), "uid-b", "app")
        assert runtime.lose("uid-a") == {lost}
        assert [*runtime.containers] == [kept]
        assert len(runtime.sandboxes) == 1
