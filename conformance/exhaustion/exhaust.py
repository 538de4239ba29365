"""`numaproof exhaust`: asks every question within a bound and reports each cause of failure once.

Questions come in ascending order of size, so the first counterexample of a cause is the smallest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING

from msgspec.structs import replace

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.claims import needs
from numaproof.conformance.execution.implementation import ImplementationFailure, InProcess
from numaproof.conformance.exhaustion import stateless
from numaproof.conformance.exhaustion.lives import CONFIGURATIONS, Lives, plain_shapes
from numaproof.conformance.exhaustion.shapes import shapes
from numaproof.conformance.fuzzing.exploration import Explorer
from numaproof.conformance.fuzzing.fuzz_finding import FuzzFinding
from numaproof.conformance.judging.invariants.stateless import on_answer
from numaproof.conformance.judging.oracle import disagreement
from numaproof.inputs.plurals import plural
from numaproof.protocol import events
from numaproof.reference.deviations.releases import release
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.conformance.exhaustion.stateless import Answering, Unit
    from numaproof.conformance.fuzzing.exploration import ScenarioRun
    from numaproof.protocol import messages
    from numaproof.reference.deviations.releases import Release

ASSIGNMENTS, MERGES, LIVES = "assignments", "merges", "lives"
KINDS = (ASSIGNMENTS, MERGES, LIVES)
"""What can be enumerated."""


@dataclass(frozen=True)
class Bound:
    """The size of what is enumerated.

    Attributes:
        cpus: the most CPUs of a machine, for assignments.
        merges: numbers of nodes, providers and hints per provider, for merges.
        life_cpus: the most CPUs of a machine, for lives.
        actions: the most actions of a life after its first start.
        configurations: the configurations of lives.
    """

    cpus: int
    merges: tuple[tuple[int, int, int], ...]
    life_cpus: int
    actions: int
    configurations: Sequence[messages.KubeletConfiguration] = CONFIGURATIONS

    def sentence(self, kind: str) -> str:
        """What a kind covers, such as "every assignment on machines of up to 4 CPUs"."""
        if kind == ASSIGNMENTS:
            return f"every assignment on machines of up to {plural(self.cpus, 'CPU')}"
        if kind == MERGES:
            sizes = "; ".join(
                f"{plural(nodes, 'node')}, {plural(providers, 'provider')},"
                f" up to {plural(hints, 'hint')} each"
                for nodes, providers, hints in self.merges
            )
            return f"every merge ({sizes})"
        configurations = plural(len(self.configurations), "configuration")
        return (
            f"every life of up to {plural(self.actions, 'action')} on machines of up to"
            f" {plural(self.life_cpus, 'CPU')}, in {configurations}"
        )


BOUNDS = {
    "small": Bound(4, ((2, 2, 8), (3, 2, 2)), 3, 3, CONFIGURATIONS[::5]),
    "medium": Bound(5, ((2, 2, 8), (2, 3, 2), (3, 2, 3)), 4, 3),
    "large": Bound(6, ((2, 3, 3), (3, 2, 4), (4, 2, 2)), 4, 4),
}
"""The bounds that the command offers."""

_MAX_CAUSES = 20
"""The number of causes after which a run ends."""


def exhaust(
    harness_run: HarnessRun, bound: Bound, kinds: Collection[str], findings: Path
) -> Iterator[events.AnyEvent]:
    """Enumerates what is within a bound and yields events.

    Args:
        harness_run: the run, with its target.
        bound: how large the machines, hints and lives get.
        kinds: which of `KINDS` to enumerate.
        findings: the directory for the case files of findings.
    """
    ordered_kinds = [kind for kind in KINDS if kind in kinds]
    sentences = tuple(bound.sentence(kind) for kind in ordered_kinds)
    yield replace(harness_run.started_event("exhaust", 0, {}), bound=sentences)
    search = _Search(harness_run, findings)
    rules = release(harness_run.target.kubernetes, follows_docs=True)
    parts = chain.from_iterable(_PARTS[kind](bound, rules) for kind in ordered_kinds)
    for part in takewhile(lambda _: not search.is_over, parts):
        yield from search.live(part) if isinstance(part, Lives) else search.ask(part)
    yield harness_run.ended_event(search.outcomes)


def _assignments(bound: Bound, rules: Release) -> Iterator[Unit]:
    for cpus in range(1, bound.cpus + 1):
        for shape in shapes(cpus):
            yield from stateless.assignments(shape, rules)


def _merges(bound: Bound, rules: Release) -> Iterator[Unit]:
    for size in bound.merges:
        yield from stateless.merges(*size, rules)


def _lives(bound: Bound, _: Release) -> Iterator[Lives]:
    for cpus in range(1, bound.life_cpus + 1):
        for shape in plain_shapes(cpus):
            for config in bound.configurations:
                yield Lives(shape, config, bound.actions)


_PARTS: Mapping[str, Callable[[Bound, Release], Iterator[Unit | Lives]]] = {
    ASSIGNMENTS: _assignments,
    MERGES: _merges,
    LIVES: _lives,
}


@dataclass
class _Search:
    """The state of a run: outcomes and the causes found so far."""

    harness_run: HarnessRun
    findings: Path
    outcomes: Counter[str] = field(default_factory=Counter)
    _causes: set[str] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        return len(self._causes) >= _MAX_CAUSES

    def ask(self, unit: Unit) -> Iterator[events.AnyEvent]:
        """Asks the questions of a unit. What isn't obviously right is played as a scenario."""
        target = self.harness_run.target
        (first,) = islice(unit.questions(), 1)
        claims = needs.of_call(unit.operation, first, target.kubernetes, unit.machine, None)
        if not target.capabilities.makes(*claims):
            self.outcomes["unsupported"] += len(unit)
            yield self._progress()
            return
        answer, right = self._sides(unit)
        with scratch_folder() as scratch:
            explorer = Explorer(target, scratch)
            for question in unit.questions():
                if self._is_right(question, answer, right):
                    self.outcomes["pass"] += 1
                else:
                    yield from self._judge(explorer.play(unit.scenario(question)))
        yield self._progress()

    def _sides(self, unit: Unit) -> tuple[Answering, tuple[Answering, ...]]:
        """How the target answers, and the answers that it is compared with.

        The reference isn't compared with itself.
        """
        target = self.harness_run.target
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
        level = self.harness_run.target.level
        try:
            reply = answer(question)
        except ImplementationFailure:
            return False
        if any(on_answer(question, reply, level)):
            return False
        if not right or not applies("admission", level):
            return True
        return any(not disagreement(question, reply, one(question), level) for one in right)

    def live(self, lives: Lives) -> Iterator[events.AnyEvent]:
        """Plays the lives of a machine with a configuration."""
        with scratch_folder() as scratch:
            explorer = Explorer(self.harness_run.target, scratch)
            for scenario_run in lives.explore(explorer.play):
                yield from self._judge(scenario_run)
        yield self._progress()

    def _judge(self, scenario_run: ScenarioRun) -> Iterator[events.AnyEvent]:
        """Counts a scenario, and reports the first one of each cause."""
        self.outcomes[scenario_run.result.outcome] += 1
        if scenario_run.result.good or scenario_run.signature in self._causes:
            return
        self._causes.add(scenario_run.signature)
        yield FuzzFinding.of_failure(scenario_run).event(self.harness_run, self.findings)

    def _progress(self) -> events.Progress:
        at = self.harness_run.elapsed_seconds()
        return events.Progress(at=at, played_examples=self.outcomes.total())
