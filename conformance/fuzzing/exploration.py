"""Runs generated scenarios and shrinks those that fail.

Fuzzing, campaigns and the search for seeded bugs share this code, so they agree on what "the same
failure" means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases.schema import Case, Step
from numaproof.conformance.execution.implementation import FROM_OUTSIDE
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run, RunResult, Scenario, Target
from numaproof.conformance.fuzzing.generation import checkpoint_pairs, trees
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.scenarios import (
    discovery,
    seeded_scenario,
    seeded_upgrade,
    start,
)
from numaproof.conformance.fuzzing.shrinking import case_of, shrink
from numaproof.protocol.machine import MachineInfo
from numaproof.workdir.removal import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.protocol.events import Outcome


TRIES = 400
"""Maximum number of scenarios to try while shrinking."""

_TRIES_OF_BROKEN = {"crash": 60, "protocol error": 60, "time-out": 0}
"""Lower limits for failures that require a restart or run into the time limit."""


FOUND = "fuzz"
"""The id of a case that reproduces a finding."""


def node_scenario(seed: int, capabilities: Capabilities) -> Scenario:
    """Generates a node's life from a seed."""
    return on_its_machine(seeded_scenario(seed, capabilities))


def unusual_start(seed: int, capabilities: Capabilities) -> Scenario:
    """Generates an unusual start from a seed."""
    return on_its_machine(start(Seeded(seed), capabilities, f"start-{seed}"))


def checkpoint_pair(seed: int, capabilities: Capabilities) -> Scenario:
    """Generates a start that finds a checkpoint; `seed` selects the checkpoint's two parts."""
    return on_its_machine(checkpoint_pairs.checkpoint_pair(seed, capabilities))


def upgrade(seed: int, capabilities: Capabilities, after: str) -> Scenario:
    """Generates a node's life with an upgrade to the release `after`."""
    return on_its_machine(seeded_upgrade(seed, capabilities, after))


def tree(seed: int, folder: Path) -> Scenario:
    """Generates a tree in `folder`, and the scenario that discovers it."""
    name = f"tree-{seed}"
    machine = ProfileMachine(trees.profile(Seeded(seed), name), folder)
    return Scenario(discovery(name), machine.info or MachineInfo(), machine.tree)


def on_its_machine(case: Case) -> Scenario:
    """Returns the scenario of a case that has a machine."""
    assert case.machine is not None
    return Scenario(case, case.machine)


@dataclass(frozen=True)
class ScenarioRun:
    """A scenario and its result."""

    scenario: Scenario
    result: RunResult
    run: Run
    cut_short: bool = False
    """Whether shrinking ran out of time."""

    @property
    def failure_kind(self) -> str:
        """The kind of the failure, which shrinking preserves; empty if the run is successful.

        This is the last broken invariant, ``difference``, or, if no answer was wrong, the outcome.
        """
        if self.result.good:
            return ""
        if self.result.outcome != "fail":
            return self.result.outcome
        last = self.run.player.violations[-1:]
        found = self.result.finding
        if (found and found.source == self.run.target.compared_with) or not last:
            return "difference"
        return last[0].invariant

    @property
    def signature(self) -> str:
        """The cause of the failure; empty if the run is successful."""
        return self.run.signature(self.result)

    @property
    def requirements(self) -> tuple[str, ...]:
        """The ids of the violated requirements, in order of violation."""
        violations = self.run.player.violations
        return tuple(dict.fromkeys(one.requirement for one in violations))

    def case(self) -> Case:
        """Converts the scenario to a case for a case file."""
        case = case_of(self.scenario, self.result.headline)
        return msgspec.structs.replace(case, id=FOUND, requirements=self.requirements)


class Explorer:
    """Runs scenarios against a target.

    Args:
        target: the implementation under test.
        scratch: an empty folder for state directories; the caller removes it.
    """

    def __init__(self, target: Target, scratch: Path) -> None:
        self._target = target
        self._scratch = scratch
        self._number = 0

    def play_seed(self, seed: int) -> ScenarioRun:
        """Runs the scenario for a seed until its end or the first failure."""
        return self.play(node_scenario(seed, self._target.capabilities))

    def play(self, scenario: Scenario) -> ScenarioRun:
        """Runs a scenario in an empty state directory until its end or the first failure."""
        self._number += 1
        folder = self._scratch / f"scenario-{self._number}"
        run = Run(self._target, scenario.case, scenario.machine, scenario.tree, folder)
        return ScenarioRun(scenario, run.play(), run)

    def confirm(self, first: ScenarioRun) -> ScenarioRun:
        """Plays a scenario again if the machine may have killed or delayed the program."""
        return self.play(first.scenario) if first.result.outcome in FROM_OUTSIDE else first

    def smallest(
        self,
        first: ScenarioRun,
        tries: int = TRIES,
        key: Callable[[ScenarioRun], str] = attrgetter("failure_kind"),
    ) -> ScenarioRun:
        """Finds the smallest scenario that fails in the same way.

        Args:
            first: the failure.
            tries: the maximum number of scenarios to try.
            key: returns the property of a failure that shrinking must preserve.
        """

        def try_scenario(scenario: Scenario) -> ScenarioRun | None:
            played = self.play(scenario)
            return played if key(played) == key(first) else None

        most = _TRIES_OF_BROKEN.get(first.result.outcome, tries)
        best, cut_short = shrink(first, first.scenario, try_scenario, most)
        return replace(best, cut_short=cut_short)


class ExampleFailedError(AssertionError):
    """An example failed; the exception holds its run."""

    def __init__(self, run: ExampleRun, result: RunResult) -> None:
        super().__init__(result.message)
        self.run = run
        self.result = result


class NullRun:
    """Stands in for a run when shrinking has used up its tries; makes no calls."""

    def step(self, step: Step) -> None:
        """Does nothing."""

    def finish(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class ExampleRun:
    """A run whose steps are generated as it proceeds; it adds failures to `failures`.

    After a failure with a cause in `known_outcomes`, the remaining steps are skipped, and
    `known_outcome` is the outcome to count for the example. Its state directories are in `folder`,
    which doesn't exist before the run.
    """

    def __init__(  # noqa: PLR0913 - most are keyword-only
        self,
        target: Target,
        machine: MachineInfo,
        folder: Path,
        *,
        failures: list[ExampleFailedError],
        known_outcomes: Mapping[str, Outcome] = MappingProxyType({}),
        from_tree: bool = False,
    ) -> None:
        self._failures = failures
        self._known_outcomes = known_outcomes
        self.known_outcome: Outcome | None = None
        self._folder = folder
        self.machine = machine
        self.steps: list[Step] = []
        placeholder = Case(id="fuzz", title="", requirements=(), steps=(), tree=from_tree)
        self._result = RunResult("pass")
        self.inner = Run(target, placeholder, machine, None, folder)

    def step(self, step: Step) -> None:
        """Runs one more step, unless an unsupported call or a known failure prevents it.

        Raises:
            ExampleFailedError: the step failed, and no known cause explains it.
        """
        if self.known_outcome or self.inner.player.out_of_step:
            return
        self.steps.append(step)
        self._result = self.inner.judge(lambda: self.inner.player.step(step))
        self._raise()

    def finish(self) -> None:
        """Checks that the program is still alive after its last answer.

        Raises:
            ExampleFailedError: the program died.
        """
        if self._result.good:
            self._result = self.inner.final_result(self._result)
            self._raise()

    def _raise(self) -> None:
        if self._result.good:
            return
        self.known_outcome = self._known_outcomes.get(self.inner.signature(self._result))
        if self.known_outcome is None:
            self._failures.append(ExampleFailedError(self, self._result))
            raise self._failures[-1]

    def close(self) -> None:
        """Removes the state directories."""
        remove_tree(self._folder)

    def scenario(self) -> Scenario:
        """Returns the steps so far as a scenario."""
        case = msgspec.structs.replace(self.inner.case, level="invariants", steps=tuple(self.steps))
        return Scenario(case, self.machine)

    def scenario_run(self) -> ScenarioRun:
        """Returns the scenario so far and its result."""
        return ScenarioRun(self.scenario(), self._result, self.inner)

    @property
    def size(self) -> int:
        """The length of the example, for comparing examples."""
        return len(msgspec.json.encode((self.machine, self.steps)))
