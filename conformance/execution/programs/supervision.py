"""The harness's side of a supervisor: starts it with a program, and has it end everything.

A program can do one thing against its supervisor: kill or stop it, for they are the same user's.
Then what it has started is looked for in the whole system, by a mark in the environment and by the
session.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from numaproof.conformance.execution.implementation import CannotStartError
from numaproof.conformance.execution.programs import supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_STARTING = 60.0
"""Seconds that a supervisor may take to start a program."""

ENDING = 2 * supervisor.PATIENCE
"""Seconds that it may take to end everything."""

MOST_ROUNDS = 200
_EMPTY_ROUNDS = 5
_MARK = "NUMAPROOF_PROGRAM"
_NAME = 60


class Supervision:
    """A program below its supervisor.

    Args:
        command: the program and its arguments.
        environment: its environment variables (default: those of this process).

    Raises:
        CannotStartError: there is no such program, or it is none.

    Attributes:
        pid: the program's process id.
        found: at the end, the processes that there were besides the program, by command line.
        left: at the end, the processes that can't be killed, by id and command line.
    """

    def __init__(self, command: tuple[str, ...], environment: Mapping[str, str] | None) -> None:
        self._mark = secrets.token_hex(8)
        self._control, theirs = socket.socketpair()
        self._unread = b""
        self._status: int | None = None
        self._gone = self._done = self._ended = False
        self._failed = 0
        self.pid = 0
        self.found: tuple[str, ...] = ()
        self.left: tuple[str, ...] = ()
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
            self._listen(_STARTING, lambda: bool(self.pid or self._failed))
        finally:
            if not self.pid:
                self._close()
        if self._failed:
            raise _cannot(command, os.strerror(self._failed))
        if not self.pid:
            raise _cannot(command, "its supervisor does not answer")

    @property
    def streams(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """The program's standard input, output and error."""
        streams = self._popen.stdin, self._popen.stdout, self._popen.stderr
        assert streams[0] is not None
        assert streams[1] is not None
        assert streams[2] is not None
        return streams[0], streams[1], streams[2]

    def ended(self, seconds: float) -> int | None:
        """The program's exit code, or its signal below zero; None if it runs on for so long."""
        if self._status is None and not self._ended:
            self._listen(seconds, lambda: self._status is not None)
        return None if self._status is None else os.waitstatus_to_exitcode(self._status)

    @property
    def alone(self) -> bool:
        """Whether neither the program nor anything that it has started is left."""
        return not supervisor.children(self._popen.pid)

    def fileno(self) -> int:
        """The descriptor of its socket, for a selector."""
        return self._control.fileno()

    def hear(self) -> None:
        """Takes in what it has said."""
        self._listen(0, lambda: False)

    @property
    def lost(self) -> bool:
        """Whether the supervisor has gone without being asked to."""
        return self._gone and not self._done

    def end(self) -> None:
        """Ends the program and all that it has started; waits until they are gone."""
        if self._ended:
            return
        # The program may have stopped it.
        self._popen.send_signal(signal.SIGCONT)
        with suppress(OSError):
            self._control.send(b"end")
        try:
            self._listen(ENDING, lambda: self._done)
        finally:
            self._close()
            if not self._done:
                self._hunt()
            self._ended = True

    def _close(self) -> None:
        """Makes sure that the supervisor is gone."""
        if not self._done:
            self._popen.kill()
        self._popen.wait()
        self._control.close()
        if not self.pid:
            for stream in self.streams:
                stream.close()

    def _listen(self, seconds: float, enough: Callable[[], bool]) -> None:
        """Takes in what the supervisor says, until it is enough, it is gone, or time is up."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        while not (enough() or self._gone):
            left = deadline - time.monotonic()
            if not poll.poll(max(left, 0) * 1000):
                return
            try:
                said = self._control.recv(1 << 16)
            except OSError:
                said = b""
            self._gone = not said
            *lines, self._unread = (self._unread + said).split(b"\n")
            for line in lines:
                self._hear(*line.decode().split(" ", 2))

    def _hear(self, what: str, number: str = "", name: str = "") -> None:
        match what:
            case "started":
                self.pid = int(number)
            case "failed":
                self._failed = int(number)
            case "ended":
                self._status = int(number)
            case "found":
                self.found += (name,)
            case "left":
                self.left += (f"{number} {name}",)
            case "done":
                self._done = True

    def _hunt(self) -> None:
        """Kills what the program has started, without the supervisor that knew of it."""
        empty = 0
        for _ in range(MOST_ROUNDS):
            alive = list(self._alive())
            # Who forks while the processes are listed, and ends, is missed with its child.
            empty = 0 if alive else empty + 1
            if empty == _EMPTY_ROUNDS:
                return
            for pid, _ in alive:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
        self.left = tuple(f"{pid} {name}" for pid, name in self._alive())

    def _alive(self) -> Iterator[tuple[int, str]]:
        """The processes of the program's session or with its mark, by id and command line."""
        mark = f"{_MARK}={self._mark}".encode()
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            with suppress(OSError):
                # After the name, which may hold anything: state, parent, group, session.
                state, _, _, session = (
                    (folder / "stat").read_bytes().rpartition(b") ")[2].split()[:4]
                )
                environment = (folder / "environ").read_bytes().split(b"\0")
                if state not in b"ZX" and (int(session) == self.pid or mark in environment):
                    words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").strip()
                    name = ascii(words.decode("utf-8", "replace")[:_NAME])[1:-1]
                    # It ends, or has put its command line out of sight.
                    yield int(folder.name), name or "(no command line)"


def _cannot(command: tuple[str, ...], why: str | None) -> CannotStartError:
    return CannotStartError(f"can't start {command[0]!r}: {why}")
