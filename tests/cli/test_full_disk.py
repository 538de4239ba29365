"""On a full disk, commands name the file, keep the old content, and can be repeated."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from builders.input_files import KUBELET, POD

Command = Callable[..., Any]
Program = Callable[[str], str]

FULL = "No space left on device"
CHECK = ("check", "--machine", "laptop-4c8t", "--select", "example-*")


@pytest.fixture
def full_disk(small_disk: Path) -> Path:
    """A file system with room for one page of memory."""
    fill(small_disk, leave=1)
    return small_disk


def fill(disk: Path, *, leave: int = 0) -> None:
    """Leaves room for a number of memory pages."""
    with (disk / "ballast").open("wb", buffering=0) as file, suppress(OSError):
        page = bytes(os.statvfs(disk).f_frsize)
        while os.statvfs(disk).f_bavail > leave:
            file.write(page)


def files(folder: Path) -> dict[str, int]:
    return {
        str(one.relative_to(folder)): one.stat().st_size
        for one in folder.rglob("*")
        if one.is_file() and one.name != "ballast"
    }


REPORTING: dict[str, Sequence[str]] = {
    "check": CHECK,
    "fuzz": ("fuzz", "--examples", "1"),
    "diff": ("diff", "--right", "PROGRAM", "--seeds", "0:1"),
    "replay": ("replay", "static-gives-what-the-limit-says", "--machine", "laptop-4c8t"),
    "campaign": ("campaign", "--no-seeds", *CHECK[1:], "--workers", "1"),
    "board": ("board", "report"),
}


@pytest.mark.parametrize("which", REPORTING)
def test_a_report_that_does_not_fit_on_the_disk_is_named(
    command: Command, program: Program, full_disk: Path, which: str
) -> None:
    if which == "board":
        assert command(*CHECK, "--out", "report").code == 0
    words = [program("answer(request)") if one == "PROGRAM" else one for one in REPORTING[which]]
    out = full_disk / "out"
    ended = command(*words, "--out", out)
    assert ended.code == 2
    (line,) = [one for one in ended.err.splitlines() if FULL in one]
    assert line.startswith(f"numaproof: {out}/")
    assert "Reports: " not in ended.out
    assert "still in progress" not in ended.out
    assert not [name for name in files(out) if name.endswith(".part")]
    (full_disk / "ballast").unlink()
    if which in {"check", "campaign", "replay"}:
        again = command(*words, "--out", out)
        assert FULL not in again.err
        assert again.code == 0


def test_a_full_disk_is_not_reported_as_a_killed_run(command: Command, small_disk: Path) -> None:
    out = small_disk / "out"
    for pages in (1, 4, 16, 64):
        fill(small_disk, leave=pages)
        ended = command(*CHECK, "--out", out)
        assert ended.code == 2
        (line,) = [one for one in ended.err.splitlines() if FULL in one]
        assert line.startswith(f"numaproof: {out}/")
        assert "Reports: " not in ended.out
        assert "no beginning" not in ended.out
        assert b"\0" not in (out / "events.jsonl").read_bytes()
        for name in ("report.md", "report.html"):
            report = out / name
            assert not report.exists() or "still in progress" not in report.read_text()


def test_a_board_is_replaced_after_the_full_disk_has_room(
    command: Command, small_disk: Path
) -> None:
    subprocess.run(["mount", "-o", "remount,size=32m", small_disk], check=True)
    assert command(*CHECK, "--out", "report").code == 0
    out = small_disk / "site"
    for pages in (1, 4, 8, 16, 32):
        fill(small_disk, leave=pages)
        assert FULL in command("board", "report", "--out", out).err
    (small_disk / "ballast").unlink()
    assert command("board", "report", "--out", out).code == 0


@pytest.mark.parametrize("name", ["data.json", "data"])
def test_board_data_that_does_not_fit_keeps_the_old_file(
    command: Command, full_disk: Path, name: str
) -> None:
    assert command(*CHECK, "--out", "report").code == 0
    (full_disk / "ballast").unlink()
    data = full_disk / name
    assert command("board", "report", "--out", "site", "--out-data", data).code == 0
    before = files(full_disk)
    fill(full_disk)
    ended = command("board", "report", "--out", "site", "--out-data", data)
    assert ended.code == 2
    assert f"{data}" in ended.err
    assert FULL in ended.err
    assert files(full_disk) == before


def test_other_files_that_do_not_fit_are_named_and_kept(
    command: Command, program: Program, full_disk: Path
) -> None:
    Path("kubelet.yaml").write_text(KUBELET)
    Path("pod.yaml").write_text(POD)
    (full_disk / "node.html").write_text("old")
    old = files(full_disk)
    fill(full_disk)
    right = program("answer(request)")
    simulate = ("simulate", "--machine", "laptop-4c8t", "--config", "kubelet.yaml", "pod.yaml")
    record = ("record", "--implementation", right, "--seeds", "0:2", "--merges", "0:1")
    for words, name in (
        ((*simulate, "--out"), "node.html"),
        ((*record, "--out"), "mine.jsonl.xz"),
        (("profile", "capture", "/", "--out"), "mine.yaml"),
        (("profile", "tree", "laptop-4c8t", "--out"), "tree.tar"),
        (("profile", "tree", "laptop-4c8t", "--out"), "tree"),
        (("init", "--language", "python", "--name", "mine"), "adapter"),
    ):
        ended = command(*words, full_disk / name)
        assert ended.code == 2, words
        (line,) = [one for one in ended.err.splitlines() if FULL in one]
        assert f"{full_disk / name}" in line
        assert files(full_disk) == old


def test_a_partly_written_line_is_removed(
    command: Command, program: Program, full_disk: Path
) -> None:
    out, right = full_disk / "out", program("answer(request)")
    ended = command(*CHECK, "--implementation", right, "--out", out)
    assert f"{out / 'events.jsonl'}: {FULL}" in ended.err
    assert (out / "events.jsonl").read_bytes()[-1:] in {b"", b"\n"}
