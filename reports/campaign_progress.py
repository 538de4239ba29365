"""The progress of a campaign: units, failures, rate and time left, live or as plain lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from numaproof.inputs.plurals import plural
from numaproof.reports.progress import Bar

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS_BETWEEN = 10.0
_MINUTE, _HOUR = 60, 3600


@dataclass(frozen=True)
class Standing:
    """The state of a campaign.

    Attributes:
        done: units finished, including those of earlier runs.
        total: all units.
        failures: case runs and scenarios that failed.
        signatures: distinct failures among those.
        here: units that this run has finished.
        seconds: time since this run started its first unit.
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
        """Estimated seconds for the rest; None while unknown."""
        return (self.total - self.done) / self.rate if self.rate else None

    def __str__(self) -> str:
        parts = [f"{self.failures:,} failed"]
        if self.failures:
            parts[0] += f" ({self.signatures:,} distinct)"
        parts.append(f"{self.rate:.1f} units/s")
        if self.left is not None:
            parts.append(f"{_clock(self.left)} left")
        return ", ".join(parts)


def _clock(seconds: float) -> str:
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE}:{whole % _MINUTE:02}"
    return f"{whole // _HOUR}:{whole % _HOUR // _MINUTE:02}:{whole % _MINUTE:02}"


class CampaignProgress(Bar):
    """Shows the progress as it changes; a context manager.

    Args:
        stream: where to write.
        environment: the variables that decide between live and plain output (default: those of
            the process).
    """

    def __init__(self, stream: TextIO, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(stream, environment, "units")
        self._next = 0.0

    def show(self, standing: Standing) -> None:
        """Shows the progress: live at once, as plain lines every now and then and at the end."""
        if self.live:
            self.move(standing.done, standing.total, str(standing))
        elif standing.seconds >= self._next or standing.done == standing.total:
            self._next = standing.seconds + _SECONDS_BETWEEN
            self.line(f"{standing.done:,} of {plural(standing.total, 'unit')}, {standing}")
