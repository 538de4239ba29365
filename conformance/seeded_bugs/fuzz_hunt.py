"""Fuzzing for a seeded bug with the scenarios of seeds: how many it takes, and how small they get.

Every bug is looked for in the same scenarios, which are played on a healthy reference once. Most
are the lives of nodes as `numaproof diff` makes them of the same seeds; some are starts with
something odd in them, and trees of machines to be discovered.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.fuzzing.exploration import Explorer, life, odd_start, tree
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.seeded_bugs import baseline, hunting
from numaproof.conformance.seeded_bugs.baseline import Baseline, Noting
from numaproof.protocol.kill_matrix import Example
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numaproof.conformance.execution.run import Target
    from numaproof.conformance.execution.scenario import Scenario
    from numaproof.conformance.seeded_bugs.seeding import Bug

TRIES = 300
"""Scenarios that are tried to make one smaller."""

_BASELINES = 400
"""Scenarios whose answers are kept; most bugs are caught by fewer."""

_TURNS = ("life",) * 2 + ("start",) + ("life",) * 3 + ("start",) + ("life",) * 2 + ("tree",)
"""What the scenarios are, over and over: lives, starts and trees."""

_LARGEST_SEED = (1 << 32) - 1


def seeds_from(seed: int, count: int) -> tuple[int, ...]:
    """The seeds of so many scenarios."""
    choices = Seeded(seed)
    return tuple(choices.integer(0, _LARGEST_SEED) for _ in range(count))


@dataclass(frozen=True)
class FuzzHuntResult:
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
class Fuzzing:
    """Plays scenarios against references with bugs.

    Attributes:
        scratch: an empty place for state directories.
    """

    scratch: Path
    _kept: dict[tuple[str, int], tuple[Scenario, Baseline]] = field(default_factory=dict)
    _healthy: dict[str, Target] = field(default_factory=dict)
    _number: int = 0

    def hunt(self, bug: Bug, seeds: Iterable[int]) -> FuzzHuntResult:
        """Looks for a bug in the scenarios of seeds, one after the other."""
        began = time.monotonic()
        target = hunting.target(bug.implementation(), bug.kubernetes, compared=True)
        explorer = Explorer(target, self._folder())
        number = 0
        for number, seed in enumerate(seeds, 1):
            scenario, healthy = self._known(target, seed, _TURNS[(number - 1) % len(_TURNS)])
            if not healthy.good or not healthy.differs(bug):
                continue
            played = explorer.play(scenario)
            if played.broken:
                caught = time.monotonic()
                # The number of tries bounds the search, not time: the same bug, the same result.
                smallest = explorer.smallest(played, TRIES)
                example = _example(number, smallest.broken, smallest.scenario)
                return FuzzHuntResult(number, example, caught - began, time.monotonic() - caught)
        return FuzzHuntResult(number, None, time.monotonic() - began, 0.0)

    def _known(self, target: Target, seed: int, kind: str) -> tuple[Scenario, Baseline]:
        """The scenario of a seed, and what a healthy reference answers to it."""
        place = (target.kubernetes, seed)
        known = self._kept.get(place)
        if known is None:
            scenario = self._made(target, seed, kind)
            known = scenario, self._baseline(target.kubernetes, scenario)
            if len(self._kept) < _BASELINES:
                self._kept[place] = known
        return known

    def _made(self, target: Target, seed: int, kind: str) -> Scenario:
        if kind == "tree":
            return tree(seed, self._folder())
        return (odd_start if kind == "start" else life)(seed, target.capabilities)

    def _baseline(self, kubernetes: str, scenario: Scenario) -> Baseline:
        healthy = self._healthy.get(kubernetes)
        if healthy is None:
            healthy = hunting.target(InProcess(Reference), kubernetes)
            self._healthy[kubernetes] = healthy
        noting = Noting(InProcess(Reference))
        if scenario.tree is None:
            return baseline.of_scenario(healthy, noting, scenario.case, self._folder())
        return baseline.of_case(
            healthy, noting, scenario.case, scenario.machine, scenario.tree, self._folder()
        )

    def _folder(self) -> Path:
        self._number += 1
        return self.scratch / f"scenario-{self._number}"


def _example(number: int, kind: str, scenario: Scenario) -> Example:
    steps = scenario.case.steps
    offered = [step.admit for step in steps if step.admit is not None]
    offered += [step.hints.pod for step in steps if step.hints is not None]
    pods = {pod if isinstance(pod, str) else pod.pod for pod in offered}
    cores = sum(len(node.cores or ()) for node in scenario.machine.topology or ())
    return Example(number, kind, len(pods), cores, len(steps))
