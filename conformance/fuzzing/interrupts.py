"""Handles interrupts that Hypothesis would lose or mistake for errors.

An interrupt raises an exception in whatever code is running. Hypothesis expects examples to be
repeatable, so an interrupt can turn into one of its assertions. In a garbage collector callback, an
interrupt only prints a traceback to standard error.
"""

from __future__ import annotations

import math
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from numaproof.conformance.execution.implementation import Implementation, ProcessBacked, TimedOut
from numaproof.conformance.execution.subprocesses import Subprocess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType

    from numaproof.protocol import messages


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_CALLBACK = "gc_callback"
"""Hypothesis's callback around garbage collections."""


class Interrupts:
    """Records interrupts during a block, and passes them on to the previous handlers.

    Attributes:
        came: whether there was an interrupt.
    """

    def __init__(self) -> None:
        self.came = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        """Installs the handlers; outside the main thread, there are no interrupts."""
        for one in _SIGNALS:
            before = signal.getsignal(one)
            if callable(before):
                try:
                    signal.signal(one, self._note)
                except ValueError:
                    break
                self._before[one] = before
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restores the previous handlers."""
        for one, before in self._before.items():
            signal.signal(one, before)

    def check(self) -> None:
        """Raises the interrupt again, if there was one.

        Raises:
            KeyboardInterrupt: there was an interrupt.
        """
        if self.came:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if frame is not None and frame.f_code.co_name == _CALLBACK:
            return
        self._before[signal.Signals(number)](number, frame)


class OutOfTimeError(KeyboardInterrupt):
    """Time is up. It is an interrupt so that it does not count as a failure of an example."""


@dataclass
class TimeLimit:
    """A movable deadline.

    Code that runs scenarios need not check the time, because the implementation does: it refuses
    calls after the deadline, and stops waiting for answers at the deadline.

    Attributes:
        clock: returns the elapsed seconds.
        until: the deadline, according to that clock.
    """

    clock: Callable[[], float]
    until: float = math.inf

    @property
    def seconds_left(self) -> float:
        """The remaining seconds; zero or negative after the deadline."""
        return self.until - self.clock()

    def check(self) -> None:
        """Raises an error if time is up.

        Raises:
            OutOfTimeError: the deadline has passed.
        """
        if self.seconds_left <= 0:
            raise OutOfTimeError


def with_time_limit(implementation: Implementation, limit: TimeLimit) -> Implementation:
    """Wraps the implementation so that calls raise `OutOfTimeError` after the deadline."""
    if isinstance(implementation, ProcessBacked):
        return _LimitedProgram(implementation, implementation, limit)
    return _Limited(implementation, limit)


class _Limited:
    def __init__(self, implementation: Implementation, limit: TimeLimit) -> None:
        self._implementation = implementation
        self._limit = limit

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        with self._in_time():
            return self._implementation.call(operation, args)

    def close(self) -> None:
        self._implementation.close()

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Stops waiting for an answer at the deadline, if the program's own time limit is later."""
        self._limit.check()
        if isinstance(self._implementation, Subprocess):
            self._implementation.patience = self._limit.seconds_left
        try:
            yield
        except TimedOut:
            # The program might have answered within its own limit.
            self._limit.check()
            raise


class _LimitedProgram(_Limited):
    def __init__(
        self, implementation: Implementation, program: ProcessBacked, limit: TimeLimit
    ) -> None:
        super().__init__(implementation, limit)
        self._program = program

    def begin(self) -> None:
        self._program.begin()

    def check_alive(self) -> None:
        with self._in_time():
            self._program.check_alive()

    def log(self) -> str:
        return self._program.log()

    @property
    def leftover_processes(self) -> tuple[str, ...]:
        return self._program.leftover_processes
