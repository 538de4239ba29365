"""What remains on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders import machines
from builders.node_states import listed_pod, listing
from numaproof.protocol import messages
from numaproof.simulation import devices, pods
from numaproof.simulation.admission import Question, begin, node_of
from numaproof.simulation.remaining import Remaining, remaining

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.reference.implementation import Reference

STATIC: dict[str, Any] = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
}


def node_with(folder: Path, config: dict[str, Any], *listed: dict[str, Any]) -> Reference:
    """Returns a node of two NUMA nodes with 8 cores each that has admitted the pods."""
    machine = machines.regular(nodes=2, cores=8, memory=16 * machines.GIB)
    plugins = devices.read([f"vendor.example/nic-{n}=1@{n}" for n in range(2)], machine)
    asked = Question(machine, config, "1.37", devices=plugins)
    reference, start = begin(asked, str(folder))
    assert isinstance(start, messages.Started)
    for one in pods.read([("pods.json", listing(listed))]).pods:
        answer = reference.call("admit", messages.AdmitArgs(one.manifest))
        assert isinstance(answer, messages.Admitted)
    return reference


def admits(reference: Reference, cpus: int, memory: int) -> bool:
    amounts = {"cpu": cpus, "memory": memory}
    (pod,) = pods.read([("pods.json", listing([listed_pod("probe", amounts)]))]).pods
    answer = reference.call("admit", messages.AdmitArgs(pod.manifest))
    reference.call("remove", messages.RemoveArgs(pod.manifest["metadata"]["uid"]))
    return isinstance(answer, messages.Admitted)


@pytest.mark.parametrize("policy", ["none", "best-effort", "restricted", "single-numa-node"])
@pytest.mark.parametrize("option", [{}, {"full-pcpus-only": "true"}])
def test_the_largest_pod_is_admitted_and_a_larger_one_is_not(
    tmp_path: Path, policy: str, option: dict[str, str]
) -> None:
    config = STATIC | {"topologyManagerPolicy": policy, "cpuManagerPolicyOptions": option}
    reference = node_with(tmp_path, config, listed_pod("db", {"cpu": 6, "memory": "4Gi"}))
    found = remaining(node_of(reference))
    largest = found.largest
    assert largest is not None
    assert admits(reference, largest.cpus, largest.memory)
    assert not admits(reference, largest.cpus + 1, 1 << 20)
    assert not admits(reference, largest.cpus, largest.memory + (1 << 20))
    if policy == "single-numa-node":
        assert found.largest_on_one_node == largest


def test_the_largest_pod_on_one_node_has_its_memory_there(tmp_path: Path) -> None:
    reference = node_with(tmp_path, STATIC, listed_pod("db", {"cpu": 2, "memory": "4Gi"}))
    found = remaining(node_of(reference))
    assert found.largest is not None
    assert found.largest.cpus == 29
    assert len(found.largest.numa) == 2
    assert found.largest_on_one_node is not None
    assert (found.largest_on_one_node.cpus, list(found.largest_on_one_node.numa)) == (13, [0])


def test_more_cpus_can_fit_where_fewer_do_not(tmp_path: Path) -> None:
    config = {name: STATIC[name] for name in ("cpuManagerPolicy", "reservedSystemCPUs")}
    config["topologyManagerPolicy"] = "restricted"
    near = [
        listed_pod(f"near-{n}", {"cpu": 4, "memory": "1Gi", f"vendor.example/nic-{n}": 1})
        for n in range(2)
    ]
    reference = node_with(tmp_path, config, *near)
    found = remaining(node_of(reference))
    assert not admits(reference, 13, 1 << 20)
    assert found.largest is not None
    assert found.largest.cpus == 23 == sum(len(one.cpus) for one in found.nodes)


def test_cpus_of_several_nodes_can_need_memory_of_several_nodes(tmp_path: Path) -> None:
    config = STATIC | {"topologyManagerPolicy": "restricted"}
    found = remaining(node_of(node_with(tmp_path, config)))
    assert found.largest is not None
    assert (found.largest.cpus, len(found.largest.numa)) == (31, 2)
    assert found.largest.memory > 16 * machines.GIB


def test_cores_with_a_used_thread_are_not_whole(tmp_path: Path) -> None:
    found = remaining(node_of(node_with(tmp_path, STATIC)))
    assert [(len(one.cpus), one.cores) for one in found.nodes] == [(15, 7), (16, 8)]


def test_pods_in_the_shared_pool_are_counted(tmp_path: Path) -> None:
    reference = node_with(tmp_path, STATIC, listed_pod("web", {"cpu": "500m"}, shared=True))
    found = remaining(node_of(reference))
    assert (len(found.shared), found.sharing_pods, found.sharing_request) == (32, 1, 500)


@pytest.mark.parametrize("amounts", [{}, {"cpu": 2, "memory": "1Gi"}])
def test_pod_level_requests_count_in_the_shared_pool(
    tmp_path: Path, amounts: dict[str, Any]
) -> None:
    pod = listed_pod("web", amounts)
    whole = {"cpu": 6, "memory": "2Gi"}
    pod["spec"]["resources"] = {"requests": whole, "limits": whole}
    found = remaining(node_of(node_with(tmp_path, STATIC, pod)))
    assert (found.sharing_pods, found.sharing_request) == (1, 6000)


def test_looking_changes_nothing(tmp_path: Path) -> None:
    reference = node_with(tmp_path, STATIC, listed_pod("db", {"cpu": 6, "memory": "4Gi"}))
    before = reference.call("state", messages.NoArgs())
    first, second = (remaining(node_of(reference)) for _ in range(2))
    assert first == second
    assert reference.call("state", messages.NoArgs()) == before


def test_a_node_without_room_for_a_pod_has_no_largest_pod(tmp_path: Path) -> None:
    config = STATIC | {"maxPods": 1}
    reference = node_with(tmp_path, config, listed_pod("db", {"cpu": 6, "memory": "4Gi"}))
    found: Remaining = remaining(node_of(reference))
    assert found.largest is None
    assert found.largest_on_one_node is None


def test_the_allocatable_amounts_that_limit_the_largest_pod_are_named(tmp_path: Path) -> None:
    shared = listed_pod("web", {"cpu": "2500m", "memory": "1Gi"}, shared=True)
    found = remaining(node_of(node_with(tmp_path / "with", STATIC, shared)))
    assert found.largest is not None
    assert found.largest.allocatable_left["cpu"] == 28_500
    assert found.largest.cpus == 28
    found = remaining(node_of(node_with(tmp_path / "without", STATIC)))
    assert found.largest is not None
    assert found.largest.allocatable_left == {}
