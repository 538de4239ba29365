"""How far a campaign is: units, failures, rate and time left, live or in plain lines."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from numaproof.reports.terminal import is_live

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

_SECONDS_BETWEEN = 10.0
_MINUTE, _HOUR = 60, 3600


@dataclass(frozen=True)
class Standing:
    """How far a campaign is.

    Attributes:
        done: units that are done, those of an earlier run too.
        total: all units.
        failures: case runs and scenarios that failed.
        signatures: how many of those are not alike.
        here: units that this run has done.
        seconds: since this run began to do units.
    """

    done: int
    total: int
    failures: int
    signatures: int
    here: int
    seconds: float

    @property
    def rate(self) -> float:
        """Units per second of this run."""
        return self.here / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds that the rest will take; None as long as nobody can say."""
        return (self.total - self.done) / self.rate if self.rate else None

    def __str__(self) -> str:
        parts = [f"{self.failures:,} bad"]
        if self.failures:
            parts[0] += f" ({self.signatures:,} unlike)"
        parts.append(f"{self.rate:.1f} units/s")
        if self.left is not None:
            parts.append(f"{_clock(self.left)} left")
        return ", ".join(parts)


def _clock(seconds: float) -> str:
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE}:{whole % _MINUTE:02}"
    return f"{whole // _HOUR}:{whole % _HOUR // _MINUTE:02}:{whole % _MINUTE:02}"


class CampaignProgress:
    """Shows the standing as it changes. Use it in a ``with``.

    Args:
        stream: where to write.
        environment: the variables that decide between live and plain; those of the process
            where left out.
    """

    def __init__(self, stream: TextIO, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self._stream = stream
        self._live = is_live(stream, environment)
        self._next = 0.0
        console = Console(
            file=stream, highlight=False, emoji=False, markup=False, _environ=environment
        )
        self._progress = Progress(
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("units, {task.description}", markup=False),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None)

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

    def line(self, text: str) -> None:
        """Shows a line above the progress."""
        if self._live:
            self._progress.console.print(text, soft_wrap=True)
        else:
            self._plain(text)

    def show(self, standing: Standing) -> None:
        """Shows how far it is: live at once, else now and then, and at the end."""
        if self._live:
            self._progress.update(
                self._task,
                completed=standing.done,
                total=standing.total,
                description=str(standing),
            )
        elif standing.seconds >= self._next or standing.done == standing.total:
            self._next = standing.seconds + _SECONDS_BETWEEN
            self._plain(f"{standing.done:,} of {standing.total:,} units, {standing}")

    def _plain(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()
