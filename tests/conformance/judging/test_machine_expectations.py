"""What a case can expect of a discovered machine."""

from __future__ import annotations

from typing import Any

import pytest

from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.cases.schema import Expected
from numaproof.conformance.judging.expectations import Context, check
from numaproof.protocol.machine import Core, MachineInfo, Node

MACHINE = MachineInfo(
    num_cores=4,
    topology=(
        Node(node_id=8, distances=(10, 20), cores=(Core(0, (0, 2), 5), Core(1, (1, 3), 5))),
        Node(node_id=9, cores=()),
    ),
)


def problems(machine: dict[str, Any]) -> list[str]:
    """What is wrong with the machine when a case expects this of it."""
    context = Context(Facts(MACHINE), None, {}, "/state", level="kubelet")
    return check(Expected(machine=machine), MACHINE, context)


@pytest.mark.parametrize(
    "machine",
    [
        {"num_cores": 4},
        {"nodes": {"8": {"cpus": "0-3", "distances": [10, 20]}, "9": {"cpus": "", "cores": {}}}},
        {"nodes": {"8": {"cores": {"1": {"core_id": 1, "socket_id": 5, "cpus": "1,3"}}}}},
        {"nodes": {"9": {"distances": None}}},
    ],
)
def test_a_part_of_the_machine_can_be_expected(machine: dict[str, Any]) -> None:
    assert problems(machine) == []


@pytest.mark.parametrize(
    ("machine", "problem"),
    [
        ({"num_cores": 5}, "machine.num_cores: expected 5, got 4"),
        ({"nodes": {"0": {}}}, "machine.nodes has no 0"),
        ({"nodes": {"8": {"cores": {"2": {}}}}}, "machine.nodes.8.cores has no 2"),
        (
            {"nodes": {"8": {"distances": None}}},
            "machine.nodes.8.distances: expected None, got (10, 20)",
        ),
    ],
)
def test_what_differs_is_named_by_its_place(machine: dict[str, Any], problem: str) -> None:
    assert problems(machine) == [problem]
