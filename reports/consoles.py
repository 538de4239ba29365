"""The console of all coloured output: control sequences are rich's own, the text is visible."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.segment import Segment

from numaproof.reports.untrusted import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType


UNLIMITED = 10_000
"""The width of what no terminal shows, in columns: lines are as long as their text."""


class ShownConsole(Console):
    """rich's console, whose texts are made visible and never read as markup.

    Only a terminal limits the width. `COLUMNS`, which shells export, is about the terminal and must
    not squeeze a table that goes through a pipe.

    Args:
        stream: where to write (default: standard output).
        options: as for rich's own.
    """

    def __init__(self, stream: TextIO | None = None, **options: Any) -> None:
        stream = sys.stdout if stream is None else stream
        chosen = {"highlight": False, "emoji": False, "markup": False, **options}
        super().__init__(file=getattr(stream, "styled", stream), **chosen)
        if not self.is_terminal:
            self.width = UNLIMITED

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Pieces of text with their styles."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)

    def on_broken_pipe(self) -> None:
        """Leaves the error to the command; rich would exit with 1, as if something had failed."""
        raise  # noqa: PLE0704 - rich calls this where it handles the error
