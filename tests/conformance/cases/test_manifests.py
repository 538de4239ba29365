"""The short forms of pods and machines in cases."""

from __future__ import annotations

import pytest

from builders.machines import regular
from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.schema import ContainerSpec, MemoryChange, PodSpec
from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node
from numaproof.protocol.sets import CPUSet


def test_a_pod_becomes_a_manifest_with_string_amounts() -> None:
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
    assert manifests.pod_name(pod["metadata"]["uid"]) == "a"
    assert pod["status"] == {"phase": "Running"}
    image = {"image": "registry.example/app:1"}
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    assert pod["spec"] == {
        "nodeName": "n",
        "containers": [{"name": "app", **image, "resources": resources}],
        "initContainers": [{"name": "side", **image, "resources": {}, "restartPolicy": "Always"}],
        "resources": {"limits": {"cpu": "4"}},
    }


def test_only_amounts_in_a_configuration_become_strings() -> None:
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


def test_offline_threads_leave_their_core_and_both_remove_it() -> None:
    machine = regular(cores=2, adjacent=True, memory=1)
    assert manifests.without_cpus(machine, CPUSet()) == machine
    left = manifests.without_cpus(machine, CPUSet([1, 2, 3]))
    assert left.topology is not None
    assert left.topology[0].cores == (Core(0, (0,), 0, None),)
    assert (left.num_cores, left.num_physical_cores) == (1, 1)


PAGES = (HugePages(2048, 3), HugePages(1048576, 0))
NODES = (Node(0, memory=8 << 20, hugepages=PAGES), Node(2, memory=4 << 20))
MACHINE = MachineInfo(memory_capacity=12 << 20, topology=NODES)


def test_changing_a_nodes_memory_changes_the_total() -> None:
    after = manifests.with_memory(MACHINE, [MemoryChange(node=2, bytes=5 << 20)])
    assert after.topology == (NODES[0], Node(2, memory=5 << 20))
    assert after.memory_capacity == 13 << 20


def test_huge_pages_of_one_size_can_change_alone() -> None:
    change = MemoryChange(node=0, hugepages=2048, bytes=4 << 21)
    after = manifests.with_memory(MACHINE, [change])
    assert after.topology is not None
    assert after.topology[0].hugepages == (HugePages(2048, 4), PAGES[1])
    assert after.memory_capacity == MACHINE.memory_capacity


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (MemoryChange(node=1, bytes=1), "the machine has no node 1"),
        (MemoryChange(node=0, hugepages=64, bytes=1), "node 0 has no huge pages of 64 KiB"),
        (MemoryChange(node=2, hugepages=2048, bytes=1), "node 2 has no huge pages of 2048 KiB"),
    ],
)
def test_missing_memory_cannot_change(change: MemoryChange, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        manifests.with_memory(MACHINE, [change])
