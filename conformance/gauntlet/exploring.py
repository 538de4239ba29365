"""Fuzzing for a seeded bug with the scenarios of seeds: how many it takes, and how small they get.

Every bug is looked for in the same scenarios, which are played on a healthy reference once.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numaproof.conformance.beside import Stage
from numaproof.conformance.gauntlet import hunting, rehearsing
from numaproof.conformance.gauntlet.rehearsing import Noting, Rehearsal
from numaproof.conformance.generation.choices import Seeded
from numaproof.conformance.generation.scenarios import seeded_scenario
from numaproof.conformance.implementation import InProcess
from numaproof.conformance.mirror import DIFFERS
from numaproof.conformance.playing import Playing
from numaproof.conformance.shrinking import Shrinking
from numaproof.protocol.gauntlet import Example
from numaproof.reference.node import Reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numaproof.conformance.cases import Case
    from numaproof.conformance.gauntlet.seeding import Bug
    from numaproof.conformance.playing import Target

TRIES = 300
"""Scenarios that are tried to make one smaller."""

_REHEARSED = 400
"""Scenarios whose answers are kept; most bugs are caught by fewer."""

_LARGEST_SEED = (1 << 32) - 1


def seeds_from(seed: int, count: int) -> tuple[int, ...]:
    """The seeds of so many scenarios."""
    choices = Seeded(seed)
    return tuple(choices.integer(0, _LARGEST_SEED) for _ in range(count))


@dataclass(frozen=True)
class Caught:
    """How fuzzing ended.

    Attributes:
        examples: scenarios that were played.
        example: the one that caught the bug, shrunk; None where none did.
        seconds: until it was caught, or all were played.
        shrinking: seconds that went into making it smaller.
    """

    examples: int
    example: Example | None
    seconds: float
    shrinking: float


@dataclass
class Explorer:
    """Plays scenarios against references with bugs.

    Attributes:
        scratch: an empty place for state directories.
    """

    scratch: Path
    _kept: dict[tuple[str, int], tuple[Case, Rehearsal]] = field(default_factory=dict)
    _healthy: dict[str, Target] = field(default_factory=dict)
    _number: int = 0

    def hunt(self, bug: Bug, seeds: Iterable[int]) -> Caught:
        """Looks for a bug in the scenarios of seeds, one after the other."""
        began = time.monotonic()
        target = hunting.target(bug.implementation(), bug.kubernetes, compared=True)
        number = 0
        for number, (case, rehearsal) in enumerate(self._scenarios(target, seeds), 1):
            if not rehearsal.good or not rehearsal.differs(bug):
                continue
            assert case.machine is not None
            stage = Stage(case, case.machine)
            kind = self._kind(target, stage)
            if kind:
                caught = time.monotonic()
                smallest = self._smallest(target, stage, kind)
                example = _example(number, kind, smallest)
                return Caught(number, example, caught - began, time.monotonic() - caught)
        return Caught(number, None, time.monotonic() - began, 0.0)

    def _scenarios(self, target: Target, seeds: Iterable[int]) -> Iterator[tuple[Case, Rehearsal]]:
        for seed in seeds:
            place = (target.kubernetes, seed)
            kept = self._kept.get(place)
            if kept is None:
                case = seeded_scenario(seed, target.claims)
                kept = case, self._rehearsal(target.kubernetes, case)
                if len(self._kept) < _REHEARSED:
                    self._kept[place] = kept
            yield kept

    def _rehearsal(self, kubernetes: str, case: Case) -> Rehearsal:
        healthy = self._healthy.get(kubernetes)
        if healthy is None:
            healthy = hunting.target(InProcess(Reference), kubernetes)
            self._healthy[kubernetes] = healthy
        noting = Noting(InProcess(Reference))
        return rehearsing.of_scenario(healthy, noting, case, self._folder())

    def _folder(self) -> Path:
        self._number += 1
        return self.scratch / f"scenario-{self._number}"

    def _kind(self, target: Target, stage: Stage) -> str:
        """What a scenario breaks; empty where all is well, or it can't be played."""
        folder = self._folder()
        playing = Playing(target, stage.case, stage.machine, None, folder)
        verdict = playing.play_on()
        if verdict.good:
            return ""
        if verdict.outcome != "fail":
            return verdict.outcome
        broken = playing.player.violations[-1:]
        if verdict.message.startswith(DIFFERS) or not broken:
            return "difference"
        return broken[0].invariant

    def _smallest(self, target: Target, stage: Stage, kind: str) -> Stage:
        """The smallest scenario found that breaks the same.

        The number of tries bounds the search, not time: the same bug, the same result.
        """
        left = TRIES

        def shows(smaller: Stage) -> bool:
            nonlocal left
            left -= 1
            if left < 0 or any(step.expect != "anything" for step in smaller.case.steps):
                return False
            try:
                return self._kind(target, smaller) == kind
            except (LookupError, ValueError):
                return False  # it makes no sense any more

        return Shrinking(shows, math.inf).smallest(stage)


def _example(number: int, kind: str, stage: Stage) -> Example:
    steps = stage.case.steps
    offered = [step.admit for step in steps if step.admit is not None]
    offered += [step.hints.pod for step in steps if step.hints is not None]
    pods = {pod if isinstance(pod, str) else pod.pod for pod in offered}
    cores = sum(len(node.cores or ()) for node in stage.machine.topology or ())
    return Example(number, kind, len(pods), cores, len(steps))
