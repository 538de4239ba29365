"""Interrupts that reach a run wherever it is, also where one is lost or taken for an error.

An interrupt is an exception in whatever code happens to run. Hypothesis takes examples to be
repeatable, and tidies up in between: there an interrupt may end as an assertion of its own, or in a
callback of the garbage collector, of which nobody hears but for a trace on standard error.
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
"""Hypothesis' function that Python calls around each garbage collection."""


class Interrupts:
    """Notes the interrupts of a block, and leaves them to who handled them before.

    Attributes:
        came: whether there was one.
    """

    def __init__(self) -> None:
        self.came = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        """Listens from here on; in another thread than the first there are no interrupts."""
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
        """Listens no longer."""
        for one, before in self._before.items():
            signal.signal(one, before)

    def check(self) -> None:
        """Interrupts again where there was an interrupt.

        Raises:
            KeyboardInterrupt: there was one.
        """
        if self.came:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if frame is not None and frame.f_code.co_name == _CALLBACK:
            return
        self._before[signal.Signals(number)](number, frame)


class OutOfTimeError(KeyboardInterrupt):
    """The time is over; an interrupt, so that nothing takes it for a failure of an example."""


@dataclass
class TimeLimit:
    """A time by which to be done; it may be moved.

    Code that plays scenarios need not look at a clock, because the implementation does: after the
    limit it refuses calls, and at the limit it stops waiting for an answer.

    Attributes:
        clock: seconds that have passed.
        until: the time, by that clock.
    """

    clock: Callable[[], float]
    until: float = math.inf

    @property
    def seconds_left(self) -> float:
        """Seconds left; not positive once the time is over."""
        return self.until - self.clock()

    def check(self) -> None:
        """Raises if the time is over.

        Raises:
            OutOfTimeError: it is.
        """
        if self.seconds_left <= 0:
            raise OutOfTimeError


def with_time_limit(implementation: Implementation, limit: TimeLimit) -> Implementation:
    """The implementation, whose calls raise an `OutOfTimeError` once the time is over."""
    if isinstance(implementation, ProcessBacked):
        return _LimitedProgram(implementation, implementation, limit)
    return _Limited(implementation, limit)


class _Limited:
    """An implementation within a time."""

    def __init__(self, implementation: Implementation, limit: TimeLimit) -> None:
        self._implementation = implementation
        self._limit = limit

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The answer to one request."""
        with self._in_time():
            return self._implementation.call(operation, args)

    def close(self) -> None:
        """Ends it."""
        self._implementation.close()

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Lets a program answer until the time is over, if its own limit is not earlier."""
        self._limit.check()
        if isinstance(self._implementation, Subprocess):
            self._implementation.patience = self._limit.seconds_left
        try:
            yield
        except TimedOut:
            # It might have answered within its own limit.
            self._limit.check()
            raise


class _LimitedProgram(_Limited):
    """A program within a time."""

    def __init__(
        self, implementation: Implementation, program: ProcessBacked, limit: TimeLimit
    ) -> None:
        super().__init__(implementation, limit)
        self._program = program

    def begin(self) -> None:
        """Forgets what was logged."""
        self._program.begin()

    def check_alive(self) -> None:
        """Makes sure that it is fit for another call."""
        with self._in_time():
            self._program.check_alive()

    def log(self) -> str:
        """Its standard error since `begin`."""
        return self._program.log()

    @property
    def leftover_processes(self) -> tuple[str, ...]:
        """The processes that it has started and that could not be ended."""
        return self._program.leftover_processes
