"""`numaproof check --fail-fast` and `--last-failed`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from numaproof.conformance.selection.last_failed import failed_runs
from numaproof.protocol.events import CaseFinished, Outcome, RunStarted
from numaproof.reports.files import read_events

Command = Callable[..., Any]
Program = Callable[[str], str]

OUT = Path("numaproof-report/check")


def case_runs() -> list[tuple[str, str]]:
    events = read_events(OUT / "events.jsonl")
    return [(one.case, one.outcome) for one in events if isinstance(one, CaseFinished)]


def test_only_what_failed_is_played_again(command: Command, program: Program) -> None:
    driver = program(
        """
        if request.op == "admit" and b"cpu" not in line and not os.path.exists("fixed"):
            os._exit(3)
        answer(request)
        """
    )
    check = ("check", "--machine", "laptop-4c8t", "--implementation", driver)
    ended = command(*check, "--last-failed")
    assert (ended.code, ended.err.splitlines()[-1]) == (
        2,
        "Error: no run in numaproof-report/check yet; check without --last-failed first",
    )
    # A failure is followed by cases that aren't played.
    ended = command(*check, "--select", "example-*", "--fail-fast")
    assert ended.code == 1
    assert "Incomplete run: stopped after the first failure" in ended.out
    played = case_runs()
    assert len(played) < 7
    assert {outcome for _, outcome in played[:-1]} <= {"pass"}
    failed, _ = played[-1]
    Path("fixed").touch()
    ended = command(*check, "--last-failed")
    assert (ended.code, case_runs()) == (0, [(failed, "pass")])
    assert "numaproof: 1 case run failed in the last run\n" in ended.err
    ended = command(*check, "--last-failed")
    assert ended.code == 2
    assert (
        "Error: no case run failed in the last run in numaproof-report/check; check without"
        " --last-failed"
    ) in ended.err


def test_failures_that_a_run_did_not_reach_still_count() -> None:
    def finished(case: str, outcome: Outcome) -> CaseFinished:
        return CaseFinished(0.0, case, "", "laptop", outcome, 0.0, ())

    started = msgspec.convert(
        {
            **dict.fromkeys(("numaproof", "command"), ""),
            "event": "campaign started",
            "kind": "check",
            "at": 0.0,
            "kubernetes": "1.37",
            "level": "kubelet",
            "total": 3,
            "machines": {},
            "requirements": [],
            "failed_before": [["one", "laptop"], ["two", "laptop"], ["three", "laptop"]],
        },
        RunStarted,
    )
    stopped = (started, finished("one", "pass"), finished("two", "crash"))
    assert failed_runs(stopped) == (("two", "laptop"), ("three", "laptop"))
    ends = (finished("one", "known failure"), finished("two-*", "missing known failure"))
    assert failed_runs(ends) == ()
