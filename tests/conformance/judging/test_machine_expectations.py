"""What a case can expect of a discovered machine."""

from __future__ import annotations

from typing import Any

import pytest

from builders.differences import in_one_line
from builders.machines import regular, with_node
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.cases.schema import Expected
from numaproof.conformance.judging.expectations import Context, check

# Cores 0 and 1 on node 8, cores 2 and 3 on node 9 with another socket, nothing on node 10.
MACHINE = with_node(
    regular(nodes=3, cores=2, sockets=3, first_node=8), 10, distances=None, cores=()
)


def problems(machine: dict[str, Any], *discovers: str) -> list[str]:
    """What is wrong with the machine when a case expects this of whoever sees so much."""
    context = Context(
        Facts(MACHINE), None, {}, "/state", level="kubelet", discovers=discovers or None
    )
    return [in_one_line(one) for one in check(Expected(machine=machine), MACHINE, context)]


@pytest.mark.parametrize(
    "machine",
    [
        {"num_cores": 12},
        {
            "nodes": {
                "8": {"cpus": "0-1,6-7", "distances": [10, 20, 20]},
                "10": {"cpus": "", "cores": {}},
            }
        },
        {"nodes": {"9": {"cores": {"3": {"core_id": 3, "socket_id": 1, "cpus": "3,9"}}}}},
        {"nodes": {"10": {"distances": None}}},
    ],
)
def test_a_part_of_the_machine_can_be_expected(machine: dict[str, Any]) -> None:
    assert problems(machine) == []


@pytest.mark.parametrize(
    ("machine", "problem"),
    [
        ({"num_cores": 5}, "machine.num_cores: expected 5, got 12"),
        ({"nodes": {"0": {}}}, "machine.nodes has no 0"),
        ({"nodes": {"8": {"cores": {"2": {}}}}}, "machine.nodes.8.cores has no 2"),
        (
            {"nodes": {"8": {"distances": None}}},
            "machine.nodes.8.distances: expected null, got [10, 20, 20]",
        ),
    ],
)
def test_what_differs_is_named_by_its_place(machine: dict[str, Any], problem: str) -> None:
    assert problems(machine) == [problem]


CORE = {"core_id": 7, "socket_id": 1, "cpus": "3,9"}


@pytest.mark.parametrize(
    ("discovers", "problem"),
    [
        (("cores",), None),
        (("core_ids",), "machine.cores.3.core_id: expected 7, got 3"),
        (("nodes",), "machine.nodes.8.cpus: expected 0-1, got 0-1,6-7"),
        (("node_memory", "socket_ids"), None),
        (("num_cores",), "machine.num_cores: expected 5, got 12"),
    ],
)
def test_what_is_not_seen_is_not_expected(discovers: tuple[str, ...], problem: str | None) -> None:
    expected = {"num_cores": 5, "nodes": {"9": {"cores": {"3": CORE}}, "8": {"cpus": "0-1"}}}
    assert problems(expected, *discovers)[:1] == ([problem] if problem else [])


def test_a_core_that_is_seen_apart_from_its_threads_is_found_by_any_of_its_cpus() -> None:
    assert problems({"nodes": {"9": {"cores": {"9": {"socket_id": 1}}}}}, "socket_ids") == []
