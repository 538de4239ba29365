"""The machine properties that cases can require."""

from __future__ import annotations

import pytest

from builders.machines import discover_profile
from numaproof.conformance.cases.expressions import ExpressionError, evaluate
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.protocol.machine import MachineInfo


def facts(name: str) -> Facts:
    return Facts(discover_profile(name))


def test_the_units_of_a_regular_server_are_counted() -> None:
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


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("xeon-gold-6430-2s-cxl", {"memory_only_nodes": 1, "numa_nodes": 3, "cpu_nodes": 2}),
        ("core-i7-1370p", {"uniform": False}),
        ("sparse-nodes", {"dense": False}),
        ("vm-sparse-cpus", {"dense": False}),
        ("epyc-7742-2s-nps1", {"uncore_caches": 32, "cpus_per_uncore_cache": 8}),
        ("", {"cpus": 0, "smt": 1}),
    ],
)
def test_unusual_machines_have_properties(name: str, properties: dict[str, int]) -> None:
    found = (facts(name) if name else Facts(MachineInfo())).properties
    assert {one: found[one] for one in properties} == properties


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
        ("size(all)", "8"),
        ("per_node(2)", "[[0], [0]]"),
    ],
)
def test_expressions_can_name_parts_of_the_machine(source: str, value: str) -> None:
    assert str(evaluate(source, facts("laptop-4c8t").names())) == value


def test_uncore_caches_have_names_and_devices_a_limit() -> None:
    names = facts("epyc-7742-2s-nps1").names()
    assert str(evaluate("cache(0)", names)) == "0-3,128-131"
    with pytest.raises(ExpressionError, match="at most 4096 devices per node"):
        evaluate("per_node(100000000)", names)
