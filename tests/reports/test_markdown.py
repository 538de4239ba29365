from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from numaproof.protocol.events import ReportedCall
from numaproof.reports.markdown import LIMIT, escaped, markdown
from numaproof.reports.summary import summarize
from numaproof.reports.untrusted import visible

if TYPE_CHECKING:
    from conftest import MakeDivergence, MakeRun, MakeStream
    from numaproof.protocol.events import Outcome


def test_the_verdict_and_the_counts_come_first(stream: MakeStream, run: MakeRun) -> None:
    text = markdown(summarize(stream(run(), run("unsupported"))))
    assert text.startswith("# ✅ numaproof: passed\n")
    assert "| static policy | 1 |  |  | 1 |  | 2 |" in text
    assert "| **all** | 1 | 0 | 0 | 1 | 0 | 2 |" in text
    assert "numaproof check --kubernetes 1.35" in text


def test_a_failure_can_be_opened(stream: MakeStream, story: MakeRun) -> None:
    text = markdown(summarize(stream(story())))
    assert text.startswith("# ❌ numaproof: failed\n")
    assert text.count("<details>") == text.count("</details>") == 1
    assert "<code>STATIC&#45;1</code>" in text or "<code>STATIC-1</code>" in text
    assert "CPUs are exclusive." in text
    assert 'expected "1-2"' in text
    assert text.count("CPUs are exclusive.") == 1
    assert text.count("Whole CPUs are exclusive") == 1
    assert "0!" in text


def test_an_incomplete_run_is_shown_as_one(stream: MakeStream, run: MakeRun) -> None:
    text = markdown(summarize(stream(run())[:-1]))
    assert text.startswith("# ⚠ numaproof: incomplete\n")
    assert "**Incomplete run.**" in text
    # Written files show hidden characters: the report has none of its own.
    assert visible(text) == text


def test_a_failed_and_incomplete_run_says_both(stream: MakeStream, run: MakeRun) -> None:
    text = markdown(summarize(stream(run("fail"))[:-1]))
    assert "Failed, incomplete" in text


def test_zero_cases_are_shown_as_nothing_tested(stream: MakeStream) -> None:
    text = markdown(summarize(stream()))
    assert "**Nothing was tested**" in text
    assert "✅" not in text


def test_no_events_make_a_report_too() -> None:
    assert "no beginning" in markdown(summarize([]))


def test_standard_error_and_expected_failures_are_reported(
    stream: MakeStream, run: MakeRun
) -> None:
    text = markdown(
        summarize(stream(run("crash", stderr="panic"), run("expected failure", defect="leak")))
    )
    assert "Standard error:\n\n```text\npanic\n```" in text
    assert "| leak | 1 |" in text


def test_a_fault_s_trace_is_called_a_trace(stream: MakeStream, run: MakeRun) -> None:
    text = markdown(summarize(stream(run("fault", stderr="at line 7"))))
    assert "Trace:\n\n```text\nat line 7\n```" in text
    assert "standard error" not in text


@pytest.mark.parametrize("outcome", ["fault", "crash", "time-out", "protocol error"])
def test_the_call_in_which_a_program_broke_is_shown(
    stream: MakeStream, story: MakeRun, outcome: Outcome
) -> None:
    steps = (story().steps[0], ReportedCall("remove", {"pod": "web"}, None, (), {"ok": {}}))
    text = markdown(summarize(stream(story(outcome=outcome, steps=steps))))
    assert 'Step 2: remove {"pod": "web"}\n  answer (none' in text
    assert "Step 1" not in text


def test_one_bug_on_many_machines_is_reported_once(stream: MakeStream, story: MakeRun) -> None:
    runs = [story(f"CPU {number} is lost", machine=f"m{number}") for number in range(46)]
    text = markdown(summarize(stream(*runs)))
    assert text.count("<details>") == 1
    assert "CPU 0 is lost" in text
    assert "and on 45 more machines&#58; m1, m2, m3," in text


def test_nothing_is_claimed_for_a_program_that_did_not_greet(
    stream: MakeStream, run: MakeRun
) -> None:
    text = markdown(summarize(stream(run("crash"), start={"implementation": None})))
    assert "| Kubernetes | unknown |\n| Level | unknown |" in text


def test_requirements_are_not_called_untested_where_the_stream_does_not_say_so(
    stream: MakeStream, run: MakeRun
) -> None:
    assert "untested" not in markdown(summarize(stream(run())))


def test_a_message_that_is_the_title_is_said_once(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    said = "two containers have CPU 1"
    text = markdown(
        summarize(stream(divergence(title=said, message=said, steps=(), reproduce="", file=None)))
    )
    assert text.count(said) == 1


def test_untested_requirements_are_listed_up_to_a_bound(stream: MakeStream, run: MakeRun) -> None:
    text = markdown(summarize(stream(run(), untested=("NONE-1", *(f"X-{n}" for n in range(50))))))
    assert "51 requirements untested; the registry says why" in text
    assert "No affinity is given." in text
    assert "and 11 more" in text


def test_divergences_of_fuzzing_are_reported(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    text = markdown(summarize(stream(divergence(), start={"kind": "fuzz"}, outcomes={"fail": 1})))
    assert "Case file: failure-1.yaml" in text


@pytest.mark.parametrize("limit", [LIMIT, 20_000])
def test_a_report_keeps_to_its_limit_and_says_what_was_cut(
    stream: MakeStream, story: MakeRun, limit: int
) -> None:
    text = markdown(
        summarize(stream(*(story("long " * 900, case=f"case-{number}") for number in range(100)))),
        limit,
    )
    assert len(text.encode()) <= limit
    told = text.count("<details>")
    assert f"{100 - told} of 100 failures not shown here" in text
    assert told > 0


EVIL = "</details><script>alert(1)</script> | a*b_c`d ``` @octocat #12 [x](javascript:y) www.evil"


def test_text_outside_of_fences_cannot_be_markup(stream: MakeStream, story: MakeRun) -> None:
    text = markdown(
        summarize(stream(story(EVIL, title=EVIL, case=EVIL, machine=EVIL, stderr=EVIL)))
    )
    outside = re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", text)
    assert "<script" not in outside
    assert "[x](" not in outside
    assert "@octocat" not in outside
    assert not re.search("(?<!&)#12", outside)
    assert outside.count("</details>") == 1


def test_a_fence_is_longer_than_any_run_of_backticks_inside(
    stream: MakeStream, story: MakeRun
) -> None:
    text = markdown(summarize(stream(story("`````\n# out"))))
    assert "\n``````text\n" in text


def test_a_cell_of_a_table_has_no_bar_and_no_line_break() -> None:
    assert escaped("a|b\nc") == "a&#124;b c"
