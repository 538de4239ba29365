"""Comparing the expectations of cases with answers: `expectations.yaml` has both and the problem.

Pod b holds CPUs 4-5, the shared pool is 0-1, and x/nic has d0 on node 0 and d1 on node 1. Rows
without an answer are about an unusual machine.
"""

from __future__ import annotations

from typing import Any

import msgspec

from builders.answers import answer_in
from builders.containers import running
from builders.devices import device_resource
from builders.differences import in_one_line
from builders.machines import regular, with_node
from builders.tables import Table
from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.cases.schema import Expected
from numaproof.conformance.judging.expectations import Context, check, nodes_of
from numaproof.protocol.machine import HugePages, MachineInfo, Node
from numaproof.protocol.sets import CPUSet

EXPECTATIONS = Table(__file__, "expectations.yaml")
# Cores 0 and 1 are on node 8, cores 2 and 3 on node 9 with another socket; node 10 is empty.
ODD = with_node(regular(nodes=3, cores=2, sockets=3, first_node=8), 10, distances=None, cores=())


@EXPECTATIONS
def test_unmet_expectations_are_named(row: dict[str, Any], info: MachineInfo) -> None:
    odd = not any(name[0].isupper() for name in row)
    context = Context(
        Facts(ODD if odd else info),
        None if row["what"] == "no known pool" else CPUSet.parse("0-1"),
        {"b/app": running("4-5")},
        "/state",
        level=row.get("level", "kubelet"),
        devices=(device_resource("x/nic", d0=(0,), d1=(1,), d2=None),),
        discovers=row.get("discovers"),
    )
    expect = row["expect"]
    expected = expect if expect == "anything" else msgspec.convert(expect, Expected)
    found = check(expected, ODD if odd else answer_in(row), context)
    EXPECTATIONS.check(row, [in_one_line(one) for one in found])


def test_a_device_list_becomes_a_plugins_report() -> None:
    lists = manifests.device_lists({"x/nic": [[0], None, {"numa": [1], "healthy": False}]})
    assert lists == (device_resource("x/nic", d0=(0,), d1=None, d2=(1,), unhealthy="d2"),)
    assert nodes_of("x/nic", lists) == {"d0": (0,), "d1": (), "d2": (1,)}
    assert nodes_of("x/gpu", lists) == {}
    (named,) = manifests.device_lists({"x/nic": [{"id": "0000:3b:00.0"}, {"numa": [1]}]})
    assert [one.id for one in named.ids] == ["0000:3b:00.0", "d1"]


def test_memory_and_distances_are_compared() -> None:
    pages = (HugePages(2048, 3), HugePages(1048576, 0))
    near, far = Node(0, 100, pages, (10, 20, 30)), Node(5, 50, None, (20, 10, 20))
    facts = Facts(MachineInfo(topology=(far, near, Node(9, 0, None, (30, 20, 10)))))
    found = [facts.properties[name] for name in ("memory_nodes", "hugepage_sizes", "equidistant")]
    assert found == [2, 1, False]
    names = facts.names()
    assert [names["node_id"](1), names["memory"](1)] == [5, 50]
    assert [names["hugepages"](0, 2048), names["hugepages"](1, 2048)] == [3 * 2048 * 1024, 0]
    assert names["per_node"](2) == [[0], [0], [5], [5], [9], [9]]
