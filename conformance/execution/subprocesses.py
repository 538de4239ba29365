"""Runs an implementation as a program that reads requests and writes answers, one per line.

Reading and writing never block for longer than the time limit, even if the program crashes, hangs,
writes garbage, floods its standard error or doesn't read its input. After a failure, the program is
killed with all of its descendants, and the next call starts it again.

A failure is attributed to the call that caused it. If a program fails after an answer, it hasn't
read the next request, which is then still in the pipe.
"""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.execution.implementation import (
    BrokeProtocol,
    Crashed,
    ImplementationFailure,
    TimedOut,
    hello_args,
)
from numaproof.conformance.execution.programs.process import Process, ending
from numaproof.inputs.plurals import plural
from numaproof.protocol import codec, messages
from numaproof.protocol.bounds import AnswerBounds
from numaproof.protocol.optional_fields import RequestedFields

if TYPE_CHECKING:
    from collections.abc import Sequence


_LOG = logging.getLogger("numaproof")

_SHOWN = 200
"""The maximum number of bytes of an invalid line in a message."""

_PARTING = 1.0
"""Seconds that a program has to exit after its output or input has been closed."""


class _Numbered(msgspec.Struct):
    """The part of a response that identifies the request."""

    id: int


class Subprocess:
    """A program that speaks the protocol.

    Args:
        command: the program and its arguments.
        timeout: the time limit for a call, in seconds.

    Attributes:
        patience: a shorter time limit for the next calls, in seconds.
        leftover_processes: the processes that it started and that could not be killed, by id and
            command line.
    """

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        self._command = tuple(command)
        self._timeout = timeout
        self.patience = math.inf
        self._running: Process | None = None
        self._number = 0
        self._last_operation = ""
        self._bounds = AnswerBounds()
        self._requested_fields = RequestedFields()
        self.leftover_processes: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[type[Subprocess], tuple[tuple[str, ...], float]]:
        """Pickles the command, so another process starts its own program."""
        return Subprocess, (self._command, self._timeout)

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the program's answer.

        Raises:
            ImplementationFailure: the program could not be started, ended, didn't answer in time,
                or violated the protocol.
        """
        answer = self._exchange(operation, args)
        self._last_operation = operation
        return answer

    def _exchange(
        self, operation: str, args: messages.Args, *, settling: bool = False
    ) -> messages.Answer:
        process = self._process()
        process.log.mark()
        self._number += 1
        self._bounds.ask(args)
        self._requested_fields.ask(args)
        request = codec.encode_request(self._number, operation, args)
        line = b""
        try:
            seconds = min(self._timeout, self.patience)
            line = process.exchange(request, time.monotonic() + seconds)
            answer = codec.decode_answer(line, self._number, operation)
            return self._requested_fields.check_answer(self._bounds.check_answer(answer))
        except (codec.ProtocolError, TimeoutError, EOFError) as error:
            late = settling or not process.has_read() or self._retry(line)
            late = late and bool(self._last_operation)
            raise self._failure(process, error, operation, line, late=late) from None
        except BaseException:
            self._kill()
            raise

    def _retry(self, line: bytes) -> bool:
        """Whether a line repeats the answer to the previous request."""
        try:
            return codec.decode(line, _Numbered).id == self._number - 1
        except codec.ProtocolError:
            return False

    def _process(self) -> Process:
        if self._running is None:
            self._last_operation = ""
            self._running = Process(self._command)
        return self._running

    def _failure(
        self, process: Process, error: Exception, operation: str, line: bytes, *, late: bool
    ) -> ImplementationFailure:
        """Ends the program and describes its failure."""
        at = f"after its answer to {self._last_operation}" if late else f"at {operation}"
        if isinstance(error, EOFError):
            process.wait(_PARTING)
        code = process.returncode  # read it before we kill the program
        self._kill()
        log = process.stderr()
        left = (
            f"; could not kill process {', '.join(process.supervision.leftover_processes)}"
            if process.supervision.leftover_processes
            else ""
        )
        match error:
            case EOFError():
                message = _describe_exit(process, code, at) + left
                ended = "" if code is None else ending(code)
                return Crashed(message, log, after_answer=late, ending=ended)
            case TimeoutError():
                missed = (
                    f"did not read the next request {at}" if late else f"no answer to {operation}"
                )
                message = f"{missed} within {self._timeout:g} s"
                if code is not None:
                    message += f"; the program ended with {ending(code)}, but its children did not"
                return TimedOut(message + left, log, after_answer=late)
        if late:
            written = line or process.read_unsolicited(0).rstrip(b"\n")
            words = f"there was output {at} that no request asked for"
            message = f"{words}: {_short_line(written)}{left}"
            return BrokeProtocol(message, log, after_answer=True, words=words)
        seen = f"; the line was {_short_line(line)}" if line else ""
        return BrokeProtocol(f"{error}{seen}{left}", log, words=str(error))

    def begin(self) -> None:
        """Clears the log and the record of requests at the start of a case."""
        self._bounds = AnswerBounds()
        self._requested_fields = RequestedFields()
        if self._running:
            self._running.log.clear()

    def check_alive(self) -> None:
        """Sends another `hello` to check that the program is still running after its last answer.

        Raises:
            ImplementationFailure: it ended, hung or wrote more after that answer.
        """
        if self._running is None:
            return
        self._exchange("hello", hello_args("numaproof"), settling=True)
        self._running.drain()

    def log(self) -> str:
        """The program's standard error since `begin`, possibly shortened in the middle."""
        return self._running.log.text() if self._running else ""

    def close(self) -> None:
        """Closes the program's input, gives it a moment to exit, and kills it."""
        if self._running:
            self._running.end_input()
            self._running.wait(_PARTING)
            self._kill()

    def _kill(self) -> None:
        """Kills the program and its descendants."""
        if self._running:
            self._running.kill()
            for one in self._running.supervision.leftover_processes:
                _LOG.warning("could not kill process %s, which the program started", one)
            self.leftover_processes += self._running.supervision.leftover_processes
            self._running = None


def _describe_exit(process: Process, code: int | None, at: str) -> str:
    """Describes why the program's output ended."""
    if code is not None:
        return f"the program ended {at} with {ending(code)}"
    if process.supervision.supervisor_killed:
        return f"the program killed its supervisor, numaproof's own process, {at}"
    return f"the program closed its standard output {at} and kept running"


def _short_line(line: bytes) -> str:
    """The beginning of a line; bytes that aren't UTF-8 are escaped."""
    text = line.decode(errors="backslashreplace")
    more = len(text) - _SHOWN
    return text[:_SHOWN] + (f"… and {plural(more, 'more character')}" if more > 0 else "")
