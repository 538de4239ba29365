"""The progress of a gauntlet: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from rich.progress import TimeElapsedColumn

from numaproof.inputs.plurals import plural
from numaproof.reports.gauntlet import line
from numaproof.reports.progress import Bar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol.kill_matrix import Hunt

_PARTS = 10


class GauntletProgress(Bar):
    """Shows each bug as it is finished; a context manager.

    Args:
        stream: where to write.
        total: the number of bugs.
        every: whether every bug gets a line, not only survivors.
        environment: the variables that decide between live and plain output (default: those of
            the process).
    """

    def __init__(
        self,
        stream: TextIO,
        total: int,
        environment: Mapping[str, str] | None = None,
        *,
        every: bool = True,
    ) -> None:
        super().__init__(stream, environment, "bugs", TimeElapsedColumn())
        self._total = total
        self._every = every
        self._done = self._survived = 0
        self.move(0, total, "0 survived")

    def show(self, hunt: Hunt) -> None:
        """Shows a bug that is finished."""
        self._done += 1
        self._survived += hunt.survived
        if self._every or hunt.survived:
            self.line(line(hunt))
        if self.live:
            self.move(self._done, self._total, f"{self._survived} survived")
        elif self._done * _PARTS // self._total > (self._done - 1) * _PARTS // self._total:
            self.line(f"{self._done:,} of {plural(self._total, 'bug')}, {self._survived} survived")
