"""Two runs compared: what newly fails, is fixed, fails for another cause, or is slower."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from numaproof.protocol.events import Origin
from numaproof.reports.run_comparison import (
    RunsDifferError,
    compare,
    comparison_markdown,
    comparison_text,
)
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import Compare, MakeDivergence, MakeRun, MakeStream
    from numaproof.protocol.events import AnyEvent
    from numaproof.reports.json_output import RunComparison

LISTS = ("newly_failing", "changed_cause", "no_longer_failing", "slower", "missing")


def compared(before: Sequence[AnyEvent], after: Sequence[AnyEvent]) -> RunComparison:
    return compare(summarize(before), summarize(after))


def lists(comparison: RunComparison) -> dict[str, list[str]]:
    """The cases or titles in each list that is not empty."""
    plain: dict[str, Any] = {**comparison}
    found = {name: [one["case"] or one["title"] for one in plain[name]] for name in LISTS}
    return {name: cases for name, cases in found.items() if cases}


def test_every_change_is_listed(stream: MakeStream, run: MakeRun, compare: Compare) -> None:
    origin = Origin("2026-03-01T12:00:00Z", "0123abc", "Linux")
    wrong = {"signature": "admit: cpus differs", "message": "wrong CPUs"}
    before = stream(
        run(case="same"),
        run("fail", case="stays", **wrong),
        run("fail", case="other-cause", **wrong),
        run("fail", case="fixed", **wrong),
        run(case="breaks"),
        run(case="slow", seconds=0.5),
        run(case="gone"),
    )
    after = stream(
        run(case="same"),
        run("fail", case="stays", **wrong),
        run("crash", case="other-cause", signature="crash at admit", message="it exited"),
        run(case="fixed"),
        run("fail", case="breaks", reproduce="numaproof replay breaks", **wrong),
        run(case="slow", seconds=4.0),
        run("fail", case="new", **wrong),
        start={"origin": origin},
    )
    found = compared(before, after)
    assert lists(found) == {
        "newly_failing": ["breaks", "new"],
        "changed_cause": ["other-cause"],
        "no_longer_failing": ["fixed"],
        "slower": ["slow"],
        "missing": ["gone"],
    }
    assert (found["exit_code"], found["still_failing"], found["still_good"]) == (1, 1, 2)
    compare("compared/report.txt", comparison_text(found))
    compare("compared/report.md", comparison_markdown(found))


def test_runs_are_described_by_what_differs(stream: MakeStream, run: MakeRun) -> None:
    first = summarize(stream(run(), start={"command": "numaproof check --out before"}))
    second = summarize(stream(run(), start={"command": "numaproof check"}))
    text = comparison_text(compare(first, second, ("before", "after")))
    assert text.splitlines()[:3] == [
        "Both:   kubelet 1.35.4, Kubernetes 1.35, level kubelet",
        "Before: before, numaproof check --out before: passed",
        "After:  after, numaproof check: passed",
    ]


def test_findings_are_compared_by_signature(stream: MakeStream, divergence: MakeDivergence) -> None:
    fuzz = {"kind": "fuzz"}
    old = stream(divergence(title="A", signature="a"), start=fuzz, outcomes={"fail": 1})
    new = stream(divergence(title="B", signature="b"), start=fuzz, outcomes={"fail": 1})
    assert lists(compared(old, new)) == {"newly_failing": ["B"], "no_longer_failing": ["A"]}
    # An incomplete run may not have found it again.
    assert lists(compared(old, new[:-1])) == {"newly_failing": ["B"], "missing": ["A"]}


def test_an_incomplete_run_without_new_failures_is_reported(
    stream: MakeStream, run: MakeRun
) -> None:
    whole = stream(run())
    assert compared(whole, whole)["exit_code"] == 0
    found = compared(whole, whole[:-1])
    assert found["exit_code"] == 3
    assert "Incomplete: The last event is missing" in comparison_text(found)


def test_runs_of_different_kinds_are_not_compared(stream: MakeStream, run: MakeRun) -> None:
    with pytest.raises(RunsDifferError, match="check and fuzz"):
        compared(stream(run()), stream(start={"kind": "fuzz"}))


def test_long_lists_are_shortened(stream: MakeStream, run: MakeRun) -> None:
    runs = [run("fail", case=f"case-{number}") for number in range(30)]
    text = comparison_text(compared(stream(), stream(*runs)))
    assert "case-19 on desktop" in text
    assert "case-20" not in text
    assert "and 10 more; --json lists all" in text
