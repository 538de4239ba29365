"""Answers about a node: as text, as a page, as a drawing."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from rich.text import Text

from numaproof.protocol.events import Owner
from numaproof.protocol.machine import MachineInfo, Node
from numaproof.reports import answer_page, answer_text
from numaproof.reports.answers import (
    AnswerReport,
    ContainerRow,
    Item,
    ShapedAnswer,
    Story,
    StoryStep,
)
from numaproof.reports.drawing import draw_svg, draw_text
from numaproof.reports.layout import DrawnDevice, DrawnMemory, Stock
from numaproof.reports.terminal import as_plain

if TYPE_CHECKING:
    import pytest

    from conftest import MakeMachine

GIB = 1 << 30
EVIL = '<script>alert(1)</script>"\u202e'

STOCK = Stock(
    (
        DrawnMemory(0, "memory", 4 * GIB, GIB // 10, GIB),
        DrawnMemory(0, "hugepages-1Gi", 2 * GIB, 0, 0),
        DrawnMemory(1, "memory", 4 * GIB, 0, 2 * GIB, "0-1"),
    ),
    (
        DrawnDevice("v.example/nic", "eth0", (0,), owner="db/main"),
        DrawnDevice("v.example/nic", "eth1", (0,), healthy=False),
        DrawnDevice("v.example/gpu", "gpu0", (0, 1)),
        DrawnDevice("v.example/gpu", "gpu1"),
    ),
)
OWNERS = (Owner("db/main", "2-3"), Owner("web/app", ""), Owner("reserved", "0"))


def answer(machine: MachineInfo, text: str = "no node can give 4 CPUs") -> AnswerReport:
    items = (Item("bad", "node 0", text), Item("fair", "nodes 0-1", "5 CPUs free"))
    story = Story(
        text, False, text, text, (StoryStep(text, items, 3), StoryStep("merged")), (text,)
    )
    rows = (
        ContainerRow(text, "main", "2-3", "1 GiB", "eth0", "node 0"),
        ContainerRow("web", refusal=text),
    )
    return AnswerReport(
        text, False, (("machine", text),), rows, (story,), machine, OWNERS, "0", STOCK
    )


def test_nodes_are_drawn_with_their_memory_and_devices(make_machine: MakeMachine) -> None:
    lines = draw_text(make_machine(2, 1, 2, 1), OWNERS, "0-1", stock=STOCK, width=100).split("\n")
    assert lines[2:6] == [
        "│ └ Node 0 · 1 GiB",
        "│     memory        [#=====..............] 1 GiB of 4 GiB allocated, 102.4 MiB reserved",
        "│     hugepages-1Gi [....................] 0 B of 2 GiB allocated",
        "│     v.example/nic  eth0 A  eth1 unhealthy",
    ]
    assert "      memory [==========..........] 2 GiB of 4 GiB allocated, with nodes 0-1" in lines
    assert "  v.example/gpu (not on a single node)  gpu0  gpu1" in lines
    assert " B  web/app" in lines


def test_nodes_with_one_core_each_have_room_for_what_they_have(make_machine: MakeMachine) -> None:
    stock = Stock((DrawnMemory(0, "memory", GIB, 0, 1),))
    lines = draw_text(make_machine(1, 2, 1, 2), stock=stock).split("\n")
    assert "      memory [=...................] 1 B of 1 GiB allocated" in [
        line.replace("│", " ") for line in lines
    ]


def test_nodes_without_cpus_are_listed_one_by_one_if_something_is_on_them(
    make_machine: MakeMachine,
) -> None:
    machine = make_machine(1, 1, 2, 1)
    machine = MachineInfo(
        num_cores=2,
        num_physical_cores=2,
        num_sockets=1,
        memory_capacity=GIB,
        topology=(*(machine.topology or ()), Node(1, GIB), Node(2, GIB), Node(3, GIB)),
    )
    text = draw_text(machine, stock=Stock((DrawnMemory(2, "memory", GIB, 0, GIB),)))
    assert "Node 2 · 1 GiB" in text
    assert "[====================] 1 GiB of 1 GiB allocated" in text


def test_many_devices_are_in_several_lines(make_machine: MakeMachine) -> None:
    stock = Stock((), tuple(DrawnDevice("v.example/nic", f"device-{n}", (0,)) for n in range(20)))
    lines = draw_text(make_machine(1, 1, 2, 1), stock=stock, width=60).split("\n")
    assert max(map(len, lines)) <= 60
    assert sum(line.count("device-") for line in lines) == 20
    assert "device-19" in draw_svg(make_machine(1, 1, 2, 1), stock=stock)


def test_bars_are_shorter_where_there_is_little_room(make_machine: MakeMachine) -> None:
    text = draw_text(make_machine(2, 1, 2, 1), OWNERS, "0-1", stock=STOCK, width=80)
    assert "memory        [#===.........] 1 GiB of 4 GiB allocated, 102.4 MiB reserved" in text
    assert max(map(len, text.split("\n"))) <= 80


def test_the_drawing_names_what_each_thing_is_in_a_title(make_machine: MakeMachine) -> None:
    drawing = ET.XML(draw_svg(make_machine(2, 1, 2, 1), OWNERS, "0-1", stock=STOCK))
    titles = [one.text for one in drawing.iter("{http://www.w3.org/2000/svg}title")]
    assert "memory: 1 GiB of 4 GiB allocated, 102.4 MiB reserved" in titles
    assert "v.example/nic eth0, near node 0: db/main" in titles
    assert "v.example/nic eth1, near node 0: unhealthy" in titles
    assert "v.example/gpu (not on a single node) gpu0, near node 0, 1: free" in titles
    assert "v.example/gpu (not on a single node) gpu1, near no node: free" in titles


def test_an_answer_is_written_as_text(make_machine: MakeMachine) -> None:
    parts = answer_text.parts(answer(make_machine(2, 1, 2, 1)), width=100, color=False)
    text = "\n".join(map(as_plain, parts))
    assert "✗ no node can give 4 CPUs\nmachine no node can give 4 CPUs\n" in text
    assert "     ✗ node 0     no node can give 4 CPUs\n     ~ nodes 0-1  5 CPUs free\n" in text
    assert "     …            3 more sets of nodes\n  2. merged\n" in text
    assert "  Hint: no node can give 4 CPUs." in text


def test_nothing_is_cut_where_no_terminal_limits_the_width(
    make_machine: MakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    long = "not enough CPUs of one node are free for this pod " * 5
    shaped = ShapedAnswer(long, "shaped", (("answer", long, "admitted"),), ())
    told = replace(answer(make_machine(2, 1, 2, 1), long), shaped=(shaped,))
    text = "\n".join(map(as_plain, answer_text.parts(told, width=100, color=False)))
    assert text.count(long.strip()) == 11
    assert "…" not in text.replace("…            3 more sets", "")


def test_a_coloured_answer_has_the_same_words(make_machine: MakeMachine) -> None:
    told = answer(make_machine(2, 1, 2, 1))
    plain = list(answer_text.parts(told, width=100, color=False))
    coloured = list(answer_text.parts(told, width=100, color=True))
    assert [as_plain(one) for one in plain] == [as_plain(one) for one in coloured]
    assert isinstance(coloured[2], Text)
    assert coloured[2].spans


def test_nothing_in_an_answer_becomes_markup(make_machine: MakeMachine) -> None:
    page = answer_page.html(answer(make_machine(2, 1, 2, 1), EVIL))
    assert "<script" not in page
    assert "\u202e" not in page
    ET.XML(answer_page.svg(answer(make_machine(2, 1, 2, 1), EVIL)))


def test_the_page_lets_only_its_own_style_in(make_machine: MakeMachine) -> None:
    page = answer_page.html(answer(make_machine(2, 1, 2, 1)))
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy == [
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    ]
    assert " style=" not in page


def test_marks_on_the_page_have_words_for_those_who_do_not_see_them(
    make_machine: MakeMachine,
) -> None:
    page = answer_page.html(answer(make_machine(2, 1, 2, 1)))
    assert '<span class="mark bad" aria-hidden="true">✗</span><span class="sr">impossible' in page
    assert '<html lang="en">' in page
