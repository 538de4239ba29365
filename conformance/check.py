"""`numaproof check`: plays the selected cases on their machines, then the kubelet's recordings."""

from __future__ import annotations

import atexit
import os
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import writing
from numaproof.conformance.cases.loading import CaseError
from numaproof.conformance.claims.review import ClaimsTally
from numaproof.conformance.differential import recordings
from numaproof.conformance.differential.recordings import REQUIREMENT, Recording
from numaproof.conformance.execution.implementation import (
    ImplementationFailure,
    InProcess,
    leftovers_of,
    patient_handshake,
)
from numaproof.conformance.execution.parallel import ProcessWorker, WorkerError, spread
from numaproof.conformance.execution.run import Scenario
from numaproof.conformance.execution.runner import PlayedCase, SelectedCase, play_case, reproduce
from numaproof.conformance.fuzzing.determinism import OFTEN, DeterminismCheck
from numaproof.conformance.known_failures.entries import KnownFailures
from numaproof.protocol.events import GOOD
from numaproof.workdir.removal import remove_tree
from numaproof.workdir.scratch import needing_room, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.protocol import events
    from numaproof.protocol.events import CaseFinished


FEW = 400
FEW_OF_PROGRAM = 100
"""The number of runs below which starting more processes isn't worthwhile."""

_UNIT = 40
"""The number of consecutive runs of the reference per work item, about a fifth of a second."""


class ParallelError(Exception):
    """Several copies of the program can't run at once."""


@dataclass(frozen=True)
class CaseRuns:
    """Cases to play on their machines, and recordings to compare with.

    With several jobs, each is a process that plays whole runs and starts its own program. The
    results and their order don't depend on the number of jobs.

    Attributes:
        every: the cases with their machines, and the recordings.
        harness_run: the run, with its target.
        every_call: whether the events of passed cases include their calls.
        times: how often to play each case, each time in a new process. If the answers differ, the
            outcome is ``nondeterministic``.
        jobs: how many processes to use; None for one per core unless there are few runs.
        leftover_processes: the processes that could not be killed in other processes' jobs, by id
            and command line; complete when everything has been played.
    """

    every: Sequence[SelectedCase | Recording]
    harness_run: HarnessRun
    every_call: bool
    times: int
    jobs: int | None = None
    leftover_processes: list[str] = field(default_factory=list)

    def play(self, scratch: Path) -> Generator[CaseFinished, None, None]:
        """Plays everything and yields the results in order.

        After an interrupt, results that are already there are yielded without those in between.

        Args:
            scratch: an empty directory for state directories.

        Raises:
            CaseError: a case can't be played as written.
            ParallelError: the program doesn't answer `hello` if several copies of it run.
            WorkerError: a worker process ended.
        """
        jobs = self._number_of_jobs()
        results = self._play_on(jobs, scratch) if jobs > 1 else self._play_here(scratch)
        repeated = 0
        with closing(results):
            for one in results:
                if one.first_event is not None and repeated == _MAX_CONFIRMED:
                    yield one.first_event
                else:
                    repeated += one.is_confirmed
                    yield one.event

    def _number_of_jobs(self) -> int:
        if self.jobs is not None:
            return self.jobs
        few = FEW if self._in_process else FEW_OF_PROGRAM
        return 1 if len(self.every) * self.times < few else len(os.sched_getaffinity(0))

    @property
    def _in_process(self) -> bool:
        return isinstance(self.harness_run.target.implementation, InProcess)

    def _play_here(self, scratch: Path) -> Generator[_Result, None, None]:
        yield from map(_Player(self, scratch).play, range(len(self.every)))

    def _play_on(self, jobs: int, scratch: Path) -> Generator[_Result, None, None]:
        self.harness_run.target.implementation.close()  # each worker starts its own
        every = range(len(self.every))
        # Runs of programs may be slow, so that several would be missing after an interrupt.
        size = _UNIT if self._in_process else 1
        units = [every[first : first + size] for first in every[::size]]
        folders = [scratch / str(number) for number in range(min(jobs, len(units)))]
        workers = [_CaseWorker(_player, self, folder) for folder in folders]
        done: dict[int, _Unit] = {}
        with closing(spread(units, workers)) as finished:
            try:
                for unit in units:
                    while unit.start not in done:
                        one = next(finished)
                        done[one.first] = one
                    yield from done.pop(unit.start).checked_results()
            except KeyboardInterrupt:
                for _, one in sorted(done.items()):
                    yield from one.results
                raise
        for worker in workers:
            self.leftover_processes.extend(worker.leftover_processes)


@dataclass(frozen=True)
class _Result:
    """The result of a run.

    Attributes:
        event: the result, which takes account of repetitions.
        first_event: the result without the repetition of a time-out, if there was one.
        is_confirmed: whether the repetition of a time-out showed nothing else.
    """

    event: CaseFinished
    first_event: CaseFinished | None = None
    is_confirmed: bool = False


@dataclass(frozen=True)
class _Unit:
    """Consecutive runs.

    Attributes:
        first: the number of the first run.
        results: their results, in order.
        error: the arguments of the `CaseError` that ended them.
        failure: how the program failed to answer `hello`.
        leftover_processes: the processes that could not be killed, by id and command line.
    """

    first: int
    results: Sequence[_Result] = ()
    error: tuple[str, int, str] | None = None
    failure: str = ""
    leftover_processes: tuple[str, ...] = ()

    def checked_results(self) -> Iterator[_Result]:
        """The results.

        Raises:
            CaseError: a case can't be played as written.
            ParallelError: the program didn't answer `hello`.
        """
        yield from self.results
        if self.error:
            raise CaseError(*self.error)
        if self.failure:
            raise ParallelError(
                "the program answered hello, but not while another copy of it was running:"
                f" {self.failure}; if only one can run at a time, use --jobs 1"
            )


_NOTHING = range(0)


class _CaseWorker(ProcessWorker[range, _Unit]):
    """A worker that plays consecutive runs, by their numbers.

    Attributes:
        leftover_processes: the processes that could not be killed, known after `close`.
    """

    leftover_processes: tuple[str, ...] = ()

    def close(self) -> None:
        """Ends the program, then the process."""
        with suppress(WorkerError):
            self.leftover_processes = self.do(_NOTHING).leftover_processes
        super().close()


_MAX_CONFIRMED = 5
"""The number of time-outs that are repeated; a program that always hangs would take twice as long.
"""


class _Player:
    """Plays runs by number in one process."""

    def __init__(self, runs: CaseRuns, scratch: Path) -> None:
        self._runs = runs
        self._scratch = scratch
        self._folders = (scratch / str(number) for number in count())
        self._implementation = runs.harness_run.target.implementation
        self._has_said_hello = False
        self._confirmed_count = 0
        self._again = DeterminismCheck(runs.harness_run.target, scratch / "again")

    def unit(self, numbers: range) -> _Unit:
        """Plays consecutive runs until one can't be played. Without any, ends the program."""
        if numbers == _NOTHING:
            self._implementation.close()
            return _Unit(0, leftover_processes=leftovers_of(self._implementation))
        if failure := self._hello_failure():
            return _Unit(numbers.start, failure=failure)
        finished: list[_Result] = []
        error = None
        try:
            with needing_room(self._scratch):
                finished.extend(map(self.play, numbers))
        except CaseError as found:
            error = found.case, found.step, found.message
        # Removing here distributes the work over all processes.
        remove_tree(self._scratch)
        return _Unit(numbers.start, finished, error)

    def _hello_failure(self) -> str:
        """How the program failed to answer its first `hello`; empty if it did answer."""
        if not self._has_said_hello:
            try:
                patient_handshake(
                    self._implementation, f"numaproof {self._runs.harness_run.version}"
                )
            except ImplementationFailure as failure:
                return str(failure)
            self._has_said_hello = True
        return ""

    def play(self, number: int) -> _Result:
        """Plays a case the requested number of times."""
        runs, one = self._runs, self._runs.every[number]
        if isinstance(one, Recording):
            return _Result(recordings.run_recording(one, runs.harness_run, self._scratch))
        played = play_case(one, runs.harness_run, next(self._folders), every_call=runs.every_call)
        return self._repeat(played, one)

    def _repeat(self, played_case: PlayedCase, selected_case: SelectedCase) -> _Result:
        """Repeats a case and returns its final result.

        A time-out is repeated in any case, to tell a program that hangs from a slow one.
        """
        finished = played_case.event
        if finished.outcome == "unsupported":
            return _Result(finished)
        confirms = finished.outcome == "time-out" and self._confirmed_count < _MAX_CONFIRMED
        times = max(self._runs.times - 1, confirms)
        scenario = Scenario(selected_case.case, selected_case.info, selected_case.machine.tree)
        found = self._again.nondeterminism(scenario, played_case.run, times)
        if found is None:
            self._confirmed_count += confirms
            if not confirms:
                return _Result(finished)
            again = f"{finished.message}, not when repeated either"
            repeated = msgspec.structs.replace(finished, message=again)
            return _Result(repeated, first_event=finished, is_confirmed=True)
        event = msgspec.structs.replace(
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
        return _Result(event, first_event=finished if confirms and self._runs.times == 1 else None)


def _player(runs: CaseRuns, scratch: Path) -> Callable[[range], _Unit]:
    """Creates the function that plays consecutive runs in a worker process."""
    atexit.register(runs.harness_run.target.implementation.close)
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
        jobs: how many processes to use; None for one per core unless there are few runs.
        fail_fast: whether to stop after the first failure. The run is then incomplete.
    """

    every_call: bool = False
    times: int = 1
    known_failures: KnownFailures = field(default_factory=KnownFailures)
    whole: bool = False
    jobs: int | None = None
    fail_fast: bool = False


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
        ParallelError: the program doesn't answer `hello` if several copies of it run.
    """
    used = {one.machine.name: one.machine for one in cases}
    known = {name: machine.info for name, machine in used.items() if machine.info}
    total = len(cases) + len(recordings)
    own = (REQUIREMENT,) if recordings else ()
    yield harness_run.started_event("check", total, known, requirements=own)
    outcomes: Counter[str] = Counter()
    claims = ClaimsTally(harness_run.target.hello)
    with scratch_folder() as scratch:
        every: list[SelectedCase | Recording] = [*cases, *recordings]
        runs = CaseRuns(every, harness_run, options.every_call, options.times, options.jobs)
        with closing(runs.play(scratch)) as played:
            for number, one in enumerate(played):
                finished = options.known_failures.judge(one)
                outcomes[finished.outcome] += 1
                if number < len(cases):
                    claims.count_case(finished)
                yield finished
                if options.fail_fast and finished.outcome not in GOOD:
                    break
    if outcomes.total() < total:
        ended = harness_run.ended_event(outcomes)
        yield _with_leftovers(
            ended, runs, complete=False, message="stopped after the first failure"
        )
        return
    for finished in options.known_failures.missing(harness_run.elapsed_seconds()):
        outcomes[finished.outcome] += 1
        yield finished
    rows = harness_run.registry.requirements if options.whole else ()
    untestable = (row.id for row in rows if row.untestable_reason)
    yield _with_leftovers(harness_run.ended_event(outcomes, untestable, claims.review()), runs)


def _with_leftovers(last_event: events.RunEnded, runs: CaseRuns, **fields: Any) -> events.RunEnded:
    left = (*runs.leftover_processes, *last_event.leftover_processes)
    return msgspec.structs.replace(last_event, leftover_processes=left, **fields)
