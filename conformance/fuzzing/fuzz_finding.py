"""A finding of a fuzz run, as a case file and an event."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases import writing
from numaproof.conformance.execution.truncation import reported_finding
from numaproof.conformance.fuzzing import determinism, shrinking
from numaproof.conformance.fuzzing.exploration import TRIES, ExampleRun, Explorer, ScenarioRun
from numaproof.protocol import events

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.conformance.execution.run import Scenario
    from numaproof.conformance.fuzzing.determinism import Nondeterminism


@dataclass(frozen=True)
class FuzzFinding:
    """A shrunk finding: its case and its event, before the file is written.

    `replays` tells whether a single run reproduces it.
    """

    case: Case
    draft_event: events.DivergenceFound
    replays: bool = True

    @classmethod
    def of_failure(cls, scenario_run: ScenarioRun) -> FuzzFinding:
        result, run = scenario_run.result, scenario_run.run
        case = _mark_cut_short(scenario_run.case(), cut_short=scenario_run.cut_short)
        draft = events.DivergenceFound(
            at=0.0,
            title=case.title,
            outcome=result.outcome,
            message=result.message,
            machine=scenario_run.scenario.machine,
            steps=run.steps(),
            requirements=case.requirements,
            pictures=run.pictures(),
            stderr=result.stderr,
            signature=scenario_run.signature,
            baseline_divergence=run.baseline_divergence(result),
            finding=reported_finding(result.finding),
        )
        return cls(case, draft)

    @classmethod
    def of_nondeterminism(cls, nondeterminism: Nondeterminism) -> FuzzFinding:
        result, finding = nondeterminism.result, nondeterminism.reported_finding
        machine = nondeterminism.scenario.machine
        title = events.headline(events.sentence_of(result.message, finding))
        case = msgspec.structs.replace(nondeterminism.scenario.case, title=title, machine=machine)
        case = _mark_cut_short(case, cut_short=nondeterminism.cut_short)
        draft = events.DivergenceFound(
            at=0.0,
            title=case.title,
            outcome=result.outcome,
            message=result.message,
            machine=machine,
            steps=nondeterminism.steps,
            requirements=case.requirements,
            stderr=result.stderr,
            signature=nondeterminism.signature,
            finding=finding,
        )
        # A single run may pass.
        return cls(case, draft, replays=False)

    def event(self, harness_run: HarnessRun, findings: Path) -> events.DivergenceFound:
        """Writes the case file and returns the event about it."""
        file = findings / writing.name_of(self.case)
        text = writing.write(self.case, file)
        repeated = () if self.replays else determinism.OFTEN
        reproduce = harness_run.replay_file(str(file), *repeated)
        at = harness_run.elapsed_seconds()
        return msgspec.structs.replace(
            self.draft_event, at=at, file=str(file), reproduce=reproduce, case_text=text
        )


def _mark_cut_short(case: Case, *, cut_short: bool) -> Case:
    title = f"{case.title} ({shrinking.CUT_SHORT})" if cut_short else case.title
    return msgspec.structs.replace(case, title=title)


SHARE = 10
"""The number of examples in the run for which shrinking may run one example."""

_ANSWERED = events.GOOD | {"fail", "fault"}
"""Outcomes after which the program keeps running; after others, it must be restarted."""


@dataclass
class KnownExamples:
    """The smallest example of each known cause.

    Known failures are counted and skipped while the run searches for new ones. To keep runs short,
    only a small share of each run goes into shrinking these examples. The share depends on the
    number of examples, not on time, so that the same seed yields the same examples.
    """

    _sizes: dict[str, int] = field(default_factory=dict, init=False)
    _smallest: dict[str, ScenarioRun] = field(default_factory=dict, init=False)
    _others: dict[str, FuzzFinding] = field(default_factory=dict, init=False)

    def add(self, run: ExampleRun) -> None:
        """Keeps an example of a known failure if it is the smallest so far."""
        played, size = run.scenario_run(), run.size
        cause = played.signature
        if cause not in self._sizes or size < self._sizes[cause]:
            self._sizes[cause], self._smallest[cause] = size, played

    def add_finding(self, finding: FuzzFinding) -> None:
        """Keeps a finding that no single example shows: nondeterministic answers."""
        self._others.setdefault(finding.draft_event.signature, finding)

    def shrink(self, explorer: Explorer, examples: int) -> None:
        """Shrinks the examples with few tries, divided equally among the causes.

        Args:
            explorer: runs the examples.
            examples: the number of examples in the run.
        """
        for cause, first in sorted(self._smallest.items()):
            share = examples // (SHARE * len(self._smallest))
            self._smallest[cause] = _smaller(first, explorer, min(TRIES, share))

    def findings(self) -> Iterator[FuzzFinding]:
        """Yields the findings, sorted by cause."""
        for cause in sorted(self._smallest.keys() | self._others.keys()):
            played = self._smallest.get(cause)
            yield FuzzFinding.of_failure(played) if played else self._others[cause]


def _smaller(first: ScenarioRun, explorer: Explorer, tries: int) -> ScenarioRun:
    """Removes parts of an example, with few tries.

    Stops after an example that breaks the program, because it costs a restart or a time-out. The
    first step stays, because the reference can't answer before a node is started.
    """
    over = first.result.outcome not in _ANSWERED

    def try_scenario(scenario: Scenario) -> ScenarioRun | None:
        nonlocal over
        if over or scenario.case.steps[0].verb != first.scenario.case.steps[0].verb:
            return None
        played = explorer.play(scenario)
        over = played.result.outcome not in _ANSWERED
        return played if played.signature == first.signature else None

    smallest, _ = shrinking.shrink(first, first.scenario, try_scenario, tries)
    return smallest
