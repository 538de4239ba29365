"""Asks a kubelet who has which CPUs, memory and devices: the client of its podresources socket."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

import grpc

from numaproof.kubelet import sockets
from numaproof.kubelet.protobuf import Message, Schema

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = Schema((resources.files(__package__) / "pod_resources.proto").read_text("utf-8"))
_SERVICE = "/v1.PodResourcesLister"


async def _call(folder: Path, method: str, response: str) -> Message:
    with sockets.short_path(folder) as path:
        async with grpc.aio.insecure_channel(f"unix:{path}/kubelet.sock") as channel:
            call: Any = channel.unary_unary(
                f"{_SERVICE}/{method}",
                request_serializer=lambda _: b"",
                response_deserializer=lambda data: SCHEMA.decode(response, data),
            )
            answer: Message = await call({}, wait_for_ready=True)
            return answer


async def allocatable(folder: Path) -> Message:
    """What can be allocated exclusively; `folder` is the one of the kubelet's socket."""
    return await _call(folder, "GetAllocatableResources", "AllocatableResourcesResponse")


async def assigned(folder: Path) -> Message:
    """What each container has."""
    return await _call(folder, "List", "ListPodResourcesResponse")
