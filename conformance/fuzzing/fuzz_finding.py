"""What a fuzz run found, shrunk, as a case file and an event."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases import writing
from numaproof.conformance.execution.truncation import reported_finding
from numaproof.conformance.fuzzing import shrinking
from numaproof.conformance.fuzzing.exploration import TRIES, ExampleRun, Explorer, ScenarioRun
from numaproof.protocol import events

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.conformance.execution.run import Scenario
    from numaproof.conformance.fuzzing.determinism import Nondeterminism


_REPEATS = 10
"""Times to replay what is not answered alike each time."""


@dataclass(frozen=True)
class FuzzFinding:
    """A shrunk finding: its case, the event about it before its file is written.

    `replays` says whether a single run shows it.
    """

    case: Case
    draft_event: events.DivergenceFound
    replays: bool = True

    @classmethod
    def of_failure(cls, scenario_run: ScenarioRun) -> FuzzFinding:
        result, run = scenario_run.result, scenario_run.run
        case = _mark_cut_short(scenario_run.case(), cut_short=scenario_run.cut_short)
        told = events.DivergenceFound(
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
        return cls(case, told)

    @classmethod
    def of_nondeterminism(cls, nondeterminism: Nondeterminism) -> FuzzFinding:
        result, finding = nondeterminism.result, nondeterminism.reported_finding
        machine = nondeterminism.scenario.machine
        title = events.headline(events.sentence_of(result.message, finding))
        case = msgspec.structs.replace(nondeterminism.scenario.case, title=title, machine=machine)
        case = _mark_cut_short(case, cut_short=nondeterminism.cut_short)
        told = events.DivergenceFound(
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
        return cls(case, told, replays=False)

    def event(self, harness_run: HarnessRun, findings: Path) -> events.DivergenceFound:
        """Writes the case file and returns the event about it."""
        file = findings / writing.name_of(self.case)
        writing.write(self.case, file)
        repeated = () if self.replays else ("--repeat", str(_REPEATS))
        reproduce = harness_run.replay_file(str(file), *repeated)
        at = harness_run.elapsed_seconds()
        return msgspec.structs.replace(self.draft_event, at=at, file=str(file), reproduce=reproduce)


def _mark_cut_short(case: Case, *, cut_short: bool) -> Case:
    title = f"{case.title} ({shrinking.CUT_SHORT})" if cut_short else case.title
    return msgspec.structs.replace(case, title=title)


SHARE = 10
"""For each so many examples of the run, shrinking may play one."""

_ANSWERED = events.GOOD | {"fail", "fault"}
"""Outcomes after which the program goes on; after any other it has to be started again."""


@dataclass
class KnownExamples:
    """The smallest example met of each known cause.

    They are counted and passed over while the run looks for what is new. To make them smaller is no
    reason for a run to take longer, so only a small share of it goes into that. The share follows
    from what was played, not from a clock: the same seed leaves the same examples.
    """

    _sizes: dict[str, int] = field(default_factory=dict, init=False)
    _smallest: dict[str, ScenarioRun] = field(default_factory=dict, init=False)
    _others: dict[str, FuzzFinding] = field(default_factory=dict, init=False)

    def add(self, run: ExampleRun) -> None:
        """Takes an example that failed for a known cause, if it is the smallest so far."""
        played, size = run.scenario_run(), run.size
        cause = played.signature
        if cause not in self._sizes or size < self._sizes[cause]:
            self._sizes[cause], self._smallest[cause] = size, played

    def add_finding(self, finding: FuzzFinding) -> None:
        """Takes what no single example shows: answers that differ from run to run."""
        self._others.setdefault(finding.draft_event.signature, finding)

    def shrink(self, explorer: Explorer, examples: int) -> None:
        """Leaves out what can be left out with few tries; each cause has the same share of them.

        Args:
            explorer: plays them.
            examples: how many the run has played.
        """
        for cause, first in sorted(self._smallest.items()):
            share = examples // (SHARE * len(self._smallest))
            self._smallest[cause] = _smaller(first, explorer, min(TRIES, share))

    def findings(self) -> Iterator[FuzzFinding]:
        """What is kept, in the order of the causes' names."""
        for cause in sorted(self._smallest.keys() | self._others.keys()):
            played = self._smallest.get(cause)
            yield FuzzFinding.of_failure(played) if played else self._others[cause]


def _smaller(first: ScenarioRun, explorer: Explorer, tries: int) -> ScenarioRun:
    """An example without what it fails without, as far as a few tries show.

    One that breaks the program costs another start of it, or as long as its time limit: it is the
    last. A node stays started, for else the reference has nothing to say.
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
