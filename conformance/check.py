"""`numaproof check`: plays the selected cases on their machines, then the kubelet's recordings."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases import writing
from numaproof.conformance.cases.loading import CaseError
from numaproof.conformance.claims.review import ClaimsTally
from numaproof.conformance.differential import recordings
from numaproof.conformance.differential.recordings import REQUIREMENT, Recording
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.parallel import ProcessWorker, spread
from numaproof.conformance.execution.run import Scenario
from numaproof.conformance.execution.runner import PlayedCase, SelectedCase, play_case, reproduce
from numaproof.conformance.fuzzing.determinism import OFTEN, DeterminismCheck
from numaproof.conformance.known_failures.entries import KnownFailures
from numaproof.workdir.removal import remove_tree
from numaproof.workdir.scratch import needing_room, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.protocol import events
    from numaproof.protocol.events import CaseFinished


FEW = 400
"""The number of runs below which starting more processes isn't worthwhile."""

_UNIT = 40
"""The number of consecutive runs per work item, about a fifth of a second."""


@dataclass(frozen=True)
class CaseRuns:
    """Cases to play on their machines, and recordings to compare with.

    The reference runs in several processes, one per core. Programs under test may use exclusive
    resources, so their runs stay sequential.

    Attributes:
        every: the cases with their machines, and the recordings.
        harness_run: the run, with its target.
        every_call: whether the events of passed cases include their calls.
        times: how often to play each case, each time in a new process. If the answers differ, the
            outcome is ``nondeterministic``.
    """

    every: Sequence[SelectedCase | Recording]
    harness_run: HarnessRun
    every_call: bool
    times: int

    def play(self, scratch: Path) -> Generator[CaseFinished, None, None]:
        """Plays everything and yields the results in order.

        Args:
            scratch: an empty directory for state directories.

        Raises:
            CaseError: a case can't be played as written.
            WorkerError: a worker process ended.
        """
        cores = len(os.sched_getaffinity(0))
        in_process = isinstance(self.harness_run.target.implementation, InProcess)
        if cores == 1 or not in_process or len(self.every) * self.times < FEW:
            player = _Player(self, scratch)
            yield from map(player.play, range(len(self.every)))
            return
        workers = [ProcessWorker(_player, self, scratch / f"{each}") for each in range(cores)]
        every = range(len(self.every))
        units = [every[first : first + _UNIT] for first in every[::_UNIT]]
        done: dict[int, _Unit] = {}
        with closing(spread(units, workers)) as results:
            for unit in units:
                while unit.start not in done:
                    one = next(results)
                    done[one.first] = one
                yield from done[unit.start].case_events
                if error := done.pop(unit.start).error:
                    raise CaseError(*error)


@dataclass(frozen=True)
class _Unit:
    """Consecutive runs: the number of the first, their results, and the error that ended them.

    `error` holds the arguments of a `CaseError`.
    """

    first: int
    case_events: Sequence[CaseFinished]
    error: tuple[str, int, str] | None = None


_MAX_CONFIRMED = 5
"""The number of time-outs that are repeated; a program that always hangs would take twice as long.
"""


class _Player:
    """Plays cases by number in one process."""

    def __init__(self, runs: CaseRuns, scratch: Path) -> None:
        self._runs = runs
        self._scratch = scratch
        self._folders = (scratch / str(number) for number in count())
        self._confirmed_count = 0
        self._again = DeterminismCheck(runs.harness_run.target, scratch / "again")

    def unit(self, numbers: range) -> _Unit:
        """Plays consecutive cases until one can't be played."""
        finished: list[CaseFinished] = []
        error = None
        try:
            with needing_room(self._scratch):
                finished.extend(map(self.play, numbers))
        except CaseError as found:
            error = found.case, found.step, found.message
        # Removing here distributes the work over all processes.
        remove_tree(self._scratch)
        return _Unit(numbers.start, finished, error)

    def play(self, number: int) -> CaseFinished:
        """Plays a case the requested number of times."""
        runs, one = self._runs, self._runs.every[number]
        if isinstance(one, Recording):
            return recordings.run_recording(one, runs.harness_run, self._scratch)
        played = play_case(one, runs.harness_run, next(self._folders), every_call=runs.every_call)
        return self._repeat(played, one)

    def _repeat(self, played_case: PlayedCase, selected_case: SelectedCase) -> CaseFinished:
        """Repeats a case and returns its final result.

        A time-out is repeated in any case, to tell a program that hangs from a slow one.
        """
        finished = played_case.event
        if finished.outcome == "unsupported":
            return finished
        confirms = finished.outcome == "time-out" and self._confirmed_count < _MAX_CONFIRMED
        times = max(self._runs.times - 1, confirms)
        scenario = Scenario(selected_case.case, selected_case.info, selected_case.machine.tree)
        found = self._again.nondeterminism(scenario, played_case.run, times)
        if found is None:
            self._confirmed_count += confirms
            again = f"{finished.message}, not when repeated either"
            return msgspec.structs.replace(finished, message=again) if confirms else finished
        return msgspec.structs.replace(
            finished,
            outcome=found.result.outcome,
            message=found.result.message,
            steps=found.steps,
            signature=found.signature,
            finding=found.reported_finding,
            defect=None,
            reproduce=reproduce(selected_case, self._runs.harness_run, *OFTEN),
            case_text=writing.text(selected_case.case),
        )


def _player(runs: CaseRuns, scratch: Path) -> Callable[[range], _Unit]:
    """Creates the function that plays consecutive cases in a worker process."""
    return _Player(runs, scratch).unit


@dataclass(frozen=True)
class CheckOptions:
    """How to play and judge cases.

    Attributes:
        every_call: whether the events of passed cases include their calls.
        times: how often to play each case, each time in a new process. If the answers differ, the
            outcome is ``nondeterministic``.
        known_failures: failures that don't fail the run.
        whole: whether all cases were selected. Only then does the run report untestable
            requirements.
    """

    every_call: bool = False
    times: int = 1
    known_failures: KnownFailures = field(default_factory=KnownFailures)
    whole: bool = False


ONCE = CheckOptions()


def check(
    cases: Sequence[SelectedCase],
    harness_run: HarnessRun,
    recordings: Sequence[Recording] = (),
    options: CheckOptions = ONCE,
) -> Iterator[events.AnyEvent]:
    """Plays cases, then recordings, and yields events.

    The last event is a `RunEnded`, unless the consumer stops early.

    Raises:
        CaseError: a case can't be played as written.
    """
    used = {one.machine.name: one.machine for one in cases}
    known = {name: machine.info for name, machine in used.items() if machine.info}
    total = len(cases) + len(recordings)
    own = (REQUIREMENT,) if recordings else ()
    yield harness_run.started_event("check", total, known, requirements=own)
    outcomes: Counter[str] = Counter()
    claims = ClaimsTally(harness_run.target.hello)
    with scratch_folder() as scratch:
        runs = CaseRuns((*cases, *recordings), harness_run, options.every_call, options.times)
        with closing(runs.play(scratch)) as played:
            for number, one in enumerate(played):
                finished = options.known_failures.judge(one)
                outcomes[finished.outcome] += 1
                if number < len(cases):
                    claims.count_case(finished)
                yield finished
    for finished in options.known_failures.missing(harness_run.elapsed_seconds()):
        outcomes[finished.outcome] += 1
        yield finished
    rows = harness_run.registry.requirements if options.whole else ()
    yield harness_run.ended_event(
        outcomes, (row.id for row in rows if row.untestable_reason), claims.review()
    )
