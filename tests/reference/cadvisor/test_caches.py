"""Whose a cache is, and what happens to caches when a file is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.protocol.machine import UncoreCache

if TYPE_CHECKING:
    from conftest import MachineTree

CACHE = "sys/devices/system/cpu/cpu0/cache"
L1 = UncoreCache(id=0, size=32768, type="Unified", level=1)
L3 = UncoreCache(id=0, size=32768, type="Unified", level=3)


@pytest.fixture(autouse=True)
def four_cores(tree: MachineTree) -> None:
    """One node of four cores with one CPU each."""
    for cpu in range(4):
        tree.cpu(cpu, core=cpu)
    tree.node(0, 0, 1, 2, 3)


def test_an_l3_shared_by_all_cpus_of_the_node_is_the_nodes(tree: MachineTree) -> None:
    for cpu in range(4):
        tree.cache(cpu, level=3, sharers="f")
    (node,) = tree.nodes()
    assert node.caches == (L3,)
    assert [core.uncore_caches for core in tree.cores()] == [None] * 4


def test_an_l3_shared_by_some_cpus_of_the_node_is_uncore(tree: MachineTree) -> None:
    for cpu in range(4):
        tree.cache(cpu, level=3, sharers="3" if cpu < 2 else "c", id=str(cpu // 2))
    assert tree.nodes()[0].caches is None
    ids = [[cache.id for cache in core.uncore_caches or ()] for core in tree.cores()]
    assert ids == [[0], [0], [1], [1]]


def test_an_l3_shared_beyond_the_node_is_uncore(tree: MachineTree) -> None:
    tree.cache(0, level=3, sharers="ff")
    assert tree.cores()[0].uncore_caches == (L3,)


def test_a_node_is_counted_as_if_all_its_cores_were_like_the_one_asked(tree: MachineTree) -> None:
    tree.cpu(4, core=3)
    tree.root.joinpath("sys/devices/system/node/node0/cpu4").symlink_to("../../cpu/cpu4")
    for cpu in range(4):
        tree.cache(cpu, level=3, sharers="1f")
    # Five CPUs share it; the node would have four or eight.
    assert tree.nodes()[0].caches is None
    assert [core.uncore_caches for core in tree.cores()] == [(L3,)] * 4


def test_a_core_is_asked_through_the_first_of_its_cpus(tree: MachineTree) -> None:
    tree.cpu(1, core=0)
    tree.cache(0, level=1, sharers="3")
    tree.cache(1, level=1, sharers="3", id="9")
    assert tree.cores()[0].caches == (L1,)


def test_an_l1_is_the_cores_if_as_many_cpus_share_it(tree: MachineTree) -> None:
    tree.cache(0, level=1, sharers="00000000,00000001")
    tree.cache(0, level=2, sharers="00000000,00000003")
    core = tree.cores()[0]
    assert (core.caches, core.uncore_caches) == ((L1,), None)


def test_a_cache_that_is_listed_twice_is_one_uncore_cache(tree: MachineTree) -> None:
    for index in (3, 4):
        tree.cache(0, level=index, sharers="3")
        tree.write(f"{CACHE}/index{index}/level", "3\n")
    assert tree.cores()[0].uncore_caches == (L3,)


@pytest.mark.parametrize("attribute", ["id", "size", "level", "type", "shared_cpu_map"])
def test_a_missing_attribute_costs_the_core_and_those_behind_it_all_their_caches(
    tree: MachineTree, attribute: str
) -> None:
    for cpu in range(4):
        tree.cache(cpu, level=1, sharers="1")
    tree.cache(1, level=3, sharers="3")
    tree.remove(f"sys/devices/system/cpu/cpu1/cache/index3/{attribute}")
    assert [core.caches for core in tree.cores()] == [(L1,), None, None, None]


def test_caches_without_ids_are_no_caches(tree: MachineTree) -> None:
    for cpu in range(4):
        tree.cache(cpu, level=3, sharers="3")
        tree.remove(f"sys/devices/system/cpu/cpu{cpu}/cache/index3/id")
    assert [core.uncore_caches for core in tree.cores()] == [None] * 4


def test_a_missing_cache_folder_costs_the_cores_behind_it_theirs(tree: MachineTree) -> None:
    for cpu in (0, 1, 3):
        tree.cache(cpu, level=1, sharers="1")
    assert [core.caches for core in tree.cores()] == [(L1,), (L1,), None, None]


def test_an_empty_cache_folder_costs_nobody_else_anything(tree: MachineTree) -> None:
    (tree.root / CACHE).mkdir()
    tree.cache(1, level=1, sharers="2")
    assert [core.caches for core in tree.cores()] == [None, (L1,), None, None]


def test_only_index_folders_are_caches(tree: MachineTree) -> None:
    tree.cache(0, level=1, sharers="1")
    tree.write(f"{CACHE}/uevent", "")
    assert tree.cores()[0].caches == (L1,)


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        ("id", ""),
        ("id", "x"),
        ("id", "\n0"),
        ("id", "9223372036854775808"),
        ("size", "32"),
        ("size", "32 K"),
        ("size", "1M"),
        ("size", "-1K"),
        ("size", "18446744073709551616K"),
        ("level", "-9223372036854775809"),
        ("shared_cpu_map", ""),
        ("shared_cpu_map", "1,"),
        ("shared_cpu_map", "0x1"),
        ("shared_cpu_map", "1_0"),
        ("shared_cpu_map", "1ffffffffffffffff"),
    ],
)
def test_an_attribute_that_is_no_number_counts_as_missing(
    tree: MachineTree, attribute: str, text: str
) -> None:
    tree.cache(0, level=1, sharers="1")
    tree.write(f"{CACHE}/index1/{attribute}", text)
    assert tree.cores()[0].caches is None


def test_a_number_may_be_followed_by_anything(tree: MachineTree) -> None:
    tree.cache(0, level=1, sharers=" 1 ", id=" -3x", size="\t0002KB", type=" Odd ")
    tree.write(f"{CACHE}/index1/level", "1_0")
    assert tree.cores()[0].caches == (UncoreCache(id=-3, size=2048, type="Odd", level=1),)


def test_a_size_wraps_around_at_64_bits(tree: MachineTree) -> None:
    tree.cache(0, level=1, sharers="1", size="18014398509481985K")
    (cache,) = tree.cores()[0].caches or ()
    assert cache.size == 1024


def test_a_type_that_is_not_utf8_is_made_printable(tree: MachineTree) -> None:
    tree.cache(0, level=1, sharers="1")
    tree.write(f"{CACHE}/index1/type", b"U\xff")
    (cache,) = tree.cores()[0].caches or ()
    assert cache.type == "U\ufffd"


def test_packages_that_stand_for_nodes_have_caches_too(tree: MachineTree) -> None:
    node = tree.root / "sys/devices/system/node/node0"
    for link in node.iterdir():
        link.unlink()
    node.rmdir()
    tree.cache(0, level=3, sharers="f")
    assert tree.nodes()[0].caches == (L3,)
