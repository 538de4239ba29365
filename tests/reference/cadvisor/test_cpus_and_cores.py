"""What counts as a CPU, and which CPUs are one core."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import MachineTree

ONLINE = "sys/devices/system/cpu/online"
CPU = "sys/devices/system/cpu/cpu1"


def test_cpus_with_the_same_core_and_package_ids_are_one_core(tree: MachineTree) -> None:
    for cpu in range(4):
        tree.cpu(cpu, core=cpu % 2)
    tree.node(0, 0, 1, 2, 3)
    assert [(core.core_id, core.thread_ids) for core in tree.cores()] == [(0, (0, 2)), (1, (1, 3))]
    assert tree.discover().num_cores == 4


def test_the_same_core_id_in_two_packages_is_two_cores(tree: MachineTree) -> None:
    tree.cpu(0, core=0, package=0)
    tree.cpu(1, core=0, package=1)
    tree.node(0, 0, 1)
    assert [(core.socket_id, core.thread_ids) for core in tree.cores()] == [(0, (0,)), (1, (1,))]


def test_a_core_that_spans_two_nodes_is_a_core_of_each(tree: MachineTree) -> None:
    tree.cpu(0)
    tree.cpu(1)
    tree.node(0, 0)
    tree.node(1, 1)
    assert [core.thread_ids for core in tree.cores()] == [(0,), (1,)]


def test_cpus_are_taken_in_the_byte_order_of_their_names(tree: MachineTree) -> None:
    for cpu in (2, 10):
        tree.cpu(cpu)
    tree.node(0, 2, 10)
    assert tree.cores()[0].thread_ids == (10, 2)


def test_an_offline_cpu_is_in_no_core(tree: MachineTree) -> None:
    for cpu in range(3):
        tree.cpu(cpu, core=cpu)
    tree.node(0, 0, 1, 2)
    tree.write(ONLINE, "0,2\n")
    assert [core.thread_ids for core in tree.cores()] == [(0,), (2,)]
    assert tree.discover().num_cores == 2


def test_without_a_list_of_those_online_every_cpu_is(tree: MachineTree) -> None:
    tree.cpu(7)
    tree.node(0, 7)
    assert tree.discover().num_cores == 1


@pytest.mark.parametrize("text", ["", "\n", "x", "1,", "0-1-2,0", "1-0", "0x0", "0\0", "-0", "+0"])
def test_a_list_of_those_online_that_names_no_cpu_before_its_fault_takes_them_all(
    tree: MachineTree, text: str
) -> None:
    tree.cpu(0)
    tree.node(0, 0)
    tree.write(ONLINE, text)
    assert tree.cores() == []


def test_a_faulty_entry_among_those_online_hides_only_what_follows(tree: MachineTree) -> None:
    for cpu in range(4):
        tree.cpu(cpu, core=cpu)
    tree.node(0, 0, 1, 2, 3)
    tree.write(ONLINE, "0-1,70000,2-3\n")
    assert [core.thread_ids for core in tree.cores()] == [(0,), (1,)]


def test_a_list_of_those_online_that_is_a_folder_takes_them_all(tree: MachineTree) -> None:
    tree.cpu(0)
    tree.node(0, 0)
    (tree.root / ONLINE).mkdir()
    assert tree.cores() == []


def test_a_cpu_number_is_looked_up_online_by_its_low_16_bits(tree: MachineTree) -> None:
    tree.cpu(65537)
    tree.node(0, 65537)
    tree.write(ONLINE, "1\n")
    assert tree.cores()[0].thread_ids == (65537,)


@pytest.mark.parametrize("missing", ["core_id", "physical_package_id"])
def test_a_cpu_without_an_id_is_passed_over(tree: MachineTree, missing: str) -> None:
    tree.cpu(0, core=0)
    tree.cpu(1, core=1)
    tree.node(0, 0, 1)
    tree.remove(f"{CPU}/topology/{missing}")
    assert [core.thread_ids for core in tree.cores()] == [(0,)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x", '"x"'),
        ("", '""'),
        ("1\0", r'"1\x00"'),
        ("1_0", '"1_0"'),
        ("0x3", '"0x3"'),
        ("٣", '"٣"'),
        ("1\n2", r'"1\n2"'),
    ],
)
def test_an_id_that_is_no_number_costs_the_machine_its_topology(
    tree: MachineTree, text: str, shown: str
) -> None:
    tree.cpu(0)
    tree.node(0, 0)
    tree.write("sys/devices/system/cpu/cpu0/topology/core_id", text)
    assert tree.complaint() == f"strconv.Atoi: parsing {shown}: invalid syntax"


def test_ids_may_be_signed_and_have_white_space_around_them(tree: MachineTree) -> None:
    tree.cpu(0, core=" +7\t", package="\N{NO-BREAK SPACE}-1\n")
    tree.node(0, 0)
    (core,) = tree.cores()
    assert (core.core_id, core.socket_id) == (7, -1)


def test_an_id_that_is_a_folder_is_not_a_missing_one(tree: MachineTree) -> None:
    tree.cpu(0)
    tree.node(0, 0)
    path = "sys/devices/system/cpu/cpu0/topology/physical_package_id"
    tree.remove(path)
    (tree.root / path).mkdir()
    seen_as = "/sys/devices/system/node/node0/cpu0/topology/physical_package_id"
    assert tree.complaint() == f"read {seen_as}: is a directory"


def test_a_cpu_that_is_a_file_is_not_a_cpu_without_ids(tree: MachineTree) -> None:
    tree.write("sys/devices/system/node/node0/cpu0", "")
    path = "/sys/devices/system/node/node0/cpu0/topology/core_id"
    assert tree.complaint() == f"open {path}: not a directory"


@pytest.mark.parametrize("name", ["cpufreq0", "cpu-1", "cpu99999999999999999999"])
def test_an_entry_like_a_cpu_without_a_number_costs_the_topology(
    tree: MachineTree, name: str
) -> None:
    tree.write(f"sys/devices/system/node/node0/{name}/x", "")
    assert tree.complaint() == (
        r"unexpected format of CPU directory, cpuDirRegExp /cpu(\d+), "
        f"cpuDir: /sys/devices/system/node/node0/{name}"
    )


def test_entries_that_do_not_end_in_a_digit_are_no_cpus(tree: MachineTree) -> None:
    tree.cpu(0)
    tree.node(0, 0)
    for name in ("cpulist", "cpumap", "cpuidle", "cpu3x", "CPU4", "cpu"):
        tree.write(f"sys/devices/system/node/node0/{name}", "")
    assert [core.thread_ids for core in tree.cores()] == [(0,)]


def test_the_number_of_a_cpu_is_what_follows_its_name_at_once(tree: MachineTree) -> None:
    tree.write("sys/devices/system/node/node0/cpu03x4/topology/core_id", "0")
    tree.write("sys/devices/system/node/node0/cpu03x4/topology/physical_package_id", "0")
    assert tree.cores()[0].thread_ids == (3,)
