"""An implementation that is a program: one process, one line out, one line in.

Reading and writing never block longer than the time limit, whatever the program does: it may
crash, hang, print garbage, flood its standard error, or leave its input unread. After any
failure the whole process group is killed and the next call starts a fresh process.

A failure is blamed on the call that caused it. A program that dies, hangs or writes another line
after its answer does so before it reads the next request: what lies unread in the pipe tells.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import sys
import termios
import time
from typing import IO, TYPE_CHECKING

import msgspec

from numaproof.conformance.execution.implementation import (
    BrokeProtocol,
    CannotStartError,
    Crashed,
    ImplementationFailure,
    TimedOut,
    hello_args,
)
from numaproof.conformance.judging.logs import ProgramLog
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numaproof.protocol import messages

_CHUNK = 1 << 16

_MOST_CHUNKS = 64
"""Reads of what is there already, between two calls."""

_SHOWN = 200
"""Bytes of a bad line that a message shows."""

_PARTING = 1.0
"""Seconds that a program has to exit once its output or its input is closed."""


class _Numbered(msgspec.Struct):
    """The part of a response that says which request it answers."""

    id: int


class Subprocess:
    """A program behind the protocol.

    Args:
        command: the program and its arguments.
        timeout: seconds that one call may take.
    """

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        self._command = tuple(command)
        self._timeout = timeout
        self._running: Process | None = None
        self._number = 0
        self._answered = ""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The program's answer.

        Raises:
            ImplementationFailure: the program could not be started, ended, did not answer in
                time, or answered with something else than the protocol asks for.
        """
        answer = self._exchange(operation, args)
        self._answered = operation
        return answer

    def _exchange(
        self, operation: str, args: messages.Args, *, settling: bool = False
    ) -> messages.Answer:
        process = self._process()
        process.log.mark()
        self._number += 1
        request = codec.encode_request(self._number, operation, args)
        line = b""
        try:
            line = process.exchange(request, time.monotonic() + self._timeout)
            return codec.decode_answer(line, self._number, operation)
        except (codec.ProtocolError, TimeoutError, EOFError) as error:
            late = settling or not process.has_read() or self._again(line)
            late = late and bool(self._answered)
            raise self._failure(process, error, operation, line, late=late) from None
        except BaseException:
            self._kill()
            raise

    def _again(self, line: bytes) -> bool:
        """Whether a line answers the request that has been answered before."""
        try:
            return msgspec.json.decode(line, type=_Numbered).id == self._number - 1
        except msgspec.DecodeError:
            return False

    def _process(self) -> Process:
        if self._running is None:
            self._answered = ""
            self._running = Process(self._command)
        return self._running

    def _failure(
        self, process: Process, error: Exception, operation: str, line: bytes, *, late: bool
    ) -> ImplementationFailure:
        """Ends the program after a failure, and says what the failure was and of which call."""
        at = f"after its answer to {self._answered}" if late else f"at {operation}"
        if isinstance(error, EOFError):
            process.wait(_PARTING)
        self._kill()
        log = process.stderr()
        match error:
            case EOFError():
                ended = f"the program ended {at} with {ending(process.returncode)}"
                return Crashed(ended, log, after_answer=late)
            case TimeoutError():
                missed = f"read no request {at}" if late else f"no answer to {operation}"
                message = f"{missed} within {self._timeout:g} s"
                return TimedOut(message, log, after_answer=late)
        if late:
            written = line or process.unasked(0).rstrip(b"\n")
            message = f"there was output {at} that no request asked for: {_shown(written)}"
            return BrokeProtocol(message, log, after_answer=True)
        seen = f"; the line was {_shown(line)}" if line else ""
        return BrokeProtocol(f"{error}{seen}", log)

    def begin(self) -> None:
        """Forgets what was logged: what follows belongs to another case."""
        if self._running:
            self._running.log.clear()

    def settle(self) -> None:
        """Makes sure, by another `hello`, that the program outlived its last answer.

        Raises:
            ImplementationFailure: it ended, hung or wrote more after that answer.
        """
        if self._running is None:
            return
        self._exchange("hello", hello_args("numaproof"), settling=True)
        self._running.drain()

    def log(self) -> str:
        """The program's standard error since `begin`, of which the middle may be left out."""
        return self._running.log.text() if self._running else ""

    def close(self) -> None:
        """Closes the program's input, gives it a moment to exit, and kills what is left."""
        if self._running:
            self._running.end_input()
            self._running.wait(_PARTING)
            self._kill()

    def _kill(self) -> None:
        """Kills the program and everything in its process group."""
        if self._running:
            self._running.kill()
            self._running = None


class Process:
    """A running program, its pipes and its process group.

    Args:
        command: the program and its arguments.
        environment: its environment variables (default: those of this process).

    Raises:
        CannotStartError: there is no such program, or it is none.
    """

    def __init__(
        self, command: tuple[str, ...], environment: Mapping[str, str] | None = None
    ) -> None:
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - the user's own command
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                env=environment,
            )
        except OSError as error:
            raise CannotStartError(f"can't start {command[0]!r}: {error.strerror}") from None
        self._stdin, self._stdout, self._stderr = (
            _pipe(stream) for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        )
        self._selector = selectors.DefaultSelector()
        for stream in (self._stdout, self._stderr):
            self._selector.register(stream, selectors.EVENT_READ)
        self._received = bytearray()
        self._sent = 0
        self.log = ProgramLog()

    @property
    def pid(self) -> int:
        """Its process id, and that of its process group."""
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """How it ended, as far as is known; None while it runs."""
        return self._popen.returncode

    def exchange(self, request: bytes, deadline: float) -> bytes:
        """Writes a request and reads one line, without its line break.

        Raises:
            TimeoutError: the deadline has passed.
            EOFError: the program closed its output.
            codec.ProtocolError: the line has no end.
        """
        self._sent = 0
        self.drain()
        if self._received:
            raise codec.ProtocolError("there was output that no request asked for")
        return self.next_line(deadline, request)

    def next_line(self, deadline: float, request: bytes = b"") -> bytes:
        """Reads one line, whatever asked for it, without its line break; writes a request before.

        Raises:
            TimeoutError: the deadline has passed.
            EOFError: the program closed its output.
            codec.ProtocolError: the line has no end.
        """
        unsent = memoryview(request)
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        try:
            while (end := self._received.find(b"\n")) < 0:
                unsent = self._turn(unsent, deadline)
        finally:
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._stdin)
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def unasked(self, seconds: float) -> bytes:
        """What the program has written since its last line, or writes within a time; it is lost."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(TimeoutError, EOFError, codec.ProtocolError):
            while True:
                self._turn(memoryview(b""), deadline)
        written = bytes(self._received)
        self._received.clear()
        return written

    def _turn(self, unsent: memoryview, deadline: float) -> memoryview:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        for key, _ in self._selector.select(left):
            if key.fileobj is self._stdin:
                unsent = self._send(unsent)
            elif key.fileobj is self._stdout:
                self._receive()
            else:
                self._read_log()
        return unsent

    def has_read(self) -> bool:
        """Whether the program has read any of the last request."""
        waiting = bytearray(4)
        try:
            fcntl.ioctl(self._stdin.fileno(), termios.FIONREAD, waiting)
        except OSError:
            return True
        return int.from_bytes(waiting, sys.byteorder) < self._sent

    def drain(self) -> None:
        """Reads what the program has written already."""
        for receive in (self._receive, self._read_log):
            with contextlib.suppress(BlockingIOError, KeyError, EOFError):
                for _ in range(_MOST_CHUNKS):  # it may be writing without end
                    if not receive():
                        break

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            sent = os.write(self._stdin.fileno(), unsent[:_CHUNK])
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            # Its output may still hold the reason, or an answer: stop writing, go on reading.
            sent = len(unsent)
        else:
            self._sent += sent
        if sent == len(unsent):
            self._selector.unregister(self._stdin)
        return unsent[sent:]

    def _receive(self) -> bool:
        chunk = os.read(self._stdout.fileno(), _CHUNK)
        if not chunk:
            raise EOFError
        self._received += chunk
        if len(self._received) > codec.LONGEST_LINE:
            raise codec.ProtocolError(f"a line is longer than {codec.LONGEST_LINE} bytes")
        return True

    def _read_log(self) -> bool:
        chunk = os.read(self._stderr.fileno(), _CHUNK)
        if not chunk:
            self._selector.unregister(self._stderr)
        self.log.add(chunk)
        return bool(chunk)

    def stderr(self) -> str:
        """What it wrote to its standard error, of which the middle may be left out."""
        return self.log.text()

    def end_input(self) -> None:
        """Tells the program that no more requests follow."""
        self._stdin.close()

    def wait(self, seconds: float) -> None:
        """Gives the program time to end by itself, for its own exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(seconds)

    def kill(self) -> None:
        """Kills the process group, waits for the program, and keeps the last of its log."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        with contextlib.suppress(BlockingIOError, KeyError, ValueError):
            while self._read_log():
                pass
        self._selector.close()
        for stream in (self._stdin, self._stdout, self._stderr):
            stream.close()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    os.set_blocking(stream.fileno(), False)
    return stream


def _shown(line: bytes) -> str:
    text = line[:_SHOWN].decode("utf-8", "replace")
    return f"{text!r}" + (f" and {len(line) - _SHOWN} bytes more" if len(line) > _SHOWN else "")


def ending(returncode: int | None) -> str:
    """How a program ended, in words."""
    if returncode is not None and returncode < 0:
        return f"signal {signal.Signals(-returncode).name}"
    return f"exit code {returncode}"
