"""Machine shapes: each machine once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.exhaustion.shapes import shapes

if TYPE_CHECKING:
    from numaproof.protocol.machine import MachineInfo


def partitions(machine: MachineInfo) -> list[list[int]]:
    """The CPUs by node, for a machine whose nodes lie inside sockets."""
    return [
        [cpu for core in node.cores or () for cpu in core.thread_ids or ()]
        for node in machine.topology or ()
    ]


@pytest.mark.parametrize(("cpus", "count"), [(1, 1), (2, 12), (3, 43), (4, 170)])
def test_every_machine_occurs_once(cpus: int, count: int) -> None:
    machines = [shape.machine() for shape in shapes(cpus)]
    assert len(machines) == len(set(machines)) == count
    assert {machine.num_cores for machine in machines} == {cpus}


def test_shapes_vary_in_all_levels() -> None:
    machines = [shape.machine() for shape in shapes(4)]
    assert {machine.num_sockets for machine in machines} == {1, 2, 3, 4}
    assert {len(machine.topology or ()) for machine in machines} == {1, 2, 3, 4}
    assert {machine.num_physical_cores for machine in machines} == {2, 3, 4}
    assert any(machine.num_sockets > len(machine.topology or ()) for machine in machines)
    assert {min(map(len, partitions(one))) for one in machines} == {1, 2, 4}


def test_names_tell_machines_apart() -> None:
    every = [shape for cpus in (1, 2, 3, 4) for shape in shapes(cpus)]
    assert len({shape.name for shape in every}) == len(every)
