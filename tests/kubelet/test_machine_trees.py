"""For each machine that a request describes, there is a tree in which discovery finds it."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import msgspec
import pytest
import yaml
from msgspec.structs import replace

from builders.machines import regular, with_node
from numaproof import fakesys
from numaproof.conformance.trees import NoTreeError
from numaproof.kubelet.machine_trees import DescribedMachines
from numaproof.protocol.machine import HugePages, MachineInfo, UncoreCache
from numaproof.reference.cadvisor.discovery import discover

if TYPE_CHECKING:
    from pathlib import Path

BY_CACHE = {"cpuManagerPolicyOptions": {"prefer-align-cpus-by-uncorecache": "true"}}


@pytest.fixture
def machines(tmp_path: Path) -> DescribedMachines:
    folder = tmp_path / "trees"
    folder.mkdir()
    return DescribedMachines(folder)


def found(root: Path) -> MachineInfo:
    """What discovery finds in a tree."""
    with fakesys.open_tree(root) as tree:
        return discover(tree)


def cpus(machine: MachineInfo) -> list[list[tuple[int, list[int]]]]:
    """By node: the socket and the threads of each core, sorted."""
    return [
        sorted((core.socket_id, sorted(core.thread_ids or ())) for core in node.cores or ())
        for node in machine.topology or ()
    ]


def doctors_machine() -> MachineInfo:
    file = resources.files("numaproof.conformance") / "doctor/dialogue.yaml"
    return msgspec.convert(yaml.safe_load(file.read_text("utf-8"))["machine"], MachineInfo)


def test_the_doctors_machine_has_a_tree(machines: DescribedMachines) -> None:
    described = doctors_machine()
    machine = found(machines.path(described, {}))
    assert cpus(machine) == cpus(described)
    assert machine.memory_capacity == described.memory_capacity
    assert [node.distances for node in machine.topology or ()] == [(10, 21), (21, 10)]


def test_a_machine_as_discovery_finds_it_is_found_again(machines: DescribedMachines) -> None:
    tree = fakesys.build_tree(fakesys.load_profile("laptop-4c8t"))
    machine = discover(fakesys.TreePath.root(tree))
    assert found(machines.path(machine, {})) == machine
    assert found(machines.path(machine, BY_CACHE)) == machine


def test_a_tree_is_written_once(machines: DescribedMachines) -> None:
    first = machines.path(regular(), {})
    assert machines.path(regular(), {"cpuManagerPolicy": "static"}) == first
    assert machines.path(regular(2), {}) != first
    assert machines.path(regular(), BY_CACHE) != first


def test_the_order_of_cpus_does_not_matter(machines: DescribedMachines) -> None:
    """Discovery reads folders in the order of their names: ``cpu10`` comes before ``cpu2``."""
    assert cpus(found(machines.path(regular(2, cores=8), {}))) == cpus(regular(2, cores=8))
    backwards = with_node(regular(), 0, cores=regular().topology[0].cores[::-1])
    assert cpus(found(machines.path(backwards, {}))) == cpus(regular())


def test_the_order_of_page_sizes_does_not_matter(machines: DescribedMachines) -> None:
    pools = (HugePages(2048, 3), HugePages(1 << 20, 1))
    for one in (pools, pools[::-1]):
        machine = found(machines.path(regular(hugepages=one), {}))
        assert sorted(machine.topology[0].hugepages, key=lambda pool: pool.page_size) == [*pools]


def test_empty_lists_are_as_good_as_none(machines: DescribedMachines) -> None:
    machine = with_node(regular(2), 1, hugepages=(), caches=())
    assert cpus(found(machines.path(replace(machine, hugepages=()), {}))) == cpus(regular(2))


def test_the_ids_of_cores_may_differ_in_the_tree(machines: DescribedMachines) -> None:
    """Discovery takes cores of a socket with the same id for one; no manager looks at the ids."""
    machine = regular(2)
    same = with_node(
        machine, 1, cores=tuple(replace(core, core_id=0) for core in machine.topology[1].cores)
    )
    assert cpus(found(machines.path(same, {}))) == cpus(machine)


ODD = UncoreCache(0, size=8 << 20, type="Unified", level=3)
"""A cache that only some threads of a core could share: two caches of a core, one level."""


def test_caches_are_left_out_unless_an_option_needs_them(machines: DescribedMachines) -> None:
    machine = regular()
    (node,) = machine.topology
    cores = (
        replace(node.cores[0], uncore_caches=(ODD, replace(ODD, id=1))),
        *node.cores[1:],
    )
    odd = with_node(machine, 0, cores=cores)
    assert cpus(found(machines.path(odd, {}))) == cpus(machine)
    with pytest.raises(NoTreeError):
        machines.path(odd, BY_CACHE)


def test_a_machine_without_nodes_has_no_tree(machines: DescribedMachines) -> None:
    with pytest.raises(NoTreeError, match="no tree makes a kubelet discover it"):
        machines.path(MachineInfo(), {})
