"""What a case may ask of a machine."""

from __future__ import annotations

import pytest

from builders.machines import discovered
from numaproof.conformance.cases.expressions import ExpressionError, evaluate
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.sets import CPUSet


def facts(name: str) -> Facts:
    return Facts(discovered(name))


def test_a_regular_server_is_counted() -> None:
    assert facts("xeon-gold-6230-2s").properties == {
        "cpus": 80,
        "cores": 40,
        "sockets": 2,
        "numa_nodes": 2,
        "cpu_nodes": 2,
        "memory_only_nodes": 0,
        "uncore_caches": 0,
        "smt": 2,
        "cpus_per_node": 40,
        "cpus_per_socket": 40,
        "cpus_per_uncore_cache": 0,
        "uniform": True,
        "dense": True,
        "memory_nodes": 2,
        "hugepage_sizes": 0,
        "equidistant": True,
    }


def test_nodes_of_memory_alone_are_counted_apart() -> None:
    properties = facts("xeon-gold-6430-2s-cxl").properties
    assert properties["memory_only_nodes"] == 1
    assert properties["numa_nodes"] == 3
    assert properties["cpu_nodes"] == 2


def test_cores_of_different_sizes_are_not_uniform() -> None:
    assert facts("core-i7-1370p").properties["uniform"] is False


def test_gaps_in_cpu_or_node_ids_are_not_dense() -> None:
    assert facts("sparse-nodes").properties["dense"] is False
    assert facts("vm-sparse-cpus").properties["dense"] is False


def test_an_empty_machine_has_nothing() -> None:
    properties = Facts(MachineInfo()).properties
    assert properties["cpus"] == 0
    assert properties["smt"] == 1


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("all", "0-7"),
        ("core(1)", "2-3"),
        ("first_cores(2)", "0-3"),
        ("node(0)", "0-7"),
        ("socket(0)", "0-7"),
        ("first(3, all)", "0-2"),
        ("set('1,3')", "1,3"),
    ],
)
def test_expressions_name_parts_of_the_machine(source: str, value: str) -> None:
    assert evaluate(source, facts("laptop-4c8t").names()) == CPUSet.parse(value)


def test_a_cache_that_serves_part_of_a_node_is_counted() -> None:
    server = facts("epyc-7742-2s-nps1")
    assert server.properties["uncore_caches"] == 32
    assert server.properties["cpus_per_uncore_cache"] == 8
    assert evaluate("cache(0)", server.names()) == CPUSet.parse("0-3,128-131")


def test_a_set_has_a_size() -> None:
    assert evaluate("size(all)", facts("laptop-4c8t").names()) == 8


def test_no_node_has_a_hundred_million_devices() -> None:
    names = facts("laptop-4c8t").names()
    assert evaluate("per_node(2)", names) == [[0], [0]]
    with pytest.raises(ExpressionError, match="more than 4096 devices on a node"):
        evaluate("per_node(100000000)", names)
