"""Processes that outlive a run are named in every report of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.reports.html import html
from numaproof.reports.markdown import markdown
from numaproof.reports.summary import summarize
from numaproof.reports.terminal_summary import summary_parts
from numaproof.reports.wording import left_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.events import AnyEvent

    MakeStream = Callable[..., list[AnyEvent]]
    MakeRun = Callable[..., AnyEvent]

LINE = "Could not end process 12 sleep 999, which the program started."


def test_what_could_not_be_ended_is_in_the_report_of_a_run_that_passed(
    stream: MakeStream, run: MakeRun
) -> None:
    summary = summarize(stream(run(), left=("12 sleep 999",)))
    assert summary.verdict == "passed"
    assert summary.plain()["left"] == ["12 sleep 999"]
    parts = summary_parts(summary, width=80, color=False, reports="")
    assert LINE in [str(part) for part in parts]
    for report in (html, markdown):
        assert LINE in report(summary)


@pytest.mark.parametrize("report", [html, markdown])
def test_nothing_is_said_where_nothing_is_left(
    stream: MakeStream, run: MakeRun, report: Callable[..., str]
) -> None:
    assert "Could not end" not in report(summarize(stream(run())))
    assert summarize(stream()[:-1]).plain()["left"] == []


def test_of_many_processes_the_first_are_named(stream: MakeStream) -> None:
    lines = left_lines(summarize(stream(left=tuple(map(str, range(23))))))
    assert lines[-1] == "Could not end 3 more; see events.jsonl."
    assert len(lines) == 21
