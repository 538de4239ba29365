"""A node written as a NodeResourceTopology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from builders import machines
from builders.node_states import listed_pod, listing
from numaproof.formats.machines.reading import read
from numaproof.simulation import devices, pods
from numaproof.simulation.admission import Question
from numaproof.simulation.node_resource_topology import dump
from numaproof.simulation.what_ifs import simulate

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo

CONFIG = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
    "topologyManagerPolicy": "restricted",
    "topologyManagerScope": "pod",
}
MACHINES = ("epyc-7402p-nps2", "hugepages-2s", "sparse-nodes", "laptop-4c8t", "memoryless-node")


def written(folder: Path, machine: MachineInfo, config: dict[str, Any]) -> str:
    wanted = {"cpu": 2, "memory": "1Gi", "vendor.example/nic": 1}
    (pod,) = pods.read([("pods.json", listing([listed_pod("db", wanted)]))]).pods
    plugins = devices.read(["vendor.example/nic=3@0"], machine)
    question = Question(machine, config, "1.37", devices=plugins)
    found = simulate(question, [pod], folder)
    assert found.admitted
    assert found.node is not None
    assert found.remaining is not None
    return dump("Worker 7", machine, found.node, found.remaining)


@pytest.mark.parametrize("name", MACHINES)
def test_it_can_be_read_as_the_same_machine(tmp_path: Path, name: str) -> None:
    machine = machines.discover_profile(name)
    text = written(tmp_path, machine, CONFIG)
    found = read(text.encode(), "nrt.yaml")
    assert found is not None

    def nodes(of: MachineInfo) -> list[tuple[Any, ...]]:
        return [
            (
                node.node_id,
                [(core.socket_id, core.thread_ids) for core in node.cores or ()],
                node.memory,
                {one.page_size: one.num_pages for one in node.hugepages or () if one.num_pages},
                node.distances,
            )
            for node in of.topology or ()
        ]

    assert nodes(found.machine) == nodes(machine)


def test_it_shows_what_is_allocatable_and_available(tmp_path: Path) -> None:
    machine = machines.regular(nodes=2, cores=4, memory=8 * machines.GIB)
    data = yaml.safe_load(written(tmp_path, machine, CONFIG))
    assert data["apiVersion"] == "topology.node.k8s.io/v1alpha2"
    assert data["metadata"]["name"] == "worker-7"
    assert data["attributes"] == [
        {"name": "topologyManagerPolicy", "value": "restricted"},
        {"name": "topologyManagerScope", "value": "pod"},
    ]
    first, second = ({one.pop("name"): one for one in zone["resources"]} for zone in data["zones"])
    gib = machines.GIB
    assert first["cpu"] == {"capacity": "8", "allocatable": "7", "available": "5"}
    assert first["memory"] == {
        "capacity": str(8 * gib),
        "allocatable": str(8 * gib - (100 << 20)),
        "available": str(7 * gib - (100 << 20)),
    }
    assert first["vendor.example/nic"] == {"capacity": "3", "allocatable": "3", "available": "2"}
    assert second["cpu"] == {"capacity": "8", "allocatable": "8", "available": "8"}
    assert data["zones"][0]["costs"] == [
        {"name": "node-0", "value": 10},
        {"name": "node-1", "value": 20},
    ]


def test_without_exclusive_cpus_all_are_available(tmp_path: Path) -> None:
    machine = machines.regular(nodes=2, cores=4, memory=8 * machines.GIB)
    data = yaml.safe_load(written(tmp_path, machine, {}))
    resources = data["zones"][0]["resources"]
    assert resources[0] == {"name": "cpu", "capacity": "8", "allocatable": "8", "available": "8"}
    assert [one["name"] for one in resources] == ["cpu", "memory", "vendor.example/nic"]
