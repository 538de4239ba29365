"""Answers about a node as text, as a page and as a drawing."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from builders.drawing_data import OWNERS, STOCK
from numaproof.protocol.events import Owner
from numaproof.reports import answers
from numaproof.reports.answers import (
    AnswerReport,
    ContainerRow,
    Item,
    ShapedAnswer,
    Story,
    StoryStep,
)
from numaproof.reports.console import as_plain

if TYPE_CHECKING:
    import pytest

    from conftest import MakeMachine
    from numaproof.protocol.machine import MachineInfo

EVIL = '<script>alert(1)</script>"\u202e'


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


def test_an_answer_is_written_as_text(make_machine: MakeMachine) -> None:
    parts = answers.parts(answer(make_machine(2, 1, 2, 1)), 100)
    text = "\n".join(map(as_plain, parts))
    assert "✗ no node can give 4 CPUs\nmachine no node can give 4 CPUs\n" in text
    assert "     ✗ node 0     no node can give 4 CPUs\n     ~ nodes 0-1  5 CPUs free\n" in text
    assert "     …            3 more sets of nodes\n  2. merged\n" in text
    assert "  Hint: no node can give 4 CPUs." in text


def test_nothing_is_truncated_without_a_terminal(
    make_machine: MakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    long = "not enough CPUs of one node are free for this pod " * 5
    shaped = ShapedAnswer(long, "shaped", (("answer", long, "admitted"),), ())
    told = replace(answer(make_machine(2, 1, 2, 1), long), shaped_answers=(shaped,))
    text = "\n".join(map(as_plain, answers.parts(told, 100)))
    assert text.count(long.strip()) == 11
    assert "…" not in text.replace("…            3 more sets", "")


def test_answers_are_escaped(make_machine: MakeMachine) -> None:
    page = answers.html(answer(make_machine(2, 1, 2, 1), EVIL))
    assert "<script" not in page
    assert "\u202e" not in page
    ET.XML(answers.svg(answer(make_machine(2, 1, 2, 1), EVIL)))


def test_the_head_of_a_page_names_refused_pods_and_reasons(make_machine: MakeMachine) -> None:
    one = answer(make_machine(2, 1, 2, 1))
    story = replace(one.stories[0], pod="web", summary="6 CPUs of 4")
    page = answers.html(replace(one, stories=(story,) * 5))
    head = page.partition("<header")[2].partition("</header>")[0]
    assert head.count('<a href="#why/web">web</a>: 6 CPUs of 4</p>') == 3
    assert "2 more reasons" in head


def test_the_page_only_allows_its_own_style(make_machine: MakeMachine) -> None:
    page = answers.html(answer(make_machine(2, 1, 2, 1)))
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy == [
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    ]
    assert " style=" not in page


def test_a_page_folds_long_lists_and_fits_a_narrow_screen(make_machine: MakeMachine) -> None:
    machine = make_machine(2, 1, 8, 2)
    one = answer(machine)
    assert "<details>" not in answers.html(one)
    rows = tuple(ContainerRow(f"pod{n}", "main", str(n)) for n in range(21))
    lines = tuple(map(str, range(21)))
    sections = (answers.Section("Who holds what", "good", lines),)
    page = answers.html(replace(one, rows=rows, sections=sections, inputs=("read 3 settings",)))
    folded = re.findall(r"<summary>([^<]*)</summary>", page)
    assert folded == ["21 rows", "21 lines", "What was read"]
    wide, narrow = (int(width) for width in re.findall(r'<svg [^>]*width="(\d+)"', page))
    assert narrow <= 380 < wide


def test_containers_keep_their_letters_after_a_what_if(make_machine: MakeMachine) -> None:
    machine = make_machine(1, 1, 4, 1)
    before = (Owner("web/app", "1"), Owner("db/main", "2"))
    later = replace(answer(machine), owners=before[1:], title="Without web")
    whole = replace(answer(machine), owners=before, what_ifs=(later,))
    text = "\n".join(map(as_plain, answers.parts(whole, 100)))
    assert "0·│ 1A│ 2B│ 3-" in text
    assert "0·│ 1-│ 2B│ 3-" in text
    assert "Without web" in answers.svg(whole)


def test_what_ifs_draw_only_what_changes(make_machine: MakeMachine) -> None:
    machine = make_machine(2, 1, 2, 1)
    owner = Owner("db/main", "0")
    first = AnswerReport("first", True, (), (), (), machine, (owner,), "1-3")
    less = replace(first, title="less", owners=(), shared="0-3")
    same = replace(less, title="same")
    whole = replace(first, what_ifs=(less, same))
    text = "\n".join(map(as_plain, answers.parts(whole, 100)))
    assert text.count("Machine · ") == 2
    assert text.count("· as before") == 1
    assert answers.html(whole).count('<figure class="picture"') == 2


def test_titles_name_the_release_and_the_policies(make_machine: MakeMachine) -> None:
    setting = (("machine", "m"), ("Kubernetes", "1.37"), ("CPU Manager", "static"))
    report = AnswerReport("1 pod admitted", True, setting, (), (), make_machine(1, 1, 2, 1))
    said = "Kubernetes 1.37 · CPU Manager static"
    assert f"<title>1 pod admitted · machine m · {said} · " in answers.html(report)
    assert f"<title>m · 1 pod admitted · {said} · " in answers.svg(report)
    assert f">{said}</text>" in answers.svg(report)


def test_a_refused_pod_links_to_its_reason(make_machine: MakeMachine) -> None:
    page = answers.html(answer(make_machine(2, 1, 2, 1), "too big"))
    ((link, _),) = set(re.findall(r'href="#([^"]*)">(too big)</a>', page))
    assert f'<article class="story bad" id="{link}">' in page
    assert link.startswith("why/")
    assert 'id="pod/web"' in page
