"""The runtime must be told what containers have."""

from __future__ import annotations

import msgspec
import pytest

from numaproof.kubelet.runtime import Container as RuntimeContainer
from numaproof.kubelet.runtime_check import disagreements
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


def with_devices(*files: str) -> RuntimeContainer:
    """A container that was created as a plugin wants it for some devices."""
    config = {
        "labels": {"io.kubernetes.pod.uid": "uid-a"},
        "metadata": {"name": "app"},
        "annotations": {"other": "1", **dict.fromkeys(files, "set")},
        "envs": [{"key": "OTHER"}, *({"key": one} for one in files)],
        "mounts": [{"host_path": "/other"}, *({"host_path": one} for one in files)],
        "devices": [{"host_path": one} for one in files],
        "CDI_devices": [{"name": one} for one in files],
        "linux": {"resources": {"cpuset_cpus": "0-1"}},
    }
    return RuntimeContainer("c1", "a1", config, 0)


D0 = ("/dev/x/gpu/d0", "/dev/x/nic/d0")
KINDS = ("device files", "mounts", "environment variables", "annotations", "CDI devices")


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        (EQUIPPED, D0, ""),
        (SHARED, D0, ""),
        (EMPTY, (), ""),
        (EQUIPPED, ("/dev/x/nic/d1",), f"/dev/x/nic/d1 for uid-a/app, which has {', '.join(D0)}"),
        (EMPTY, D0[:1], f"{D0[0]} for uid-a/app, which has none"),
        (EQUIPPED, (), f"none for uid-a/app, which has {', '.join(D0)}"),
    ],
)
def test_the_runtime_gets_what_a_container_needs_for_its_devices(
    own: Container, files: tuple[str, ...], expected: str
) -> None:
    found = disagreements([with_devices(*files)], {"uid-a": {"app": own}}, {*D0})
    assert list(found) == [f"the runtime got {kind} {expected}" for kind in KINDS if expected]


def test_devices_are_prepared_before_a_container_is_created() -> None:
    created, pods = with_devices(*D0), {"uid-a": {"app": EQUIPPED}}
    assert list(disagreements([created], pods, {D0[0]})) == [
        f"no plugin was asked to prepare {D0[1]} before uid-a/app was created"
    ]
    created.resources_at_creation = None
    assert list(disagreements([created], pods, frozenset())) == []
