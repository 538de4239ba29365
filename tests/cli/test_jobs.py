"""`numaproof check --jobs` gives the same results as one job."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from builders.targets import changed_reference, target_of
from numaproof.conformance import check as checking
from numaproof.conformance.check import CaseRuns, _Result, _Unit
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.requirements import Registry
from numaproof.protocol.events import CaseFinished

Command = Callable[..., Any]
Program = Callable[[str], str]

SELECTED = ("--machine", "laptop-4c8t", "--select", "restart-re*")


def comparable(folder: Path) -> list[dict[str, Any]]:
    """The events of a run, from which reports are made, apart from times and options."""
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    differing = ("at", "seconds", "command", "origin")
    return [{name: value for name, value in one.items() if name not in differing} for one in events]


def test_jobs_do_not_change_what_is_reported(
    command: Command, program: Program, tmp_path: Path
) -> None:
    driver = program(
        """
        if request.op == "start" and b"reserved" in line and b"static" in line:
            print("about to break", file=sys.stderr, flush=True)
            os._exit(3)
        if request.op == "remove":
            print("not JSON", flush=True)
        else:
            answer(request)
        """
    )
    outputs = []
    for jobs in "12":
        out = tmp_path / jobs
        ended = command(
            *("check", *SELECTED, "--implementation", driver),
            *("--out", str(out), "--jobs", jobs, "--json"),
        )
        assert ended.code == 1
        report = ended.json()
        del report["seconds"]
        outputs.append((report, comparable(out)))
    assert {"crash", "protocol error", "pass"} <= outputs[0][0]["outcomes"].keys()
    assert outputs[0] == outputs[1]


def test_every_program_may_end_by_itself(command: Command, program: Program) -> None:
    driver = program(
        """
        if request.op == "hello":
            import atexit, pathlib
            atexit.register(pathlib.Path(f"{os.getpid()}-ended").touch)
        answer(request)
        """
    )
    one = ("--machine", "laptop-4c8t", "--select", "example-guaranteed-integer-is-exclusive")
    assert command("check", *one, "--implementation", driver, "--jobs", "2").code == 0
    # One has answered `hello`, and another one has played the case.
    assert len([*Path().glob("*-ended")]) == 2


def test_programs_that_can_only_run_once_need_one_job(command: Command, program: Program) -> None:
    driver = program(
        """
        if request.op == "hello":
            try:
                open("lock", "x")
            except FileExistsError:
                sys.exit("the database is in use")
        answer(request)
        """
    )
    ended = command("check", *SELECTED, "--implementation", driver, "--jobs", "2")
    assert ended.code == 2
    assert (
        "the program answered hello, but not while another copy of it was running: the program"
        " ended at hello with exit code 1; if only one can run at a time, use --jobs 1"
    ) in ended.err
    assert "Traceback" not in ended.err


@pytest.fixture
def runs() -> CaseRuns:
    """Six runs whose results are made up, with two jobs."""
    target = target_of(changed_reference())
    harness_run = HarnessRun(target, Registry(documents={}, requirements=()), "", "")
    return CaseRuns([None] * 6, harness_run, every_call=False, times=1, jobs=2)  # type: ignore[list-item]


def finished(number: int, message: str = "") -> CaseFinished:
    return CaseFinished(0.0, f"case-{number}", "", "", "time-out", 0.0, (), message)


def test_an_interrupt_keeps_results_that_others_wait_for(
    runs: CaseRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spread(*_: object) -> Iterator[_Unit]:
        for number in (0, 4, 2):
            yield _Unit(number, [_Result(finished(number))])
        raise KeyboardInterrupt

    monkeypatch.setattr(checking, "_UNIT", 1)
    monkeypatch.setattr(checking, "spread", spread)
    monkeypatch.setattr(checking, "_CaseWorker", lambda *_: None)
    events = runs.play(tmp_path)
    assert [next(events).case for _ in range(3)] == ["case-0", "case-2", "case-4"]
    with pytest.raises(KeyboardInterrupt):
        next(events)


def test_jobs_repeat_no_more_time_outs_than_one_job(
    runs: CaseRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def results(*_: object) -> Iterator[_Result]:
        for number in range(6):
            first = finished(number)
            yield _Result(finished(number, "repeated"), first_event=first, is_confirmed=number != 1)

    monkeypatch.setattr(checking, "_MAX_CONFIRMED", 3)
    monkeypatch.setattr(CaseRuns, "_play_on", results)
    messages = [one.message for one in runs.play(tmp_path)]
    assert messages == ["repeated"] * 4 + [""] * 2
