"""`numaproof check`: exit codes, reports, selection, and programs that misbehave."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numaproof import fakesys
from numaproof.protocol.events import CaseFinished

Command = Callable[..., Any]
Program = Callable[[str], str]
Finished = Callable[[Path], list[CaseFinished]]
Small = tuple[str, ...]

REPORT = Path("numaproof-report/check")


def test_all_passed_is_0_with_every_report(
    command: Command, small: Small, finished: Finished
) -> None:
    ended = command("check", *small)
    assert ended.code == 0
    assert "Passed: 7 case runs (7 pass)" in ended.out
    assert "untested" not in ended.out  # what was not selected does not count
    assert {run.outcome for run in finished(REPORT)} == {"pass"}


def test_json_goes_to_standard_output_alone(command: Command, small: Small) -> None:
    ended = command("check", *small, "--json", "--out", "elsewhere")
    assert ended.json()["verdict"] == "passed"
    assert ended.json()["outcomes"] == {"pass": 7}
    assert "7 case runs" in ended.err
    assert Path("elsewhere/junit.xml").is_file()


def test_plain_output_has_no_control_characters(command: Command, small: Small) -> None:
    assert "\x1b" not in command("check", *small).out


def test_two_runs_record_the_same_times_aside(command: Command, small: Small) -> None:
    def events(out: str) -> list[dict[str, Any]]:
        command("check", *small, "--out", out)
        stream = [json.loads(line) for line in Path(out, "events.jsonl").read_text().splitlines()]
        for event in stream:
            event.update(at=0, seconds=0, command="")
        return stream

    assert events("one") == events("two")


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--select", "no-such-*"), "no case matches --select 'no-such-*'"),
        (("--exclude", "no-such-*"), "no case matches --exclude 'no-such-*'"),
        (("--select", "aera:x"), "unknown key 'aera' in 'aera:x'; did you mean area:x?"),
        (("--exclude", "*"), "none of the selected cases applies to these machines"),
        (("--repeat", "0"), "0 is not in the range"),
        (("--machine", "no-such"), "'no-such' is neither a bundled machine nor a file"),
        (("--implementation", ""), "the command is empty"),
        (("--implementation", '"open'), "No closing quotation"),
        (("--implementation", "/nonexistent/driver"), "can't start '/nonexistent/driver'"),
        (("--kubernetes", "1.12"), "'1.12' is not one of"),
        (("--level", "all"), "'all' is not one of"),
        (("--timeout", "0"), "'0' is not a duration such as 90s"),
        (("--timeout", "inf"), "'inf' is not a duration such as 90s"),
        (("--timeout", "nan"), "'nan' is not a duration such as 90s"),
        (("--bogus",), "No such option"),
    ],
)
def test_wrong_options_are_2_and_say_what_is_wrong(
    command: Command, args: tuple[str, ...], complaint: str
) -> None:
    ended = command("check", "--machine", "laptop-4c8t", *args)
    assert ended.code == 2
    assert complaint in ended.err


def test_patterns_select_and_exclude(command: Command, finished: Finished) -> None:
    args = ("--machine", "laptop-4c8t", "--select", "example-*", "--select", "CPU-REMOVE-003")
    assert command("check", *args, "--exclude", "example-besteffort-*").code == 0
    ids = {run.case for run in finished(REPORT)}
    assert any(one.startswith("remove-") for one in ids)
    assert any(one.startswith("example-guaranteed-") for one in ids)
    assert not any(one.startswith("example-besteffort-") for one in ids)


def test_recordings_are_selected_by_the_same_patterns(command: Command, finished: Finished) -> None:
    assert command("check", "--select", "recorded-merges-1*", "--kubernetes", "1.36").code == 0
    assert {run.case[:17] for run in finished(REPORT)} == {"recorded-merges-1"}


def test_every_command_has_a_folder_of_its_own(command: Command, small: Small) -> None:
    command("check", *small)
    command("fuzz", "--max-examples", "1")
    command("replay", "example-guaranteed-integer-is-exclusive")
    assert {folder.name for folder in REPORT.parent.iterdir()} == {"check", "fuzz", "replay"}


FICKLE = """
if request.op == "admit" and os.path.exists({0!r}) and request.args:
    refused = {{"reason": "UnexpectedAdmissionError", "message": "no"}}
    print(json.dumps({{"id": request.id, "refused": refused}}), flush=True)
else:
    answer(request)
if request.op == "admit":
    open({0!r}, "w").close()
"""
"""Refuses every pod but the first that any process sees."""


def test_a_case_that_is_answered_differently_the_second_time_is_nondeterministic(
    command: Command, program: Program, finished: Finished, tmp_path: Path
) -> None:
    args = ("--machine", "laptop-4c8t", "--select", "example-guaranteed-*")
    fickle = program(FICKLE.format(str(tmp_path / "seen")))
    ended = command("check", *args, "--implementation", fickle, "--repeat", "2")
    assert ended.code == 1
    first, *_ = finished(REPORT)
    assert first.outcome == "nondeterministic"
    assert first.signature.startswith("nondeterministic at admit")
    assert first.steps[-1].expected is not None
    assert command("check", *args, "--repeat", "2").code == 0


def test_a_report_folder_that_cannot_be_is_2(command: Command, small: Small) -> None:
    Path("file").write_text("")
    assert command("check", *small, "--out", "file/folder").code == 2


def test_a_profile_file_is_a_machine_and_is_named_again(
    command: Command, finished: Finished
) -> None:
    profile = fakesys.load_profile("laptop-4c8t")
    Path("mine.yaml").write_text(fakesys.dump_profile(profile).replace("laptop-4c8t", "mine"))
    ended = command("check", "--machine", "mine.yaml", "--select", "example-besteffort-*")
    assert ended.code == 0
    (run,) = finished(REPORT)
    assert "--machine mine.yaml" in run.reproduce


def test_the_reference_as_a_program_passes(
    command: Command, small: Small, finished: Finished
) -> None:
    program = f"{sys.executable} -m numaproof reference"
    ended = command("check", *small, "--implementation", program, "--kubernetes", "1.34")
    assert ended.code == 0
    assert "Kubernetes 1.34" in ended.out
    assert all("--implementation" in run.reproduce for run in finished(REPORT))


def outcomes(runs: list[CaseFinished]) -> list[str]:
    return [run.outcome for run in runs]


@pytest.mark.parametrize(
    ("body", "outcome", "message"),
    [
        ("if admissions: sys.exit(7)", "crash", "the program ended at admit with exit code 7"),
        (
            "if admissions: os.kill(os.getpid(), 11)",
            "crash",
            "the program ended at admit with signal SIGSEGV",
        ),
        ("if admissions: print('garbage', flush=True)", "protocol error", "not JSON"),
        (
            "if admissions: print(json.dumps({'id': 99, 'ok': {}}), flush=True)",
            "protocol error",
            "got id 99",
        ),
        (
            "if admissions: print(json.dumps({'id': request.id, 'ok': {}, 'x': 1}), flush=True)",
            "protocol error",
            "unknown field `x`",
        ),
        (
            "if admissions: print(json.dumps({'id': request.id, 'fault': BOOM}), flush=True)",
            "fault",
            "boom",
        ),
    ],
)
def test_a_broken_answer_is_reported_as_what_it_is_and_the_run_goes_on(
    command: Command,
    program: Program,
    finished: Finished,
    *,
    small: Small,
    body: str,
    outcome: str,
    message: str,
) -> None:
    log = "sys.stderr.write('last words'); sys.stderr.flush()"
    broken = program(f"{log}\n{body}\nelse: answer(request)")
    ended = command("check", *small, "--implementation", broken)
    assert ended.code == 1
    runs = finished(REPORT)
    assert outcomes(runs) == [outcome] * 7
    assert all(message in run.message for run in runs)
    if outcome != "fault":
        assert all(run.stderr.startswith("last words") for run in runs)
    assert outcome.upper() in ended.out


def test_one_hanging_call_is_a_time_out_and_the_rest_is_measured(
    command: Command, small: Small, program: Program, finished: Finished, tmp_path: Path
) -> None:
    marker = tmp_path / "hung"
    hanging = program(
        f"""
        if admissions and not os.path.exists({str(marker)!r}):
            open({str(marker)!r}, "w").close()
            time.sleep(600)
        answer(request)
        """
    )
    ended = command("check", *small, "--implementation", hanging, "--timeout", "2")
    assert ended.code == 1
    runs = finished(REPORT)
    assert outcomes(runs) == ["time-out"] + ["pass"] * 6
    assert runs[0].message == "no answer to admit within 2 s"


def test_a_flood_of_log_is_no_failure(
    command: Command, small: Small, program: Program, finished: Finished
) -> None:
    flooding = program("sys.stderr.write('x' * 1000000)\nanswer(request)")
    assert command("check", *small, "--implementation", flooding).code == 0
    assert outcomes(finished(REPORT)) == ["pass"] * 7


@pytest.mark.parametrize(
    ("implementation", "outcome"),
    [
        ("sh -c 'echo no licence >&2; exit 4'", "crash"),
        ("sh -c 'echo no licence >&2; echo hello'", "protocol error"),
        ("sh -c 'echo no licence >&2; exec sleep 600'", "time-out"),
    ],
)
@pytest.mark.parametrize("run", [("check",), ("fuzz", "--seed", "1")])
def test_a_program_that_does_not_greet_has_a_report_that_says_so(
    command: Command, finished: Finished, run: tuple[str, ...], implementation: str, outcome: str
) -> None:
    ended = command(*run, "--timeout", "0.5", "--implementation", implementation)
    assert ended.code == 1
    (only,) = finished(REPORT.parent / run[0])
    assert (only.case, only.outcome) == ("hello", outcome)
    assert only.stderr == "no licence\n"


def test_what_is_not_claimed_is_unsupported_and_all_of_it_is_2(
    command: Command, small: Small, program: Program, finished: Finished
) -> None:
    modest = program(
        """
        if request.op == "hello":
            hello = codec.to_plain(reference.hello(None))
            hello["policies"]["cpu"] = ["none"]
            print(json.dumps({"id": request.id, "ok": hello}), flush=True)
        else:
            sys.exit("nobody claimed " + request.op)
        """
    )
    ended = command("check", *small, "--implementation", modest)
    assert ended.code == 2
    assert outcomes(finished(REPORT)) == ["unsupported"] * 7


@pytest.mark.parametrize(
    ("capabilities", "args", "complaint"),
    [
        ({"kubernetes": ["1.12"]}, (), "claims releases 1.12; numaproof knows"),
        ({"kubernetes": []}, (), "claims releases none"),
        ({"kubernetes": ["1.34"]}, ("--kubernetes", "1.35"), "claims 1.34, not 1.35"),
        ({"level": "admission"}, ("--level", "kubelet"), "claims only level admission, below"),
    ],
)
def test_options_beyond_the_claims_are_2(
    command: Command,
    small: Small,
    program: Program,
    *,
    capabilities: dict[str, object],
    args: tuple[str, ...],
    complaint: str,
) -> None:
    modest = program(
        f"""
        hello = codec.to_plain(reference.hello(None)) | {capabilities!r}
        print(json.dumps({{"id": request.id, "ok": hello}}), flush=True)
        """
    )
    ended = command("check", *small, *args, "--implementation", modest)
    assert ended.code == 2
    assert complaint in ended.err


def test_malicious_text_is_inert_in_the_page(
    command: Command, small: Small, program: Program
) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m"
    malicious = program(
        f"""
        if request.op == "hello":
            hello = codec.to_plain(reference.hello(None))
            hello |= {{"name": {evil!r}, "homepage": "javascript:alert(3)"}}
            print(json.dumps({{"id": request.id, "ok": hello}}), flush=True)
        elif admissions:
            sys.stderr.write({evil!r}); sys.stderr.flush()
            fault = {{"message": {evil!r}, "trace": {evil!r}}}
            print(json.dumps({{"id": request.id, "fault": fault}}), flush=True)
        else:
            answer(request)
        """
    )
    ended = command("check", *small, "--implementation", malicious)
    assert ended.code == 1
    assert "\x1b" not in ended.out
    page = (REPORT / "report.html").read_text()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert 'href="javascript:' not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_is_3_and_what_was_measured_is_reported(
    program: Program, small: Small, finished: Finished, tmp_path: Path, sent: signal.Signals
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
    running.send_signal(sent)
    written, errors = running.communicate(timeout=60)
    assert running.returncode == 3
    assert "Traceback" not in written + errors
    assert "interrupted" in written
    runs = finished(out)
    assert outcomes(runs) == ["pass"] * 2
    assert "interrupted" in (out / "report.md").read_text()
    assert "known.yaml: not written, as the run was cut short" in errors
    assert not (tmp_path / "known.yaml").exists()
    os.close(child)
