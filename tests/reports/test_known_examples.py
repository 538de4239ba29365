"""Known failures that fuzzing met: shown in every format with their reasons, and as no failures."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from numaproof.reports.badge import badge
from numaproof.reports.html import html
from numaproof.reports.junit import junit
from numaproof.reports.markdown import markdown
from numaproof.reports.summary import Summary, summarize
from numaproof.reports.terminal import Terminal

if TYPE_CHECKING:
    from conftest import MakeDivergence, MakeStream
    from numaproof.protocol.events import AnyEvent

REASON = "finding: it loses CPUs"


@pytest.fixture
def met(stream: MakeStream, divergence: MakeDivergence) -> list[AnyEvent]:
    """The events of a run that met one known failure six times."""
    one = divergence(
        outcome="known failure",
        signature="invariant no-cpu-lost",
        title="CPU 3 is lost",
        message=f"{REASON}: CPU 3 is lost",
        reason=REASON,
        file="findings/fuzz-1.yaml",
    )
    return stream(one, start={"kind": "fuzz"}, outcomes={"pass": 4, "known failure": 6})


@pytest.fixture
def beside(met: list[AnyEvent], divergence: MakeDivergence) -> Summary:
    """The same with a failure."""
    return summarize([met[0], divergence(), *met[1:]])


def test_a_known_failure_fails_no_run(met: list[AnyEvent]) -> None:
    summary = summarize(met)
    assert (summary.verdict, summary.tally.total, summary.gaps) == ("passed", 10, ())


def test_json_has_it_among_the_known_failures(met: list[AnyEvent], beside: Summary) -> None:
    plain = summarize(met).plain()
    assert plain["divergences"] == []
    (one,) = plain["known_failures"]
    assert (one["outcome"], one["signature"]) == ("known failure", "invariant no-cpu-lost")
    assert one["message"] == f"{REASON}: CPU 3 is lost"
    assert one["file"] == "findings/fuzz-1.yaml"
    assert [one["outcome"] for one in beside.plain()["divergences"]] == ["fail"]


def test_junit_skips_it(met: list[AnyEvent]) -> None:
    root = ET.XML(junit(summarize(met)))
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "0", "1")
    assert [one.get("message") for one in root.iter("skipped")] == [
        f"known failure: {REASON}: CPU 3 is lost"
    ]


def test_the_markdown_report_has_its_reason_and_file(met: list[AnyEvent]) -> None:
    text = markdown(summarize(met))
    assert "## Failures" not in text
    (row,) = (line for line in text.splitlines() if "no-cpu-lost" in line)
    assert "it loses CPUs" in row
    assert "fuzz-1.yaml" in row


def test_the_page_has_it_beside_the_failures(met: list[AnyEvent], beside: Summary) -> None:
    page = html(summarize(met))
    assert 'id="failures"' not in page
    assert f'<b>invariant no-cpu-lost</b> <span class="quiet">{REASON}</span>' in page
    assert "Case file: <code>findings/fuzz-1.yaml</code>" in page
    assert '<h2>Failures <span class="quiet">1</span></h2>' in html(beside)


def test_the_badge_counts_failures_alone(beside: Summary) -> None:
    assert ": 1 of 10 failed" in badge(beside)


def test_the_terminal_shows_it_once_at_the_end(
    met: list[AnyEvent], capsys: pytest.CaptureFixture[str]
) -> None:
    with Terminal(environment={}) as terminal:
        for event in met:
            terminal.show(event)
    text = capsys.readouterr().out
    assert text.count("no-cpu-lost") == text.count(REASON) == 1
    assert "CPU 3 is lost" not in text
    assert f"≈ known failure invariant no-cpu-lost\n  {REASON}\n  case file: findings/" in text
    assert "Passed: 10 examples (4 pass, 6 known failure)" in text
