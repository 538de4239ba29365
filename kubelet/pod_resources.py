"""Asks a kubelet who has which CPUs, memory and devices: the client of its podresources socket."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from numaproof.kubelet import sockets
from numaproof.kubelet.protobuf import Message, Schema
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA = Schema((resources.files(__package__) / "pod_resources.proto").read_text("utf-8"))
_SERVICE = "/v1.PodResourcesLister"


async def _call(folder: Path, method: str, response: str) -> Message:
    with sockets.short_path(folder) as path:
        async with sockets.channel(path, "kubelet.sock") as channel:
            call: Any = channel.unary_unary(
                f"{_SERVICE}/{method}",
                request_serializer=lambda _: b"",
                response_deserializer=lambda data: SCHEMA.decode(response, data),
            )
            answer: Message = await call({}, wait_for_ready=True)
            return answer


async def allocatable(folder: Path) -> tuple[CPUSet, tuple[messages.MemoryBlock, ...]]:
    """The CPUs and the memory that can be allocated; `folder` has the kubelet's socket."""
    answer = await _call(folder, "GetAllocatableResources", "AllocatableResourcesResponse")
    return CPUSet(answer.get("cpu_ids", [])), tuple(sorted(_blocks(answer), key=_place))


def _place(block: messages.MemoryBlock) -> tuple[tuple[int, ...], str]:
    """By which blocks are sorted: a kubelet reports them in a random order."""
    return (tuple(block.numa), block.type)


async def disagreements(
    folder: Path, pods: Mapping[tuple[str, str], messages.Containers]
) -> list[str]:
    """Where the kubelet's answer differs from what containers have, as sentences.

    Args:
        folder: the folder of the kubelet's socket.
        pods: by namespace and name: the pod's containers. Init containers that must end are not in
            the answer.
    """
    answer = await _call(folder, "List", "ListPodResourcesResponse")
    problems = []
    for pod in answer.get("pod_resources", []):
        containers = pods.get((pod["namespace"], pod["name"]), {})
        for one in pod.get("containers", []):
            own = containers.get(one["name"])
            expected = _Resources.of(own) if own else None
            if expected not in (None, _Resources.read(one)):
                problems.append(
                    f"podresources reports {_Resources.read(one)} for {pod['name']}/{one['name']},"
                    f" but the checkpoints have {expected}"
                )
    return problems


@dataclass(frozen=True)
class _Resources:
    """A container's exclusive CPUs, memory and devices, in a form that can be compared."""

    cpus: CPUSet
    memory: frozenset[messages.MemoryBlock]
    devices: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, container: messages.Container) -> _Resources:
        devices = (container.devices or {}).items()
        return cls(
            container.exclusive,
            frozenset(container.memory),
            frozenset((resource, name) for resource, names in devices for name in names),
        )

    @classmethod
    def read(cls, message: Message) -> _Resources:
        devices = {
            (one["resource_name"], name)
            for one in message.get("devices", [])
            for name in one["device_ids"]
        }
        return cls(
            CPUSet(message.get("cpu_ids", [])),
            frozenset(_blocks(message)),
            frozenset(devices),
        )

    def __str__(self) -> str:
        memory = sorted(f"{one.size} of {one.type} on {one.numa}" for one in self.memory)
        devices = sorted(f"{resource} {name}" for resource, name in self.devices)
        return ", ".join((f"CPUs {self.cpus}", *memory, *devices))


def _blocks(message: Message) -> tuple[messages.MemoryBlock, ...]:
    return tuple(
        messages.MemoryBlock(
            NUMASet(node.get("ID", 0) for node in block.get("topology", {}).get("nodes", [])),
            block["memory_type"],
            block.get("size", 0),
        )
        for block in message.get("memory", [])
    )
