"""A running program with its pipes, log and supervisor."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import select
import selectors
import signal
import socket
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from numaproof.conformance.execution.implementation import CannotStartError
from numaproof.conformance.execution.programs import supervisor
from numaproof.inputs.plurals import plural
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_STARTING = 60.0
"""Seconds that the supervisor may take to start the program."""

ENDING = 2 * supervisor.PATIENCE
"""Seconds that the supervisor may take to end everything."""

MAX_ROUNDS = 200
_EMPTY_ROUNDS = 5
_MARK = "NUMAPROOF_PROGRAM"
_NAME = 60


class Supervision:
    """A program run by a supervisor.

    The program can kill or stop its supervisor, because both belong to the same user. In that case,
    its descendants are found by their session and by a mark in their environment.

    Args:
        command: the program and its arguments.
        environment: its environment variables (default: those of this process).

    Raises:
        CannotStartError: the program doesn't exist or isn't executable.

    Attributes:
        pid: the program's process id.
        found_processes: the command lines of other processes running at the end.
        leftover_processes: the processes that can't be killed, by id and command line.
    """

    def __init__(self, command: tuple[str, ...], environment: Mapping[str, str] | None) -> None:
        self._mark = secrets.token_hex(8)
        self._control, theirs = socket.socketpair()
        self._unread = b""
        self._status: int | None = None
        self._is_supervisor_gone = self._is_done = self._has_ended = False
        self._start_error = 0
        self.pid = 0
        self.found_processes: tuple[str, ...] = ()
        self.leftover_processes: tuple[str, ...] = ()
        words = (sys.executable, "-I", "-S", supervisor.__file__, str(theirs.fileno()))
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - the user's own command
                (*words, *command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
                env={**(os.environ if environment is None else environment), _MARK: self._mark},
            )
        except OSError as error:
            self._control.close()
            raise _cannot(command, error.strerror) from None
        finally:
            theirs.close()
        try:
            self._listen(_STARTING, lambda: bool(self.pid or self._start_error))
        finally:
            if not self.pid:
                self._close()
        if self._start_error:
            raise _cannot(command, os.strerror(self._start_error))
        if not self.pid:
            raise _cannot(command, "its supervisor is not responding")

    @property
    def streams(self) -> list[IO[bytes]]:
        """The program's standard input, output and error."""
        streams = (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        return [stream for stream in streams if stream is not None]

    def wait(self, seconds: float) -> int | None:
        """Waits for the program's exit code or negative signal; None if it is still running."""
        if self._status is None and not self._has_ended:
            self._listen(seconds, lambda: self._status is not None)
        return None if self._status is None else os.waitstatus_to_exitcode(self._status)

    @property
    def has_no_children(self) -> bool:
        """Whether the program and all of its descendants have ended."""
        return not supervisor.children(self._popen.pid)

    def fileno(self) -> int:
        """The descriptor of the supervisor's socket, for a selector."""
        return self._control.fileno()

    def receive(self) -> None:
        """Reads pending messages from the supervisor."""
        self._listen(0, lambda: False)

    @property
    def supervisor_killed(self) -> bool:
        """Whether the program killed the supervisor."""
        return self._is_supervisor_gone and not self._is_done

    def end(self) -> None:
        """Kills the program and its descendants, and waits until they have ended."""
        if self._has_ended:
            return
        # The program may have stopped its supervisor.
        self._popen.send_signal(signal.SIGCONT)
        with suppress(OSError):
            self._control.send(b"end")
        try:
            self._listen(ENDING, lambda: self._is_done)
        finally:
            self._close()
            if not self._is_done:
                self._kill_descendants()
            self._has_ended = True

    def _close(self) -> None:
        """Makes sure that the supervisor has ended."""
        if not self._is_done:
            self._popen.kill()
        self._popen.wait()
        self._control.close()
        if not self.pid:
            for stream in self.streams:
                stream.close()

    def _listen(self, seconds: float, enough: Callable[[], bool]) -> None:
        """Reads messages until `enough()`, the supervisor ends, or time is up."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        while not (enough() or self._is_supervisor_gone):
            left = deadline - time.monotonic()
            if not poll.poll(max(left, 0) * 1000):
                return
            try:
                said = self._control.recv(1 << 16)
            except OSError:
                said = b""
            self._is_supervisor_gone = not said
            *lines, self._unread = (self._unread + said).split(b"\n")
            for line in lines:
                self._handle(*line.decode().split(" ", 2))

    def _handle(self, what: str, number: str = "", name: str = "") -> None:
        match what:
            case "started":
                self.pid = int(number)
            case "failed":
                self._start_error = int(number)
            case "ended":
                self._status = int(number)
            case "found":
                self.found_processes += (name,)
            case "left":
                self.leftover_processes += (f"{number} {name}",)
            case "done":
                self._is_done = True

    def _kill_descendants(self) -> None:
        """Kills the program's descendants without the supervisor's help."""
        empty = 0
        for _ in range(MAX_ROUNDS):
            alive = list(self._alive())
            # A process that forks and ends during the listing is missed along with its child.
            empty = 0 if alive else empty + 1
            if empty == _EMPTY_ROUNDS:
                return
            for pid, _ in alive:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
        self.leftover_processes = tuple(f"{pid} {name}" for pid, name in self._alive())

    def _alive(self) -> Iterator[tuple[int, str]]:
        """The processes in the program's session or with its mark, by id and command line."""
        mark = f"{_MARK}={self._mark}".encode()
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            with suppress(OSError):
                # After the name, which may contain any characters: state, parent, group, session.
                state, _, _, session = (
                    (folder / "stat").read_bytes().rpartition(b") ")[2].split()[:4]
                )
                environment = (folder / "environ").read_bytes().split(b"\0")
                if state not in b"ZX" and (int(session) == self.pid or mark in environment):
                    words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").strip()
                    name = ascii(words.decode("utf-8", "replace")[:_NAME])[1:-1]
                    # The process is ending, or hides its command line.
                    yield int(folder.name), name or "(no command line)"


def _cannot(command: tuple[str, ...], why: str | None) -> CannotStartError:
    return CannotStartError(f"can't start {command[0]!r}: {why}")


STDERR_KEPT = 8 * 1024
"""Bytes kept from the beginning and the end of the log, both for the current call and for
the time before it.
"""


class _Clipped:
    """The beginning and the end of a text of unlimited length."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._lines = 0

    def add(self, chunk: bytes) -> None:
        room = STDERR_KEPT - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        cut = len(self._tail) - STDERR_KEPT
        if cut > 0:
            self._lines += self._tail.count(b"\n", 0, cut)
            del self._tail[:cut]

    def content(self) -> bytes:
        left_out = f"\n[... {plural(self._lines, 'line')} left out ...]\n"
        gap = left_out.encode() if self._lines else b""
        return bytes(self._head) + gap + bytes(self._tail)


class ProgramLog:
    """What a program logs during a case, before and since the last call."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Clears the log at the start of a case."""
        self._before, self._now = _Clipped(), _Clipped()

    def mark(self) -> None:
        """Marks the start of a call."""
        self._before.add(self._now.content())
        self._now = _Clipped()

    def add(self, chunk: bytes) -> None:
        """Appends output from the program."""
        self._now.add(chunk)

    def text(self) -> str:
        """The part of the log that was kept."""
        return (self._before.content() + self._now.content()).decode("utf-8", "replace")


_CHUNK = 1 << 16

_MAX_CHUNKS = 64
"""The maximum number of reads to drain pending output between two calls."""


class Process:
    """A running program with its pipes and supervisor.

    Args:
        command: the program and its arguments.
        environment: its environment variables (default: those of this process).

    Attributes:
        supervision: ends the program and its descendants.
        log: what the program logs.

    Raises:
        CannotStartError: the program doesn't exist or isn't executable.
    """

    def __init__(
        self, command: tuple[str, ...], environment: Mapping[str, str] | None = None
    ) -> None:
        self.supervision = Supervision(command, environment)
        self._stdin, self._stdout, self._stderr = map(_pipe, self.supervision.streams)
        self._selector = selectors.DefaultSelector()
        for source in (self._stdout, self._stderr, self.supervision):
            self._selector.register(source, selectors.EVENT_READ)
        self._receive_buffer = bytearray()
        self._bytes_sent = 0
        self.log = ProgramLog()

    @property
    def returncode(self) -> int | None:
        """The exit code or negative signal; None while the program runs."""
        return self.supervision.wait(0)

    def exchange(self, request: bytes, deadline: float) -> bytes:
        """Writes a request and reads a line, without its line break.

        Raises:
            TimeoutError: the deadline has passed.
            EOFError: the program closed its output or killed its supervisor.
            codec.ProtocolError: the line is too long, or there was output before the request.
        """
        self._bytes_sent = 0
        self.drain()
        if self._receive_buffer:
            raise codec.ProtocolError("there was output that no request asked for")
        return self.next_line(deadline, request)

    def next_line(self, deadline: float, request: bytes = b"") -> bytes:
        """Writes an optional request and reads the next line, without its line break.

        Raises:
            TimeoutError: the deadline has passed.
            EOFError: the program closed its output or killed its supervisor.
            codec.ProtocolError: the line is too long.
        """
        # Most requests fit into the pipe.
        unsent = self._send(memoryview(request))
        if unsent:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        try:
            while (end := self._receive_buffer.find(b"\n")) < 0:
                unsent = self._transfer(unsent, deadline)
        finally:
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._stdin)
        line = bytes(self._receive_buffer[:end])
        del self._receive_buffer[: end + 1]
        return line

    def read_unsolicited(self, seconds: float) -> bytes:
        """Returns and discards the output since the last line, waiting some seconds for more."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(TimeoutError, EOFError, codec.ProtocolError):
            while True:
                self._transfer(memoryview(b""), deadline)
        written = bytes(self._receive_buffer)
        self._receive_buffer.clear()
        return written

    def _transfer(self, unsent: memoryview, deadline: float) -> memoryview:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        for key, _ in self._selector.select(left):
            if key.fileobj is self._stdin:
                unsent = self._send(unsent)
                if not unsent:
                    self._selector.unregister(self._stdin)
            elif key.fileobj is self._stdout:
                self._receive()
            elif key.fileobj is self._stderr:
                self._read_log()
            else:
                self.supervision.receive()
                if self.supervision.supervisor_killed:
                    raise EOFError
        return unsent

    def has_read(self) -> bool:
        """Whether the program has read any part of the last request."""
        waiting = bytearray(4)
        try:
            fcntl.ioctl(self._stdin.fileno(), termios.FIONREAD, waiting)
        except OSError:
            return True
        return int.from_bytes(waiting, sys.byteorder) < self._bytes_sent

    def drain(self) -> None:
        """Reads pending output."""
        for receive in (self._receive, self._read_log):
            with contextlib.suppress(BlockingIOError, KeyError, EOFError):
                for _ in range(_MAX_CHUNKS):  # the program may never stop writing
                    if not receive():
                        break

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            sent = os.write(self._stdin.fileno(), unsent[:_CHUNK])
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            # The output may still contain the reason or an answer, so continue reading.
            sent = len(unsent)
        else:
            self._bytes_sent += sent
        return unsent[sent:]

    def _receive(self) -> bool:
        chunk = os.read(self._stdout.fileno(), _CHUNK)
        if not chunk:
            raise EOFError
        self._receive_buffer += chunk
        if len(self._receive_buffer) > codec.LONGEST_ANSWER:
            raise codec.ProtocolError(f"a line is longer than {codec.LONGEST_ANSWER} bytes")
        return True

    def _read_log(self) -> bool:
        chunk = os.read(self._stderr.fileno(), _CHUNK)
        if not chunk:
            self._selector.unregister(self._stderr)
        self.log.add(chunk)
        return bool(chunk)

    def stderr(self) -> str:
        """The program's standard error, possibly shortened in the middle."""
        return self.log.text()

    def end_input(self) -> None:
        """Closes the program's input, because no more requests follow."""
        self._stdin.close()

    def wait(self, seconds: float) -> None:
        """Gives the program time to end with its own exit code."""
        self.supervision.wait(seconds)

    def kill(self) -> None:
        """Kills the program and its descendants, and keeps the end of its log."""
        self.supervision.end()
        with contextlib.suppress(BlockingIOError, KeyError, ValueError):
            while self._read_log():
                pass
        self._selector.close()
        for stream in (self._stdin, self._stdout, self._stderr):
            stream.close()


def _pipe(stream: IO[bytes]) -> IO[bytes]:
    os.set_blocking(stream.fileno(), False)
    return stream


def ending(returncode: int | None) -> str:
    """Describes how a program ended."""
    if returncode is not None and returncode < 0:
        try:
            return f"signal {signal.Signals(-returncode).name}"
        except ValueError:  # most of the real-time signals have no name
            return f"signal {-returncode}"
    return f"exit code {returncode}"
