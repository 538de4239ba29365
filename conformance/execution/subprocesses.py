"""An implementation that is a program: one process, one line out, one line in.

Reading and writing never block longer than the time limit, whatever the program does: it may
crash, hang, print garbage, flood its standard error, or leave its input unread. After any
failure the whole process group is killed and the next call starts a fresh process.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from typing import IO, TYPE_CHECKING

from numaproof.conformance.execution.implementation import (
    BrokeProtocol,
    CannotStartError,
    Crashed,
    TimedOut,
)
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numaproof.protocol import messages

STDERR_KEPT = 8 * 1024
"""Bytes kept of the end of the standard error."""

_CHUNK = 1 << 16

_SHOWN = 200
"""Bytes of a bad line that a message shows."""

_PARTING = 1.0
"""Seconds that a program has to exit once its output or its input is closed."""


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

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The program's answer.

        Raises:
            ImplementationFailure: the program could not be started, ended, did not answer in
                time, or answered with something else than the protocol asks for.
        """
        process = self._running or Process(self._command)
        self._running = process
        self._number += 1
        request = codec.encode_request(self._number, operation, args)
        line = b""
        try:
            line = process.exchange(request, time.monotonic() + self._timeout)
            return codec.decode_answer(line, self._number, operation)
        except codec.ProtocolError as error:
            self._kill()
            seen = f"; the line was {_shown(line)}" if line else ""
            raise BrokeProtocol(f"{error}{seen}", process.stderr()) from None
        except TimeoutError:
            self._kill()
            message = f"no answer to {operation} within {self._timeout:g} s"
            raise TimedOut(message, process.stderr()) from None
        except EOFError:
            process.wait(_PARTING)
            self._kill()
            message = f"the program ended at {operation} with {ending(process.returncode)}"
            raise Crashed(message, process.stderr()) from None
        except BaseException:
            self._kill()
            raise

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
        self._tail = bytearray()

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
        if self._received:
            extra = bytes(self._received[:200])
            raise codec.ProtocolError(f"there was output that no request asked for: {extra!r}")
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
                self._log()
        return unsent

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            sent = os.write(self._stdin.fileno(), unsent[:_CHUNK])
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            # Its output may still hold the reason, or an answer: stop writing, go on reading.
            sent = len(unsent)
        if sent == len(unsent):
            self._selector.unregister(self._stdin)
        return unsent[sent:]

    def _receive(self) -> None:
        chunk = os.read(self._stdout.fileno(), _CHUNK)
        if not chunk:
            raise EOFError
        self._received += chunk
        if len(self._received) > codec.LONGEST_LINE:
            raise codec.ProtocolError(f"a line is longer than {codec.LONGEST_LINE} bytes")

    def _log(self) -> bool:
        chunk = os.read(self._stderr.fileno(), _CHUNK)
        if not chunk:
            self._selector.unregister(self._stderr)
        self._tail = (self._tail + chunk)[-STDERR_KEPT:]
        return bool(chunk)

    def stderr(self) -> str:
        """The end of the standard error, as text."""
        return self._tail.decode("utf-8", "replace")

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
            while self._log():
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
