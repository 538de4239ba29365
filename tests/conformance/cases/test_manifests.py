"""Pods and machines as cases write them, and the state directory in what is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders.machines import regular
from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.schema import ContainerSpec, MemoryChange, PodSpec
from numaproof.conformance.execution.session import tamper
from numaproof.conformance.execution.shown import replace_text
from numaproof.folders.state_directory import StateDirectory
from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from pathlib import Path

CHECKPOINT = b'{"policyName":"static","checksum":12}'


def test_a_pod_becomes_a_manifest_with_amounts_as_texts() -> None:
    pod = manifests.manifest(
        PodSpec(
            pod="a",
            containers={"app": ContainerSpec(limits={"cpu": 2}, requests={"cpu": "1"})},
            init={"side": ContainerSpec(restartPolicy="Always")},
            resources={"limits": {"cpu": 4}},
            spec={"nodeName": "n"},
            status={"phase": "Running"},
        )
    )
    assert pod["metadata"]["uid"] == manifests.uid("a")
    assert manifests.pod_name(pod["metadata"]["uid"]) == "a"
    assert pod["status"] == {"phase": "Running"}
    assert pod["spec"] == {
        "nodeName": "n",
        "containers": [
            {
                "name": "app",
                "image": "registry.example/app:1",
                "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            }
        ],
        "initContainers": [
            {
                "name": "side",
                "image": "registry.example/app:1",
                "resources": {},
                "restartPolicy": "Always",
            }
        ],
        "resources": {"limits": {"cpu": "4"}},
    }


def test_a_spec_can_be_given_as_it_stands() -> None:
    pod = manifests.manifest(PodSpec(pod="a", spec={"containers": []}))
    assert pod["spec"] == {"containers": []}
    assert "status" not in pod


def test_amounts_in_a_configuration_become_texts_and_nothing_else_does() -> None:
    config = {
        "kubeReserved": {"cpu": 1, "x": True},
        "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": 12},
        "evictionHard": "bad",
        "podsPerCore": 3,
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": 5}}, "odd"],
    }
    assert manifests.texts_where_due(config) == {
        "kubeReserved": {"cpu": "1", "x": True},
        "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "12"},
        "evictionHard": "bad",
        "podsPerCore": 3,
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "5"}}, "odd"],
    }


def machine() -> MachineInfo:
    return regular(cores=2, adjacent=True, memory=1)


def test_no_cpu_offline_leaves_the_machine_alone() -> None:
    assert manifests.without_cpus(machine(), CPUSet()) == machine()


def test_an_offline_thread_leaves_its_core_and_both_threads_take_it_along() -> None:
    left = manifests.without_cpus(machine(), CPUSet([1, 2, 3]))
    assert left.topology is not None
    assert left.topology[0].cores == (Core(0, (0,), 0, None),)
    assert (left.num_cores, left.num_physical_cores) == (1, 1)


def with_pages() -> MachineInfo:
    pages = (HugePages(2048, 3), HugePages(1048576, 0))
    return MachineInfo(
        memory_capacity=12 << 20,
        topology=(Node(0, memory=8 << 20, hugepages=pages), Node(2, memory=4 << 20)),
    )


def test_the_memory_of_a_node_can_change_and_with_it_the_total() -> None:
    after = manifests.with_memory(with_pages(), [MemoryChange(node=2, bytes=5 << 20)])
    assert after.topology is not None
    assert [node.memory for node in after.topology] == [8 << 20, 5 << 20]
    assert after.memory_capacity == 13 << 20
    assert after.topology[0] == (with_pages().topology or ())[0]


def test_the_huge_pages_of_one_size_can_change_alone() -> None:
    change = MemoryChange(node=0, hugepages=2048, bytes=4 << 21)
    after = manifests.with_memory(with_pages(), [change])
    assert after.topology is not None
    assert after.topology[0].hugepages == (HugePages(2048, 4), HugePages(1048576, 0))
    assert after.memory_capacity == with_pages().memory_capacity


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (MemoryChange(node=1, bytes=1), "the machine has no node 1"),
        (MemoryChange(node=0, hugepages=64, bytes=1), "node 0 has no huge pages of 64 KiB"),
        (MemoryChange(node=2, hugepages=2048, bytes=1), "node 2 has no huge pages of 2048 KiB"),
    ],
)
def test_memory_that_is_not_there_cannot_change(change: MemoryChange, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        manifests.with_memory(with_pages(), [change])


@pytest.mark.parametrize(
    ("how", "content"),
    [
        ("truncate", b'{"policyName":"sta'),
        ("checksum", b'{"policyName":"static","checksum":112}'),
        ("policy", b'{"policyName":"statik","checksum":12}'),
        ("field", b'{"extra":1,"policyName":"static","checksum":12}'),
        ("empty", b""),
        ("garbage", b"\x00\x01{"),
        ("space", b' {"policyName":"static","checksum":12}\n'),
        ("write", b"new"),
        ("delete", None),
    ],
)
def test_a_checkpoint_is_changed_as_asked(tmp_path: Path, how: str, content: bytes | None) -> None:
    file = tmp_path / "cpu_manager_state"
    file.write_bytes(CHECKPOINT)
    tamper(StateDirectory(tmp_path), file.name, how, "new")
    assert (file.read_bytes() if file.exists() else None) == content


def test_a_checkpoint_that_is_missing_or_empty_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "cpu_manager_state"
    tamper(StateDirectory(tmp_path), file.name, "truncate")
    assert not file.exists()
    file.write_bytes(b"")
    tamper(StateDirectory(tmp_path), file.name, "delete")
    assert file.exists()


def test_a_text_is_replaced_wherever_it_occurs() -> None:
    value = {"a": ["x/y", ("/x",), 3, None]}
    assert replace_text(value, "x", "$D") == {"a": ["$D/y", ["/$D"], 3, None]}
