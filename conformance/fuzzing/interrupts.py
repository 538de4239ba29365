"""Interrupts that reach a run wherever it is, also where one is lost or taken for an error.

An interrupt is an exception in whatever code happens to run. Hypothesis takes examples to be
repeatable, and tidies up in between: there an interrupt may end as an assertion of its own, or in a
callback of the garbage collector, of which nobody hears but for a trace on standard error.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType, TracebackType

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
