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
SHARED = Container(CPUSet([0, 1]), CPUSet(), (), NOBODY)
EMPTY = msgspec.structs.replace(SHARED, devices={})
EQUIPPED = msgspec.structs.replace(SHARED, devices={"x/nic": ("d0",), "x/gpu": ("d0",)})


@pytest.mark.parametrize(
    ("own", "cpus", "nodes", "expected"),
    [
        (PINNED, "2-3", "0-1", []),
        (SHARED, "0-7", "", []),
        (SHARED, "", "", []),
        (
            PINNED,
            "2",
            "0",
            [
                "the runtime got CPUs 2 for uid-a/app, which has CPUs 2-3",
                "the runtime got memory nodes 0 for uid-a/app, whose memory is on 0-1",
            ],
        ),
        (
            PINNED,
            "2-3",
            "",
            ["the runtime got memory nodes  for uid-a/app, whose memory is on 0-1"],
        ),
    ],
)
def test_the_runtime_is_told_what_a_container_has(
    own: Container, cpus: str, nodes: str, expected: list[str]
) -> None:
    config = {
        "labels": {"io.kubernetes.pod.uid": "uid-a"},
        "metadata": {"name": "app"},
        "linux": {"resources": {"cpuset_cpus": cpus, "cpuset_mems": nodes}},
    }
    created = [RuntimeContainer("c1", "a1", config, 0)]
    assert list(disagreements(created, {"uid-a": {"app": own}})) == expected
    assert list(disagreements(created, {"uid-a": {"other": own}, "uid-b": {"app": own}})) == []


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
    }
    created = [RuntimeContainer("c1", "a1", config, 0)]
    found = list(disagreements(created, {"uid-a": {"app": own}}))
    assert found == ([f"the runtime got devices {expected}"] if expected else [])
