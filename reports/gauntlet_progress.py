"""How far a gauntlet is: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from numaproof.reports.gauntlet import line
from numaproof.reports.terminal import is_live

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from numaproof.protocol.gauntlet import Hunt

_PARTS = 10


class GauntletProgress:
    """Shows each bug as it is done. Use it in a ``with``.

    Survivors have a line of their own; with `every` all bugs have one.

    Args:
        stream: where to write.
        total: how many bugs there are.
        every: whether what caught a bug is told as well.
        environment: the variables that decide between live and plain; those of the process
            where left out.
    """

    def __init__(
        self,
        stream: TextIO,
        total: int,
        environment: Mapping[str, str] | None = None,
        *,
        every: bool = True,
    ) -> None:
        environment = os.environ if environment is None else environment
        self._stream = stream
        self._live = is_live(stream, environment)
        self._total = total
        self._every = every
        self._done = self._survived = 0
        console = Console(
            file=stream, highlight=False, emoji=False, markup=False, _environ=environment
        )
        self._progress = Progress(
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("bugs, {task.description}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("0 survived", total=total)

    def __enter__(self) -> Self:
        if self._live:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._progress.stop()

    def show(self, hunt: Hunt) -> None:
        """Tells of a bug that is done."""
        self._done += 1
        self._survived += hunt.survived
        if self._every or hunt.survived:
            self._line(line(hunt))
        if self._live:
            told = f"{self._survived} survived"
            self._progress.update(self._task, completed=self._done, description=told)
        elif self._done * _PARTS // self._total > (self._done - 1) * _PARTS // self._total:
            self._line(f"{self._done} of {self._total} bugs, {self._survived} survived")

    def _line(self, text: str) -> None:
        if self._live:
            self._progress.console.print(text, soft_wrap=True)
            return
        self._stream.write(text + "\n")
        self._stream.flush()
