"""The client of the podresources socket reads what a kubelet answers."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from msgspec.structs import replace

from builders.devices import NIC
from numaproof.kubelet import pod_resources, sockets
from numaproof.protocol.messages import Container, Hint, MemoryBlock
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from numaproof.kubelet.protobuf import Message

ALLOCATABLE = {
    "cpu_ids": [0, 1, 5],
    "memory": [{"memory_type": "memory", "size": 1 << 33, "topology": {"nodes": [{}, {"ID": 1}]}}],
}
ASSIGNED = {
    "pod_resources": [
        {
            "name": "a",
            "namespace": "default",
            "containers": [
                {
                    "name": "app",
                    "cpu_ids": [2, 3],
                    "devices": [{"resource_name": NIC, "device_ids": ["d"]}],
                    "memory": [
                        {"memory_type": "memory", "size": 4096, "topology": {"nodes": [{"ID": 1}]}}
                    ],
                },
                {"name": "shared"},
            ],
        }
    ]
}
ANSWERS = {
    "/v1.PodResourcesLister/GetAllocatableResources": ("AllocatableResourcesResponse", ALLOCATABLE),
    "/v1.PodResourcesLister/List": ("ListPodResourcesResponse", ASSIGNED),
}


class Lister(grpc.GenericRpcHandler):
    """The part of a kubelet that is asked."""

    def service(self, details: Any) -> Any:
        """Answers with what the kubelet would say."""
        kind, answer = ANSWERS[details.method]

        async def tell(request: bytes, _context: Any) -> Message:
            assert request == b""
            return answer

        return grpc.unary_unary_rpc_method_handler(
            tell, None, lambda message: pod_resources.SCHEMA.encode(kind, message)
        )


@asynccontextmanager
async def answering(folder: Path) -> AsyncIterator[None]:
    """A kubelet that answers on a socket in a folder."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([Lister()])
    with sockets.short_path(folder) as path:
        server.add_insecure_port(f"unix:{path}/kubelet.sock")
        await server.start()
    try:
        yield
    finally:
        await server.stop(0)


async def test_what_can_be_allocated_is_read(tmp_path: Path) -> None:
    async with answering(tmp_path):
        assert await pod_resources.allocatable(tmp_path) == (
            CPUSet([0, 1, 5]),
            (MemoryBlock(NUMASet([0, 1]), "memory", 1 << 33),),
        )


NOBODY = Hint(None, preferred=False)
MEMORY = MemoryBlock(NUMASet([1]), "memory", 4096)
APP = Container(CPUSet([2, 3]), CPUSet([2, 3]), (MEMORY,), NOBODY, {NIC: ("d",)})
SHARED = Container(CPUSet([0, 1]), CPUSet(), (), NOBODY, {})
REPORT = f"podresources reports CPUs 2-3, 4096 of memory on 1, {NIC} d for a/app,"


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ({"app": APP, "shared": SHARED}, []),
        ({"shared": SHARED}, []),
        (
            {"app": replace(APP, exclusive=CPUSet([2])), "shared": SHARED},
            [f"{REPORT} but the checkpoints have CPUs 2, 4096 of memory on 1, {NIC} d"],
        ),
        (
            {"app": replace(APP, memory=(), devices=None)},
            [f"{REPORT} but the checkpoints have CPUs 2-3"],
        ),
        (
            {"app": APP, "shared": replace(SHARED, exclusive=CPUSet([1]))},
            ["podresources reports CPUs  for a/shared, but the checkpoints have CPUs 1"],
        ),
    ],
)
async def test_what_containers_have_must_be_what_the_kubelet_says(
    containers: dict[str, Container], expected: list[str], tmp_path: Path
) -> None:
    async with answering(tmp_path):
        pods = {("default", "a"): containers}
        assert await pod_resources.disagreements(tmp_path, pods) == expected
        assert await pod_resources.disagreements(tmp_path, {("other", "a"): containers}) == []
