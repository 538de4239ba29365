"""Enumerates the parts of a bound against a target and yields its failures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.claims import needs
from numaproof.conformance.execution.implementation import ImplementationFailure, InProcess
from numaproof.conformance.exhaustion.lives import Lives
from numaproof.conformance.fuzzing.exploration import Explorer
from numaproof.conformance.judging.invariants.stateless import on_answer
from numaproof.conformance.judging.oracle import disagreement
from numaproof.reference.deviations.releases import release
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.execution.run import Target
    from numaproof.conformance.exhaustion.bounds import Part
    from numaproof.conformance.exhaustion.stateless import Answering, Unit
    from numaproof.conformance.fuzzing.exploration import ScenarioRun
    from numaproof.protocol import messages
    from numaproof.protocol.events import Outcome


@dataclass
class Search:
    """A search for counterexamples.

    Attributes:
        target: the implementation under test.
        outcomes: counts the examples by outcome.
    """

    target: Target
    outcomes: Counter[Outcome] = field(default_factory=Counter)

    def failures(self, part: Part) -> Iterator[ScenarioRun]:
        """Plays every example of a part and yields those that fail, smallest first."""
        if isinstance(part, Lives):
            yield from self._live(part)
        elif isinstance(part, tuple):
            for unit in part:
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
        target = self.target
        follow = {"kubelet": (False,), "documented": (True,), "either": (False, True)}
        references = tuple(
            unit.reference(release(target.kubernetes, follows_docs=docs))
            for docs in follow[target.baseline]
        )
        inside = target.implementation
        if isinstance(inside, InProcess) and inside.is_reference:
            return references[0], ()
        if target.program:
            target.program.begin()
        return (lambda question: inside.call(unit.operation, question)), references

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
            for scenario_run in lives.explore(Explorer(self.target, scratch).play):
                yield from self._judge(scenario_run)

    def _judge(self, scenario_run: ScenarioRun) -> Iterator[ScenarioRun]:
        """Counts a scenario, and yields it if it fails."""
        self.outcomes[scenario_run.result.outcome] += 1
        if not scenario_run.result.good:
            yield scenario_run
