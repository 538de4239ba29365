from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from rich.text import Text

from numaproof.protocol.events import Owner
from numaproof.protocol.machine import Core, MachineInfo, Node, UncoreCache
from numaproof.reports.drawing import draw_svg, draw_text

if TYPE_CHECKING:
    from conftest import MakeMachine


SVG = "{http://www.w3.org/2000/svg}"


def titles(svg: str) -> list[str]:
    return [title.text or "" for title in ET.XML(svg).iter(f"{SVG}title")]


def memory_only(node: int, memory: int = 0) -> Node:
    return Node(node, memory)


def test_a_machine_is_drawn_as_a_tree_of_sockets_nodes_and_cores(make_machine: MakeMachine) -> None:
    assert draw_text(make_machine(2, 1, 2, 2)).split("\n") == [
        "Machine · 2 sockets, 2 NUMA nodes, 4 cores, 8 CPUs",
        "├ Socket 0 · 2 cores, 4 CPUs",
        "│ └ Node 0 · 1 GiB",
        "│      0 4│ 1 5",
        "└ Socket 1 · 2 cores, 4 CPUs",
        "  └ Node 1 · 1 GiB",
        "       2 6│ 3 7",
    ]


def test_nodes_are_drawn_by_their_numbers_though_the_kubelet_lists_them_by_name() -> None:
    nodes = [Node(node, 1 << 30, cores=(Core(0, (node,), 0),)) for node in (10, 2)]
    drawn = re.findall("Node ([0-9]+)", draw_text(MachineInfo(topology=tuple(nodes))))
    assert drawn == ["2", "10"]


def test_every_owner_has_a_letter_and_a_line_in_the_legend(make_machine: MakeMachine) -> None:
    owners = (Owner("reserved", "0"), Owner("web/app", "1-2"), Owner("db/main", "3"))
    text = draw_text(make_machine(1, 1, 8, 1), owners, "0,4-6")
    assert "0#│ 1A│ 2A│ 3B│ 4·│ 5·│ 6·│ 7-" in text
    assert " A  web/app                  1-2" in text
    assert " B  db/main                  3" in text
    assert " #  reserved for the system  0" in text
    assert " -  no owner                 7" in text


def test_a_cpu_with_two_owners_differs_from_all_others(make_machine: MakeMachine) -> None:
    owners = (Owner("web/app", "0-1"), Owner("db/main", "1"), Owner("reserved", "2"))
    machine = make_machine(1, 1, 4, 1)
    text = draw_text(machine, owners, "0,2-3")
    assert "0!│ 1!│ 2#│ 3·" in text
    assert "!  more than one owner      0-1" in text
    assert "CPU 1, core 1: web/app and db/main" in titles(draw_svg(machine, owners, "0,2-3"))


def test_owned_cpus_that_the_topology_lacks_are_drawn_apart(make_machine: MakeMachine) -> None:
    owners = (Owner("offline", "9"), Owner("web/app", "1"))
    machine = make_machine(1, 1, 2, 1)
    text = draw_text(machine, owners, "0")
    assert "└ Not in the topology" in text
    assert "9x" in text
    assert "CPU 9: offline" in titles(draw_svg(machine, owners, "0"))


def test_caches_have_their_cores_beside_them(make_machine: MakeMachine) -> None:
    text = draw_text(make_machine(1, 1, 4, 1, cores_per_cache=2))
    assert re.search(r"L3 #0 16 MiB +0│ 1\n", text)
    assert re.search(r"L3 #1 16 MiB +2│ 3", text)


def test_a_node_with_one_cache_names_it_in_its_heading(make_machine: MakeMachine) -> None:
    assert "Node 0 · 1 GiB · L3 #0 16 MiB" in draw_text(make_machine(1, 1, 4, 1, cores_per_cache=4))


def test_a_cache_of_the_whole_node_is_named_too() -> None:
    node = Node(0, 1 << 30, cores=(Core(0, (0,), 0),), caches=(UncoreCache(0, 0, "Unified", 3),))
    assert "Node 0 · 1 GiB · L3" in draw_text(MachineInfo(1, 1, 1, 1 << 30, None, (node,)))


def test_cores_without_a_cache_have_a_group_of_their_own() -> None:
    cores = (Core(0, (0,), 0, (UncoreCache(5),)), Core(1, (1,), 0))
    text = draw_text(MachineInfo(2, 2, 1, 0, None, (Node(0, 0, cores=cores),)))
    assert "no cache" in text
    assert "cache #5" in text


def test_nodes_that_span_sockets_are_drawn_around_them() -> None:
    cores = tuple(Core(0, (cpu,), cpu) for cpu in range(3))
    machine = MachineInfo(3, 1, 3, 1 << 30, None, (Node(0, 1 << 30, cores=cores),))
    assert draw_text(machine).split("\n")[1:] == [
        "└ Node 0 · 1 GiB",
        "  ├ Socket 0     0",
        "  ├ Socket 1     1",
        "  └ Socket 2     2",
    ]


def test_alike_memory_only_nodes_are_one_line_of_text_and_boxes_of_their_own_in_svg(
    make_machine: MakeMachine,
) -> None:
    small = make_machine(1, 1, 2, 1)
    topology = (*(small.topology or ()), *map(memory_only, range(2, 34)), memory_only(40, 1 << 35))
    machine = MachineInfo(2, 2, 1, 0, None, topology)
    text = draw_text(machine)
    assert "├ Nodes 2-33 · no memory · no CPUs each" in text
    assert "└ Node 40 · 32 GiB · no CPUs" in text
    assert "34 NUMA nodes" in text
    labels = [one.text for one in ET.XML(draw_svg(machine)).iter(f"{SVG}text")]
    assert "Node 33 · no memory · no CPUs" in labels


def test_a_machine_without_topology_is_drawn_as_such() -> None:
    assert draw_text(MachineInfo()) == "Machine · 0 sockets, 0 NUMA nodes, 0 cores, 0 CPUs"
    ET.XML(draw_svg(MachineInfo()))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_text_keeps_to_its_width(make_machine: MakeMachine, width: int) -> None:
    machine = make_machine(2, 4, 16, 2, cores_per_cache=4)
    text = draw_text(machine, (Owner("web/app", "0-200"),), "201-255", width=width)
    assert max(map(len, text.split("\n")[1:])) <= width
    for cpu in range(256):
        assert re.search(rf"(?<!\d){cpu}[A·]", text)


def test_coloured_text_says_the_same_as_plain_text(make_machine: MakeMachine) -> None:
    arguments = (make_machine(2, 2, 2, 2), (Owner("a[red]b\\", "1"), Owner("reserved", "0")), "2-9")
    marked = draw_text(*arguments, color=True)
    assert Text.from_markup(marked).plain == draw_text(*arguments)
    assert "[bold" in marked


@pytest.mark.parametrize(
    ("sockets", "nodes", "cores", "threads"),
    [(1, 1, 1, 1), (1, 1, 1, 8), (2, 4, 16, 2), (8, 1, 32, 1), (1, 34, 2, 2)],
)
def test_every_cpu_is_drawn_once_and_inside_the_picture(
    make_machine: MakeMachine, sockets: int, nodes: int, cores: int, threads: int
) -> None:
    machine = make_machine(sockets, nodes, cores, threads)
    svg = draw_svg(machine, (Owner("web/app", "0"),), f"1-{machine.num_cores}")
    root = ET.XML(svg)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for box in root.iter(f"{SVG}rect"):
        assert float(box.get("x", 0)) + float(box.get("width", 0)) <= width + 1
        assert float(box.get("y", 0)) + float(box.get("height", 0)) <= height + 1
    drawn = [int(found[1]) for one in titles(svg) if (found := re.match(r"CPU (\d+), core", one))]
    assert sorted(drawn) == list(range(machine.num_cores))


def test_boxes_of_cores_do_not_overlap(make_machine: MakeMachine) -> None:
    root = ET.XML(draw_svg(make_machine(2, 2, 12, 2, cores_per_cache=3)))
    cores = [
        tuple(int(float(box.get(name, 0))) for name in ("x", "y", "width", "height"))
        for box in root.iter(f"{SVG}rect")
        if box.get("rx") == "3"
    ]
    assert len(cores) == 48
    for index, (x, y, wide, high) in enumerate(cores):
        for other_x, other_y, *_ in cores[index + 1 :]:
            assert not (x <= other_x < x + wide and y <= other_y < y + high)


def test_owners_are_distinguishable_without_colour_in_svg(make_machine: MakeMachine) -> None:
    owners = (
        Owner("reserved", "0"),
        Owner("web/app", "1"),
        Owner("offline", "2"),
        Owner("db/main", "3"),
        Owner("db/other", "3"),
    )
    svg = draw_svg(make_machine(1, 1, 6, 1), owners, "4")
    marks = {
        (text.text, "".join(part.text or "" for part in text))
        for text in ET.XML(svg).iter(f"{SVG}text")
    }
    assert {("0", "#"), ("1", "A"), ("2", "x"), ("3", "!"), ("4", ""), ("5", "-")} <= marks


def test_names_of_owners_are_escaped_in_svg_and_hidden_characters_shown(
    make_machine: MakeMachine,
) -> None:
    svg = draw_svg(make_machine(1, 1, 2, 1), (Owner("</svg><script>\u202e", "0"),), "1")
    assert "<script" not in svg
    assert "⟨U+202E⟩" in svg
    ET.XML(svg)


def test_an_unreadable_cpu_set_is_drawn_as_nobodys(make_machine: MakeMachine) -> None:
    assert "0-│ 1·" in draw_text(make_machine(1, 1, 2, 1), (Owner("a", "zero"),), "1")


def test_more_containers_than_letters_still_have_one_each(make_machine: MakeMachine) -> None:
    machine = make_machine(1, 1, 60, 1)
    owners = tuple(Owner(f"pod{number}/app", str(number)) for number in range(60))
    assert re.search(r" 0A│.* 51z│\s* 52A", draw_text(machine, owners, width=600))


def test_huge_pages_and_distances_are_in_the_tooltip_of_a_node(make_machine: MakeMachine) -> None:
    found = titles(draw_svg(make_machine(2, 1, 1, 1)))
    assert "4 huge pages of 2 MiB; distances 10 21" in found
