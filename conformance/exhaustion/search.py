"""Enumerates the parts of a bound against a target and yields its failures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.claims import needs
from numaproof.conformance.differential.diff import shared_capabilities
from numaproof.conformance.execution.implementation import ImplementationFailure, InProcess
from numaproof.conformance.exhaustion.lives import Lives
from numaproof.conformance.exhaustion.stateless import MachineAssignments
from numaproof.conformance.fuzzing.exploration import Explorer
from numaproof.conformance.judging.invariants.stateless import on_answer
from numaproof.conformance.judging.oracle import disagreement
from numaproof.protocol.messages import LEVELS
from numaproof.reference.deviations.releases import release
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.execution.implementation import Implementation
    from numaproof.conformance.execution.run import Target
    from numaproof.conformance.exhaustion.bounds import Part
    from numaproof.conformance.exhaustion.stateless import Answering, Unit
    from numaproof.conformance.fuzzing.exploration import ScenarioRun
    from numaproof.protocol import messages
    from numaproof.protocol.events import Outcome
    from numaproof.reference.choices import Choices


class OtherSideFailure(Exception):  # noqa: N818 - as `ImplementationFailure`
    """The implementation to compare with failed to answer; the message describes how."""


class OtherSide:
    """An implementation to compare with. Its failures aren't those of the one under test."""

    def __init__(self, target: Target) -> None:
        self._implementation = target.implementation
        if target.program:
            target.program.begin()

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns its answer.

        Raises:
            OtherSideFailure: it failed to answer.
        """
        try:
            return self._implementation.call(operation, args)
        except ImplementationFailure as failure:
            raise OtherSideFailure(str(failure)) from failure

    def prefer(self, choices: Choices) -> None:
        """Does nothing: only the reference can be steered."""


def _compare_with(target: Target, other: Target) -> Target:
    """The target with what both claim, compared with the other implementation."""
    capabilities = shared_capabilities(other.hello, target.hello, target.kubernetes)
    return replace(
        target,
        hello=capabilities.hello,
        level=min(target.level, other.level, key=LEVELS.index),
        oracle=lambda _: OtherSide(other),
        compared_with="other side",
        baseline="kubelet",
    )


def _answering(implementation: Implementation | OtherSide, unit: Unit) -> Answering:
    return lambda question: implementation.call(unit.operation, question)


@dataclass
class Search:
    """A search for counterexamples.

    Attributes:
        target: the implementation under test.
        other: an implementation to compare answers with, instead of the reference; its target.
        outcomes: counts the examples by outcome.
    """

    target: Target
    other: Target | None = None
    outcomes: Counter[Outcome] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if self.other:
            self.target = _compare_with(self.target, self.other)

    def failures(self, part: Part) -> Iterator[ScenarioRun]:
        """Plays every example of a part and yields those that fail, smallest first."""
        if isinstance(part, Lives):
            yield from self._live(part)
        elif isinstance(part, MachineAssignments):
            for unit in part.units():
                yield from self._ask(unit)
        else:
            yield from self._ask(part)

    def _ask(self, unit: Unit) -> Iterator[ScenarioRun]:
        """Asks the questions of a unit. What isn't obviously right is played as a scenario."""
        target = self.target
        (first,) = islice(unit.questions(), 1)
        claims = needs.of_call(unit.operation, first, target.kubernetes, unit.machine, None)
        if not target.capabilities.makes(*claims):
            self.outcomes["unsupported"] += len(unit)
            return
        answer, right = self._sides(unit)
        with scratch_folder() as scratch:
            explorer = Explorer(target, scratch)
            for question in unit.questions():
                if self._is_right(question, answer, right):
                    self.outcomes["pass"] += 1
                else:
                    yield from self._judge(explorer.play(unit.scenario(question)))

    def _sides(self, unit: Unit) -> tuple[Answering, tuple[Answering, ...]]:
        """How the target answers, and the answers that it is compared with.

        The reference isn't compared with itself.
        """
        target, inside = self.target, self.target.implementation
        if target.program:
            target.program.begin()
        if self.other:
            other = OtherSide(self.other)
            return _answering(inside, unit), (_answering(other, unit),)
        follow = {"kubelet": (False,), "documented": (True,), "either": (False, True)}
        references = tuple(
            unit.reference(release(target.kubernetes, follows_docs=docs))
            for docs in follow[target.baseline]
        )
        if isinstance(inside, InProcess) and inside.is_reference:
            return references[0], ()
        return _answering(inside, unit), references

    def _is_right(
        self, question: messages.Args, answer: Answering, right: tuple[Answering, ...]
    ) -> bool:
        level = self.target.level
        try:
            reply = answer(question)
        except ImplementationFailure:
            return False
        if any(on_answer(question, reply, level)):
            return False
        if not right or not applies("admission", level):
            return True
        return any(not disagreement(question, reply, one(question), level) for one in right)

    def _live(self, lives: Lives) -> Iterator[ScenarioRun]:
        """Plays the lives of a machine with a setup."""
        with scratch_folder() as scratch:
            explorer = Explorer(self.target, scratch)
            for scenario_run in lives.explore(lambda life: explorer.confirm(explorer.play(life))):
                yield from self._judge(scenario_run)

    def _judge(self, scenario_run: ScenarioRun) -> Iterator[ScenarioRun]:
        """Counts a scenario, and yields it if it fails."""
        self.outcomes[scenario_run.result.outcome] += 1
        if not scenario_run.result.good:
            yield scenario_run
