"""Printed commands reproduce the failure when pasted, and don't change the report."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from numaproof.inputs.shell_words import quote_words
from numaproof.protocol.events import CaseFinished, DivergenceFound
from numaproof.reports.files import EVENTS, read_events

Command = Callable[..., Any]
Program = Callable[[str], str]

FAULTY = """
if request.op == "admit":
    print(json.dumps({"id": request.id, "fault": {"message": "boom", "trace": ""}}), flush=True)
else:
    answer(request)
"""
TIMES = """
import random
refusal = {"refused": {"stage": "config", "message": str(random.random())}}
if request.op == "start":
    print(json.dumps({"id": request.id, "result": refusal}), flush=True)
else:
    answer(request)
"""
CASES = """\
cases:
- id: own-first
  title: a pod is admitted
  requirements: [CPU-STATIC-007]
  level: invariants
  steps:
  - start: {config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}}
  - admit: {pod: a, containers: {app: {limits: {cpu: "1", memory: 64Mi}}}}
- id: own-second
  title: another pod is admitted
  requirements: [CPU-STATIC-007]
  level: invariants
  steps:
  - start: {config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}}
  - admit: {pod: a, containers: {app: {limits: {cpu: "1", memory: 64Mi}}}}
"""
MACHINE = ("--machine", "laptop-4c8t")


def content(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def signatures(folder: Path) -> set[str]:
    events = read_events(folder / EVENTS)
    return {one.signature for one in events if isinstance(one, CaseFinished | DivergenceFound)}


def reports(folder: Path) -> list[str]:
    """Returns the text of every report for people and CI systems."""
    told = "".join(ET.parse(folder / "junit.xml").getroot().itertext())  # noqa: S314 - our own
    page = html.unescape((folder / "report.html").read_text())
    return [told, page, (folder / "report.md").read_text()]


def run(command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a shell."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": path},
    )


RUNS: dict[str, tuple[str, tuple[str, ...], Path]] = {
    "check": (
        FAULTY,
        (
            *("check", *MACHINE, "--cases", "own cases.yaml", "--select", "own-second"),
            *("--timeout", "20s", "--level", "admission"),
        ),
        Path("numaproof-report/check"),
    ),
    "recording": (
        FAULTY,
        ("check", "--select", "recorded-scenario-1", "--kubernetes", "1.36"),
        Path("numaproof-report/check"),
    ),
    "repeated": (
        TIMES,
        ("check", *MACHINE, "--select", "pool-begins-*", "--repeat", "3", "--level", "invariants"),
        Path("numaproof-report/check"),
    ),
    "fuzz": (FAULTY, ("fuzz", "--examples", "20"), Path("numaproof-report/fuzz")),
    "diff": (FAULTY, ("diff", "--seeds", "0:9"), Path("numaproof-report/diff")),
    "replay": (
        FAULTY,
        ("replay", "own cases.yaml", *MACHINE, "--select", "own-second"),
        Path("numaproof-report/replay"),
    ),
    "hello": ("sys.exit(7)", ("check", *MACHINE), Path("numaproof-report/check")),
}


@pytest.mark.parametrize("which", RUNS)
def test_a_printed_command_reproduces_and_keeps_the_report(
    command: Command, program: Program, which: str
) -> None:
    body, words, folder = RUNS[which]
    Path("own cases.yaml").write_text(CASES)
    option = "--right" if which == "diff" else "--implementation"
    failed = command(*words, option, program(body))
    assert failed.code == 1
    before, found = content(folder), signatures(folder)
    (printed, *_) = re.findall(r"reproduce: (numaproof .*)", failed.out)
    assert all(printed in report for report in reports(folder))
    again = run(printed)
    assert again.returncode == 1, again.stderr
    assert content(folder) == before
    if which == "hello":
        assert printed.startswith("numaproof doctor ")
        assert "exit code 7" in again.stdout
        return
    written = re.findall(r"Reports: (.*)", again.stdout)[0]
    assert written != str(folder)
    assert signatures(Path(written)) <= found
    assert "1 of 1" in again.stdout


def test_a_campaign_prints_commands_that_work_here(command: Command, program: Program) -> None:
    wrong, out = f"{program(FAULTY)} {'x' * 400}", Path("my  campaign")
    words = ("campaign", "--seeds", "0:5", "--no-cases", "--workers", "1", "--out", out)
    ended = command(*words, "--implementation", wrong)
    assert ended.code == 1
    assert "first with seed" in ended.out
    before = content(out)
    (printed, *_) = re.findall(r"^ +(numaproof replay .*)", ended.out, re.MULTILINE)
    assert f"'{out}/findings/" in printed
    again = run(printed)
    assert again.returncode == 1, again.stderr
    assert "boom" in again.stdout
    assert content(out) == before


def test_a_campaign_prints_commands_for_cases(command: Command, program: Program) -> None:
    words = ("campaign", "--no-seeds", *MACHINE, "--select", "pool-*", "--workers", "1")
    ended = command(*words, "--implementation", program(FAULTY))
    assert ended.code == 1
    assert "first on laptop-4c8t, 1.37 kubelet" in ended.out
    (printed, *_) = re.findall(r"^ +(numaproof replay .*)", ended.out, re.MULTILINE)
    again = run(printed)
    assert again.returncode == 1, again.stderr
    assert "boom" in again.stdout


@pytest.mark.parametrize(
    "name", [b"plain", b"two words", b"it's", b"\xff\\'\n x", "é\u202e".encode()]
)
def test_printed_names_are_quoted_for_a_shell(name: bytes) -> None:
    word = os.fsdecode(name)
    line = quote_words(("printf", "%s", word))
    assert line.isprintable()
    told = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert told.stdout == name


def test_an_unknown_recording_is_refused(command: Command) -> None:
    ended = command("replay", "recorded-nothing", "--kubernetes", "1.36")
    assert ended.code == 2
    assert "no file or recording of Kubernetes 1.36 is named 'recorded-nothing'" in ended.err
