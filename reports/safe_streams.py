"""The streams that people look at: whatever is written to them, nothing drives the terminal.

The command puts `shown_streams` around everything that it does, so that no message, of whichever
part or library, can go past `visible`. Only a `numaproof.reports.terminal.ShownConsole` writes
control sequences.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from numaproof.reports.untrusted_text import escape_json, visible

if TYPE_CHECKING:
    from collections.abc import Iterator


class ShownStream(io.TextIOWrapper):
    """Text that is made visible as it is written.

    Attributes:
        inner_stream: the stream below, for the control sequences of a `ShownConsole`.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(
            cast("Any", stream.buffer),
            encoding=stream.encoding,
            # What the encoding lacks is no reason to fail, least of all in a message.
            errors="backslashreplace",
            line_buffering=getattr(stream, "line_buffering", False),
        )
        self.inner_stream = stream

    def write(self, text: str, /) -> int:
        """Writes the text, with what is hidden in it as code points."""
        super().write(visible(text))
        return len(text)

    @property
    def buffer(self) -> Any:
        """Takes bytes in UTF-8, which are JSON: in them, what is hidden becomes an escape."""
        return _ShownBytes(self)


class _ShownBytes(io.RawIOBase):
    """Bytes for a `ShownStream`."""

    def __init__(self, stream: ShownStream) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        text = bytes(content).decode(errors="surrogateescape")
        io.TextIOWrapper.write(self._stream, escape_json(text))
        return len(content)

    def close(self) -> None:
        """Leaves the stream open: whoever wraps this is gone before it."""

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()


@contextmanager
def shown_streams() -> Iterator[None]:
    """Makes standard output and standard error `ShownStream`, until the end of the block.

    A stream that was closed before the command began takes everything and keeps nothing.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    nowhere = [_open_devnull(number) if one is None else one for number, one in enumerate(before)]
    # What is still in it belongs before what follows.
    for one in nowhere[1:]:
        one.flush()
    shown = [ShownStream(one) for one in nowhere[1:]]
    sys.stdin, sys.stdout, sys.stderr = nowhere[0], *shown
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for one in shown:
            # Who could still be told has been told.
            with suppress(OSError, ValueError):
                one.detach()


def _open_devnull(number: int) -> TextIO:
    """A stream in the place of a closed one, whose number would go to the next file opened."""
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    return open(number, "w" if number else "r", encoding="utf-8", closefd=False)
