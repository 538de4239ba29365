"""`numaproof check`: exit codes, reports, selection, and programs that misbehave."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numaproof.conformance import check
from numaproof.protocol.events import CaseFinished

Command = Callable[..., Any]
Program = Callable[[str], str]
Finished = Callable[[Path], list[CaseFinished]]
Small = tuple[str, ...]


def outcomes(runs: list[CaseFinished]) -> list[str]:
    return [run.outcome for run in runs]


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_exits_with_3_and_reports_what_ran(
    program: Program,
    small: Small,
    read_case_runs: Finished,
    tmp_path: Path,
    signal_number: signal.Signals,
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    waiting = program(
        f"""
        cases = open({str(tmp_path / "count")!r}, "a+b")
        if request.op == "admit":
            cases.write(b"x"); cases.flush()
            if cases.tell() == 3:
                open({str(pipe)!r}, "w").write(str(os.getpid()))
                time.sleep(600)
        answer(request)
        """
    )
    script = shutil.which("numaproof", path=str(Path(sys.executable).parent))
    assert script is not None
    out = tmp_path / "report"
    # A shell starts background jobs with SIGINT ignored, and these tests may run in one.
    heeding = ("env", "--default-signal=INT,HUP")
    running = subprocess.Popen(
        [
            *(*heeding, script, "check", *small, "--implementation", waiting, "--out", str(out)),
            *("--write-known-failures", str(tmp_path / "known.yaml")),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    child = os.pidfd_open(int(pipe.read_text()))
    running.send_signal(signal_number)
    written, errors = running.communicate(timeout=60)
    assert running.returncode == 3
    assert "Traceback" not in written + errors
    assert "interrupted" in written
    runs = read_case_runs(out)
    assert outcomes(runs) == ["pass"] * 2
    assert "interrupted" in (out / "report.md").read_text()
    assert "known.yaml: not written, because the run is incomplete" in errors
    assert not (tmp_path / "known.yaml").exists()
    os.close(child)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("request.op == 'admit'", "no answer to admit within 6 s, not when repeated either"),
        (
            "request.op == 'admit' and not os.path.exists('hung')",
            "no answer to admit within 6 s (not every time: it is slow or flaky)",
        ),
    ],
)
def test_a_time_out_is_repeated(
    condition: str,
    message: str,
    command: Command,
    program: Program,
    read_case_runs: Finished,
) -> None:
    hanging = program(f"""
        if {condition}:
            open("hung", "w").close()
            time.sleep(600)
        answer(request)
        """)
    one = ("--machine", "laptop-4c8t", "--select", "example-guaranteed-integer-is-exclusive")
    ended = command("check", *one, "--implementation", hanging, "--timeout", "6")
    assert ended.code == 1
    (run,) = read_case_runs(Path("numaproof-report/check"))
    assert (run.outcome, run.message) == ("time-out", message)


def test_only_a_few_time_outs_are_repeated(
    command: Command,
    program: Program,
    read_case_runs: Finished,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "_MAX_CONFIRMED", 1)
    hanging = program("if request.op == 'hello':\n    answer(request)\nelse: time.sleep(600)")
    two = ("--select", "example-guaranteed-integer-*", "--select", "example-guaranteed-fraction-*")
    ended = command(
        *("check", "--machine", "laptop-4c8t", *two),
        *("--implementation", hanging, "--timeout", "6"),
    )
    assert ended.code == 1
    runs = read_case_runs(Path("numaproof-report/check"))
    assert [run.message.endswith("repeated either") for run in runs] == [
        True,
        *[False] * (len(runs) - 1),
    ]
