"""What fuzzing reached, and answers that were different the second time, in every format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numaproof.protocol.events import AnyEvent, Coverage, DivergenceFound, ReportedCall
from numaproof.reports.html import html
from numaproof.reports.junit import junit
from numaproof.reports.markdown import markdown
from numaproof.reports.summary import summarize
from numaproof.reports.terminal import as_plain
from numaproof.reports.terminal_summary import summary_parts

MakeStream = Callable[..., list[AnyEvent]]
MakeDivergence = Callable[..., DivergenceFound]

FUZZ = {"kind": "fuzz", "total": 100}
REACHED = Coverage(
    at=1.0,
    examples=1234,
    counts={"actions": {"admit": 5678, "remove": 90}, "policies": {"CPU <static>": 7}},
    highest={"providers": 12.0, "share": 0.5},
)


def told(stream: list[AnyEvent]) -> str:
    parts = summary_parts(summarize(stream), width=100, color=False, reports="")
    return "\n".join(map(as_plain, parts))


def test_what_was_reached_is_in_every_format(stream: MakeStream) -> None:
    events = stream(REACHED, start=FUZZ, outcomes={"pass": 100})
    summary = summarize(events)
    assert "Covered in 1,234 examples:" in told(events)
    assert "  actions   admit 5,678, remove 90" in told(events)
    assert "  highest   providers 12, share 0.5" in told(events)
    page = html(summary)
    assert "admit 5,678, remove 90" in page
    assert "CPU &lt;static&gt; 7" in page
    assert "admit 5,678, remove 90" in markdown(summary)
    assert "<static>" not in markdown(summary)
    assert summary.plain()["reached"] == {
        "examples": 1234,
        "counts": REACHED.counts,
        "highest": REACHED.highest,
    }


def test_a_run_that_reached_nothing_reports_nothing(stream: MakeStream) -> None:
    nothing = Coverage(at=1.0, examples=0, counts={}, highest={})
    for events in (stream(nothing, start=FUZZ), stream(start=FUZZ)):
        assert "Reached" not in told(events)
        assert "Reached" not in markdown(summarize(events))
    assert summarize(stream(start=FUZZ)).plain()["reached"] is None


def test_answers_that_changed_are_side_by_side(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    step: dict[str, Any] = {"expected": {"cpus": "0-1"}, "answer": {"cpus": "2-3"}}
    found = divergence(outcome="nondeterministic", steps=(ReportedCall("admit", {}, **step),))
    events = stream(found, start=FUZZ, outcomes={"pass": 99, "nondeterministic": 1})
    summary = summarize(events)
    assert (summary.verdict, summary.exit_code) == ("failed", 1)
    assert (summary.tally.bad, summary.tally.errors) == (1, 0)
    shown = told(events)
    assert "≁ NONDETERMINISTIC" in shown
    assert 'expected "0-1"' in shown
    assert 'got      "2-3"' in shown
    assert b'type="nondeterministic"' in junit(summary)
    assert "Expected <span" in html(summary)
    assert "and got <span" in html(summary)
    assert "nondeterministic" in markdown(summary)
