"""Tells answers that differ from those that merely vary, by playing a scenario several times.

A kubelet walks maps and sets in any order. It is compared by those of its answers that are the same
in every run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from numaproof.conformance.differential.diff_options import TRIES
from numaproof.conformance.differential.lockstep import play
from numaproof.protocol import codec

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.differential.lockstep import LockstepResult, Pair
    from numaproof.conformance.execution.scenario import Scenario

_ENOUGH = 8
"""Runs that end in the same difference, after which it is not chance."""


def examine(pair: Pair, scenario: Scenario, scratch: Path, tries: int = TRIES) -> LockstepResult:
    """Plays a scenario often enough to tell chance from a difference.

    If one run agrees to its end, only chance made the sides differ. Otherwise the runs that agree
    longest count: if they end in different answers of the right side, the rest of the scenario
    cannot be compared (`LockstepResult.chance`).

    Args:
        pair: the two sides.
        scenario: the scenario and its machine.
        scratch: where state directories are made.
        tries: the most runs to make; a side that broke is not tried again.

    Raises:
        CaseError: the case cannot be played as written.
    """
    runs: list[LockstepResult] = []
    for _ in range(tries):
        run = play(pair, scenario, scratch)
        if run.outcome != "fail":
            return run
        runs.append(run)
        longest = _longest(runs)
        if len(longest) >= min(_ENOUGH, tries) and not _by_chance(longest):
            break
    longest = _longest(runs)
    last = longest[0]
    if _by_chance(longest) or (len(longest) < min(_ENOUGH, tries) and _by_chance(runs)):
        return replace(last, outcome="pass", chance=last.operation)
    return last


def _longest(runs: list[LockstepResult]) -> list[LockstepResult]:
    most = max(run.calls for run in runs)
    return [run for run in runs if run.calls == most]


def _by_chance(runs: list[LockstepResult]) -> bool:
    """Whether runs of the same calls ended in different answers."""
    answers = {codec.encode(run.steps[-1].answer) for run in runs}
    return len(answers) > 1
