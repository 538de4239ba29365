"""Work that must not be interrupted, such as cleaning up."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Ignores interrupts in a block, also in the programs that it starts.

    A terminal sends Ctrl-C to all of its programs, so kubectl would end as well.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change handlers, and only it is interrupted
        return
    handlers = {one: signal.signal(one, signal.SIG_IGN) for one in _SIGNALS}
    try:
        yield
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
