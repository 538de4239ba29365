"""`numaproof check --known-failures`: what is known does not fail a run, and what is not, does."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from numaproof.conformance.known_failures import entries
from numaproof.conformance.known_failures.entries import KnownFailure, KnownFailureEntry
from numaproof.conformance.known_failures.verdicts import KnownFailures
from numaproof.protocol.events import CaseFinished, Outcome

Command = Callable[..., Any]
Program = Callable[[str], str]

REPORT = Path("numaproof-report/check")
CASE = "example-guaranteed-integer-is-exclusive"
SMALL = ("--machine", "laptop-4c8t", "--machine", "core-i7-9700", "--select", "example-*")


@pytest.fixture
def failing(program: Program) -> tuple[str, ...]:
    """Options of a program that breaks at each admission."""
    body = """
    if request.op == "admit":
        print(json.dumps({"id": request.id, "fault": BOOM}), flush=True)
    else:
        answer(request)
    """
    return *SMALL, "--implementation", program(body)


SIGNATURE = "fault at admit: boom"


def known(**fields: str) -> tuple[str, ...]:
    """Options that name a file with one entry."""
    entry = {"case": "example-*", "signature": SIGNATURE, "reason": "it is being fixed"} | fields
    Path("known.yaml").write_text(json.dumps({"known_failures": [entry]}))
    return "--known-failures", "known.yaml"


def test_known_failures_do_not_fail_the_run(command: Command, failing: tuple[str, ...]) -> None:
    ended = command("check", *failing, *known(issue="https://example.com/1"), "--json")
    assert ended.code == 0
    assert ended.json()["outcomes"] == {"known failure": 14}
    assert f"known failure {SIGNATURE}: 14" in ended.err
    assert (
        '<skipped message="known failure: it is being fixed (https://example.com/1): boom'
        in (REPORT / "junit.xml").read_text()
    )
    page = (REPORT / "report.md").read_text()
    assert "it is being fixed" in page
    columns, _, *rows = (line.split("|") for line in page.splitlines() if line.startswith("| "))
    head = next(row for row in (columns, *rows) if "known failure" in map(str.strip, row))
    total = next(row for row in rows if "**all**" in row[1])
    assert total[[*map(str.strip, head)].index("known failure")].strip() == "14"
    assert total[[*map(str.strip, head)].index("expected failure")].strip() == "0"
    assert SIGNATURE in (REPORT / "report.html").read_text()


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"case": CASE}, 12),
        ({"machine": "core-*"}, 7),
        ({"case": "static-*"}, 14),
    ],
)
def test_a_failure_that_no_entry_covers_is_new(
    command: Command, failing: tuple[str, ...], fields: dict[str, str], left: int
) -> None:
    ended = command("check", *failing, *known(**fields), "--json")
    assert ended.code == 1
    assert ended.json()["outcomes"]["fault"] == left
    assert "missing known failure" not in ended.json()["outcomes"]


def test_a_failure_for_another_cause_fails_and_says_what_to_write(
    command: Command, failing: tuple[str, ...]
) -> None:
    ended = command("check", *failing, *known(signature="fault at admit: bang"), "--json")
    assert ended.code == 1
    message = ended.json()["failures"][0]["message"]
    assert message == (
        "boom [known.yaml:1: known with another cause, 'fault at admit: bang'; if this is the same"
        " problem, write signature: 'fault at admit: boom']"
    )


def test_what_passes_now_fails_and_says_to_remove_the_entry(command: Command) -> None:
    entry = known(case=CASE, machine="laptop-4c8t")
    ended = command("check", *SMALL, *entry, "--json")
    assert ended.code == 1
    assert ended.json()["outcomes"] == {"missing known failure": 1, "pass": 14}
    (one,) = ended.json()["failures"]
    assert one["message"] == ("known.yaml:1: 1 case run that it names passes now: remove the entry")


def test_a_part_of_the_runs_does_not_show_that_nothing_of_a_glob_fails_any_more(
    command: Command,
) -> None:
    assert command("check", *SMALL, *known()).code == 0


def test_a_whole_run_shows_that_nothing_of_a_glob_fails_any_more() -> None:
    entry = KnownFailureEntry(KnownFailure("a-*", "boom", "why"), "known.yaml:1")
    passed = CaseFinished(0.0, "a-one", "One", "laptop", "pass", 0.0, ())
    for whole in (True, False):
        known_ones = KnownFailures((entry,), whole=whole)
        known_ones.judged(passed)
        assert [one.outcome for one in known_ones.missing(0.0)] == (
            ["missing known failure"] if whole else []
        )


def test_of_several_entries_the_one_with_the_most_alike_cause_is_named() -> None:
    causes = ("invariant cpus-never-shared", "fault at admit: bang", "crash at start")
    several = [
        KnownFailureEntry(KnownFailure("*", cause, "why"), f"known.yaml:{line}")
        for line, cause in enumerate(causes, 1)
    ]
    failed = CaseFinished(0.0, "a-one", "One", "laptop", "fault", 0.0, ())
    failed = structs.replace(failed, signature="fault at admit: boom", message="boom")
    assert "[known.yaml:2: " in KnownFailures(several).judged(failed).message
    assert "[known.yaml:2: " in KnownFailures(several[::-1]).judged(failed).message


def test_of_several_dates_that_are_past_the_last_is_named() -> None:
    dates = (dt.date(2027, 1, 1), dt.date(2027, 3, 1), dt.date(2027, 2, 1))
    several = [
        KnownFailureEntry(KnownFailure("*", "boom", "why", until=date), f"known.yaml:{line}")
        for line, date in enumerate(dates, 1)
    ]
    failed = CaseFinished(0.0, "a-one", "One", "laptop", "fault", 0.0, ())
    failed = structs.replace(failed, signature="boom", message="boom")
    judged = KnownFailures(several, dt.date(2027, 4, 1)).judged(failed)
    assert judged.message == "boom [known.yaml:2: known until 2027-03-01: fix it, or move the date]"


def test_an_entry_past_its_date_fails_and_says_so(
    command: Command, failing: tuple[str, ...]
) -> None:
    args = (*failing, *known(until="2027-01-31"))
    assert command("check", *args, "--today", "2027-01-31").code == 0
    ended = command("check", *args, "--today", "2027-02-01", "--json")
    assert ended.code == 1
    message = ended.json()["failures"][0]["message"]
    assert message == "boom [known.yaml:1: known until 2027-01-31: fix it, or move the date]"


def test_an_entry_whose_cases_are_not_selected_is_not_judged(command: Command) -> None:
    ended = command("check", *SMALL, *known(case="static-*", until="2001-01-01"))
    assert ended.code == 0


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        (("unsupported",), "1 case run that it names is unsupported now"),
        (("unsupported", "unsupported"), "all 2 case runs that it names are unsupported now"),
        (("unsupported", "pass"), "all 2 case runs that it names pass or are unsupported now"),
    ],
)
def test_an_entry_whose_cases_are_unsupported_is_reported(
    outcomes: tuple[Outcome, ...], told: str
) -> None:
    known_ones = KnownFailures((KnownFailureEntry(KnownFailure("a-*", "boom", "why"), "k.yaml:1"),))
    for number, outcome in enumerate(outcomes):
        known_ones.judged(CaseFinished(0.0, f"a-{number}", "One", "laptop", outcome, 0.0, ()))
    (one,) = known_ones.missing(0.0)
    assert one.message == f"k.yaml:1: {told}: remove the entry"


def test_an_entry_whose_cases_fail_for_another_known_cause_is_reported() -> None:
    stale, met = (
        KnownFailureEntry(KnownFailure("a-*", cause, "why"), f"k.yaml:{line}")
        for line, cause in enumerate(("boom", "bang"), 1)
    )
    known_ones = KnownFailures((stale, met))
    failed = CaseFinished(0.0, "a-one", "One", "laptop", "fail", 0.0, (), signature="bang")
    assert known_ones.judged(failed).outcome == "known failure"
    (one,) = known_ones.missing(0.0)
    assert one.message == (
        "k.yaml:1: 1 case run that it names fails for another known cause now: remove the entry"
    )


def test_the_first_file_makes_the_run_pass_and_is_compact(
    command: Command, failing: tuple[str, ...]
) -> None:
    ended = command("check", *failing, "--write-known-failures", "first.yaml")
    assert ended.code == 1
    assert "first.yaml: 1 new known failure" in ended.err
    (entry,) = entries.read(Path("first.yaml"))
    assert (entry.written.case, entry.written.signature) == ("example-*", SIGNATURE)
    assert entry.written.reason == "boom"
    text = Path("first.yaml").read_text()
    assert text.startswith("# Failures that are known, for `--known-failures first.yaml`")
    assert command("check", *failing, "--known-failures", "first.yaml").code == 0
    again = command("check", *failing, "--write-known-failures", "first.yaml")
    assert again.code == 0
    assert "first.yaml: 0 new known failures" in again.err
    assert Path("first.yaml").read_text() == text


def test_new_failures_are_added_to_a_file_whose_rest_stays(
    command: Command, failing: tuple[str, ...]
) -> None:
    old = (
        "# ours\nknown_failures:\n  - case: example-*   # odd\n    signature: bang\n"
        f"    reason: it was so\n  - {{case: {CASE}, signature: {SIGNATURE!r}, reason: late,"
        " until: 2001-01-01}\n"
    )
    Path("known.yaml").write_text(old)
    ended = command("check", *failing, "--write-known-failures", "known.yaml")
    assert ended.code == 1
    text = Path("known.yaml").read_text()
    assert text.startswith(old + "\n  - case: example-")
    added = [one.written for one in entries.read(Path("known.yaml"))[2:]]
    assert {one.signature for one in added} == {SIGNATURE}
    assert {one.reason for one in added} == {"boom"}
    assert CASE not in {one.case for one in added}


def test_nothing_is_added_to_a_list_in_brackets(command: Command, failing: tuple[str, ...]) -> None:
    entry = known(signature="bang")
    ended = command("check", *failing, "--write-known-failures", entry[1])
    assert ended.code == 2
    assert (
        "known.yaml:1: known_failures: an entry can't be added to a list in brackets" in ended.err
    )


FUZZ = ("fuzz", "--max-examples", "25", "--keep-going", "--replay-every", "0")


@pytest.fixture
def refusing(program: Program) -> str:
    """A program that breaks at each admission."""
    return program("""
    if request.op == "admit":
        print(json.dumps({"id": request.id, "fault": BOOM}), flush=True)
    else:
        answer(request)
    """)


@pytest.mark.slow
def test_fuzzing_passes_over_what_is_known_and_writes_what_is_not(
    command: Command, refusing: str
) -> None:
    options = (*FUZZ, "--implementation", refusing, "--json")
    first = command(*options, "--write-known-failures", "known.yaml")
    assert first.code == 1
    assert "known.yaml: 1 new known failure" in first.err
    (entry,) = entries.read(Path("known.yaml"))
    assert (entry.written.case, entry.written.signature) == ("scenario", SIGNATURE)
    again = command(*options, "--known-failures", "known.yaml")
    assert again.code == 0
    counts = again.json()["outcomes"]
    assert set(counts) <= {"pass", "known failure", "unsupported"}
    assert counts["known failure"] > 0
    Path("known.yaml").write_text(Path("known.yaml").read_text() + "  until: 2027-01-31\n")
    late = command(*options, "--known-failures", "known.yaml", "--today", "2027-02-01")
    assert late.code == 1
    (found,) = late.json()["divergences"]
    assert "known until 2027-01-31: fix it, or move the date]" in found["message"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "known_failures:\n- case: a\n  signature: b\n  raeson: c\n",
            "known.yaml:4: known_failures[0].raeson: unknown key 'raeson'",
        ),
        (
            "known_failures:\n- case: a\n  signature: b\n",
            "known_failures[0]: missing key 'reason' (add 'reason')",
        ),
        (
            "known_failures:\n- {case: a, signature: b, reason: c, until: tomorrow}\n",
            "known_failures[0].until: ",
        ),
        (
            "known_failures:\n- {case: a, signature: '', reason: c}\n",
            "known_failures[0].signature: it is empty (copy the signature from the report)",
        ),
        (
            "known_failures:\n- {case: a, signature: b, reason: c, issue: '#12'}\n",
            "known_failures[0].issue: '#12' is not the address of an issue (write it as https://",
        ),
    ],
)
def test_a_wrong_file_is_2_with_its_line_and_field(
    command: Command, text: str, complaint: str
) -> None:
    Path("known.yaml").write_text(text)
    ended = command("check", *SMALL, "--known-failures", "known.yaml")
    assert ended.code == 2
    assert complaint in ended.err
