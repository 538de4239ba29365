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
from numaproof.reports.drawing_text import drawn_text
from numaproof.reports.layout import CacheGroup, DrawnDevice, DrawnMemory, Stock, numbering

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
    l1, l2 = UncoreCache(0, 32 << 10, "Data", 1), UncoreCache(0, 1 << 20, "Unified", 2)
    mixed = tuple(Core(n, (n,), 0, None, (l1, l2) if n < 2 else (l1,)) for n in range(6))
    hybrid = MachineInfo(topology=(Node(0, GIB, cores=mixed),))
    yield "performance and efficient cores", draw_text(hybrid)
    caches = (*(CacheGroup("L2 1 MiB", frozenset({n})) for n in (0, 1)),)
    shared = CacheGroup("L2 2 MiB", frozenset(range(2, 6)))
    yield "cores by level 2 cache", drawn_text(hybrid, caches=(*caches, shared)).plain
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


def frames(svg: str, label: str) -> list[tuple[int, int]]:
    """Returns the positions of labels that begin with a text."""
    return [
        (int(text.get("x", 0)), int(text.get("y", 0)))
        for text in ET.XML(svg).iter(f"{SVG}text")
        if (text.text or "").startswith(label)
    ]


def test_sockets_are_side_by_side_if_there_is_room(make_machine: MakeMachine) -> None:
    machine = make_machine(2, 1, 20, 2)
    (left, top), (right, same) = frames(draw_svg(machine), "Socket")
    assert left < right
    assert top == same
    (left, top), (right, below) = frames(draw_svg(machine, widest=340), "Socket")
    assert left == right
    assert top < below


def test_empty_nodes_are_folded_in_svg() -> None:
    core = Core(0, (0,), 0)
    nodes = (Node(0, GIB, cores=(core,)), *(Node(node, 0) for node in range(2, 34)))
    svg = draw_svg(MachineInfo(topology=nodes))
    assert len(frames(svg, "Nodes 2-33 · no memory · no CPUs each")) == 1
    assert len(frames(svg, "Node ")) == 1


def test_containers_keep_their_letters_in_a_series(make_machine: MakeMachine) -> None:
    before = (Owner("reserved", "0"), Owner("web/app", "1"), Owner("db/main", "2"))
    after = (Owner("db/main", "2"), Owner("job/run", "3"))
    numbers = numbering([before, after])
    assert numbers == {"web/app": 0, "db/main": 1, "job/run": 2}
    drawn = draw_text(make_machine(1, 1, 4, 1), after, "0-1", numbers=numbers)
    assert "0·│ 1·│ 2B│ 3C" in drawn


def test_containers_of_equal_colour_differ_by_bars(make_machine: MakeMachine) -> None:
    owners = [Owner(f"pod{number}/app", str(number)) for number in range(32)]
    root = ET.XML(draw_svg(make_machine(1, 1, 32, 1), owners))
    looks = [
        tuple((box.get("fill"), box.get("height"), float(box.get("y", 0)) - top) for box in boxes)
        for group in root.iter(f"{SVG}g")
        if (group.findtext(f"{SVG}title") or "").startswith("CPU ")
        for boxes in [group.findall(f"{SVG}rect")]
        for top in [float(boxes[0].get("y", 0))]
    ]
    assert len(looks) == len(set(looks)) == 32
    plain = draw_text(make_machine(1, 1, 32, 1), owners, color=True)
    assert "underline" in plain


def test_a_title_adds_a_margin_and_totals(make_machine: MakeMachine) -> None:
    svg = draw_svg(make_machine(1, 1, 2, 1), title="node7 <new>")
    assert frames(svg, "node7 <new>") == [(16, 28)]
    assert frames(svg, "1 socket, 1 NUMA node, 2 cores, 2 CPUs, 1 GiB") == [(16, 46)]
