"""The client of the podresources socket reads what a kubelet answers."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from builders.devices import NIC
from numaproof.kubelet import pod_resources, sockets
from numaproof.kubelet.pod_resources import PodResources, Resources, UnreportableError
from numaproof.protocol.messages import MemoryBlock
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from numaproof.kubelet.protobuf import Message

ALLOCATABLE = {
    "cpu_ids": [0, 1, 5],
    "memory": [{"memory_type": "memory", "size": 1 << 33, "topology": {"nodes": [{}, {"ID": 1}]}}],
    "devices": [
        {"resource_name": NIC, "device_ids": ["d"], "topology": {"nodes": [{}]}},
        {"resource_name": NIC, "device_ids": ["d"], "topology": {"nodes": [{"ID": 1}]}},
        {"resource_name": NIC, "device_ids": ["e"]},
    ],
}
BLOCK = {"memory_type": "memory", "size": 4096, "topology": {"nodes": [{"ID": 1}]}}
POD = {
    "name": "a",
    "namespace": "default",
    "cpu_ids": [2, 3, 4],
    "memory": [BLOCK],
    "containers": [
        {
            "name": "app",
            "cpu_ids": [2, 3],
            "devices": [{"resource_name": NIC, "device_ids": ["d"]}],
            "memory": [BLOCK],
        },
        {"name": "shared"},
    ],
}
OTHER = {"name": "gone", "namespace": "default", "containers": [{"name": "app"}]}


class Lister(grpc.GenericRpcHandler):
    """The part of a kubelet that is asked; `alone` is its answer about one pod.

    The first call comes too fast.
    """

    def __init__(self, alone: Message | None) -> None:
        self._alone = alone
        self._is_first = True

    def service(self, details: Any) -> Any:
        """Answers with what the kubelet would say."""
        kind, answer = {
            "GetAllocatableResources": ("AllocatableResourcesResponse", ALLOCATABLE),
            "List": ("ListPodResourcesResponse", {"pod_resources": [POD, OTHER]}),
            "Get": ("GetPodResourcesResponse", {"pod_resources": self._alone}),
        }[details.method.rpartition("/")[2]]

        async def answer_call(request: bytes, context: Any) -> Message:
            if self._is_first:
                self._is_first = False
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
            if kind != "GetPodResourcesResponse":
                assert request == b""
            elif self._alone is None:
                await context.abort(grpc.StatusCode.UNKNOWN, "Get method disabled")
            return answer

        return grpc.unary_unary_rpc_method_handler(
            answer_call, None, lambda message: pod_resources.SCHEMA.encode(kind, message)
        )


@asynccontextmanager
async def answering(folder: Path, alone: Message | None = POD) -> AsyncIterator[None]:
    """A kubelet that answers on a socket in a folder."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([Lister(alone)])
    with sockets.short_path(folder) as path:
        server.add_insecure_port(f"unix:{path}/kubelet.sock")
        await server.start()
    try:
        yield
    finally:
        await server.stop(0)


MEMORY = MemoryBlock(NUMASet([0, 1]), "memory", 1 << 33)
FREE = Resources(
    CPUSet([0, 1, 5]),
    frozenset({MEMORY}),
    frozenset({(NIC, "d", 0), (NIC, "d", 1), (NIC, "e", None)}),
)


async def test_what_can_be_allocated_is_read(tmp_path: Path) -> None:
    async with answering(tmp_path):
        assert await pod_resources.read_allocatable(tmp_path) == (FREE.cpus, (MEMORY,))


PINNED = frozenset({MemoryBlock(NUMASet([1]), "memory", 4096)})
APP = Resources(CPUSet([2, 3]), PINNED, frozenset({(NIC, "d", None)}))
WHOLE = Resources(CPUSet([2, 3, 4]), PINNED)
PLACE = ("default", "a")


async def differences(folder: Path, whole: Resources = WHOLE, **containers: Resources) -> list[str]:
    pods = {PLACE: PodResources(containers, whole)}
    return await pod_resources.disagreements(folder, pods, FREE)


async def test_what_containers_have_must_be_what_the_kubelet_says(tmp_path: Path) -> None:
    async with answering(tmp_path):
        assert await differences(tmp_path, app=APP, shared=Resources()) == []
        less = replace(APP, cpus=CPUSet([2]), devices=frozenset({(NIC, "d", 0)}))
        assert await differences(tmp_path, app=less, shared=Resources()) == [
            f"{method} has CPUs 2-3, 4096 of memory on 1, {NIC} d for a/app, but the checkpoints"
            f" have CPUs 2, 4096 of memory on 1, {NIC} d on 0"
            for method in ("List", "Get")
        ]
        assert await differences(tmp_path, Resources(), app=APP, shared=Resources()) == [
            f"{method} has CPUs 2-4, 4096 of memory on 1 for a, but the checkpoints have nothing"
            for method in ("List", "Get")
        ]


async def test_every_container_and_no_other_must_be_listed(tmp_path: Path) -> None:
    async with answering(tmp_path, None):
        assert await differences(tmp_path, app=APP, extra=Resources()) == [
            "List has None for a/extra, but the checkpoints have nothing",
            "List has nothing for a/shared, but the checkpoints have None",
        ]


async def test_every_pod_on_the_node_must_be_listed(tmp_path: Path) -> None:
    pods = {
        PLACE: PodResources({"app": APP, "shared": Resources()}, WHOLE),
        ("default", "b"): PodResources({}),
    }
    async with answering(tmp_path):
        assert await pod_resources.disagreements(tmp_path, pods, FREE) == [
            "List leaves out pod default/b"
        ]


async def test_pods_that_are_gone_must_have_nothing(tmp_path: Path) -> None:
    async with answering(tmp_path):
        problems = await pod_resources.disagreements(tmp_path, {}, FREE)
    assert [one.partition(" for ")[2] for one in problems] == [
        "a/app, but the checkpoints have nothing",
        "a, but the checkpoints have nothing",
    ]


async def test_what_can_be_allocated_must_not_change(tmp_path: Path) -> None:
    free = Resources(FREE.cpus, FREE.memory)
    pods = {PLACE: PodResources({"app": APP, "shared": Resources()}, WHOLE)}
    async with answering(tmp_path):
        problems = await pod_resources.disagreements(tmp_path, pods, free)
    assert problems == [
        (
            f"GetAllocatableResources has CPUs 0-1,5, {MEMORY.size} of memory on 0-1, {NIC} d on 0,"
            f" {NIC} d on 1, {NIC} e, but CPUs 0-1,5, {MEMORY.size} of memory on 0-1 is allocatable"
        )
    ]


async def test_an_error_of_get_is_not_hidden(tmp_path: Path) -> None:
    async with answering(tmp_path, {"unknown": 1}):
        with pytest.raises(grpc.RpcError):
            await differences(tmp_path, app=APP, shared=Resources())


def test_memory_on_a_node_with_a_negative_id_can_not_be_reported() -> None:
    block = {"memory_type": "memory", "size": 1, "topology": {"nodes": [{"ID": -1}]}}
    with pytest.raises(UnreportableError, match="negative ids"):
        Resources.read({"memory": [block]})
