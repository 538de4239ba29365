"""Runs the command in this process like its entry point, with misbehaving programs."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.cli.main import main
from numaproof.protocol.events import AnyEvent, CaseFinished
from numaproof.reports.files import EVENTS, FILES, read_events

if TYPE_CHECKING:
    from pathlib import Path

SMALL = ("--machine", "laptop-4c8t", "--select", "example-*")
"""Seven cases on one machine."""


@dataclass(frozen=True)
class CommandResult:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Parses the output as JSON."""
        return json.loads(self.out)


Command = Callable[..., CommandResult]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Command]:
    """Runs the command in an empty directory and asserts that there is no traceback."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    # Without it, click would show `python -m pytest` in usages.
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)

    def run(*args: str | Path) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["numaproof", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        written = capfd.readouterr()
        assert "Traceback" not in written.out + written.err
        assert isinstance(ended.value.code, int)
        return CommandResult(ended.value.code, written.out, written.err)

    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    yield run
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.fixture
def small() -> tuple[str, ...]:
    """The case runs of `SMALL`."""
    return SMALL


PRELUDE = """
import json, os, sys, time
from numaproof.protocol import codec, messages
from numaproof.reference.implementation import Reference
BOOM = {"message": "boom"}
reference = Reference()
def answer(request):
    reply = reference.call(request.op, codec.decode_args(request))
    sys.stdout.buffer.write(codec.encode_answer(request.id, reply))
    sys.stdout.flush()
admissions = 0
for line in sys.stdin.buffer:
    request = codec.decode(line, codec.Request)
    admissions += request.op == "admit"
"""


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Returns the command line of a program that runs `body` for each request.

    The body may call ``answer(request)``, which answers like the reference.
    """

    def make(body: str) -> str:
        file = tmp_path / "program.py"
        file.write_text(PRELUDE + textwrap.indent(textwrap.dedent(body), "    "))
        return shlex.join([sys.executable, str(file)])

    return make


@pytest.fixture
def read_case_runs() -> Callable[[Path], list[CaseFinished]]:
    """Returns the case runs in a folder of reports, after checking that every file exists."""

    def read(folder: Path) -> list[CaseFinished]:
        assert {file.name for file in folder.iterdir()} >= set(FILES)
        stream: tuple[AnyEvent, ...] = read_events(folder / EVENTS)
        return [event for event in stream if isinstance(event, CaseFinished)]

    return read
