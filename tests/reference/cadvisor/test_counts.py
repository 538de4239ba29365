"""The counts of cores and sockets, which have their own sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import MachineTree

CPUS = "sys/devices/system/cpu"


@pytest.fixture(autouse=True)
def two_sockets(tree: MachineTree) -> None:
    """Two sockets of two cores, with repeating core ids; one node."""
    for cpu in range(4):
        tree.cpu(cpu, core=cpu % 2, package=cpu // 2)
    tree.node(0, 0, 1, 2, 3)


def counts(tree: MachineTree) -> tuple[int, int]:
    machine = tree.discover()
    return machine.num_physical_cores, machine.num_sockets


def test_without_ids_in_cpuinfo_pairs_in_sysfs_are_counted(tree: MachineTree) -> None:
    assert counts(tree) == (4, 2)


def test_ids_in_cpuinfo_are_counted_once_for_all_sockets(tree: MachineTree) -> None:
    lines = [f"physical id\t: {cpu // 2}\ncore id\t\t: {cpu % 2}\n" for cpu in range(4)]
    tree.write("proc/cpuinfo", "\n".join(lines))
    assert counts(tree) == (2, 2)


def test_each_count_has_its_own_source(tree: MachineTree) -> None:
    tree.write("proc/cpuinfo", "physical id: 7\nphysical id: 8\nphysical id: 9")
    assert counts(tree) == (4, 3)


def test_ids_that_differ_in_white_space_are_distinct(tree: MachineTree) -> None:
    tree.write("proc/cpuinfo", "core id: 1\ncore id : 1\ncore id:\n1\nphysical id: 0\n")
    assert counts(tree) == (3, 1)


@pytest.mark.parametrize("line", ["core id: 1 ", "core id: 1\r", " core id: 1", "core id: -1"])
def test_lines_that_are_not_quite_an_id_do_not_count(tree: MachineTree, line: str) -> None:
    tree.write("proc/cpuinfo", f"{line}\n")
    assert counts(tree) == (4, 2)


def test_offline_cpus_are_not_counted_in_sysfs(tree: MachineTree) -> None:
    tree.write(f"{CPUS}/online", "0-1\n")
    assert counts(tree) == (2, 1)


@pytest.mark.parametrize("name", ["core_id", "physical_package_id"])
def test_a_missing_id_in_sysfs_reads_zero(tree: MachineTree, name: str) -> None:
    tree.remove(f"{CPUS}/cpu3/topology/{name}")
    # CPU 3 is core 1 of package 1; either way it now falls together with another.
    assert counts(tree) == (3, 2)


def test_ids_in_sysfs_need_not_be_numbers(tree: MachineTree) -> None:
    (tree.root / "sys/devices/system/node").rename(tree.root / "gone")
    tree.node(0)
    tree.write(f"{CPUS}/cpu3/topology/core_id", "x")
    tree.write(f"{CPUS}/cpu3/topology/physical_package_id", "0\0")
    assert counts(tree) == (4, 3)


@pytest.mark.parametrize("name", ["cpufreq0", "cpu99999999999999999999"])
def test_an_entry_like_a_cpu_without_a_number_leaves_nothing_to_count(
    tree: MachineTree, name: str
) -> None:
    (tree.root / CPUS / name).mkdir()
    assert counts(tree) == (0, 0)


def test_a_number_later_in_the_name_counts(tree: MachineTree) -> None:
    (tree.root / CPUS / "cpux_cpu9").mkdir()
    tree.remove(f"{CPUS}/cpu0/topology/core_id")
    tree.remove(f"{CPUS}/cpu0/topology/physical_package_id")
    assert counts(tree) == (4, 2)
