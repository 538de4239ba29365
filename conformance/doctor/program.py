"""The program under examination: its processes, its output and the files it leaves behind.

While the harness gives up at a program's first mistake, this module continues wherever possible and
records each mistake with its exchange. Time and memory are limited, whatever the program does.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numaproof.conformance.doctor import lines
from numaproof.conformance.doctor.wording import finding
from numaproof.conformance.execution.implementation import ImplementationFailure
from numaproof.conformance.execution.programs.process import Process, ending
from numaproof.conformance.execution.truncation import reported_finding
from numaproof.inputs.plurals import plural
from numaproof.protocol import codec, messages
from numaproof.protocol.diagnosis import Exchange, Finding

if TYPE_CHECKING:
    from numaproof.conformance.judging import finding as judging


_MAX_ENTRIES = 20_000
"""The maximum number of entries examined in a folder."""

_DEPTH = 3

_SKIPPED = frozenset({"__pycache__", ".git", "node_modules", ".venv", ".tox", ".cache"})
"""Folders that tools fill when a program is started."""

_OF_HOME = ("", ".config", ".local/share", ".local/state")
"""Folders of a home directory in which programs store files."""

Snapshot = dict[str, tuple[int, int]]
"""Paths within a folder, with the modification time and size of files and zeros for folders."""


class Leftovers:
    """Changes in the working directory, the home directory and a temporary folder.

    Compares each folder before and after the dialogue, to a limited depth. Changes made by other
    programs can't be told apart.

    Args:
        temporary: an empty folder that only the program uses.
    """

    def __init__(self, temporary: Path) -> None:
        self._temporary = temporary
        self._here = Path.cwd()
        self._home = Path(os.environ.get("HOME") or "/nonexistent")
        self._in_home = self._home_snapshot()
        # Other programs also write to home directories and to directories with the sticky bit, such
        # as /tmp, so changes there can't be attributed.
        self._is_everybodys = self._here.resolve() == self._home.resolve() or bool(
            self._here.stat().st_mode & stat.S_ISVTX
        )
        self._before: Snapshot = {} if self._is_everybodys else snapshot(self._here, _DEPTH)

    def here(self) -> list[str]:
        """New and changed files in the working directory; none if other programs write there."""
        now = {} if self._is_everybodys else snapshot(self._here, _DEPTH)
        return _changed_paths(self._before, now)

    def temporary(self) -> list[str]:
        """The files in the temporary folder."""
        return sorted(snapshot(self._temporary, 1))

    def at_home(self) -> list[str]:
        """New files in the home directory."""
        new = sorted(self._home_snapshot() - self._in_home)
        # The working directory may be in the home directory.
        mine = {str(self._here / name) for name in self.here()}
        return [f"~/{name}" for name in new if str(self._home / name) not in mine]

    def _home_snapshot(self) -> set[str]:
        return {
            f"{folder}/{name}".lstrip("/")
            for folder in _OF_HOME
            for name in snapshot(self._home / folder, 1)
        }


def snapshot(folder: Path, depth: int) -> Snapshot:
    """The contents of a folder down to `depth` levels; unreadable folders count as empty."""
    found: Snapshot = {}
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        inside = Path(here).relative_to(folder)
        for name in (*folders, *files):
            with suppress(OSError):
                status = (Path(here) / name).lstat()
                is_file = not stat.S_ISDIR(status.st_mode)
                found[str(inside / name)] = (status.st_mtime_ns * is_file, status.st_size * is_file)
        if len(inside.parts) + 1 == depth or len(found) > _MAX_ENTRIES:
            folders.clear()
    return found


def _changed_paths(before: Snapshot, now: Snapshot) -> list[str]:
    """Changed entries, and new entries that aren't in new folders."""
    new = now.keys() - before.keys()
    tops = {name for name in new if name.rpartition("/")[0] not in new}
    changed = {name for name in now.keys() & before.keys() if now[name] != before[name]}
    return sorted(tops | changed)


MAX_SECONDS = 30.0
"""The time limit for all answers of a dialogue together."""

SLOW = 0.5
"""An answer that takes this many seconds is slow. A full run makes thousands of calls."""

SLOW_START = 3.0
"""A process's first answer is slow if it takes this many seconds."""

_QUIET = 0.01
"""Seconds after an answer during which more output is attributed to it."""

_MORE = 0.3
"""Seconds to wait for another line after one that isn't a response."""

_MAX_EXTRA = 20
_PARTING = 1.0
_NOT_FOUND = 127
_KEPT = 4096
_MAX_NAMES = 5
_SHOWN = 80


class NoAnswer(ImplementationFailure):
    """There was no usable answer; the exchange lists the reasons."""


class ProbeAborted(ImplementationFailure):
    """The program has ended or is too slow to continue the dialogue."""


@dataclass
class Moment:
    """An exchange under construction; see `Exchange`."""

    process: int
    step: str
    about: str
    request: str = ""
    response: str = ""
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    answer: messages.Answer | None = None

    def note(self, name: str, /, **values: Any) -> None:
        """Adds a finding by its name; for the arguments, see `wording.finding`."""
        self.findings.append(finding(name, **values))

    def note_finding(
        self, problem: judging.Finding, right: str = "", *, before: str = "", after: str = ""
    ) -> None:
        """Adds a judge's finding, prefixing its message with the given text.

        `after` is the exchange that caused the problem.
        """
        shown = reported_finding(problem, before)
        self.findings.append(Finding(f"{before}{problem}", right, after=after, finding=shown))

    def exchange(self, number: int) -> Exchange:
        """Converts this to an exchange for reports."""
        said = self.request[:_KEPT], self.response[:_KEPT]
        findings = tuple(self.findings)
        return Exchange(number, self.process, self.step, self.about, *said, self.seconds, findings)


class Program:
    """A program under examination; an `Implementation`.

    Mistakes in its output are recorded with the exchange and raise no error. An answer with
    mistakes counts if its intention is clear.

    Args:
        command: the program and its arguments.
        timeout: the time limit for an answer, in seconds.
        folder: an empty folder for its temporary files.

    Attributes:
        about: the purpose of the next request.
        moments: all exchanges so far.
    """

    def __init__(self, command: tuple[str, ...], timeout: float, folder: Path) -> None:
        self._command = command
        self._timeout = timeout
        self._folder = folder
        self._process: Process | None = None
        self._processes = 0
        self._number = 0
        self._request_time = 0.0
        self._leftovers = Leftovers(folder)
        self.about = ""
        self.moments: list[Moment] = []

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the program's answer.

        Raises:
            CannotStartError: the program can't be started.
            NoAnswer: there was no usable answer.
            ProbeAborted: the program ended, or the examination can't continue.
        """
        process = self._running()
        self._number += 1
        request = codec.encode_request(self._number, operation, args)
        about = "what every pod has now" if operation == "state" else self.about
        moment = self._moment(operation, about, request.decode())
        self._note_output(moment, process.read_unsolicited(0), "before the request was sent")
        self._request_time = time.monotonic()
        deadline = self._request_time + min(self._timeout, MAX_SECONDS - self._seconds_used)
        try:
            moment.answer = self._read(process, moment, request, deadline)
        except TimeoutError:
            raise self._note_silence(process, moment) from None
        except EOFError:
            raise self._note_exit(process, moment) from None
        except codec.ProtocolError as error:
            moment.note("endless-line", why=error)
            raise self._abort() from None
        self._note_output(moment, process.read_unsolicited(_QUIET), "after the answer")
        if moment.seconds > (SLOW_START if self._number == 1 else SLOW):
            moment.note("slow", seconds=f"{moment.seconds:.1f}")
        if moment.answer is None:
            raise NoAnswer("there was no usable answer")
        return moment.answer

    def close(self) -> None:
        """Ends the program as the harness does: closes its input and waits for a second."""
        if self._process is None:
            return
        process = self._process
        moment = self._moment("end of input", "the program must exit within a second")
        began = time.monotonic()
        process.end_input()
        left = process.read_unsolicited(_PARTING)
        process.wait(began + _PARTING - time.monotonic())
        moment.seconds = round(time.monotonic() - began, 4)
        while not process.supervision.has_no_children and time.monotonic() - began < _PARTING:
            time.sleep(_QUIET)  # its children may end on their own
        code = process.returncode
        moment.response = "still running" if code is None else ending(code)
        self._note_output(moment, left, "after the end of its input")
        if code is None:
            moment.note("no-exit")
        elif code:
            moment.note("failed-exit", ending=ending(code), log=process.stderr())
        self._abort()
        if process.supervision.found_processes:
            moment.note("left-processes", names=", ".join(process.supervision.found_processes[:3]))

    def look_around(self) -> None:
        """Reports files that the program left outside the state directory."""
        moment = Moment(
            self._processes, "clean-up", "nothing may be left outside the state directory"
        )
        left = self._leftovers
        if temporary := left.temporary():
            moment.note("left-files", names=_list_names(temporary))
        # Other programs may write to these folders at the same time.
        for names, where in ((left.here(), "working"), (left.at_home(), "home")):
            if names:
                moment.note("new-files", where=where, names=_list_names(names))
        if moment.findings:
            moment.response = "files left"
            self.moments.append(moment)

    def _moment(self, step: str, about: str, request: str = "") -> Moment:
        moment = Moment(self._processes, step, about, request.rstrip("\n"))
        self.moments.append(moment)
        return moment

    def _running(self) -> Process:
        if self._process is None:
            environment = {**os.environ, "TMPDIR": str(self._folder)}
            self._process = Process(self._command, environment)
            self._processes += 1
            self._number = 0
        return self._process

    def _read(
        self, process: Process, moment: Moment, request: bytes, deadline: float
    ) -> messages.Answer | None:
        """Reads lines until one can be the response, and reports the output before it.

        If there is no response, the first line counts as the answer.
        """
        number, operation = self._number, moment.step
        said = [self._line(process, moment, deadline, request)]
        first = reading = lines.read(said[0], number, operation)
        if indented := said[0].strip() in {b"{", b"["}:
            # The JSON continues on further lines.
            said.append(process.read_unsolicited(_QUIET))
        while len(said) <= _MAX_EXTRA and not (indented or reading.is_response):
            # The response may follow a banner or a stale answer.
            try:
                soon = min(deadline, time.monotonic() + _MORE)
                said.append(self._line(process, moment, soon))
            except (TimeoutError, EOFError, codec.ProtocolError):
                reading = first
                break
            reading = lines.read(said[-1], number, operation)
        moment.response = _text(b"\n".join(said))
        if reading is not first:
            self._note_output(moment, b"\n".join(said[:-1]) + b"\n", "before the answer")
        moment.findings += reading.findings
        return reading.answer

    @property
    def _seconds_used(self) -> float:
        """The time in seconds that the program has taken, excluding the harness's own time."""
        return sum(moment.seconds for moment in self.moments)

    def _line(
        self, process: Process, moment: Moment, deadline: float, request: bytes = b""
    ) -> bytes:
        """Reads a line; parsing it doesn't count as the program's time."""
        try:
            return process.next_line(deadline, request)
        finally:
            moment.seconds = round(time.monotonic() - self._request_time, 4)

    def _note_silence(self, process: Process, moment: Moment) -> ProbeAborted:
        """Reports why the answer is missing; some programs flush only when their input ends."""
        waited = self._seconds_used
        partial = process.read_unsolicited(0)
        process.end_input()
        late = process.read_unsolicited(_PARTING)
        moment.response = _text(partial + late)
        limit = f"{self._timeout:g}"
        if waited >= MAX_SECONDS:
            moment.note("dialogue-too-slow", seconds=f"{waited:.0f}")
        elif partial:
            moment.note("no-line-break", limit=limit, bytes=plural(len(partial), "byte"))
        elif late:
            moment.note("no-flush", limit=limit)
        else:
            moment.note("no-answer", limit=limit, log=process.stderr())
        return self._abort()

    def _note_exit(self, process: Process, moment: Moment) -> ProbeAborted:
        """Reports how the program ended, or closed its output, before it answered."""
        partial = process.read_unsolicited(0)
        process.wait(_PARTING)
        code = process.returncode
        moment.response = _text(partial)
        if code is None:
            moment.note(
                "supervisor-killed" if process.supervision.supervisor_killed else "output-closed"
            )
        else:
            at_once = "ended-at-once" if self._number == 1 and code == 0 else "ended"
            name = "not-found" if code == _NOT_FOUND else at_once
            moment.note(name, ending=ending(code), log=process.stderr())
        if partial:
            moment.note("open-line", line=_text(partial)[:_SHOWN])
        return self._abort()

    def _abort(self) -> ProbeAborted:
        """Kills the process and its descendants."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
        return ProbeAborted("the program no longer answers")

    def _note_output(self, moment: Moment, output: bytes, when: str) -> None:
        """Reports output that isn't an answer, if there is any."""
        if not output:
            return
        text = _text(output).strip()
        first = text.partition("\n")[0]
        again = lines.read(first.encode(), self._number, "hello").is_response
        if again and when == "after the answer":
            moment.note("answered-twice", number=self._number, first=first[:_SHOWN])
            return
        many = text.count("\n") + 1
        what = (
            f"{many} lines, the first '{first[:_SHOWN]}'"
            if many > 1
            else f"a line '{first[:_SHOWN]}'"
        )
        moment.note("output", when=when, what=what if text else "an empty line")


def _text(line: bytes) -> str:
    return line[:_KEPT].decode("utf-8", "replace")


def _list_names(names: list[str]) -> str:
    return ", ".join(names[:_MAX_NAMES]) + (" and more" if len(names) > _MAX_NAMES else "")
