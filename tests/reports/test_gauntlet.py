"""What the kill matrix tells, in text and in Markdown."""

from __future__ import annotations

import io

from numaproof.protocol.kill_matrix import Example, Hunt, Matrix, Seconds
from numaproof.reports.gauntlet import as_json, as_markdown, as_text, line
from numaproof.reports.gauntlet_progress import GauntletProgress

CAUGHT = Hunt(
    "hasty",
    "cpus",
    ("#105114",),
    runs=9,
    cases=("one", "two", "three", "four"),
    invariants=("exclusive-to-one",),
    examples=30,
    example=Example(30, "difference", pods=2, cores=4, steps=3),
)
SURVIVOR = Hunt("quiet", "cpus", ("CPU-POOL-005",), runs=9, examples=50)
UNTRIED = Hunt("later", "cpus", ("CPU-POOL-005",))


def told(*hunts: Hunt, whole: bool = True) -> Matrix:
    return Matrix(
        numaproof="0",
        seed=7,
        examples=50,
        whole=whole,
        cases=("one", "two", "three", "four", "five"),
        hunts=hunts,
        seconds={hunt.bug: Seconds(1.0, 2.0, 3.0) for hunt in hunts},
    )


def test_only_what_was_tried_can_survive() -> None:
    matrix = told(CAUGHT, SURVIVOR, UNTRIED)
    assert matrix.survivors == ("quiet",)
    assert matrix.fuzzed == (CAUGHT, SURVIVOR)


def test_a_case_is_idle_only_where_all_cases_were_played() -> None:
    assert told(CAUGHT).idle == ("five",)
    assert told(CAUGHT, whole=False).idle == ()


def test_a_line_names_the_first_cases_and_counts_them() -> None:
    assert line(CAUGHT) == (
        "caught    hasty: 4 cases: one, two, three, ...; 1 invariant: exclusive-to-one; "
        "example 30 (2 pods, 4 cores, 3 steps)"
    )
    assert line(SURVIVOR) == "SURVIVED  quiet: not caught by 9 case runs or 50 examples"


def test_the_end_says_what_share_fuzzing_alone_caught() -> None:
    text = as_text(told(CAUGHT, SURVIVOR))
    assert "by cases: 1 of 2 caught" in text
    assert "by fuzzing alone: 1 of 2 caught (50.0%) within 50 examples from seed 7" in text
    assert "median example: number 30, 2 pods, 4 cores, 3 steps" in text
    assert "1 of 5 cases caught no bug" in text
    assert "survived: quiet" in text


def test_the_page_has_a_row_for_each_bug_and_the_idle_cases() -> None:
    page = as_markdown(told(CAUGHT, SURVIVOR, UNTRIED))
    rows = [row for row in page.splitlines() if row.startswith("| <code>")]
    assert len(rows) == 3
    assert "1 more" in rows[0]
    assert "none of 50" in rows[1]
    assert "- <code>five</code>" in page
    assert len({row.count("|") for row in page.splitlines() if row.startswith("|")}) == 1


def test_a_run_that_was_cut_short_is_reported_as_one() -> None:
    cut = Matrix("0", 0, 5, whole=False, cases=(), hunts=(), seconds={}, complete=False)
    assert "INCOMPLETE" in as_text(cut)
    assert cut.middle("pods") is None
    assert b'"complete": false' in as_json(cut)


def test_progress_is_plain_where_nobody_draws_over_lines() -> None:
    stream = io.StringIO()
    with GauntletProgress(stream, 2, {"CI": "1"}, every=False) as progress:
        progress.show(CAUGHT)
        progress.show(SURVIVOR)
    assert stream.getvalue().splitlines() == [
        "1 of 2 bugs, 0 survived",
        "SURVIVED  quiet: not caught by 9 case runs or 50 examples",
        "2 of 2 bugs, 1 survived",
    ]
