"""The base of all progress displays: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self, TextIO

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from numaproof.reports.consoles import ShownConsole
from numaproof.reports.terminal import is_live

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from rich.progress import ProgressColumn


class Bar:
    """A progress bar with lines above it; a context manager.

    Args:
        stream: where to write.
        environment: the variables that decide between live and plain output (default: those of
            the process).
        counted: what is counted, such as "units".
        columns: columns to show after the description.
    """

    def __init__(
        self,
        stream: TextIO,
        environment: Mapping[str, str] | None,
        counted: str,
        *columns: ProgressColumn,
    ) -> None:
        environment = os.environ if environment is None else environment
        self._stream = stream
        self.live = is_live(stream, environment)
        console = ShownConsole(stream, _environ=environment)
        self._progress = Progress(
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn(f"{counted}, {{task.description}}", markup=False),
            *columns,
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> Self:
        if self.live:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live:
            self._progress.stop()

    def line(self, text: str) -> None:
        """Shows a line above the bar."""
        if self.live:
            self._progress.console.print(text, soft_wrap=True)
        else:
            self._stream.write(text + "\n")
            self._stream.flush()

    def move(self, completed: int, total: int, description: str) -> None:
        """Moves the bar; does nothing without a terminal."""
        self._progress.update(self._task, completed=completed, total=total, description=description)
