"""Plays trials in processes of their own, with limits on time and memory."""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import struct
import tempfile
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from robustness.playing import Ended, load, play, prepare

if TYPE_CHECKING:
    from robustness.trials import Trial

SECONDS = 10
"""Processor time of a trial."""

_WALL = 60
"""Seconds after which a trial hangs that computes nothing."""

MEMORY = 1 << 30
"""Bytes that a trial may have beyond what the worker has before it."""

_LENGTH = struct.Struct("!Q")


@dataclass
class _Process:
    pid: int
    reading: int
    writing: int


class Worker:
    """Plays trials one after the other. Use it in a ``with``.

    All are played in one process, which is forked anew after a trial that ended it. It is forked
    with all that the caller has loaded.
    """

    def __init__(self) -> None:
        self._process: _Process | None = None
        load()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def play(self, trial: Trial) -> Ended:
        """How a trial ended."""
        process = self._process = self._process or _forked()
        with suppress(BrokenPipeError):
            _send(process.writing, pickle.dumps(trial))
        ready, _, _ = select.select([process.reading], [], [], _WALL)
        answer = _receive(process.reading) if ready else None
        if answer is not None:
            ended: Ended = pickle.loads(answer)
            if ended.worn_out:
                self._end()
            return ended
        status = self._end()
        if not ready:
            return Ended(problem="hang", detail=f"no end after {_WALL} seconds")
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
            return Ended(problem="hang", detail=f"{SECONDS} seconds of processor time")
        return Ended(problem="death", detail=f"wait status {status}")

    def _end(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        os.close(process.writing)
        if not select.select([process.reading], [], [], 2)[0]:
            os.kill(process.pid, signal.SIGKILL)
        os.close(process.reading)
        return os.waitpid(process.pid, 0)[1]


def _forked() -> _Process:
    from_parent, to_child = os.pipe()
    from_child, to_parent = os.pipe()
    with warnings.catch_warnings():
        # Other threads of a test run may be in the middle of something; the child needs none.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        os.close(from_parent)
        os.close(to_parent)
        return _Process(pid, from_child, to_child)
    try:
        os.close(to_child)
        os.close(from_child)
        _serve(from_parent, to_parent)
    finally:
        os._exit(0)


def _serve(reading: int, writing: int) -> None:
    os.setsid()
    prepare()
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = used * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with tempfile.TemporaryDirectory(prefix="robustness-", dir=_place()) as scratch:
        while asked := _receive(reading):
            trial: Trial = pickle.loads(asked)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            ended = play(trial, Path(scratch))
            signal.setitimer(signal.ITIMER_PROF, 0)
            _send(writing, pickle.dumps(ended))


def _place() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder in it


def _send(to: int, message: bytes) -> None:
    left = memoryview(_LENGTH.pack(len(message)) + message)
    while left:
        left = left[os.write(to, left) :]


def _receive(source: int) -> bytes | None:
    head = _exactly(source, _LENGTH.size)
    return _exactly(source, _LENGTH.unpack(head)[0]) if head else None


def _exactly(source: int, length: int) -> bytes | None:
    whole = bytearray()
    while len(whole) < length:
        part = os.read(source, min(length - len(whole), 1 << 20))
        if not part:
            return None
        whole += part
    return bytes(whole)
