"""Plays generated scenarios on a target and shrinks those that fail.

Fuzzing, campaigns and the search for seeded bugs share this, so that "the same failure" means the
same to all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run
from numaproof.conformance.execution.scenario import Scenario
from numaproof.conformance.fuzzing.generation import trees
from numaproof.conformance.fuzzing.generation.checkpoint_pairs import checkpoint_pair
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.scenarios import discovery, seeded_scenario
from numaproof.conformance.fuzzing.generation.starts import start
from numaproof.conformance.fuzzing.generation.upgrades import seeded_upgrade
from numaproof.conformance.fuzzing.shrinking import Shrinking, case_of
from numaproof.conformance.fuzzing.time_limit import OutOfTimeError
from numaproof.protocol.machine import MachineInfo

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.execution.run import RunResult, Target

TRIES = 400
"""Scenarios to try while shrinking one."""

_TRIES_OF_BROKEN = {"crash": 60, "protocol error": 60, "time-out": 0}
"""Fewer if the program restarts each time, or runs into its time limit."""


FOUND = "fuzz"
"""The id of a case that shows a finding."""


def life(seed: int, capabilities: Capabilities) -> Scenario:
    """The scenario of a seed: the life of a node."""
    return _on_its_machine(seeded_scenario(seed, capabilities))


def odd_start(seed: int, capabilities: Capabilities) -> Scenario:
    """Another scenario of a seed: one unusual start."""
    return _on_its_machine(start(Seeded(seed), capabilities, f"start-{seed}"))


def found_file(seed: int, capabilities: Capabilities) -> Scenario:
    """The scenario of a number: a start that finds a checkpoint with this pair of parts."""
    return _on_its_machine(checkpoint_pair(seed, capabilities))


def upgrade(seed: int, capabilities: Capabilities, after: str) -> Scenario:
    """Another scenario of a seed: the life of a node that changes to the release `after`."""
    return _on_its_machine(seeded_upgrade(seed, capabilities, after))


def tree(seed: int, folder: Path) -> Scenario:
    """Another scenario of a seed: the discovery of a machine's tree, made in `folder`."""
    name = f"tree-{seed}"
    machine = ProfileMachine(trees.profile(Seeded(seed), name), folder)
    return Scenario(discovery(name), machine.info or MachineInfo(), machine.tree)


def _on_its_machine(case: Case) -> Scenario:
    assert case.machine is not None
    return Scenario(case, case.machine)


@dataclass(frozen=True)
class ScenarioRun:
    """A scenario, and how it ended."""

    scenario: Scenario
    result: RunResult
    run: Run
    cut_short: bool = False
    """Whether the time ended the search for a smaller scenario that fails in the same way."""

    @property
    def broken(self) -> str:
        """What it broke: an invariant, the likeness to the reference, or the program.

        The invariant broken last, ``difference``, or the outcome of what is no wrong answer;
        empty if all is well. It stays the same while a failure is shrunk.
        """
        if self.result.good:
            return ""
        if self.result.outcome != "fail":
            return self.result.outcome
        last = self.run.player.violations[-1:]
        found = self.result.finding
        if (found and found.source == "reference") or not last:
            return "difference"
        return last[0].invariant

    @property
    def signature(self) -> str:
        """The cause of the failure; empty if all is well."""
        return self.run.signature(self.result)

    @property
    def requirements(self) -> tuple[str, ...]:
        """The ids of the requirements that it broke, in that order."""
        violations = self.run.player.violations
        return tuple(dict.fromkeys(one.requirement for one in violations))

    def case(self) -> Case:
        """The scenario as a case file has it."""
        case = case_of(self.scenario, self.result.headline)
        return msgspec.structs.replace(case, id=FOUND, requirements=self.requirements)


class Explorer:
    """Plays scenarios against a target.

    Args:
        target: what is under test.
        scratch: an empty folder for state directories; the caller removes it.
    """

    def __init__(self, target: Target, scratch: Path) -> None:
        self._target = target
        self._scratch = scratch
        self._number = 0

    def play_seed(self, seed: int) -> ScenarioRun:
        """The scenario of a seed, played to its end or to the first failure."""
        return self.play(life(seed, self._target.capabilities))

    def play(self, scenario: Scenario) -> ScenarioRun:
        """A scenario played from an empty state directory to its end or to the first failure."""
        self._number += 1
        folder = self._scratch / f"scenario-{self._number}"
        run = Run(self._target, scenario.case, scenario.machine, scenario.tree, folder)
        return ScenarioRun(scenario, run.play(), run)

    def smallest(
        self,
        first: ScenarioRun,
        tries: int = TRIES,
        way: Callable[[ScenarioRun], str] = attrgetter("broken"),
    ) -> ScenarioRun:
        """The smallest scenario found that fails in the same way.

        The number of tries bounds the search, so the result is reproducible, unless the time of
        the target is limited and ends it.

        Args:
            first: the failure.
            tries: how many scenarios to try.
            way: what stays the same.
        """
        best = first

        def shows(scenario: Scenario) -> bool:
            nonlocal best
            played = self.play(scenario)
            if way(played) != way(first):
                return False
            best = played
            return True

        most = _TRIES_OF_BROKEN.get(first.result.outcome, tries)
        try:
            Shrinking(shows, tries=most).smallest(first.scenario)
        except OutOfTimeError:
            return replace(best, cut_short=True)
        return best
