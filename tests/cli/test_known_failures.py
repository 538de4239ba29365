"""`numaproof check --known-failures`: what is known does not fail a run, and what is not, does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numaproof.conformance.judging import known_failures
from numaproof.conformance.judging.known_failures import (
    KnownFailure,
    KnownFailureEntry,
    KnownFailures,
)
from numaproof.protocol.events import CaseFinished

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
    assert "it is being fixed" in (REPORT / "report.md").read_text()
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
        known_ones.judged(passed, ("a-one",))
        assert [one.outcome for one in known_ones.missing(0.0)] == (
            ["missing known failure"] if whole else []
        )


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


def test_the_first_file_makes_the_run_pass_and_is_compact(
    command: Command, failing: tuple[str, ...]
) -> None:
    ended = command("check", *failing, "--write-known-failures", "first.yaml")
    assert ended.code == 1
    assert "first.yaml: 1 known failure" in ended.err
    (entry,) = known_failures.read(Path("first.yaml"))
    assert (entry.written.case, entry.written.signature) == ("example-*", SIGNATURE)
    assert entry.written.reason == "boom"
    assert Path("first.yaml").read_text().startswith("# Failures that are known, for `numaproof")
    assert command("check", *failing, "--known-failures", "first.yaml").code == 0
    again = command("check", *failing, "--write-known-failures", "first.yaml")
    assert again.code == 2
    assert "first.yaml exists already" in again.err


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
