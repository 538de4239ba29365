from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from numaproof.protocol.messages import Hello, Options, Policies
from numaproof.reports.html import html
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    import pytest

    from conftest import MakeDivergence, MakeMachine, MakeRun, MakeStream
    from numaproof.protocol.events import AnyEvent


EVIL = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    '" onmouseover="alert(3)" \'><svg onload=alert(4)>\u202egnp.exe\x1b[31m'
)


class Page(HTMLParser):
    """Collects the elements of a page: tags with attributes, and the text in some of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._inside = ""

    def handle_data(self, data: str) -> None:
        {"script": self.scripts, "style": self.styles}.get(self._inside, self.words).append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def having(self, name: str) -> list[str]:
        return [value or "" for _, attributes in self.tags if (value := attributes.get(name, ""))]


def page(events: list[AnyEvent]) -> Page:
    return Page(html(summarize(events)))


def hello(**changes: str) -> Hello:
    fields = {"name": "kubelet", "version": "1.35.4", "language": "Go"} | changes
    return Hello(
        protocol=1,
        kubernetes=("1.35",),
        level="kubelet",
        operations=(),
        policies=Policies(),
        options=Options(),
        **fields,
    )


def test_text_from_an_implementation_is_escaped(
    stream: MakeStream, story: MakeRun, run: MakeRun, divergence: MakeDivergence
) -> None:
    for events in (
        stream(
            story(EVIL, case=EVIL, title=EVIL, machine=EVIL, stderr=EVIL, reproduce=EVIL),
            run("expected failure", defect=EVIL),
            start={"implementation": hello(name=EVIL, homepage=EVIL), "command": EVIL},
            untested_requirements=(EVIL,),
        ),
        stream(run("fail", message=EVIL), complete=False, message=EVIL),
        stream(divergence(title=EVIL, message=EVIL, file=EVIL), start={"kind": "fuzz"}),
    ):
        found = page(events)
        assert len(found.scripts) == 1
        assert not {"iframe", "object", "embed", "base"} & {tag for tag, _ in found.tags}
        names = {name for _, attributes in found.tags for name in attributes}
        assert not {name for name in names if name.startswith("on") or name == "style"}
        assert "\u202e" not in found.text
        assert "\x1b" not in found.text
        assert "⟨U+202E⟩" in found.text


def test_only_web_addresses_become_links(stream: MakeStream, run: MakeRun) -> None:
    good = hello(homepage="https://example.org/", issues="javascript:alert(1)")
    found = page(stream(run(), start={"implementation": good}))
    assert [one for one in found.having("href") if one[0] not in "#?"] == ["https://example.org/"]
    assert found.having("rel") == ["noopener noreferrer nofollow"]


def test_the_policy_only_allows_the_pages_style_and_script(
    stream: MakeStream, run: MakeRun
) -> None:
    found = page(stream(run()))
    policy = next(
        attributes["content"] or ""
        for tag, attributes in found.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for text in (*found.scripts, *found.styles):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_a_fault_names_the_call(stream: MakeStream, story: MakeRun) -> None:
    assert "fault at admit: boom" in html(summarize(stream(story("boom", outcome="fault"))))


def test_the_page_loads_nothing(stream: MakeStream, story: MakeRun) -> None:
    found = page(stream(story()))
    assert found.having("src")
    assert all(one.startswith("data:image/svg+xml,") for one in found.having("src"))
    assert "link" not in {tag for tag, _ in found.tags}
    assert not re.search(r"@import|url\(", "".join(found.styles))


def test_failures_beyond_the_limit_get_one_line(
    stream: MakeStream, story: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numaproof.reports.failure_cards.ROOM", 30_000)
    found = page(stream(*(story(case=f"case-{number}") for number in range(20))))
    cards = sum(tag == "details" and "card" in (one.get("class") or "") for tag, one in found.tags)
    assert 0 < cards < 20
    assert "Further failures are listed without details" in found.text
    for number in range(20):
        assert f"case-{number}" in found.text


def test_the_first_steps_of_a_long_sequence_are_omitted(stream: MakeStream, story: MakeRun) -> None:
    steps = (story().steps[0],) * 70 + (story().steps[1],)
    assert "events.jsonl also has the first 11 steps." in page(stream(story(steps=steps))).text


def test_a_long_difference_is_truncated(stream: MakeStream, story: MakeRun) -> None:
    step = story().steps[1]
    long = type(step)("state", {}, {}, (), {f"key{number}": "x" * 100 for number in range(600)})
    assert "more lines in events.jsonl" in page(stream(story(steps=(long,)))).text


def test_an_undescribed_machine_is_not_drawn(stream: MakeStream, story: MakeRun) -> None:
    assert "After" not in page(stream(story(machine="unknown"))).text


def test_the_number_of_drawn_machines_is_limited(
    stream: MakeStream, run: MakeRun, make_machine: MakeMachine
) -> None:
    machines = {f"m{number}": make_machine(8, 1, 64, 2) for number in range(9)}
    assert "Too large to draw here." in page(stream(run(), start={"machines": machines})).text


def test_six_thousand_passed_runs_stay_below_three_megabytes(
    stream: MakeStream, run: MakeRun
) -> None:
    runs = [
        run(case=f"cpu.static.some-longer-case-name-{case}", machine=f"2-socket-server-{machine}")
        for case in range(200)
        for machine in range(30)
    ]
    assert len(html(summarize(stream(*runs))).encode()) < 3_000_000
