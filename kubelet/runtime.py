"""A container runtime without containers: sandboxes and containers are entries in tables.

It answers the Container Runtime Interface on a Unix socket. Containers run as soon as they are
started, and end when the driver ends them. It records the kubelet's requests in order.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import grpc

from numaproof.kubelet import sockets
from numaproof.kubelet.calls import CallError, Calls
from numaproof.kubelet.protobuf import Message, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SCHEMA = Schema((resources.files(__package__) / "runtime.proto").read_text("utf-8"))

MISSING_IMAGE = "numaproof.invalid/missing:1"
"""The only image that can't be pulled."""

CREATED, RUNNING, EXITED = range(3)
READY, NOT_READY = range(2)


@dataclass
class Container:
    """A container that the kubelet created.

    `state` is `CREATED`, `RUNNING` or `EXITED`. `is_busy` is true until an update was refused.
    `resources_at_creation` is None if an earlier kubelet created it.
    """

    id: str
    sandbox: str
    config: Message
    created_at: int
    state: int = CREATED
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    is_busy: bool = True

    def __post_init__(self) -> None:
        self.resources_at_creation: Message | None = dict(self.resources)

    @property
    def resources(self) -> Message:
        """What the kubelet last requested for it."""
        found: Message = self.config.get("linux", {}).get("resources", {})
        return found

    @property
    def place(self) -> tuple[str, str]:
        """The uid of its pod and its name."""
        return self.config["labels"]["io.kubernetes.pod.uid"], self.config["metadata"]["name"]


@dataclass
class Sandbox:
    """The sandbox of a pod."""

    id: str
    config: Message
    created_at: int
    state: int = READY


@dataclass
class ResourceRequest:
    """The resources that the kubelet requests for a container, when it is created or later."""

    place: tuple[str, str]
    operation: str
    resources: Message


@dataclass
class Runtime:
    """The runtime's tables.

    Attributes:
        on_change: called after each change.
        ends_at_once: whether a container, by its pod's uid and its name, ends as soon as it runs.
        requests: the resources that the kubelet requested and got, in order.
        stopping: the pods that `holding` keeps running although the kubelet stops them.
    """

    on_change: Callable[[], None] = lambda: None
    ends_at_once: Callable[[str, str], bool] = lambda _uid, _name: False
    sandboxes: dict[str, Sandbox] = field(default_factory=dict)
    containers: dict[str, Container] = field(default_factory=dict)
    requests: list[ResourceRequest] = field(default_factory=list)
    stopping: set[str] = field(default_factory=set)
    _ends: dict[str, asyncio.Event] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def clear(self) -> None:
        """Forgets all sandboxes, containers and requests, as in a reboot."""
        self.sandboxes.clear()
        self.containers.clear()
        self.requests.clear()

    def running(self) -> Iterator[Container]:
        """The containers that run."""
        return (one for one in self.containers.values() if one.state == RUNNING)

    def existing(self) -> Iterator[Container]:
        """The containers that run, or are about to."""
        return (one for one in self.containers.values() if one.state != EXITED)

    @contextmanager
    def holding(self, uid: str) -> Iterator[None]:
        """Delays the end of a pod's containers that are stopped."""
        self._ends[uid] = asyncio.Event()
        try:
            yield
        finally:
            self._ends.pop(uid).set()
            self.stopping.discard(uid)

    def end(self, container: Container) -> None:
        """Lets a running container end with success."""
        self._end(container, 0)

    def lose(self, uid: str) -> set[str]:
        """Forgets a pod, so that the kubelet starts it anew; the ids of its containers."""
        lost = {one.id for one in self.containers.values() if one.place[0] == uid}
        sandboxes = {self.containers[name].sandbox for name in lost}
        for name in lost:
            del self.containers[name]
        for name in sandboxes:
            del self.sandboxes[name]
        return lost

    def _end(self, container: Container, exit_code: int) -> None:
        container.state, container.exit_code = EXITED, exit_code
        container.finished_at = time.time_ns()
        self.on_change()

    def _id(self, kind: str) -> str:
        return f"{kind}{next(self._ids):x}".ljust(64, "0")

    # Calls of the RuntimeService and the ImageService, by their names there.

    def version(self, _: Message) -> Message:
        """Who the runtime is."""
        return {
            "version": "0.1.0",
            "runtime_name": "numaproof",
            "runtime_version": "1.0.0",
            "runtime_api_version": "v1",
        }

    def status(self, _: Message) -> Message:
        """That everything is ready."""
        ready = [{"type": name, "status": True} for name in ("RuntimeReady", "NetworkReady")]
        return {"status": {"conditions": ready}, "runtime_handlers": [{"name": ""}]}

    def runtime_config(self, _: Message) -> Message:
        """The cgroup driver: cgroupfs."""
        return {"linux": {"cgroup_driver": 1}}

    def run_pod_sandbox(self, request: Message) -> Message:
        """Makes a sandbox, which is ready at once."""
        made = Sandbox(self._id("a"), request["config"], time.time_ns())
        self.sandboxes[made.id] = made
        return {"pod_sandbox_id": made.id}

    def stop_pod_sandbox(self, request: Message) -> Message:
        """Stops a sandbox and its containers."""
        sandbox = self.sandboxes.get(request["pod_sandbox_id"])
        if sandbox:
            sandbox.state = NOT_READY
            for one in self.containers.values():
                if one.sandbox == sandbox.id and one.state == RUNNING:
                    self._end(one, 137)
        self.on_change()
        return {}

    def remove_pod_sandbox(self, request: Message) -> Message:
        """Forgets a sandbox and its containers."""
        gone = request["pod_sandbox_id"]
        self.sandboxes.pop(gone, None)
        self.containers = {
            name: one for name, one in self.containers.items() if one.sandbox != gone
        }
        self.on_change()
        return {}

    def pod_sandbox_status(self, request: Message) -> Message:
        """The state of a sandbox."""
        sandbox = self.sandboxes.get(request["pod_sandbox_id"])
        if sandbox is None:
            raise LookupError(f"no sandbox {request['pod_sandbox_id']}")
        status = _sandbox(sandbox) | {"network": {"ip": "10.88.0.2"}}
        return {"status": status}

    def list_pod_sandbox(self, request: Message) -> Message:
        """The sandboxes that a filter selects."""
        selector = request.get("filter", {})
        found = [one for one in map(_sandbox, self.sandboxes.values()) if _matches(one, selector)]
        return {"items": found}

    def create_container(self, request: Message) -> Message:
        """Makes a container."""
        made = Container(
            self._id("c"), request["pod_sandbox_id"], request["config"], time.time_ns()
        )
        self.containers[made.id] = made
        self._record(made, "create", made.resources)
        return {"container_id": made.id}

    def start_container(self, request: Message) -> Message:
        """Lets a container run."""
        container = self._container(request)
        container.state, container.started_at = RUNNING, time.time_ns()
        if self.ends_at_once(*container.place):
            self._end(container, 0)
        self.on_change()
        return {}

    async def stop_container(self, request: Message) -> Message:
        """Ends a container, once its pod isn't held."""
        container = self._container(request)
        uid, _ = container.place
        if container.state == RUNNING and uid in self._ends:
            self.stopping.add(uid)
            self.on_change()
            await self._ends[uid].wait()
        if container.state == RUNNING:
            self._end(container, 137)
        return {}

    def remove_container(self, request: Message) -> Message:
        """Forgets a container."""
        self.containers.pop(request["container_id"], None)
        self.on_change()
        return {}

    def list_containers(self, request: Message) -> Message:
        """The containers that a filter selects."""
        selector = request.get("filter", {})
        found = [
            one for one in map(_container, self.containers.values()) if _matches(one, selector)
        ]
        return {"containers": found}

    def container_status(self, request: Message) -> Message:
        """The state of a container."""
        one = self._container(request)
        status = {
            **{name: value for name, value in _container(one).items() if name in _IN_STATUS},
            "started_at": one.started_at,
            "finished_at": one.finished_at,
            "exit_code": one.exit_code,
            "reason": "Completed" if one.state == EXITED and not one.exit_code else "",
            "log_path": one.config.get("log_path", ""),
            "resources": {"linux": one.resources},
        }
        return {"status": status}

    def update_container_resources(self, request: Message) -> Message:
        """Records the resources of a container; refuses the first, which a kubelet must repeat."""
        container = self._container(request)
        if container.is_busy:
            container.is_busy = False
            raise CallError("the container is busy")
        changed = request.get("linux", {})
        known = container.config.setdefault("linux", {}).setdefault("resources", {})
        known.update(changed)
        self._record(container, "update", changed)
        return {}

    def image_status(self, request: Message) -> Message:
        """That the image is there, unless it is the missing one."""
        name = request["image"]["image"]
        return {} if name == MISSING_IMAGE else {"image": _image(name)}

    def pull_image(self, request: Message) -> Message:
        """Does nothing: every image but the missing one is there."""
        name = request["image"]["image"]
        if name == MISSING_IMAGE:
            raise LookupError(f"no image {name}")
        return {"image_ref": name}

    def image_fs_info(self, _: Message) -> Message:
        """An empty file system."""
        usage = {
            "timestamp": time.time_ns(),
            "fs_id": {"mountpoint": "/"},
            "used_bytes": {"value": 1},
            "inodes_used": {"value": 1},
        }
        return {"image_filesystems": [usage], "container_filesystems": [usage]}

    def _record(self, container: Container, operation: str, resources: Message) -> None:
        self.requests.append(ResourceRequest(container.place, operation, dict(resources)))
        self.on_change()

    def _container(self, request: Message) -> Container:
        container = self.containers.get(request["container_id"])
        if container is None:
            raise LookupError(f"no container {request['container_id']}")
        return container


_IN_STATUS = {
    *("id", "metadata", "state", "created_at", "image", "image_ref", "labels", "annotations"),
    "image_id",
}


def _sandbox(sandbox: Sandbox) -> Message:
    return {
        "id": sandbox.id,
        "metadata": sandbox.config["metadata"],
        "state": sandbox.state,
        "created_at": sandbox.created_at,
        "labels": sandbox.config.get("labels", {}),
        "annotations": sandbox.config.get("annotations", {}),
    }


def _container(container: Container) -> Message:
    image = container.config["image"]
    return {
        "id": container.id,
        "pod_sandbox_id": container.sandbox,
        "metadata": container.config["metadata"],
        "image": image,
        "image_ref": image.get("image", ""),
        "image_id": image.get("image", ""),
        "state": container.state,
        "created_at": container.created_at,
        "labels": container.config.get("labels", {}),
        "annotations": container.config.get("annotations", {}),
    }


def _image(name: str) -> Message:
    return {"id": name, "repo_tags": [name], "size": 1, "spec": {"image": name}}


def _matches(item: Message, selector: Message) -> bool:
    """Whether a filter of a list request selects a sandbox or a container."""
    labels = selector.get("label_selector", {})
    return (
        selector.get("id", item["id"]) == item["id"]
        and ("state" not in selector or selector["state"].get("state", 0) == item["state"])
        and selector.get("pod_sandbox_id", item.get("pod_sandbox_id")) == item.get("pod_sandbox_id")
        and all(item["labels"].get(name) == value for name, value in labels.items())
    )


_CALLS: dict[str, tuple[str, str, str]] = {
    "Version": ("version", "Empty", "VersionResponse"),
    "Status": ("status", "Empty", "StatusResponse"),
    "RuntimeConfig": ("runtime_config", "Empty", "RuntimeConfigResponse"),
    "RunPodSandbox": ("run_pod_sandbox", "RunPodSandboxRequest", "RunPodSandboxResponse"),
    "StopPodSandbox": ("stop_pod_sandbox", "PodSandboxRequest", "Empty"),
    "RemovePodSandbox": ("remove_pod_sandbox", "PodSandboxRequest", "Empty"),
    "PodSandboxStatus": ("pod_sandbox_status", "PodSandboxRequest", "PodSandboxStatusResponse"),
    "ListPodSandbox": ("list_pod_sandbox", "ListPodSandboxRequest", "ListPodSandboxResponse"),
    "CreateContainer": ("create_container", "CreateContainerRequest", "ContainerRequest"),
    "StartContainer": ("start_container", "ContainerRequest", "Empty"),
    "StopContainer": ("stop_container", "ContainerRequest", "Empty"),
    "RemoveContainer": ("remove_container", "ContainerRequest", "Empty"),
    "ListContainers": ("list_containers", "ListContainersRequest", "ListContainersResponse"),
    "ContainerStatus": ("container_status", "ContainerRequest", "ContainerStatusResponse"),
    "UpdateContainerResources": (
        "update_container_resources",
        "UpdateContainerResourcesRequest",
        "Empty",
    ),
    "ImageStatus": ("image_status", "ImageRequest", "ImageStatusResponse"),
    "PullImage": ("pull_image", "ImageRequest", "PullImageResponse"),
    "ImageFsInfo": ("image_fs_info", "Empty", "ImageFsInfoResponse"),
}
"""By its name: the method that answers a call, and the kinds of its request and response.

Calls that aren't here are answered as unimplemented, and the kubelet does without them.
"""

_EMPTY = frozenset(
    {
        *("ListImages", "RemoveImage", "ReopenContainerLog", "UpdateRuntimeConfig"),
        *(
            "ListContainerStats",
            "ListPodSandboxStats",
            "ListPodSandboxMetrics",
            "ListMetricDescriptors",
        ),
    }
)
"""Calls that an empty response answers."""


class _Handler(Calls):
    def service(self, details: Any) -> Any:
        """The handler of a call; None for calls that aren't implemented."""
        if details.method.rpartition("/")[2] in _EMPTY:
            return grpc.unary_unary_rpc_method_handler(_nothing)
        return super().service(details)


async def _nothing(_request: bytes, _context: Any) -> bytes:
    return b""


async def serve(runtime: Runtime, socket: Path) -> grpc.aio.Server:
    """Starts answering on a Unix socket."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([_Handler(runtime, SCHEMA, _CALLS)])
    with sockets.short_path(socket.parent) as folder:
        server.add_insecure_port(f"unix:{folder}/{socket.name}")
        await server.start()
    return server
