"""Asks a kubelet who has which CPUs, memory and devices: the client of its podresources socket."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import grpc

from numaproof.kubelet import sockets
from numaproof.kubelet.protobuf import Message, Schema
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SCHEMA = Schema((resources.files(__package__) / "pod_resources.proto").read_text("utf-8"))
_SERVICE = "/v1.PodResourcesLister"
_NO_CPUS = CPUSet()
_DISABLED = "Get method disabled"


async def _call(
    folder: Path, method: str, response: str, request: tuple[str, Message] = ("Empty", {})
) -> Message:
    with sockets.short_path(folder) as path:
        async with sockets.channel(path, "kubelet.sock") as channel:
            call: Any = channel.unary_unary(
                f"{_SERVICE}/{method}",
                request_serializer=lambda message: SCHEMA.encode(*message),
                response_deserializer=lambda data: SCHEMA.decode(response, data),
            )
            answer: Message = await call(request, wait_for_ready=True)
            return answer


async def read_allocatable(folder: Path) -> tuple[CPUSet, tuple[messages.MemoryBlock, ...]]:
    """The CPUs and the memory that can be allocated; `folder` has the kubelet's socket."""
    answer = await _call(folder, "GetAllocatableResources", "AllocatableResourcesResponse")
    return CPUSet(answer.get("cpu_ids", [])), tuple(sorted(_blocks(answer), key=_place))


def _place(block: messages.MemoryBlock) -> tuple[tuple[int, ...], str]:
    """By which blocks are sorted: a kubelet reports them in a random order."""
    return (tuple(block.numa), block.type)


async def disagreements(
    folder: Path,
    pods: Mapping[tuple[str, str], PodResources],
    allocatable: Resources,
) -> list[str]:
    """Where the kubelet's answers differ from the checkpoint files and from the plugins' reports.

    Args:
        folder: the folder of the kubelet's socket.
        pods: by namespace and name: what the checkpoint files say about a pod on the node.
        allocatable: the CPUs and the memory that could be allocated after the start, and the
            healthy devices that plugins report.
    """
    response = await _call(folder, "List", "ListPodResourcesResponse")
    listed = {(one["namespace"], one["name"]): one for one in response.get("pod_resources", [])}
    problems = [
        f"List leaves out pod {'/'.join(place)}" for place in sorted(pods.keys() - listed.keys())
    ]
    for place, pod in listed.items():
        if place in pods:
            problems += _of_pod("List", pod, pods[place])
            alone = await _get(folder, *place)
            problems += [] if alone is None else _of_pod("Get", alone, pods[place])
        else:
            # A pod that is leaving may still be listed, without what it had.
            nothing = PodResources(
                dict.fromkeys(map(_name, pod.get("containers", [])), Resources())
            )
            problems += _of_pod("List", pod, nothing)
    response = await _call(folder, "GetAllocatableResources", "AllocatableResourcesResponse")
    reported = Resources.read(response)
    if reported != allocatable:
        problems.append(f"GetAllocatableResources has {reported}, but {allocatable} is allocatable")
    return problems


async def _get(folder: Path, namespace: str, name: str) -> Message | None:
    """The kubelet's answer about one pod; None if it doesn't answer such questions."""
    request = {"pod_name": name, "pod_namespace": namespace}
    try:
        answer = await _call(
            folder, "Get", "GetPodResourcesResponse", ("GetPodResourcesRequest", request)
        )
    except grpc.RpcError as error:
        if _DISABLED in str(error):
            return None
        raise
    found: Message = answer["pod_resources"]
    return found


def _name(container: Message) -> str:
    return str(container["name"])


def _of_pod(method: str, message: Message, expected: PodResources) -> Iterator[str]:
    """Where the kubelet's answer about a pod differs from the checkpoint files."""
    answer = {_name(one): Resources.read(one) for one in message.get("containers", [])}
    pod = message["name"]
    for name in sorted(answer.keys() | expected.containers.keys()):
        reported, own = answer.get(name), expected.containers.get(name)
        if reported != own:
            yield f"{method} has {reported} for {pod}/{name}, but the checkpoints have {own}"
    whole = Resources.read(message)
    if whole != expected.whole:
        yield f"{method} has {whole} for {pod}, but the checkpoints have {expected.whole}"


class UnreportableError(Exception):
    """The protocol has no form for something that the kubelet reports; the text names it."""


@dataclass(frozen=True)
class Resources:
    """CPUs, memory and devices, in a form that can be compared.

    `devices` are resource names, device ids and NUMA nodes: one entry for each node of a device,
    or one with None if it has no nodes.
    """

    cpus: CPUSet = _NO_CPUS
    memory: frozenset[messages.MemoryBlock] = frozenset()
    devices: frozenset[tuple[str, str, int | None]] = frozenset()

    @classmethod
    def read(cls, message: Message) -> Resources:
        """What a container, a pod or an answer has."""
        devices = {
            (one["resource_name"], name, node)
            for one in message.get("devices", [])
            for name in one["device_ids"]
            for node in _nodes(one) or (None,)
        }
        return cls(
            CPUSet(message.get("cpu_ids", [])), frozenset(_blocks(message)), frozenset(devices)
        )

    def __str__(self) -> str:
        cpus = [f"CPUs {self.cpus}"] if self.cpus else []
        memory = sorted(f"{one.size} of {one.type} on {one.numa}" for one in self.memory)
        devices = sorted(
            f"{resource} {name}" + ("" if node is None else f" on {node}")
            for resource, name, node in self.devices
        )
        return ", ".join((*cpus, *memory, *devices)) or "nothing"


@dataclass(frozen=True)
class PodResources:
    """What a pod has: by container, except init containers that must end; and as a whole."""

    containers: Mapping[str, Resources]
    whole: Resources = Resources()


def _nodes(message: Message) -> tuple[int, ...]:
    return tuple(node.get("ID", 0) for node in message.get("topology", {}).get("nodes", []))


def _blocks(message: Message) -> Iterator[messages.MemoryBlock]:
    for block in message.get("memory", []):
        nodes = _nodes(block)
        if any(node < 0 for node in nodes):
            raise UnreportableError("memory on NUMA nodes with negative ids")
        yield messages.MemoryBlock(NUMASet(nodes), block["memory_type"], block.get("size", 0))
