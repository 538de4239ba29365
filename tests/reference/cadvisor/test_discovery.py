"""The whole of a machine: what is refused, how releases differ, and how files are reached."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node, UncoreCache
from numaproof.protocol.releases import RELEASES
from numaproof.reference.cadvisor.discovery import DiscoveryError, discover

if TYPE_CHECKING:
    from pyfakefs.fake_filesystem import FakeFilesystem

    from conftest import MachineTree

CPUINFO = "processor\t: 0\nphysical id\t: 0\ncore id\t\t: 0\n"
EXPECTED = MachineInfo(
    num_cores=2,
    num_physical_cores=1,
    num_sockets=1,
    memory_capacity=1 << 20,
    hugepages=(HugePages(page_size=2048, num_pages=2),),
    topology=(
        Node(
            node_id=0,
            memory=512 << 10,
            distances=(10,),
            cores=(
                Core(
                    core_id=5,
                    thread_ids=(0, 1),
                    uncore_caches=(UncoreCache(id=0, size=32768, type="Unified", level=3),),
                ),
            ),
        ),
    ),
)


@pytest.fixture
def whole(tree: MachineTree) -> MachineTree:
    """A machine with something of everything."""
    return furnish(tree)


def furnish(tree: MachineTree) -> MachineTree:
    tree.write("proc/cpuinfo", CPUINFO)
    tree.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "2\n")
    tree.write("sys/devices/system/cpu/online", "0-1\n")
    for cpu in (0, 1):
        tree.cpu(cpu, core=5)
        tree.cache(cpu, level=3, sharers="f")
    tree.node(0, 0, 1)
    tree.write("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 512 kB\n")
    tree.write("sys/devices/system/node/node0/distance", "10\n")
    return tree


def test_every_field_is_read_from_its_file(whole: MachineTree) -> None:
    assert whole.discover() == EXPECTED


def test_a_fake_file_system_is_the_same(whole: MachineTree, fs: FakeFilesystem) -> None:
    fs.create_dir("/fake")
    assert discover(furnish(type(whole)(Path("/fake"))).root) == EXPECTED


@pytest.mark.parametrize("name", ["cpuinfo", "meminfo"])
def test_a_tree_without_a_file_of_proc_is_refused(whole: MachineTree, name: str) -> None:
    whole.remove(f"proc/{name}")
    with pytest.raises(DiscoveryError) as refused:
        discover(whole.root)
    assert str(refused.value) == f"open /proc/{name}: no such file or directory"


def test_paths_in_messages_do_not_depend_on_the_root(tmp_path: Path) -> None:
    with pytest.raises(DiscoveryError) as refused:
        discover(tmp_path / "nowhere")
    assert str(refused.value) == "open /proc/cpuinfo: no such file or directory"


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("1.33", "Any CPU is not available"),
        ("1.34", "Any CPU is not available"),
        ("1.35", "Any CPU is not available"),
        ("1.36", "no CPU is available"),
    ],
)
def test_each_release_words_its_own_complaint_about_missing_cpus(
    tree: MachineTree, release: str, words: str
) -> None:
    assert tree.complaint(release) == f"{words}, cpusPath: /sys/devices/system/cpu"


def test_a_machine_without_topology_keeps_the_rest(whole: MachineTree) -> None:
    whole.write("sys/devices/system/node/node0/distance", "x")
    machine = discover(whole.root)
    assert machine.topology is None
    assert (machine.num_cores, machine.num_physical_cores, machine.num_sockets) == (0, 1, 1)
    assert (machine.memory_capacity, machine.hugepages) == (1 << 20, EXPECTED.hugepages)


def test_every_release_reads_a_sound_tree_alike(whole: MachineTree) -> None:
    assert {whole.discover(release) for release in RELEASES} == {EXPECTED}


def test_no_file_is_read_twice_where_cpuinfo_names_ids(
    whole: MachineTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: (read.append(path), read_bytes(path))[1])
    whole.discover()
    assert len(read) == len({path.resolve() for path in read})
