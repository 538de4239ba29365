"""Made-up scenarios played on a target: how each ends, what it breaks, and how small it gets.

Fuzzing, campaigns and the gauntlet play their scenarios here, so that all of them mean the same
by "the same failure".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run
from numaproof.conformance.execution.scenario import Scenario
from numaproof.conformance.fuzzing.generation import trees
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.scenarios import seeded_scenario
from numaproof.conformance.fuzzing.generation.starts import start
from numaproof.conformance.fuzzing.shrinking import Shrinking, case_of
from numaproof.conformance.judging.oracle import DIFFERS
from numaproof.protocol.machine import MachineInfo

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.execution.run import RunResult, Target

TRIES = 400
"""Scenarios that are tried to make one smaller."""

_TRIES_OF_BROKEN = {"crash": 60, "protocol error": 60, "time-out": 0}
"""Fewer where the program starts again each time, or takes its whole time."""


def life(seed: int, capabilities: Capabilities) -> Scenario:
    """The scenario of a seed: a node's life as it is made up."""
    return _on_its_machine(seeded_scenario(seed, capabilities))


def odd_start(seed: int, capabilities: Capabilities) -> Scenario:
    """Another scenario of a seed: one start with something odd in it."""
    return _on_its_machine(start(Seeded(seed), capabilities, f"start-{seed}"))


def tree(seed: int, folder: Path) -> Scenario:
    """A third scenario of a seed: the tree of a machine, made in `folder`, is discovered."""
    name = f"tree-{seed}"
    machine = ProfileMachine(trees.profile(Seeded(seed), name), folder)
    return Scenario(trees.discovery(name), machine.info or MachineInfo(), machine.tree)


def _on_its_machine(case: Case) -> Scenario:
    assert case.machine is not None
    return Scenario(case, case.machine)


@dataclass(frozen=True)
class ScenarioRun:
    """A scenario, and how it ended."""

    scenario: Scenario
    result: RunResult
    run: Run

    @property
    def broken(self) -> str:
        """What it broke: an invariant, the likeness to the reference, or the program.

        The invariant broken last, ``difference``, or the outcome of what is no wrong answer;
        empty where all is well. It stays the same while a failure gets smaller.
        """
        if self.result.good:
            return ""
        if self.result.outcome != "fail":
            return self.result.outcome
        last = self.run.player.violations[-1:]
        if self.result.message.startswith(DIFFERS) or not last:
            return "difference"
        return last[0].invariant

    @property
    def requirements(self) -> tuple[str, ...]:
        """The ids of the requirements that it broke, in the order in which it did."""
        violations = self.run.player.violations
        return tuple(dict.fromkeys(one.requirement for one in violations))

    def case(self) -> Case:
        """The scenario as a case file has it."""
        case = case_of(self.scenario, self.result.message)
        return msgspec.structs.replace(case, id="fuzz", requirements=self.requirements)


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

    def play_seed(self, seed: int) -> ScenarioRun:
        """The scenario of a seed, played to its end or to what is wrong first."""
        return self.play(life(seed, self._target.capabilities))

    def play(self, scenario: Scenario) -> ScenarioRun:
        """A scenario played from an empty state directory, to its end or what is wrong first."""
        self._number += 1
        folder = self._scratch / f"scenario-{self._number}"
        run = Run(self._target, scenario.case, scenario.machine, scenario.root, folder)
        return ScenarioRun(scenario, run.play_on(), run)

    def smallest(self, first: ScenarioRun, tries: int = TRIES) -> ScenarioRun:
        """The smallest scenario found that breaks the same.

        The number of tries bounds the search, not time: the same scenario, the same result.
        """
        best = first

        def shows(scenario: Scenario) -> bool:
            nonlocal best
            played = self.play(scenario)
            if played.broken != first.broken:
                return False
            best = played
            return True

        most = _TRIES_OF_BROKEN.get(first.result.outcome, tries)
        Shrinking(shows, tries=most).smallest(first.scenario)
        return best
