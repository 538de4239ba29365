"""Concurrent commands that write to the same place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from builders.input_files import FINDING
from numaproof.reports.files import EVENTS

Command = Callable[..., Any]
Program = Callable[[str], str]
Small = tuple[str, ...]


def numaproof() -> str:
    script = shutil.which("numaproof", path=str(Path(sys.executable).parent))
    assert script is not None
    return script


class Waiting:
    """A check that waits in its third case until `resume` is called."""

    def __init__(self, program: Program, folder: Path, *words: str) -> None:
        self._waits, self._goes = folder / "waits", folder / "goes"
        os.mkfifo(self._waits)
        os.mkfifo(self._goes)
        body = f"""
            cases = open({str(folder / "count")!r}, "a+b")
            if request.op == "admit":
                cases.write(b"x"); cases.flush()
                if cases.tell() == 3:
                    open({str(self._waits)!r}, "w").close()
                    open({str(self._goes)!r}).close()
            answer(request)
            """
        waiting = program(body)
        self.process = subprocess.Popen(
            [numaproof(), *words, "--implementation", waiting],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._waits.open().close()

    def resume(self) -> tuple[str, str]:
        self._goes.open("w").close()
        return self.process.communicate(timeout=60)


@contextmanager
def waiting(program: Program, folder: Path, *words: str) -> Iterator[Waiting]:
    """A waiting check that is killed at the end of the block."""
    begun = Waiting(program, folder, *words)
    try:
        yield begun
    finally:
        begun.process.kill()
        begun.process.communicate()


def content(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


def test_a_second_run_into_a_folder_is_refused_and_touches_nothing(
    command: Command, program: Program, small: Small, tmp_path: Path
) -> None:
    folder = Path("numaproof-report/check")
    with waiting(program, tmp_path, "check", *small) as first:
        before = content(folder)
        refused = [
            command(*words, "--out", folder)
            for words in (
                ("check", *small),
                ("fuzz", "--examples", "1"),
                ("diff", "--right", "/no/program", "--seeds", "0:1"),
                ("replay", "static-gives-what-the-limit-says"),
                ("campaign", "--seeds", "0:1", "--no-cases"),
                ("board", folder),
            )
        ]
        assert content(folder) == before
        written, errors = first.resume()
    who = f"numaproof: {folder}: another run is writing to it (process {first.process.pid});"
    for ended in refused:
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == f"{who} wait until it ends, or use another --out\n"
    assert (first.process.returncode, errors) == (0, "")
    assert "Passed" in written
    assert command("check", *small).code == 0


def test_the_verdict_comes_from_the_run_not_from_a_file(
    command: Command, program: Program, small: Small, tmp_path: Path
) -> None:
    wrong = program("answer(request)").replace("program.py", "wrong.py")
    Path(wrong.split()[-1]).write_text("raise SystemExit(1)\n")
    failed = tmp_path / "failed"
    assert command("check", *small, "--implementation", wrong, "--out", failed).code == 1
    out, known = tmp_path / "out", tmp_path / "known.yaml"
    more = ("--out", str(out), "--write-known-failures", str(known))
    with waiting(program, tmp_path, "check", *small, *more) as first:
        # Like a version of numaproof without the lock.
        (failed / EVENTS).replace(out / EVENTS)
        written, errors = first.resume()
    assert first.process.returncode == 0
    assert "Passed" in written
    assert f"{known}: 0 new known failures" in errors
    assert "Passed" in (out / "report.md").read_text()


@pytest.mark.usefixtures("command")
def test_concurrent_promotions_into_one_file_are_all_kept(tmp_path: Path) -> None:
    Path("finding.yaml").write_text(FINDING)
    into = tmp_path / "cases.yaml"
    words = (numaproof(), "promote", "finding.yaml", "--out", str(into), "--id")
    names = [f"static-{number}" for number in range(3)]
    running = [subprocess.Popen([*words, name], stdout=subprocess.DEVNULL) for name in names]
    assert [one.wait(timeout=60) for one in running] == [0] * len(names)
    text = into.read_text()
    assert [name for name in names if f"- id: {name}\n" not in text] == []
