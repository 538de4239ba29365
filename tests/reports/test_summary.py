from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reports.summary import NO_AREA, summarize

if TYPE_CHECKING:
    from conftest import MakeRun, MakeStream


def test_a_case_counts_in_the_area_of_its_first_known_requirement(
    stream: MakeStream, run: MakeRun
) -> None:
    summary = summarize(
        stream(
            run(requirements=("NONE-1", "STATIC-1")),
            run("fail", requirements=("unknown", "STATIC-2")),
            run(requirements=()),
        )
    )
    assert list(summary.areas) == ["static policy", "none policy", NO_AREA]
    assert summary.areas["static policy"].counts == {"fail": 1}
    assert sum(tally.total for tally in summary.areas.values()) == summary.tally.total


def test_a_case_has_one_area_whatever_its_outcome(stream: MakeStream, run: MakeRun) -> None:
    good, bad = (
        summarize(stream(run(), one))
        for one in (
            run(machine="server"),
            run("fail", machine="server", violated_requirements=("NONE-1",)),
        )
    )
    totals = [{area: tally.total for area, tally in one.areas.items()} for one in (good, bad)]
    assert totals[0] == totals[1] == {"static policy": 2}
    assert bad.by_requirement["NONE-1"].counts == {"fail": 1}


def test_runs_are_counted_by_case_machine_and_requirement(stream: MakeStream, run: MakeRun) -> None:
    summary = summarize(
        stream(run(requirements=("STATIC-1", "STATIC-1", "NONE-1")), run("crash", machine="server"))
    )
    assert summary.machines["server"].counts == {"crash": 1}
    assert summary.matrix["static policy", "desktop"].counts == {"pass": 1}
    assert summary.by_requirement["STATIC-1"].total == 2
    assert summary.by_requirement["NONE-1"].total == 1


def test_an_unknown_requirement_is_marked(stream: MakeStream, run: MakeRun) -> None:
    named = summarize(stream(run())).find_requirements(("STATIC-1", "GONE-1"))
    assert named[0].statement == "CPUs are exclusive."
    assert "not in the registry" in named[1].statement
