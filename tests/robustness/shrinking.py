"""Makes a failing trial smaller while it fails alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustness.playing import Ended
    from robustness.trials import Trial

MOST = 400
"""Trials that one failure may take."""


def shrunk(trial: Trial, cause: str, play: Callable[[Trial], Ended]) -> Trial:
    """The smallest trial found that fails for the same cause."""
    left = MOST
    while True:
        for less in trial.smaller():
            left -= 1
            if left < 0:
                return trial
            if play(less).cause == cause:
                trial = less
                break
        else:
            return trial
