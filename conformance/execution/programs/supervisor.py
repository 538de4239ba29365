"""Runs one program and ends all of its descendants, however they try to escape.

The harness runs this file as a script, in a process between itself and the program. Since it is a
*child subreaper*, the kernel makes it the parent of every orphaned descendant. Processes that leave
the process group, session or parent (``setsid``, a daemon's double fork) therefore become its
children and are killed with the rest. Processes of pytest, Dask or other programs that embed the
harness are not its descendants and are never affected.

It writes these lines to a socket:

    started PID        the program is running
    failed ERRNO       the program could not be started
    ended STATUS       the program ended with this wait status
    found PID NAME     at the end: another process was running
    left PID NAME      at the end: a process can't be killed
    done               everything else is gone

Any byte from the harness, or the closing of the socket, is a request to end everything. If the
harness is killed, its programs are killed too.

It is started for every program, so it runs without site-packages and avoids slow imports: `pathlib`
and `contextlib` would take a third of its start-up time.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

PATIENCE = 5.0
"""Seconds after which processes that are still alive are reported as left."""

_ROUND = 0.001
"""Seconds to wait for killed processes to die before listing the children again."""

_MAX_FOUND = 100
_NAME = 60


class Supervisor:
    """One program and its descendants.

    Args:
        control: the descriptor of the socket to the harness.
        words: the program and its arguments.
    """

    def __init__(self, control: int, words: list[str]) -> None:
        self._control = control
        os.set_inheritable(control, False)
        self._words = words
        self._program = 0
        self._deaths, wake = os.pipe()
        for end in (self._deaths, wake):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def run(self) -> None:
        """Starts the program, waits until the harness requests the end, and kills everything."""
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._program, failed = _spawn(self._words)
        # Close our copies of the pipes, so that the harness sees when the program closes its own.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        if failed:
            self._say("failed", failed)
            return
        self._say("started", self._program)
        self._wait()
        self._end()

    def _wait(self) -> None:
        """Reaps ended processes until the harness sends a request."""
        poll = select.poll()
        for one in (self._control, self._deaths):
            poll.register(one, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._deaths in ready:
                self._reap()
            if self._control in ready:
                return

    def _end(self) -> None:
        """Kills all descendants, and reports which were found and which are left."""
        self._reap()
        for pid in _descendants()[:_MAX_FOUND]:
            if pid != self._program and (name := _name(pid)):
                self._say("found", pid, name)
        began = time.monotonic()
        poll = select.poll()
        poll.register(self._deaths, select.POLLIN)
        while alive := children(os.getpid()):
            # Children of killed processes become our children and are killed next.
            for pid in alive:
                _kill(pid)
            poll.poll(_ROUND * 1000)
            self._reap()
            if time.monotonic() - began > PATIENCE:
                for pid in _descendants():
                    if name := _name(pid):
                        self._say("left", pid, name)
                break
        self._say("done")

    def _reap(self) -> None:
        try:
            os.read(self._deaths, 1 << 16)
        except BlockingIOError:
            pass
        try:
            while (dead := os.waitpid(-1, os.WNOHANG))[0]:
                if dead[0] == self._program:
                    self._say("ended", dead[1])
                    # The id may be reused from now on.
                    self._program = 0
        except ChildProcessError:
            pass

    def _say(self, *words: object) -> None:
        try:
            os.write(self._control, " ".join(map(str, words)).encode() + b"\n")
        except OSError:
            pass  # the harness is gone


def children(pid: int) -> list[int]:
    """The child processes of all threads of a process."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    except OSError:
        pass  # it has ended
    return found


def _spawn(words: list[str]) -> tuple[int, int]:
    """Starts a program in its own session; returns its id and the error number, or 0."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            # If the program kills its supervisor, it dies too.
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(ignored, signal.SIG_DFL)
            os.execvp(words[0], words)  # noqa: S606 - the user's own command
        except OSError as error:
            os.write(writer, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(writer)
    failed = os.read(reader, 16)
    os.close(reader)
    return pid, int(failed or b"0")


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _descendants() -> list[int]:
    found: list[int] = []
    waiting = children(os.getpid())
    while waiting and len(found) < _MAX_FOUND:
        found.append(waiting.pop(0))
        waiting += children(found[-1])
    return found


def _name(pid: int) -> str:
    """The command line of a process, escaped for a single line; empty if the process has ended."""
    words = _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").strip()
    # The state follows the name, which may contain any characters.
    if _read(f"/proc/{pid}/stat").rpartition(b") ")[2][:1] in (b"", b"X", b"Z"):
        return ""
    return ascii(words.decode("utf-8", "replace")[:_NAME])[1:-1] or "(no command line)"


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it has ended, or is another user's


if __name__ == "__main__":
    Supervisor(int(sys.argv[1]), sys.argv[2:]).run()
