"""Memory and huge pages of the machine and of its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.protocol.machine import HugePages
from numaproof.reference.cadvisor.discovery import DiscoveryError

if TYPE_CHECKING:
    from conftest import MachineTree

NODE = "sys/devices/system/node/node0"
POOLS = "sys/kernel/mm/hugepages"


@pytest.fixture(autouse=True)
def node(tree: MachineTree) -> None:
    """A node without CPUs."""
    tree.node(0)


def test_memory_is_the_first_total_in_bytes(tree: MachineTree) -> None:
    tree.write("proc/meminfo", "MemFree: 1 kB\nMemTotal:   16384 kB\nMemTotal: 1 kB\n")
    assert tree.discover().memory_capacity == 16 << 20


@pytest.mark.parametrize(
    "line", ["Node 0 MemTotal: 8 kB", "XMemTotal:8 kB", "MemTotal:\n8 kB", "MemTotal: 008 kBx"]
)
def test_a_total_is_found_wherever_it_stands(tree: MachineTree, line: str) -> None:
    tree.write(f"{NODE}/meminfo", f"\n{line}\n")
    assert tree.nodes()[0].memory == 8192


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", '""'),
        ("MemTotal: 8kB\n", r'"MemTotal: 8kB\n"'),
        ("MemTotal: 8 KB", '"MemTotal: 8 KB"'),
        ("MemTotal:\v8 kB", r'"MemTotal:\v8 kB"'),
        ("MemTotal: -8 kB", '"MemTotal: -8 kB"'),
        ('\N{SOFT HYPHEN}"é\\\x7f\U000e0001', r'"\u00ad\"é\\\x7f\U000e0001"'),
    ],
)
def test_a_machine_without_a_total_is_refused(tree: MachineTree, text: str, shown: str) -> None:
    tree.write("proc/meminfo", text)
    with pytest.raises(DiscoveryError) as refused:
        tree.discover()
    assert str(refused.value) == f"failed to match regexp in output: {shown}"


def test_bytes_that_are_not_utf8_are_shown_as_such(tree: MachineTree) -> None:
    tree.write("proc/meminfo", b"\xff")
    with pytest.raises(DiscoveryError, match=r'output: "\\xff"$'):
        tree.discover()


def test_a_node_without_a_total_costs_the_topology(tree: MachineTree) -> None:
    tree.write(f"{NODE}/meminfo", "Node 0 MemFree: 1 kB\n")
    assert tree.complaint() == 'failed to match regexp in output: "Node 0 MemFree: 1 kB"'


def test_a_node_whose_memory_cannot_be_read_has_none(tree: MachineTree) -> None:
    (tree.root / NODE / "meminfo").mkdir()
    assert tree.nodes()[0].memory == 0


def test_a_total_beyond_64_bits_is_refused(tree: MachineTree) -> None:
    tree.write("proc/meminfo", "MemTotal: 18446744073709551616 kB")
    with pytest.raises(DiscoveryError) as refused:
        tree.discover()
    assert str(refused.value) == (
        'strconv.ParseUint: parsing "18446744073709551616": value out of range'
    )


def test_bytes_of_memory_wrap_around_at_64_bits(tree: MachineTree) -> None:
    tree.write("proc/meminfo", "MemTotal: 18014398509481985 kB")
    assert tree.discover().memory_capacity == 1024


def test_huge_pages_come_in_the_byte_order_of_their_folders(tree: MachineTree) -> None:
    for folder in (POOLS, f"{NODE}/hugepages"):
        tree.write(f"{folder}/hugepages-2048kB/nr_hugepages", "512\n")
        tree.write(f"{folder}/hugepages-1048576kB/nr_hugepages", "4\n")
    expected = (HugePages(page_size=1048576, num_pages=4), HugePages(page_size=2048, num_pages=512))
    assert tree.discover().hugepages == expected
    assert tree.nodes()[0].hugepages == expected


def test_an_empty_folder_of_huge_pages_is_like_none(tree: MachineTree) -> None:
    (tree.root / POOLS).mkdir(parents=True)
    assert tree.discover().hugepages is None


def test_an_entry_without_a_hyphen_is_no_pool(tree: MachineTree) -> None:
    tree.write(f"{POOLS}/uevent", "")
    assert tree.discover().hugepages is None


@pytest.mark.parametrize("name", ["hugepages-64", "hugepages-64kB", "x-64kB-7", "-64kBkB9"])
def test_a_page_size_follows_the_first_hyphen(tree: MachineTree, name: str) -> None:
    tree.write(f"{POOLS}/{name}/nr_hugepages", "3 of them\n")
    assert tree.discover().hugepages == (HugePages(page_size=64, num_pages=3),)


@pytest.mark.parametrize(("name", "shown"), [("hugepages-", ""), ("a-b", "b"), ("a--5kB", "")])
def test_a_pool_without_a_size_is_refused(tree: MachineTree, name: str, shown: str) -> None:
    tree.write(f"{POOLS}/{name}/nr_hugepages", "1")
    with pytest.raises(DiscoveryError) as refused:
        tree.discover()
    assert str(refused.value) == f'strconv.ParseUint: parsing "{shown}": invalid syntax'


@pytest.mark.parametrize("count", ["", "-1", "+1", "x", "18446744073709551616"])
def test_a_pool_without_a_count_is_refused(tree: MachineTree, count: str) -> None:
    tree.write(f"{POOLS}/hugepages-2048kB/nr_hugepages", f"{count}\n")
    with pytest.raises(DiscoveryError) as refused:
        tree.discover()
    assert str(refused.value) == (
        f'could not parse file nr_hugepage for hugepages-2048kB, contents "{count}"'
    )


def test_a_pool_whose_count_is_missing_is_refused(tree: MachineTree) -> None:
    (tree.root / POOLS / "hugepages-2048kB").mkdir(parents=True)
    with pytest.raises(DiscoveryError) as refused:
        tree.discover()
    path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    assert str(refused.value) == f"open {path}: no such file or directory"


def test_a_faulty_pool_of_a_node_costs_the_topology(tree: MachineTree) -> None:
    tree.write(f"{NODE}/hugepages/hugepages-2048kB/nr_hugepages", "")
    assert tree.complaint() == (
        'could not parse file nr_hugepage for hugepages-2048kB, contents ""'
    )
