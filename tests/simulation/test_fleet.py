"""Pods on many nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from builders import machines
from builders.node_states import listed_pod, listing
from numaproof.cli.fleet_view import fleet_parts
from numaproof.protocol import messages
from numaproof.reports.console import as_plain
from numaproof.simulation import devices, fleet, pods
from numaproof.simulation.admission import Question, begin
from numaproof.simulation.fleet import NamedNode, simulate_fleet, unplaced_pods
from numaproof.simulation.node_state import NodeState, running_pods

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CONFIG: dict[str, Any] = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "topologyManagerPolicy": "single-numa-node",
}
SMALL = Question(machines.regular(nodes=2, cores=4, memory=machines.GIB * 8), CONFIG, "1.37")
LARGE = Question(machines.regular(nodes=2, cores=8, memory=machines.GIB * 8), CONFIG, "1.37")


def described(*listed: dict[str, Any]) -> tuple[pods.DescribedPod, ...]:
    return pods.read([("pods.json", listing(listed))]).pods


def of_sizes(*sizes: int) -> tuple[pods.DescribedPod, ...]:
    return described(
        *(listed_pod(f"p-{n}", {"cpu": size, "memory": "1Mi"}) for n, size in enumerate(sizes))
    )


def test_where_a_pod_fits_does_not_depend_on_other_pods(tmp_path: Path) -> None:
    nodes = [NamedNode("small", SMALL), NamedNode("large", LARGE)]
    found = simulate_fleet(nodes, of_sizes(12, 12, 12, 12, 4), tmp_path)
    large, small = found.workloads
    assert large.fits == ("large",)
    text = "the policy allows one NUMA node, and no node has enough CPUs even if empty"
    assert [(one.nodes, str(one.cause)) for one in large.refusals] == [(("small",), text)]
    assert small.fits == ("small", "large")
    assert (large.placed_pods, small.placed_pods) == (2, 1)
    assert [one.node for one in found.placements] == ["large", "large", None, None, "small"]
    assert sum(unplaced_pods(found).values()) == 2
    assert not found.admitted


def test_the_placement_is_that_of_kubelets_asked_one_by_one(tmp_path: Path) -> None:
    sizes = [5, 3, 7, 1, 2, 6, 5, 5, 3, 3, 8, 1, 9, 12, 4, 4, 2, 15, 16, 1, 1, 1, 2, 2, 3]
    questions = {"a": SMALL, "b": SMALL, "c": LARGE, "d": SMALL}
    nodes = [NamedNode(*one) for one in questions.items()]
    (tmp_path / "fleet").mkdir()
    found = simulate_fleet(nodes, of_sizes(*sizes), tmp_path / "fleet")
    kubelets = {}
    for name, question in questions.items():
        (tmp_path / name).mkdir()
        kubelets[name], _ = begin(question, str(tmp_path / name))
    for pod, placement in zip(of_sizes(*sizes), found.placements, strict=True):
        args = messages.AdmitArgs(pod.manifest)
        first = next(
            (
                name
                for name, kubelet in kubelets.items()
                if isinstance(kubelet.call("admit", args), messages.Admitted)
            ),
            None,
        )
        assert placement.node == first


def test_equal_nodes_start_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []

    def count(question: Question, folder: str) -> Any:
        starts.append(folder)
        return begin(question, folder)

    monkeypatch.setattr(fleet, "begin", count)
    nodes = [NamedNode(f"n-{n}", SMALL if n % 2 else LARGE) for n in range(10)]
    found = simulate_fleet(nodes, of_sizes(4), tmp_path)
    assert len(starts) == 2
    assert len(found.workloads[0].fits) == 10


def test_pods_on_a_node_take_their_room(tmp_path: Path) -> None:
    listed = listed_pod("db", {"cpu": 12, "memory": "1Mi"})
    reading = pods.read([("on-node.json", listing([listed]))], pods.PodOptions(running=True))
    full = msgspec.structs.replace(LARGE, state=NodeState({}, running_pods(reading)))
    nodes = [NamedNode("full", full), NamedNode("empty", LARGE)]
    found = simulate_fleet(nodes, of_sizes(12, 12, 12, 12), tmp_path)
    assert [one.pods_on_node for one in found.nodes] == [1, 0]
    assert [one.node for one in found.placements] == ["full", "empty", "empty", None]


def test_a_node_that_does_not_start_takes_no_pods(tmp_path: Path) -> None:
    broken = msgspec.structs.replace(SMALL, config={"cpuManagerPolicy": "static"})
    found = simulate_fleet(
        [NamedNode("broken", broken), NamedNode("small", SMALL)], of_sizes(4), tmp_path
    )
    assert found.nodes[0].refusal is not None
    assert found.placements[0].node == "small"
    assert not found.admitted


def test_reasons_are_below_the_table_of_nodes(tmp_path: Path) -> None:
    broken = msgspec.structs.replace(SMALL, config={"cpuManagerPolicy": "static"})
    nodes = {"broken": broken, "s1": SMALL, "s2": SMALL, "large": LARGE}
    found = simulate_fleet(
        [NamedNode(*one) for one in nodes.items()], of_sizes(20, 12, 4), tmp_path
    )
    title, table, refusals, *_ = map(as_plain, fleet_parts(found))
    assert "2 of 3 pods placed on 3 of 4 nodes: the kubelet of broken does not start" in title
    assert max(map(len, table.splitlines())) < 80
    cells = [line.split() for line in table.splitlines() if "Pod/" in line]
    assert cells[0][1:] == ["Pod/default/p-0", "not", "started", *("no",) * 3, "0", "of", "1"]
    one_node = "the policy allows one NUMA node, and no node has enough CPUs even if empty"
    assert [line.strip() for line in refusals.splitlines()[1:]] == [
        "s1, s2: not enough CPUs even if the node were empty (Pod/default/p-0)",
        f"large: {one_node} (Pod/default/p-0)",
        f"s1, s2: {one_node} (Pod/default/p-1)",
    ]


def test_a_missing_device_plugin_is_a_cause(tmp_path: Path) -> None:
    plugins = devices.read(["vendor.example/nic=1@0"], SMALL.machine)
    nodes = [
        NamedNode("none", SMALL),
        NamedNode("nic", msgspec.structs.replace(SMALL, devices=plugins)),
    ]
    wanted = {"cpu": 1, "memory": "1Mi", "vendor.example/nic": 1}
    found = simulate_fleet(nodes, described(listed_pod("net", wanted)), tmp_path)
    (workload,) = found.workloads
    assert workload.fits == ("nic",)
    assert str(workload.refusals[0].cause) == "no device plugin provides vendor.example/nic"


def test_an_evicted_pod_is_not_placed(tmp_path: Path) -> None:
    small = listed_pod("small", {"cpu": 7, "memory": "1Mi"}, priority=0)
    urgent = listed_pod("urgent", {"cpu": 7, "memory": "1Mi"}, priority=2_000_001_000)
    limits = msgspec.structs.replace(SMALL, config={**CONFIG, "maxPods": 1})
    found = simulate_fleet([NamedNode("n", limits)], described(small, urgent), tmp_path)
    assert [one.node for one in found.placements] == [None, "n"]
    assert found.nodes[0].placed_pods == 1


def test_nodes_whose_kubelets_can_panic_are_named(tmp_path: Path) -> None:
    machine = machines.with_node(machines.regular(nodes=2, cores=4), 1, node_id=64)
    nodes = [NamedNode("small", SMALL), NamedNode("p9", Question(machine, CONFIG, "1.37"))]
    found = simulate_fleet(nodes, of_sizes(2), tmp_path)
    assert [[one.defect.name for one in node.crashes] for node in found.nodes] == [
        [],
        ["hints-panic-on-node-id"],
    ]
    text = "\n".join(as_plain(part) for part in fleet_parts(found))
    assert "p9: the kubelet can panic or hang" in text
    assert "docs/findings.md#hints-panic-on-node-id" in text


def test_pods_are_not_placed_if_no_kubelet_starts(tmp_path: Path) -> None:
    question = msgspec.structs.replace(SMALL, config={"cpuManagerPolicy": "static"})
    found = simulate_fleet([NamedNode("a", question)], of_sizes(1), tmp_path)
    assert unplaced_pods(found) == {"no kubelet starts; see `numaproof config check`": 1}
