"""What counts as a NUMA node, and what stands for one where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.protocol.machine import Node

if TYPE_CHECKING:
    from conftest import MachineTree

NODES = "sys/devices/system/node"


def test_nodes_come_in_the_order_of_their_names(tree: MachineTree) -> None:
    for node in (0, 2, 10, 255):
        tree.node(node)
    assert [node.node_id for node in tree.nodes()] == [0, 10, 2, 255]


def test_packages_in_place_of_nodes_come_in_the_order_of_their_ids(tree: MachineTree) -> None:
    for package in (2, 10, 0):
        tree.cpu(package, package=package)
    assert [node.node_id for node in tree.nodes()] == [0, 2, 10]


def test_a_node_without_files_has_nothing(tree: MachineTree) -> None:
    tree.node(3)
    assert tree.nodes() == (Node(node_id=3),)


def test_a_node_without_cpus_differs_from_one_with_offline_cpus(tree: MachineTree) -> None:
    tree.cpu(0)
    tree.node(0, 0)
    tree.node(1)
    tree.write("sys/devices/system/cpu/online", "5\n")
    assert [node.cores for node in tree.nodes()] == [(), None]


def test_a_node_that_is_a_file_has_nothing(tree: MachineTree) -> None:
    tree.write(f"{NODES}/node0", "")
    assert tree.nodes() == (Node(node_id=0),)


def test_entries_that_do_not_end_in_a_digit_are_no_nodes(tree: MachineTree) -> None:
    tree.node(0)
    for name in ("online", "possible", "has_cpu", "node1x", "Node2", "nodes", "node"):
        tree.write(f"{NODES}/{name}", "0\n")
    assert [node.node_id for node in tree.nodes()] == [0]


def test_the_id_of_a_node_is_what_follows_its_name_at_once(tree: MachineTree) -> None:
    tree.write(f"{NODES}/node07x1/distance", "10")
    assert tree.nodes() == (Node(node_id=7, distances=(10,)),)


def test_an_entry_like_a_node_without_an_id_costs_the_topology(tree: MachineTree) -> None:
    tree.write(f"{NODES}/nodefoo1/distance", "10")
    assert tree.complaint() == 'strconv.Atoi: parsing "": invalid syntax'


def test_distances_keep_the_order_of_the_file(tree: MachineTree) -> None:
    tree.node(0)
    tree.write(f"{NODES}/node0/distance", " 10 21 17 28\n")
    assert tree.nodes()[0].distances == (10, 21, 17, 28)


@pytest.mark.parametrize(
    ("text", "shown"), [("", ""), ("10  20", ""), ("10\t20", "10\t20"), ("10 -1", "-1")]
)
def test_distances_that_are_no_numbers_cost_the_topology(
    tree: MachineTree, text: str, shown: str
) -> None:
    tree.node(0)
    tree.write(f"{NODES}/node0/distance", text)
    assert tree.complaint() == f"cannot convert {shown} to int"


def test_bytes_that_are_not_utf8_are_replaced_in_messages(tree: MachineTree) -> None:
    tree.node(0)
    tree.write(f"{NODES}/node0/distance", b"1\xe2\x82")
    assert tree.complaint() == "cannot convert 1\ufffd\ufffd to int"


def test_without_nodes_packages_stand_for_them(tree: MachineTree) -> None:
    tree.cpu(0, core=0, package=36)
    tree.cpu(1, core=0, package=-1)
    tree.cpu(2, core=1, package=36)
    minus_one, thirty_six = tree.nodes()
    assert (minus_one.node_id, thirty_six.node_id) == (-1, 36)
    assert [core.thread_ids for core in thirty_six.cores or ()] == [(0,), (2,)]
    assert (minus_one.memory, minus_one.hugepages, minus_one.distances) == (0, None, None)


def test_without_nodes_offline_cpus_are_counted_and_are_in_no_core(tree: MachineTree) -> None:
    tree.cpu(0, package=0)
    tree.cpu(1, package=1)
    tree.write("sys/devices/system/cpu/online", "0\n")
    machine = tree.discover()
    assert machine.num_cores == 2
    assert [[core.thread_ids for core in node.cores or ()] for node in tree.nodes()] == [[(0,)], []]


def test_without_nodes_a_cpu_without_package_is_counted_only(tree: MachineTree) -> None:
    tree.cpu(0)
    tree.cpu(1)
    tree.remove("sys/devices/system/cpu/cpu1/topology/physical_package_id")
    assert tree.discover().num_cores == 2
    assert [core.thread_ids for core in tree.cores()] == [(0,)]


def test_cpus_without_any_package_leave_a_count_and_no_topology(tree: MachineTree) -> None:
    for cpu in range(2):
        tree.write(f"sys/devices/system/cpu/cpu{cpu}/online", "1")
    machine = tree.discover()
    assert (machine.num_cores, machine.topology) == (2, None)


def test_without_nodes_a_package_that_is_no_number_costs_the_topology(tree: MachineTree) -> None:
    tree.cpu(0, package="x")
    assert tree.complaint() == 'strconv.Atoi: parsing "x": invalid syntax'
