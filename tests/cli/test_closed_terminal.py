"""Closing the terminal ends a command like an interrupt."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from numaproof.cli.outputs import follow
from numaproof.protocol.events import RunEnded
from numaproof.reports.files import EVENTS, FILES, read_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.events import AnyEvent

Program = Callable[[str], str]

COMMANDS = {
    "check": ("check", "--machine", "laptop-4c8t", "--select", "example-*"),
    "fuzz": ("fuzz", "--examples", "50"),
}


@pytest.mark.parametrize(("which", "errors"), [("check", "to the terminal"), ("fuzz", "to a file")])
def test_closing_the_terminal_leaves_only_a_report(
    program: Program, tmp_path: Path, which: str, errors: str
) -> None:
    script = shutil.which("numaproof", path=str(Path(sys.executable).parent))
    assert script is not None
    waits, temporary, out = tmp_path / "waits", tmp_path / "temporary", tmp_path / "out"
    os.mkfifo(waits)
    temporary.mkdir()
    body = f"""
        cases = open({str(tmp_path / "count")!r}, "a+b")
        if request.op == "admit":
            cases.write(b"x"); cases.flush()
            if cases.tell() == 3:
                open({str(waits)!r}, "w").close()
                time.sleep(600)
        answer(request)
        """
    terminal, theirs = os.openpty()
    log = (tmp_path / "errors").open("w+")
    running = subprocess.Popen(
        [
            *("setsid", "--ctty", "--wait", script, *COMMANDS[which]),
            *("--implementation", program(body), "--out", str(out)),
        ],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs if errors == "to the terminal" else log,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    os.close(theirs)
    waits.open().close()
    os.close(terminal)
    assert running.wait(timeout=60) == 3
    assert [*temporary.iterdir()] == []
    *_, end = read_events(out / EVENTS)
    assert isinstance(end, RunEnded)
    assert (end.complete, end.message) == (False, "interrupted")
    assert {one.name for one in out.iterdir()} >= {*FILES}
    log.seek(0)
    assert log.read() == ""
    log.close()


def test_a_run_whose_terminal_is_gone_is_interrupted(tmp_path: Path) -> None:
    """Even if the error of a write comes before the signal."""

    def events() -> Iterator[AnyEvent]:
        yield from ()
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        follow(events(), tmp_path, as_json=False)
    (end,) = read_events(tmp_path / EVENTS)
    assert isinstance(end, RunEnded)
    assert (end.complete, end.message) == (False, "interrupted")
