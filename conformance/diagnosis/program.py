"""The program under examination: its processes, every line that it writes, and what it leaves.

The harness gives up on a program at its first mistake. Here it goes on wherever it can, and each
mistake is noted at the exchange that it belongs to. Time and memory are bounded whatever the
program does.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numaproof.conformance.diagnosis import lines
from numaproof.conformance.diagnosis.leftovers import Leftovers
from numaproof.conformance.execution.implementation import ImplementationFailure
from numaproof.conformance.execution.programs.process import Process, ending
from numaproof.inputs.plurals import plural
from numaproof.protocol import codec, messages
from numaproof.protocol.diagnosis import Exchange, Finding

if TYPE_CHECKING:
    from pathlib import Path

MOST_SECONDS = 30.0
"""Seconds that a whole dialogue may take."""

SLOW = 0.5
"""Seconds from which on an answer is slow: a run of the whole table makes thousands of calls."""

SLOW_START = 3.0
"""Seconds from which on the first answer of a process is slow."""

_QUIET = 0.01
"""Seconds after an answer in which more output counts as that answer's."""

_MORE = 0.3
"""Seconds to wait for a better line after one that is no response."""

_MOST_EXTRA = 20
_PARTING = 1.0
_NOT_FOUND = 127
_KEPT = 4096
_MOST_NAMES = 5
_LOG = 1500


class NoAnswer(ImplementationFailure):
    """There was no answer that could be used; what is wrong stands at the exchange."""


class GaveUp(NoAnswer):
    """The program is gone, or not worth waiting for: there is no use in asking more."""


@dataclass
class Moment:
    """An exchange in the making; see `Exchange`."""

    process: int
    step: str
    about: str
    request: str = ""
    response: str = ""
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    answer: messages.Answer | None = None

    def wrong(
        self,
        sentence: str,
        right: str = "",
        *,
        advice: bool = False,
        log: str = "",
        after: str = "",
    ) -> None:
        """Notes something."""
        self.findings.append(Finding(sentence, right, advice, log[-_LOG:], after))

    def exchange(self, number: int) -> Exchange:
        """The exchange as reports show it."""
        return Exchange(
            number=number,
            process=self.process,
            step=self.step,
            about=self.about,
            request=self.request[:_KEPT],
            response=self.response[:_KEPT],
            seconds=round(self.seconds, 4),
            findings=tuple(self.findings),
        )


class Program:
    """A program that is asked, watched and cleaned up after; an `Implementation`.

    Nothing that it writes is an error of the harness: what is wrong with a line stands at the
    exchange, and the answer counts where it is clear what was meant.

    Args:
        command: the program and its arguments.
        timeout: seconds that one answer may take.
        folder: for its temporary files; empty.

    Attributes:
        about: why the next request is made.
        moments: everything that happened.
    """

    def __init__(self, command: tuple[str, ...], timeout: float, folder: Path) -> None:
        self._command = command
        self._timeout = timeout
        self._folder = folder
        self._began = time.monotonic()
        self._process: Process | None = None
        self._processes = 0
        self._number = 0
        self._leftovers = Leftovers(folder)
        self.about = ""
        self.moments: list[Moment] = []

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The program's answer, once a line is one.

        Raises:
            CannotStartError: there is no such program.
            NoAnswer: it gave none that could be used.
        """
        process = self._running()
        self._number += 1
        request = codec.encode_request(self._number, operation, args)
        about = "what every pod has now" if operation == "state" else self.about
        moment = self._moment(operation, about, request.decode())
        if left := process.unasked(0):
            moment.wrong(*_extra(left, "before the request was sent"))
        began = time.monotonic()
        deadline = min(began + self._timeout, self._began + MOST_SECONDS)
        try:
            reading = self._read(process, moment, request, deadline)
        except TimeoutError:
            raise self._silent(process, moment) from None
        except EOFError:
            raise self._ended(process, moment) from None
        except codec.ProtocolError as error:
            moment.wrong(str(error), "end each response with `\\n`, and write nothing else")
            raise self._given_up() from None
        finally:
            moment.seconds = time.monotonic() - began
        if left := process.unasked(_QUIET):
            moment.wrong(*_extra(left, "after the answer", self._number))
        if moment.seconds > (SLOW_START if self._number == 1 else SLOW):
            moment.wrong(
                f"the answer took {moment.seconds:.1f} s",
                "a run of the whole table makes thousands of calls: keep the process warm",
                advice=True,
            )
        if reading.answer is None:
            raise NoAnswer("there was no answer that could be used")
        moment.answer = reading.answer
        return reading.answer

    def close(self) -> None:
        """Ends the program as the harness does: it closes its input, and waits a second."""
        if self._process is None:
            return
        process = self._process
        moment = self._moment("end of input", "the program must exit within a second")
        began = time.monotonic()
        process.end_input()
        left = b""
        while process.returncode is None and time.monotonic() - began < _PARTING:
            left += process.unasked(0.02)
            process.wait(0.02)
        moment.seconds = time.monotonic() - began
        while not process.alone and time.monotonic() - began < _PARTING:
            time.sleep(_QUIET)  # what it has started may end by itself
        code = process.returncode
        moment.response = "still running" if code is None else ending(code)
        if left:
            moment.wrong(*_extra(left, "after the end of its input"))
        if code is None:
            moment.wrong(
                "the program did not exit within a second of the end of its input",
                "exit when standard input ends; the harness kills what is left",
            )
        elif code:
            moment.wrong(
                f"the program ended with {ending(code)} at the end of its input",
                "exit with code 0 when standard input ends",
                log=process.stderr(),
            )
        self._sweep(moment)

    def begin(self) -> None:
        """Nothing: what was logged belongs to the exchange."""

    def settle(self) -> None:
        """Nothing: whether it outlived its last answer shows at the next exchange."""

    def log(self) -> str:
        """Its standard error, which stands at the exchanges instead."""
        return ""

    @property
    def left(self) -> tuple[str, ...]:
        """None: what it leaves behind stands at the end of its input."""
        return ()

    def look_around(self) -> None:
        """Notes the files that it left where no state belongs."""
        moment = Moment(self._processes, "clean-up", "nothing may stay outside the state directory")
        left = self._leftovers
        for names, where in ((left.here(), "the working directory"), (left.temporary(), "TMPDIR")):
            if names:
                moment.wrong(
                    f"the program left files in {where}: {_listed(names)}",
                    "keep state in the `state_dir` of `start`, and remove temporary files",
                )
        if at_home := left.at_home():
            moment.wrong(
                f"there are new files in the home directory: {_listed(at_home)}",
                "if they are the program's and no cache, keep them in the `state_dir` of `start`",
                advice=True,
            )
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
    ) -> lines.ReadLine:
        """Reads lines until one is the response; what came before it is noted.

        Where none is, the first line counts as the answer.
        """
        line = process.next_line(deadline, request)
        number, operation = self._number, moment.step
        first = reading = lines.read(line, number, operation)
        moment.response = _text(line)
        if line.strip() in {b"{", b"["}:
            # The rest of it follows on lines of its own.
            moment.response += "\n" + _text(process.unasked(_QUIET))
        for _ in range(_MOST_EXTRA):
            if line.strip() in {b"{", b"["}:
                break
            if reading.is_response and (reading.number or number) == number:
                break
            # A banner or a stale answer: the response may follow.
            try:
                line = process.next_line(min(deadline, time.monotonic() + _MORE))
            except (TimeoutError, EOFError, codec.ProtocolError):
                reading = first
                break
            reading = lines.read(line, number, operation)
            moment.response += "\n" + _text(line)
        if reading is not first:
            before = moment.response.rpartition("\n")[0]
            moment.wrong(*_extra(before.encode(), "before the answer", number))
        moment.findings += reading.findings
        return reading

    def _silent(self, process: Process, moment: Moment) -> GaveUp:
        """What is wrong with a program that does not answer: its input ends, and it may show."""
        waited = time.monotonic() - self._began
        partial = process.unasked(0)
        process.end_input()
        late = process.unasked(_PARTING)
        moment.response = _text(partial + late)
        limit = f"within {self._timeout:g} s"
        if waited >= MOST_SECONDS:
            moment.wrong(f"no answer: the whole dialogue has taken {waited:.0f} s", "answer faster")
        elif partial:
            moment.wrong(
                f"no whole line {limit}: {plural(len(partial), 'byte')} came without a line break",
                "end each response with `\\n`, and flush",
            )
        elif late:
            moment.wrong(
                f"no answer {limit}; it came only when the program's input ended. Did you flush?",
                "flush standard output after each response, and read line by line, not to the"
                " end of the input",
            )
        else:
            moment.wrong(
                f"no answer {limit}. Did you flush?",
                "write one line for each request, and flush standard output; `--timeout` allows"
                " for more time",
                log=process.stderr(),
            )
        return self._given_up()

    def _ended(self, process: Process, moment: Moment) -> GaveUp:
        """What is wrong with a program that ended, or closed its output, before it answered."""
        partial = process.unasked(0)
        process.wait(_PARTING)
        code = process.returncode
        moment.response = _text(partial)
        if code is None and process.unwatched:
            moment.wrong(
                "the program killed its supervisor, numaproof's own process, which ends what the"
                " program leaves behind",
                "end no process but those that you have started",
            )
        elif code is None:
            moment.wrong(
                "the program closed its standard output and goes on running", "keep it open"
            )
        else:
            moment.wrong(
                f"the program ended with {ending(code)} instead of an answer",
                "the command was not found: look at the program's first line, which may end with a"
                " carriage return"
                if code == _NOT_FOUND
                else "read requests from standard input until it ends; does the command need an"
                " argument?"
                if self._number == 1 and code == 0
                else "answer `fault` with a message when something breaks, and read on",
                log=process.stderr(),
            )
        if partial:
            moment.wrong(
                f"the last line has no line break: '{_text(partial)[:80]}'", "end it with `\\n`"
            )
        return self._given_up()

    def _given_up(self) -> GaveUp:
        self._sweep(None)
        return GaveUp("the program does not answer any more")

    def _sweep(self, moment: Moment | None) -> None:
        """Kills the process and all that it has started."""
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        names = process.found
        if names and moment is not None:
            moment.wrong(
                f"the program left processes behind: {', '.join(names[:3])}",
                "end what you started before you exit",
            )


def _extra(output: bytes, when: str, number: int | None = None) -> tuple[str, str]:
    """The finding about output that is no answer."""
    text = _text(output)
    first = text.strip().partition("\n")[0]
    if number is not None and when == "after the answer":
        again = lines.read(first.encode(), number, "hello")
        if again.number == number:
            return f"request {number} is answered twice: '{first[:80]}'", "answer each request once"
    many = text.strip().count("\n") + 1
    what = f"{many} lines, the first" if many > 1 else "a line"
    return (
        f"there is output {when}: {what} '{first[:80]}'",
        "standard output is for responses alone; write logs and banners to standard error",
    )


def _text(line: bytes) -> str:
    return line[:_KEPT].decode("utf-8", "replace")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMES]) + (" and more" if len(names) > _MOST_NAMES else "")
