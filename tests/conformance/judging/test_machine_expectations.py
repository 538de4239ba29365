"""What a case can expect of a discovered machine."""

from __future__ import annotations

from typing import Any

import pytest

from builders.machines import regular, with_node
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.cases.schema import Expected
from numaproof.conformance.judging.expectations import Context, check

# Cores 0 and 1 on node 8, cores 2 and 3 on node 9 with another socket, nothing on node 10.
MACHINE = with_node(
    regular(nodes=3, cores=2, sockets=3, first_node=8), 10, distances=None, cores=()
)


def problems(machine: dict[str, Any]) -> list[str]:
    """What is wrong with the machine when a case expects this of it."""
    context = Context(Facts(MACHINE), None, {}, "/state", level="kubelet")
    return check(Expected(machine=machine), MACHINE, context)


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
            "machine.nodes.8.distances: expected None, got (10, 20, 20)",
        ),
    ],
)
def test_what_differs_is_named_by_its_place(machine: dict[str, Any], problem: str) -> None:
    assert problems(machine) == [problem]
