from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from rich.text import Text

from builders.drawing_data import GIB, OWNERS, STOCK
from numaproof.protocol.events import Owner
from numaproof.protocol.machine import Core, MachineInfo, Node, UncoreCache
from numaproof.reports.drawing import draw_svg, draw_text
from numaproof.reports.layout import DrawnDevice, DrawnMemory, Stock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Compare, MakeMachine


SVG = "{http://www.w3.org/2000/svg}"


def titles(svg: str) -> list[str]:
    return [title.text or "" for title in ET.XML(svg).iter(f"{SVG}title")]


DRAWN = "drawings.txt"


def drawings(make_machine: MakeMachine) -> Iterator[tuple[str, str]]:
    """Returns drawings as text, each below its description."""
    own = make_machine(1, 1, 8, 1)
    owners = (Owner("reserved", "0"), Owner("web/app", "1-2"), Owner("db/main", "2-3"))
    yield "sockets, nodes and cores", draw_text(make_machine(2, 1, 2, 2))
    yield "owners, one CPU of two, and no owner", draw_text(own, owners, "0,4-6")
    lost = (Owner("offline", "9"), Owner("web/app", "1"), Owner("odd", "zero"))
    yield "owned CPUs that the topology lacks", draw_text(make_machine(1, 1, 2, 1), lost, "0")
    yield "caches beside their cores", draw_text(make_machine(1, 1, 4, 1, cores_per_cache=2))
    yield "one cache in the heading", draw_text(make_machine(1, 1, 4, 1, cores_per_cache=4))
    whole = Node(0, 1 << 30, cores=(Core(0, (0,), 0),), caches=(UncoreCache(0, 0, "Unified", 3),))
    yield "a cache of the whole node", draw_text(MachineInfo(1, 1, 1, 1 << 30, None, (whole,)))
    cores = (Core(0, (0,), 0, (UncoreCache(5),)), Core(1, (1,), 0))
    bare = MachineInfo(2, 2, 1, 0, None, (Node(0, 0, cores=cores),))
    yield "cores without a cache", draw_text(bare)
    spanning = tuple(Core(0, (cpu,), cpu) for cpu in range(3))
    wide = MachineInfo(3, 1, 3, 1 << 30, None, (Node(0, 1 << 30, cores=spanning),))
    yield "a node that spans sockets", draw_text(wide)
    by_name = tuple(Node(node, 1 << 30, cores=(Core(0, (node,), 0),)) for node in (10, 2))
    yield "nodes by their numbers", draw_text(MachineInfo(topology=by_name))
    alike = (Node(0, 1 << 30), *(Node(node, 0) for node in range(2, 34)), Node(40, 1 << 35))
    yield "nodes alike, without CPUs", draw_text(MachineInfo(topology=alike))
    yield "no topology", draw_text(MachineInfo())
    many = tuple(Owner(f"pod{number}/app", str(number)) for number in range(54))
    letters = draw_text(make_machine(1, 1, 54, 1), many, width=600).split("\n")[:4]
    yield "more containers than letters", "\n".join(letters)
    stocked = draw_text(make_machine(2, 1, 2, 1), OWNERS, "0-1", stock=STOCK, width=100)
    yield "memory and devices", stocked
    narrow = draw_text(make_machine(2, 1, 2, 1), OWNERS, "0-1", stock=STOCK, width=80)
    yield "memory and devices, narrow", narrow
    one = Stock((DrawnMemory(0, "memory", GIB, 0, 1),))
    yield "memory of nodes with a core each", draw_text(make_machine(1, 2, 1, 1), stock=one)
    there = Stock((DrawnMemory(1, "memory", GIB, 0, GIB),))
    nodes = (*(make_machine(1, 1, 2, 1).topology or ()), Node(1, GIB), Node(2, GIB), Node(3, GIB))
    yield "memory of a node without CPUs", draw_text(MachineInfo(topology=nodes), stock=there)
    nics = tuple(DrawnDevice("v.example/nic", f"device-{n}", (0,)) for n in range(20))
    devices = draw_text(make_machine(1, 1, 2, 1), stock=Stock((), nics), width=60)
    yield "many devices", devices
    picture = draw_svg(make_machine(2, 1, 2, 1), OWNERS, "0-1", stock=STOCK)
    yield "titles in a picture", "\n".join(titles(picture))


def test_drawings_match_their_page(make_machine: MakeMachine, compare: Compare) -> None:
    parts = (f"{title}\n\n{text}\n" for title, text in drawings(make_machine))
    compare(DRAWN, "\n\n".join(line for line in parts))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_text_drawings_respect_the_width(make_machine: MakeMachine, width: int) -> None:
    machine = make_machine(2, 4, 16, 2, cores_per_cache=4)
    text = draw_text(machine, (Owner("web/app", "0-200"),), "201-255", width=width)
    assert max(map(len, text.split("\n")[1:])) <= width
    for cpu in range(256):
        assert re.search(rf"(?<!\d){cpu}[A·]", text)


def test_coloured_and_plain_text_are_equal(make_machine: MakeMachine) -> None:
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


def test_owner_names_are_escaped_in_svg(
    make_machine: MakeMachine,
) -> None:
    svg = draw_svg(make_machine(1, 1, 2, 1), (Owner("</svg><script>\u202e", "0"),), "1")
    assert "<script" not in svg
    assert "⟨U+202E⟩" in svg
    ET.XML(svg)
