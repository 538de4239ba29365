"""Trees of described machines, and discovery in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from numaproof import fakesys
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.machines import machine as make_machine
from numaproof.conformance.trees import GeneratedTree, NoTreeError, as_discovered, tree_of
from numaproof.protocol import messages
from numaproof.protocol.machine import Core, MachineInfo, Node
from numaproof.protocol.releases import NEWEST
from numaproof.protocol.sets import CPUSet
from numaproof.reference import implementation
from numaproof.reference.cadvisor.discovery import discover
from numaproof.reference.implementation import Reference
from numaproof.workdir import trees

if TYPE_CHECKING:
    from pathlib import Path

MADE = [make_machine(Seeded(seed)) for seed in range(30)]
FOUND = next(one for one in map(as_discovered, MADE) if one)


@pytest.mark.parametrize("machine", MADE[:12])
def test_a_generated_machine_is_discovered_from_both_trees(
    machine: MachineInfo, tmp_path: Path
) -> None:
    found = as_discovered(machine)
    assert found is not None
    tree = GeneratedTree(lambda: tree_of(found), tmp_path / "machine")
    assert discover(trees.open_root(tree.in_process_path())) == found
    assert not (tmp_path / "machine").exists()
    assert discover(trees.open_root(str(tree.directory()))) == found


def test_a_discovered_machine_has_the_nodes_cpus_and_sizes_of_the_description() -> None:
    cores = []
    for machine in MADE:
        found = as_discovered(machine)
        assert found is not None
        assert _by_id(found) == _by_id(machine)
        assert found.num_cores == machine.num_cores
        assert found.memory_capacity == machine.memory_capacity
        cores += [core for node in found.topology or () for core in node.cores or ()]
    assert any(core.uncore_caches for core in cores)


def _by_id(machine: MachineInfo) -> list[object]:
    return [
        _node_fields(one) for one in sorted(machine.topology or (), key=lambda node: node.node_id)
    ]


def _node_fields(node: Node) -> object:
    cores = {
        (core.socket_id, core.core_id, CPUSet(core.thread_ids or ())) for core in node.cores or ()
    }
    pages = {(pool.page_size, pool.num_pages) for pool in node.hugepages or ()}
    return node.node_id, node.memory, pages, node.distances, cores


def test_nodes_in_another_order_keep_their_distances() -> None:
    nodes = tuple(
        Node(
            node_id=node,
            memory=1 << 30,
            distances=distances,
            cores=(Core(core_id=node, socket_id=0, thread_ids=(node,)),),
        )
        for node, distances in ((10, (31, 21, 10)), (2, (10, 20, 30)), (3, (20, 10, 21)))
    )
    found = as_discovered(MachineInfo(num_cores=3, memory_capacity=3 << 30, topology=nodes))
    assert found is not None
    assert [(one.node_id, one.distances) for one in found.topology or ()] == [
        (one.node_id, one.distances) for one in nodes
    ]


def test_an_undiscoverable_description_has_no_tree() -> None:
    for odd in (
        msgspec.structs.replace(FOUND, num_physical_cores=99),
        msgspec.structs.replace(FOUND, topology=None),
        MachineInfo(topology=(Node(0, cores=(Core(0, (0,)),)), Node(1, distances=(10, 20)))),
    ):
        with pytest.raises(NoTreeError):
            tree_of(odd)
    assert as_discovered(msgspec.structs.replace(FOUND, topology=None)) is None


def test_an_in_memory_tree_exists_while_referenced() -> None:
    root = tree_of(FOUND).root
    path = trees.hold(root)
    assert trees.open_root(path) is root
    assert trees.open_root(path) is not trees.open_root(trees.hold(root / "sys"))
    with pytest.raises(OSError, match="No such file"):
        (trees.open_root(path + "9") / "proc/cpuinfo").read_bytes()


def test_a_reference_reads_an_unchanging_tree_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = tree_of(FOUND)
    fakesys.write_directory(held.tree, tmp_path / "tree")
    read: list[trees.Root] = []

    def counting(root: trees.Root, *, by_siblings: bool) -> MachineInfo:
        read.append(root)
        return discover(root, by_siblings=by_siblings)

    monkeypatch.setattr(implementation, "discover", counting)

    def check_discovery(reference: Reference, root: str, kubernetes: str = NEWEST) -> None:
        args = messages.DiscoverArgs(root, kubernetes)
        answers = [reference.call("discover", args) for _ in range(2)]
        assert answers == [FOUND, FOUND]

    reference = Reference()
    check_discovery(reference, held.path)
    assert len(read) == 1
    check_discovery(reference, held.path, "1.30")
    assert len(read) == 1
    check_discovery(Reference(), held.path)  # which may have a bug that the other does not
    assert len(read) == 2
    check_discovery(reference, str(tmp_path / "tree"))
    assert len(read) == 4
