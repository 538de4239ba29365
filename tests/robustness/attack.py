"""Searches with Hypothesis for trials of a kind that break the command."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import seed as with_seed

from robustness.kinds import KINDS
from robustness.playing import error_type, play

if TYPE_CHECKING:
    from pathlib import Path

    from robustness.trials import Trial


def attack(kind: str, scratch: Path, *, seed: int, count: int) -> Counter[int | None]:
    """Plays trials of a kind, reproducibly by seed and count; returns the counts of exit codes.

    Args:
        kind: one of `KINDS`.
        scratch: an empty folder, created by `playing.prepared`.
        seed: the seed of the trials.
        count: the number of trials.

    Raises:
        BrokenError: a trial ended in a way it must not; the notes show the smallest with that
            cause. Several causes are an `ExceptionGroup`.
    """
    codes: Counter[int | None] = Counter()

    @settings(
        max_examples=count,
        phases=(Phase.generate, Phase.shrink),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @with_seed(seed)
    @given(KINDS[kind])
    def play_trial(trial: Trial) -> None:
        ended = play(trial, scratch)
        codes[ended.code] += 1
        if ended.cause:
            note(f"{trial}\n--- told\n{ended.output}")
            note(f"again: tox run -e robustness -- --count {count} --only {kind}:{seed}")
            raise error_type(ended.cause)(ended.cause)

    play_trial()
    return codes


def error_text(error: BaseException) -> str:
    """Formats an attack's error with its notes and nested errors."""
    within = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return "\n".join((str(error), *getattr(error, "__notes__", ()), *map(error_text, within)))
