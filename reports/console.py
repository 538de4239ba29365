"""Prints lines and tables, in colour on a terminal and plain anywhere else."""

from __future__ import annotations

import os
import sys
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from numaproof.reports.untrusted_text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import ConsoleOptions, RenderableType

UNLIMITED = 10_000
"""The width without a terminal, in columns, so that lines are never wrapped."""


class ShownConsole(Console):
    """A rich console that makes hidden characters visible and does not interpret markup.

    Only a terminal limits the width: `COLUMNS`, which shells export, must not narrow a table that
    is written to a pipe.

    Args:
        stream: where to write (default: standard output).
        options: options of rich's console.
    """

    def __init__(self, stream: TextIO | None = None, **options: Any) -> None:
        stream = sys.stdout if stream is None else stream
        chosen = {"highlight": False, "emoji": False, "markup": False, **options}
        super().__init__(file=getattr(stream, "inner_stream", stream), **chosen)
        if not self.is_terminal:
            self.width = UNLIMITED

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yields pieces of text with their styles."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)

    def on_broken_pipe(self) -> None:
        """Passes the error on to the command; rich would exit with 1, as if a case had failed."""
        raise  # noqa: PLE0704 - rich calls this while it handles the error


PLAIN_WIDTH = 100
"""Width of plain output, in columns."""

_ASCII = str.maketrans("├└│─·…✓✗○◔∅≈≠≁†⟨⟩", "|`|-..+xo@0~*^%<>")


def is_live(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether a stream is a terminal that can redraw and colour lines."""
    encoding = (getattr(stream, "encoding", None) or "").lower().replace("-", "")
    return (
        stream.isatty()
        and encoding == "utf8"
        and not environment.get("CI")
        and not environment.get("NO_COLOR")
        and environment.get("TERM", "dumb") not in {"dumb", "unknown"}
    )


def print_part(console: Console, part: RenderableType) -> None:
    """Prints a part of the summary; text with `no_wrap` may exceed the width."""
    console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))


def encodable(text: str, stream: TextIO) -> str:
    """Makes text encodable for a stream; drawing characters become ASCII if necessary."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text


def terminal_width() -> int | None:
    """Returns the width of the terminal on standard output; None if output is plain."""
    return ShownConsole().width if is_live(sys.stdout, os.environ) else None


def show(parts: Iterable[RenderableType], *, fold: bool = False) -> None:
    """Prints lines and tables, in colour on a terminal and plain anywhere else.

    Args:
        parts: what to print.
        fold: whether to wrap long lines on a terminal.
    """
    console = ShownConsole() if is_live(sys.stdout, os.environ) else None
    for part in parts:
        if console:
            console.print(part, soft_wrap=not fold)
        else:
            text = part.plain if isinstance(part, Text) else as_plain(part).strip("\n")
            sys.stdout.write(encodable(text, sys.stdout) + "\n")
    sys.stdout.flush()


def as_plain(part: RenderableType) -> str:
    """Renders a part as plain text of unlimited width."""
    written = StringIO()
    console = ShownConsole(written, color_system=None, legacy_windows=False, force_terminal=False)
    print_part(console, part)
    return "\n".join(line.rstrip() for line in written.getvalue().rstrip("\n").split("\n"))
