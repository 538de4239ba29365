"""Reports truncate long lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from numaproof.protocol.events import ClaimsReview, RunEnded
from numaproof.reports.junit import junit
from numaproof.reports.markdown import markdown
from numaproof.reports.summary import summarize
from numaproof.reports.wording import budget_line, claims_lines, leftover_lines, setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.events import AnyEvent, RunStarted

    MakeStream = Callable[..., list[AnyEvent]]
    MakeRun = Callable[..., AnyEvent]
    MakeStarted = Callable[..., RunStarted]


def test_only_the_first_of_many_processes_are_named(stream: MakeStream) -> None:
    lines = leftover_lines(summarize(stream(leftover_processes=tuple(map(str, range(23))))))
    assert lines[-1] == "Could not end 3 more; see events.jsonl."
    assert len(lines) == 21


def test_only_the_most_frequent_missing_claims_are_named(stream: MakeStream) -> None:
    many = ClaimsReview(missing_claims={f"operation o{number}": 2 for number in range(23)})
    lines = claims_lines(summarize(stream(claims=many)))
    assert lines[-1] == "Other features not claimed: 6 case runs skipped."
    assert len(lines) == 21


@pytest.mark.parametrize(
    ("total", "played", "line"),
    [
        (0, 3, "Time ran out after only 3 examples; a longer run tests more."),
        (0, 50, ""),
        (200, 60, "Time ran out after 60 of 200 examples."),
        (2, 2, ""),
    ],
)
def test_a_fuzz_run_says_if_time_ran_out(
    total: int, played: int, line: str, run_start: MakeStarted
) -> None:
    ended = RunEnded(1.0, complete=True, outcomes={"pass": played})
    summary = summarize([run_start(kind="fuzz", total=total), ended])
    assert budget_line(summary) == line
    assert line in markdown(summary)


def test_builds_and_the_host_are_named(run_start: MakeStarted) -> None:
    start = run_start(kind="diff", host="Linux 6.12, cgroups version 2")
    assert start.implementation
    many = {"commit": "3f2a", **{f"field {number}": "x" for number in range(20)}}
    right = msgspec.structs.replace(start.implementation, build=many)
    left = msgspec.structs.replace(right, version="0", build={"commit": "11ff"})
    start = msgspec.structs.replace(start, implementation=right, left=left)
    summary = summarize([start])
    rows = dict(setting(summary))
    assert rows["Compared with"] == f"{left.name} 0 ({left.language})"
    assert (rows["Build: commit"], rows["Build on the left: commit"]) == ("3f2a", "11ff")
    assert rows["Host"] == "Linux 6.12, cgroups version 2"
    assert sum(name.startswith("Build: ") for name in rows) == 10
    plain = summary.plain()
    assert plain["implementation"] == {"name": right.name, "version": right.version, "build": many}
    assert plain["left"] == {"name": left.name, "version": "0", "build": {"commit": "11ff"}}
    assert plain["host"] == start.host
    properties = junit(summary)
    for name, value in (("build: commit", "3f2a"), ("left", rows["Compared with"])):
        assert f'<property name="{name}" value="{value}" />'.encode() in properties
