"""The runtime must be told what containers have."""

from __future__ import annotations

import msgspec
import pytest

from numaproof.kubelet.cpusets import disagreements
from numaproof.kubelet.runtime import Container as RuntimeContainer
from numaproof.protocol.messages import Container, Hint, MemoryBlock
from numaproof.protocol.sets import CPUSet, NUMASet

NOBODY = Hint(None, preferred=False)
MEMORY = MemoryBlock(NUMASet([0, 1]), "memory", 4096)
PINNED = Container(CPUSet([2, 3]), CPUSet([2, 3]), (MEMORY,), NOBODY)
UNPINNED = Container(CPUSet(), CPUSet(), (), NOBODY)
SHARED = Container(CPUSet([0, 1]), CPUSet(), (), NOBODY)
EMPTY = msgspec.structs.replace(SHARED, devices={})
EQUIPPED = msgspec.structs.replace(SHARED, devices={"x/nic": ("d0",), "x/gpu": ("d0",)})


UNSET = "the runtime created uid-a/app with CPUs unset"


def told(cpus: str, nodes: str) -> RuntimeContainer:
    config = {
        "labels": {"io.kubernetes.pod.uid": "uid-a"},
        "metadata": {"name": "app"},
        "linux": {"resources": {"cpuset_cpus": cpus, "cpuset_mems": nodes}},
    }
    return RuntimeContainer("c1", "a1", config, 0)


@pytest.mark.parametrize(
    ("own", "cpus", "nodes", "expected"),
    [
        (PINNED, "2-3", "0-1", []),
        (SHARED, "0-7", "", []),
        (UNPINNED, "", "", []),
        (SHARED, "", "", [f"{UNSET}, but it runs on the shared pool"]),
        (PINNED, "", "0-1", [f"{UNSET}, but it has CPUs 2-3"]),
        (
            PINNED,
            "2",
            "0",
            [
                "the runtime created uid-a/app with CPUs 2, but it has CPUs 2-3",
                "the runtime created uid-a/app with memory nodes 0, but its memory is on 0-1",
            ],
        ),
    ],
)
def test_a_container_is_created_with_what_it_has(
    own: Container, cpus: str, nodes: str, expected: list[str]
) -> None:
    created = [told(cpus, nodes)]
    assert list(disagreements(created, {"uid-a": {"app": own}})) == expected
    assert list(disagreements(created, {"uid-a": {"other": own}, "uid-b": {"app": own}})) == []


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({"cpu_shares": 1024}, []),
        (
            {"cpuset_cpus": "2"},
            ["the runtime updated uid-a/app to CPUs 2, but it has CPUs 2-3"],
        ),
    ],
)
def test_an_update_leaves_what_a_container_has(
    update: dict[str, object], expected: list[str]
) -> None:
    container = told("2-3", "0-1")
    container.resources.update(update)
    assert list(disagreements([container], {"uid-a": {"app": PINNED}})) == expected


def test_what_an_earlier_kubelet_created_may_have_changed() -> None:
    container = told("2", "0-1")
    container.resources_at_creation = None
    container.resources.update({"cpuset_cpus": "2-3"})
    assert list(disagreements([container], {"uid-a": {"app": PINNED}})) == []


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        (EQUIPPED, "x/nic/d0 x/gpu/d0", ""),
        (SHARED, "x/nic/d0", ""),
        (EMPTY, "", ""),
        (
            EQUIPPED,
            "x/nic/d1",
            "/dev/x/nic/d1 for uid-a/app, which has /dev/x/gpu/d0, /dev/x/nic/d0",
        ),
        (EMPTY, "x/nic/d0", "/dev/x/nic/d0 for uid-a/app, which has none"),
        (EQUIPPED, "", "none for uid-a/app, which has /dev/x/gpu/d0, /dev/x/nic/d0"),
    ],
)
def test_the_runtime_gets_the_files_of_a_container_s_devices(
    own: Container, files: str, expected: str
) -> None:
    config = {
        "labels": {"io.kubernetes.pod.uid": "uid-a"},
        "metadata": {"name": "app"},
        "devices": [{"host_path": f"/dev/{one}"} for one in files.split()],
        "linux": {"resources": {"cpuset_cpus": "0-1"}},
    }
    created = [RuntimeContainer("c1", "a1", config, 0)]
    found = list(disagreements(created, {"uid-a": {"app": own}}))
    assert found == ([f"the runtime got devices {expected}"] if expected else [])
