"""`numaproof check --known-failures`: only unknown failures fail a run."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from numaproof.cli.check import known_ids
from numaproof.conformance.cases import loading
from numaproof.conformance.differential import recordings
from numaproof.conformance.known_failures import entries
from numaproof.conformance.known_failures.entries import (
    KnownFailure,
    KnownFailureEntry,
    KnownFailures,
)
from numaproof.protocol.events import CaseFinished, Outcome

Command = Callable[..., Any]


def test_a_whole_run_reports_a_glob_without_failures() -> None:
    entry = KnownFailureEntry(KnownFailure("a-*", "boom", "why"), "known.yaml:1")
    passed = CaseFinished(0.0, "a-one", "One", "laptop", "pass", 0.0, ())
    for whole in (True, False):
        known_ones = KnownFailures((entry,), whole=whole)
        known_ones.judge(passed)
        assert [one.outcome for one in known_ones.missing(0.0)] == (
            ["missing known failure"] if whole else []
        )


def test_the_entry_with_the_most_similar_cause_is_named() -> None:
    causes = ("invariant cpus-never-shared", "fault at admit: bang", "crash at start")
    several = [
        KnownFailureEntry(KnownFailure("*", cause, "why"), f"known.yaml:{line}")
        for line, cause in enumerate(causes, 1)
    ]
    failed = CaseFinished(0.0, "a-one", "One", "laptop", "fault", 0.0, ())
    failed = structs.replace(failed, signature="fault at admit: boom", message="boom")
    assert "[known.yaml:2: " in KnownFailures(several).judge(failed).message
    assert "[known.yaml:2: " in KnownFailures(several[::-1]).judge(failed).message


def test_the_latest_of_several_expired_dates_is_named() -> None:
    dates = (dt.date(2027, 1, 1), dt.date(2027, 3, 1), dt.date(2027, 2, 1))
    several = [
        KnownFailureEntry(KnownFailure("*", "boom", "why", until=date), f"known.yaml:{line}")
        for line, date in enumerate(dates, 1)
    ]
    failed = CaseFinished(0.0, "a-one", "One", "laptop", "fault", 0.0, ())
    failed = structs.replace(failed, signature="boom", message="boom")
    judged = KnownFailures(several, dt.date(2027, 4, 1)).judge(failed)
    assert judged.message == (
        "boom [known.yaml:2: expired after 2027-03-01: fix the failure, or extend the date]"
    )


@pytest.mark.parametrize(
    ("outcomes", "sentence"),
    [
        (("unsupported",), "1 case run that it names is unsupported now"),
        (("unsupported", "unsupported"), "all 2 case runs that it names are unsupported now"),
        (("unsupported", "pass"), "all 2 case runs that it names pass or are unsupported now"),
    ],
)
def test_an_entry_whose_cases_are_unsupported_is_reported(
    outcomes: tuple[Outcome, ...], sentence: str
) -> None:
    known_ones = KnownFailures((KnownFailureEntry(KnownFailure("a-*", "boom", "why"), "k.yaml:1"),))
    for number, outcome in enumerate(outcomes):
        known_ones.judge(CaseFinished(0.0, f"a-{number}", "One", "laptop", outcome, 0.0, ()))
    (one,) = known_ones.missing(0.0)
    assert one.message == f"k.yaml:1: {sentence}: remove the entry"


def test_an_entry_whose_cases_fail_for_another_known_cause_is_reported() -> None:
    stale, met = (
        KnownFailureEntry(KnownFailure("a-*", cause, "why"), f"k.yaml:{line}")
        for line, cause in enumerate(("boom", "bang"), 1)
    )
    known_ones = KnownFailures((stale, met))
    failed = CaseFinished(0.0, "a-one", "One", "laptop", "fail", 0.0, (), signature="bang")
    assert known_ones.judge(failed).outcome == "known failure"
    (one,) = known_ones.missing(0.0)
    assert one.message == (
        "k.yaml:1: 1 case run that it names fails for another known cause now: remove the entry"
    )


def test_an_unknown_case_is_an_error_in_partial_runs(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "bundled_recordings", lambda _: ())  # reading all takes seconds
    file = tmp_path / "known.yaml"
    file.write_text(
        "known_failures:\n"
        "- {case: example-*, signature: boom, reason: why}\n"
        "- {case: scenario, signature: boom, reason: why}\n"
        "- case: example-guaranteed-integer-is-exclusiv\n"
        "  signature: boom\n"
        "  reason: why\n"
    )
    partial = ("--machine", "laptop-4c8t", "--select", "example-besteffort-*")
    ended = command("check", *partial, "--known-failures", file)
    assert ended.code == 2
    assert ended.err.startswith(
        f"numaproof: {file}:4: known_failures[2].case: no case matches"
        " 'example-guaranteed-integer-is-exclusiv' (did you mean"
        " 'example-guaranteed-integer-is-exclusive'"
    )


def test_every_case_of_an_adapters_known_failures_exists() -> None:
    files = list((Path(__file__).parents[2] / "adapters").glob("*/known-failures.yaml"))
    assert files
    for file in files:
        entries.read(file, partial(known_ids, loading.bundled_cases()))
