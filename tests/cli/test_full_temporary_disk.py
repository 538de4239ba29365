"""A full temporary disk is reported once with its folder, and the program isn't blamed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from builders.input_files import FINDING, KUBELET, POD
from numaproof.protocol.events import CaseFinished, RunEnded
from numaproof.reports.files import EVENTS, read_events

Command = Callable[..., Any]
Program = Callable[[str], str]

FULL = "No space left on device; temporary files need at least 1 MiB: free some space, or set"
SMALL = ("--machine", "laptop-4c8t", "--select", "example-*")


@pytest.fixture(autouse=True)
def inputs(command: Command) -> None:  # noqa: ARG001 - in its folder
    Path("kubelet.yaml").write_text(KUBELET)
    Path("pod.yaml").write_text(POD)
    Path("finding.yaml").write_text(FINDING)
    Path("cpu_manager_state").write_text('{"policyName":"none","defaultCpuSet":"","checksum":1}')


@pytest.fixture
def temporary(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small file system for temporary files."""
    monkeypatch.setenv("TMPDIR", str(small_disk))
    return small_disk


COMMANDS: dict[str, Sequence[str]] = {
    "check": ("check", *SMALL),
    "check of a program": ("check", *SMALL, "--implementation", "PROGRAM"),
    "fuzz": ("fuzz", "--examples", "5", "--implementation", "PROGRAM"),
    "diff": ("diff", "--right", "PROGRAM", "--seeds", "0:5"),
    "doctor": ("doctor", "PROGRAM"),
    "replay": ("replay", "static-gives-what-the-limit-says", "--implementation", "PROGRAM"),
    "promote": ("promote", "finding.yaml", "--id", "static-first"),
    "simulate": ("simulate", "--machine", "laptop-4c8t", "--config", "kubelet.yaml", "pod.yaml"),
    "record": ("record", "--implementation", "PROGRAM", "--seeds", "0:3", "--out", "x.jsonl.xz"),
    "campaign": ("campaign", "--no-seeds", *SMALL, "--workers", "1"),
    "state": ("state", "check", "cpu_manager_state", "--machine", "laptop-4c8t"),
    "case": ("case", "show", "static-gives-what-the-limit-says", "--machine", "laptop-4c8t"),
}


@pytest.mark.parametrize(("which", "free_blocks"), [*zip(COMMANDS, cycle((0, 8)), strict=False)])
def test_a_full_temporary_disk_is_reported_once(
    command: Command, program: Program, temporary: Path, which: str, free_blocks: int
) -> None:
    with (temporary / "ballast").open("wb", buffering=0) as file, suppress(OSError):
        page = bytes(os.statvfs(temporary).f_frsize)
        while os.statvfs(temporary).f_bavail > free_blocks:
            file.write(page)
    right = program("answer(request)")
    earlier = [
        Path("numaproof-report", COMMANDS[which][0], name)
        for name in (
            "report.md",
            "findings/fuzz-0123abcd.yaml",
            "findings/difference-0123abcd.yaml",
        )
    ]
    for file in earlier:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("what an earlier run found")
    ended = command(*(right if one == "PROGRAM" else one for one in COMMANDS[which]))
    assert ended.code == 2
    assert ended.err.count(FULL) == 1
    assert f"numaproof: {temporary}" in ended.err
    assert FULL not in ended.out
    assert [file.name for file in earlier if not file.exists()] == []
    assert not Path("x.jsonl.xz").exists()


LONGER = ("check of a program", "fuzz", "diff", "doctor", "replay", "record")


@pytest.mark.parametrize("which", LONGER)
def test_a_full_temporary_disk_is_not_the_programs_fault(
    command: Command, program: Program, temporary: Path, which: str
) -> None:
    filling = program(
        f"""
        if request.op == "start":
            with open({str(temporary / "ballast")!r}, "ab", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    pass
        if request.op == "state":
            sys.exit("my state cannot be written")
        answer(request)
        """
    )
    ended = command(*(filling if one == "PROGRAM" else one for one in COMMANDS[which]))
    assert ended.code == 2
    assert ended.err.count(FULL) == 1
    assert f"numaproof: {temporary}" in ended.err
    assert "skipped" not in ended.err
    assert not Path("x.jsonl.xz").exists()
    if "--out" in COMMANDS[which] or which == "doctor":
        return
    events = read_events(Path("numaproof-report", COMMANDS[which][0], EVENTS))
    assert not [one for one in events if isinstance(one, CaseFinished) and one.outcome != "pass"]
    assert isinstance(events[-1], RunEnded)
    assert not events[-1].complete
    assert FULL in events[-1].message
