"""`numaproof check`: every selected case on its machines, then the recordings of a kubelet."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numaproof.conformance.case_runs import CaseRuns
from numaproof.conformance.claims.review import ClaimsTally
from numaproof.conformance.differential import recording_check
from numaproof.conformance.known_failures.verdicts import KnownFailures
from numaproof.folders.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.conformance.differential.recordings import Recording
    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.conformance.execution.runner import SelectedCase
    from numaproof.protocol import events


@dataclass(frozen=True)
class CheckOptions:
    """How cases are played and judged.

    Attributes:
        every_call: whether the events of cases that pass list their calls, too.
        times: how often each case is played, each time in a new process. Where answers differ, the
            outcome is ``nondeterministic``.
        known: the failures that are known, and do not fail the run.
        whole: whether the whole table of cases was asked for. Only then the run ends with the
            requirements that no case can test.
    """

    every_call: bool = False
    times: int = 1
    known: KnownFailures = field(default_factory=KnownFailures)
    whole: bool = False


ONCE = CheckOptions()


def check(
    cases: Sequence[SelectedCase],
    harness_run: HarnessRun,
    recordings: Sequence[Recording] = (),
    options: CheckOptions = ONCE,
) -> Iterator[events.AnyEvent]:
    """Plays cases, then recordings, and yields what happens.

    The stream always ends with `RunEnded`, unless the consumer stops reading.

    Raises:
        CaseError: a case can't be played as it is written.
    """
    used = {one.machine.name: one.machine for one in cases}
    known = {name: machine.info for name, machine in used.items() if machine.info}
    total = len(cases) + len(recordings)
    own = (recording_check.REQUIREMENT,) if recordings else ()
    yield harness_run.started("check", total, known, requirements=own)
    outcomes: Counter[str] = Counter()
    claims = ClaimsTally(harness_run.target.hello)
    with scratch_folder() as scratch:
        runs = CaseRuns((*cases, *recordings), harness_run, options.every_call, options.times)
        with closing(runs.finished(scratch)) as played:
            for number, one in enumerate(played):
                finished = options.known.judged(one)
                outcomes[finished.outcome] += 1
                if number < len(cases):
                    claims.count_case(finished)
                yield finished
    for finished in options.known.missing(harness_run.elapsed()):
        outcomes[finished.outcome] += 1
        yield finished
    rows = harness_run.registry.requirements if options.whole else ()
    yield harness_run.ended(outcomes, (row.id for row in rows if row.untested), claims.review())
