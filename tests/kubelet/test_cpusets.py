"""The runtime must be told what containers have."""

from __future__ import annotations

import pytest

from numaproof.kubelet.cpusets import disagreements
from numaproof.kubelet.runtime import Container as RuntimeContainer
from numaproof.protocol.messages import Container, Hint, MemoryBlock
from numaproof.protocol.sets import CPUSet, NUMASet

NOBODY = Hint(None, preferred=False)
MEMORY = MemoryBlock(NUMASet([0, 1]), "memory", 4096)
PINNED = Container(CPUSet([2, 3]), CPUSet([2, 3]), (MEMORY,), NOBODY)
SHARED = Container(CPUSet([0, 1]), CPUSet(), (), NOBODY)


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
