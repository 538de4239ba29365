"""The scenario of a seed, played; and made smaller where it fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.conformance.beside import Stage
from numaproof.conformance.generation.scenarios import seeded_scenario
from numaproof.conformance.mirror import DIFFERS
from numaproof.conformance.playing import Playing
from numaproof.conformance.shrinking import Shrinking, case_of
from numaproof.fleet.signatures import signature

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.cases import Case
    from numaproof.conformance.playing import Target, Verdict

TRIES = 400
"""Scenarios that are tried to make one smaller."""

_TRIES_OF_BROKEN = {"crash": 60, "protocol error": 60, "time-out": 0}
"""Fewer where the program starts again each time, or takes its whole time."""


@dataclass(frozen=True)
class Played:
    """A scenario, and how it ended."""

    stage: Stage
    verdict: Verdict
    playing: Playing

    @property
    def kind(self) -> str:
        """What it broke: the last invariant, or the likeness to the reference."""
        if self.verdict.message.startswith(DIFFERS):
            return "difference"
        violations = self.playing.player.violations[-1:]
        return violations[0].invariant if violations else "scenario"

    @property
    def signature(self) -> str:
        """The same for scenarios that fail alike."""
        return signature(self.kind, self.verdict.outcome, self.verdict.message)

    def case(self) -> Case:
        """The scenario as a case file has it."""
        return case_of(self.stage, self.verdict.message)


class Explorer:
    """Plays scenarios against a target.

    Args:
        target: what is tested.
        scratch: an empty place for state directories; what is made there stays until it goes.
    """

    def __init__(self, target: Target, scratch: Path) -> None:
        self._target = target
        self._scratch = scratch
        self._number = 0

    def play_seed(self, seed: int) -> Played:
        """The scenario of a seed, played to its end or to what is wrong first."""
        case = seeded_scenario(seed, self._target.claims)
        assert case.machine is not None
        return self._play(Stage(case, case.machine))

    def _play(self, stage: Stage) -> Played:
        self._number += 1
        folder = self._scratch / f"scenario-{self._number}"
        playing = Playing(self._target, stage.case, stage.machine, None, folder)
        return Played(stage, playing.play_on(), playing)

    def smallest(self, first: Played) -> Played:
        """The smallest scenario found that breaks the same in the same way.

        The number of tries bounds the search, not time: the same scenario, the same result.
        """
        best = first

        def shows(stage: Stage) -> bool:
            nonlocal best
            played = self._play(stage)
            if (played.kind, played.verdict.outcome) != (first.kind, first.verdict.outcome):
                return False
            best = played
            return True

        tries = _TRIES_OF_BROKEN.get(first.verdict.outcome, TRIES)
        Shrinking(shows, tries=tries).smallest(first.stage)
        return best
