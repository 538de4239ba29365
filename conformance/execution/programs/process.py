"""A running program: its pipes, its log and its supervisor."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import sys
import termios
import time
from typing import IO, TYPE_CHECKING

from numaproof.conformance.execution.programs.supervision import Supervision
from numaproof.conformance.judging.logs import ProgramLog
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Mapping

_CHUNK = 1 << 16

_MOST_CHUNKS = 64
"""Reads of what is there already, between two calls."""


class Process:
    """A running program, its pipes and its supervisor.

    Args:
        command: the program and its arguments.
        environment: its environment variables (default: those of this process).

    Raises:
        CannotStartError: there is no such program, or it is none.
    """

    def __init__(
        self, command: tuple[str, ...], environment: Mapping[str, str] | None = None
    ) -> None:
        self._supervision = Supervision(command, environment)
        streams = self._supervision.streams
        self._stdin, self._stdout, self._stderr = map(_pipe, streams)
        self._selector = selectors.DefaultSelector()
        for source in (self._stdout, self._stderr, self._supervision):
            self._selector.register(source, selectors.EVENT_READ)
        self._received = bytearray()
        self._sent = 0
        self.log = ProgramLog()

    @property
    def pid(self) -> int:
        """Its process id, and that of its process group."""
        return self._supervision.pid

    @property
    def returncode(self) -> int | None:
        """How it ended, as far as is known; None while it runs."""
        return self._supervision.ended(0)

    @property
    def output(self) -> IO[bytes]:
        """Its standard output."""
        return self._stdout

    @property
    def unwatched(self) -> bool:
        """Whether its supervisor is gone before its time: the program has killed it."""
        return self._supervision.lost

    @property
    def alone(self) -> bool:
        """Whether neither the program nor anything that it has started is left."""
        return self._supervision.alone

    @property
    def found(self) -> tuple[str, ...]:
        """The other processes that there were when it was killed, by their command lines."""
        return self._supervision.found

    @property
    def left(self) -> tuple[str, ...]:
        """The processes that could not be killed, by id and command line."""
        return self._supervision.left

    def exchange(self, request: bytes, deadline: float) -> bytes:
        """Writes a request and reads one line, without its line break.

        Raises:
            TimeoutError: the deadline has passed.
            EOFError: the program closed its output, or killed its supervisor.
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
            EOFError: the program closed its output, or killed its supervisor.
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
            elif key.fileobj is self._stderr:
                self._read_log()
            else:
                self._supervision.hear()
                if self._supervision.lost:
                    raise EOFError
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
        if len(self._received) > codec.LONGEST_ANSWER:
            raise codec.ProtocolError(f"a line is longer than {codec.LONGEST_ANSWER} bytes")
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
        self._supervision.ended(seconds)

    def kill(self) -> None:
        """Kills the program and all that it has started, and keeps the last of its log."""
        self._supervision.end()
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


def ending(returncode: int | None) -> str:
    """How a program ended, in words."""
    if returncode is not None and returncode < 0:
        try:
            return f"signal {signal.Signals(-returncode).name}"
        except ValueError:  # most of the real-time signals have no name
            return f"signal {-returncode}"
    return f"exit code {returncode}"
