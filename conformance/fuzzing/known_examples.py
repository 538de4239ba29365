"""What a fuzz run met of the failures that are known: the smallest example of each cause.

These examples are counted and passed over while the run looks for what is new. To make them smaller
is no reason for a run to take longer, so only a small share of it goes into that. The share follows
from what was played, not from a clock: the same seed leaves the same examples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numaproof.conformance.fuzzing.exploration import TRIES
from numaproof.conformance.fuzzing.fuzz_finding import FuzzFinding
from numaproof.conformance.fuzzing.shrinking import Shrinking
from numaproof.protocol.events import GOOD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.execution.scenario import Scenario
    from numaproof.conformance.fuzzing.example_run import ExampleRun
    from numaproof.conformance.fuzzing.exploration import Explorer, ScenarioRun

SHARE = 10
"""For each so many examples of the run, shrinking may play one."""

_ANSWERED = GOOD | {"fail", "fault"}
"""Outcomes after which the program goes on; after any other it has to be started again."""


@dataclass
class KnownExamples:
    """The smallest example met of each known cause."""

    _sizes: dict[str, int] = field(default_factory=dict, init=False)
    _smallest: dict[str, ScenarioRun] = field(default_factory=dict, init=False)
    _others: dict[str, FuzzFinding] = field(default_factory=dict, init=False)

    def add(self, run: ExampleRun) -> None:
        """Takes an example that failed for a known cause, if it is the smallest so far."""
        played, size = run.played(), run.size
        cause = played.signature
        if cause not in self._sizes or size < self._sizes[cause]:
            self._sizes[cause], self._smallest[cause] = size, played

    def add_finding(self, found: FuzzFinding) -> None:
        """Takes what no single example shows: answers that differ from run to run."""
        self._others.setdefault(found.signature, found)

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
    best, over = first, first.result.outcome not in _ANSWERED

    def shows(scenario: Scenario) -> bool:
        nonlocal best, over
        if over or scenario.case.steps[0].verb != first.scenario.case.steps[0].verb:
            return False
        tried = explorer.play(scenario)
        over = tried.result.outcome not in _ANSWERED
        if tried.signature != first.signature:
            return False
        best = tried
        return True

    Shrinking(shows, tries=tries).smallest(first.scenario)
    return best
