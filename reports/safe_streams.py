"""Standard streams that make hidden characters visible, so that output can't control the terminal.

The command does all of its work inside `shown_streams`, so messages from every module and library
go through `visible`. Only a `numaproof.reports.console.ShownConsole` writes control sequences.
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
    """A text stream that makes hidden characters visible.

    Attributes:
        inner_stream: the wrapped stream, for the control sequences of a `ShownConsole`.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(
            cast("Any", stream.buffer),
            encoding=stream.encoding,
            # Printing a message must not fail because of the encoding.
            errors="backslashreplace",
            line_buffering=getattr(stream, "line_buffering", False),
        )
        self.inner_stream = stream

    def write(self, text: str, /) -> int:
        """Writes the text, with hidden characters as code points."""
        super().write(visible(text))
        return len(text)

    @property
    def buffer(self) -> Any:
        """A binary stream for JSON in UTF-8, in which hidden characters are escaped."""
        return _ShownBytes(self)


class _ShownBytes(io.RawIOBase):
    def __init__(self, stream: ShownStream) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        text = bytes(content).decode(errors="surrogateescape")
        io.TextIOWrapper.write(self._stream, escape_json(text))
        return len(content)

    def close(self) -> None:
        """Does nothing, because wrappers are closed before the stream."""

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()


@contextmanager
def shown_streams() -> Iterator[None]:
    """Replaces standard output and standard error with a `ShownStream` each within the block.

    Streams that were already closed are replaced with /dev/null.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    nowhere = [_open_devnull(number) if one is None else one for number, one in enumerate(before)]
    # Text that is still buffered comes before new output.
    for one in nowhere[1:]:
        one.flush()
    shown = [ShownStream(one) for one in nowhere[1:]]
    sys.stdin, sys.stdout, sys.stderr = nowhere[0], *shown
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for one in shown:
            # Nobody is left to report an error to.
            with suppress(OSError, ValueError):
                one.detach()


def _open_devnull(number: int) -> TextIO:
    """Opens /dev/null for a closed standard stream before another file takes its descriptor."""
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    return open(number, "w" if number else "r", encoding="utf-8", closefd=False)
