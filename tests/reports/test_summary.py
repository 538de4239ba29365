from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from numaproof.protocol.events import Progress, RunEnded
from numaproof.reports.summary import NO_AREA, OUTCOMES, summarize

if TYPE_CHECKING:
    from conftest import MakeDivergence, MakeRun, MakeStarted, MakeStream
    from numaproof.protocol.events import Outcome


def test_a_run_in_which_all_passed_is_green(stream: MakeStream, run: MakeRun) -> None:
    summary = summarize(stream(run(), run(machine="server")))
    assert (summary.verdict, summary.green, summary.exit_code) == ("passed", True, 0)
    assert summary.tally.counts == {"pass": 2}


@pytest.mark.parametrize(
    "outcome",
    [
        one
        for one in OUTCOMES
        if one not in {"pass", "unsupported", "expected failure", "known failure"}
    ],
)
def test_every_bad_outcome_alone_makes_a_run_fail(
    stream: MakeStream, run: MakeRun, outcome: Outcome
) -> None:
    summary = summarize(stream(run(), run(outcome, case="other")))
    assert (summary.verdict, summary.exit_code) == ("failed", 1)
    assert [one.outcome for one in summary.failures] == [outcome]


@pytest.mark.parametrize("outcome", ["unsupported", "expected failure", "known failure"])
def test_unsupported_and_expected_failures_leave_a_run_green_but_are_not_passes(
    stream: MakeStream, run: MakeRun, outcome: Outcome
) -> None:
    summary = summarize(stream(run(), run(outcome, case="other")))
    assert summary.green
    assert summary.tally.passed == 1
    assert summary.tally.of(outcome) == 1


def test_zero_cases_is_nothing_tested(stream: MakeStream) -> None:
    summary = summarize(stream())
    assert (summary.verdict, summary.green, summary.exit_code) == ("nothing tested", False, 2)


def test_a_run_in_which_all_is_unsupported_has_tested_nothing(
    stream: MakeStream, run: MakeRun
) -> None:
    assert summarize(stream(run("unsupported"))).verdict == "nothing tested"


def test_a_stream_without_its_end_is_incomplete(stream: MakeStream, run: MakeRun) -> None:
    summary = summarize(stream(run())[:-1])
    assert (summary.verdict, summary.exit_code) == ("incomplete", 3)
    assert "no end" in summary.gaps[0]


def test_a_stream_without_events_is_incomplete() -> None:
    summary = summarize([])
    assert summary.verdict == "incomplete"
    assert len(summary.gaps) == 2


def test_a_run_cut_short_says_why(stream: MakeStream, run: MakeRun) -> None:
    summary = summarize(stream(run(), complete=False, message="Interrupted."))
    assert summary.gaps == ("Interrupted.",)
    assert summarize(stream(run(), complete=False)).gaps == ("The run was cut short.",)


def test_a_failure_found_before_the_cut_is_a_failure(stream: MakeStream, run: MakeRun) -> None:
    summary = summarize(stream(run("fail"))[:-1])
    assert summary.verdict == "failed"
    assert summary.gaps


def test_a_stream_that_lost_lines_is_incomplete(stream: MakeStream, run: MakeRun) -> None:
    events = stream(run(), run(case="lost"))
    del events[1]
    assert "counts 2 case runs, but the stream has 1" in summarize(events).gaps[0]


def test_fewer_case_runs_than_announced_make_a_run_incomplete(
    stream: MakeStream, run: MakeRun
) -> None:
    summary = summarize(stream(run(), start={"total": 5}))
    assert summary.gaps == ("The stream has only 1 of 5 case runs.",)


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


def test_a_case_has_one_area_however_it_ends(stream: MakeStream, run: MakeRun) -> None:
    good, bad = (
        summarize(stream(run(), one))
        for one in (run(machine="server"), run("fail", machine="server", violated=("NONE-1",)))
    )
    totals = [{area: tally.total for area, tally in one.areas.items()} for one in (good, bad)]
    assert totals[0] == totals[1] == {"static policy": 2}
    assert bad.by_requirement["NONE-1"].counts == {"fail": 1}


def test_counts_are_kept_by_case_machine_requirement_and_both_area_and_machine(
    stream: MakeStream, run: MakeRun
) -> None:
    summary = summarize(
        stream(run(requirements=("STATIC-1", "STATIC-1", "NONE-1")), run("crash", machine="server"))
    )
    assert summary.cases["static.exclusive"].counts == {"pass": 1, "crash": 1}
    assert summary.machines["server"].counts == {"crash": 1}
    assert summary.matrix["static policy", "desktop"].counts == {"pass": 1}
    assert summary.by_requirement["STATIC-1"].total == 2
    assert summary.by_requirement["NONE-1"].total == 1


def test_errors_are_distinguished_from_wrong_answers(stream: MakeStream, run: MakeRun) -> None:
    tally = summarize(stream(run("fail"), run("crash"), run("not run"), run())).tally
    assert (tally.bad, tally.errors) == (3, 2)


def test_a_requirement_that_the_registry_lacks_says_so(stream: MakeStream, run: MakeRun) -> None:
    named = summarize(stream(run())).named(("STATIC-1", "GONE-1"))
    assert named[0].statement == "CPUs are exclusive."
    assert "not in the registry" in named[1].statement


def test_untested_requirements_come_from_the_end_of_the_stream(
    stream: MakeStream, run: MakeRun
) -> None:
    assert summarize(stream(run(), untested=("NONE-1",))).untested == ("NONE-1",)


def test_fuzzing_counts_examples_and_fails_by_divergence(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    fuzz = {"kind": "fuzz", "total": 100}
    good = summarize(stream(start=fuzz, outcomes={"pass": 100}))
    assert (good.verdict, good.tally.total) == ("passed", 100)
    bad = summarize(stream(divergence(), start=fuzz, outcomes={"pass": 99, "fail": 1}))
    assert (bad.verdict, bad.tally.bad, bad.tally.total) == ("failed", 1, 100)
    unnoticed = summarize(stream(divergence(), start=fuzz, outcomes={"pass": 100}))
    assert unnoticed.verdict == "failed"


def test_fuzzing_cut_short_counts_what_was_done(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    events = [*stream(divergence(), start={"kind": "fuzz"})[:-1], Progress(3.0, 40)]
    summary = summarize(events)
    assert summary.tally.counts == {"pass": 39, "fail": 1}
    assert summary.seconds == 3.0


def test_fuzzing_zero_examples_is_nothing_tested(stream: MakeStream) -> None:
    assert summarize(stream(start={"kind": "fuzz"})).verdict == "nothing tested"


def test_an_outcome_that_this_version_does_not_know_is_not_overlooked(started: MakeStarted) -> None:
    events = [started(kind="fuzz"), RunEnded(1.0, True, {"pass": 3, "new kind": 1})]
    assert "counts 4" in summarize(events).gaps[0]


def test_the_summary_has_a_plain_form_for_programs(
    stream: MakeStream, run: MakeRun, divergence: MakeDivergence
) -> None:
    plain = summarize(
        stream(
            run("fail", message="wrong", reproduce="again"),
            run("expected failure", defect="leak"),
            divergence(),
            untested=("NONE-1",),
        )
    ).plain()
    assert json.loads(json.dumps(plain)) == plain
    assert (plain["verdict"], plain["exit_code"], plain["complete"]) == ("failed", 1, True)
    assert plain["outcomes"] == {"fail": 1, "expected failure": 1}
    assert plain["areas"] == {"static policy": {"fail": 1, "expected failure": 1}}
    assert plain["failures"][0]["reproduce"] == "again"
    assert plain["expected_failures"][0]["defect"] == "leak"
    assert plain["divergences"][0]["file"] == "failure-1.yaml"
    assert plain["untested"] == ["NONE-1"]
