"""Fuzzing: generated nodes and call sequences, until something is wrong or the budget is spent.

Hypothesis makes the examples, in batches whose seeds follow from one seed, each steered to one
target. What it finds is shrunk and kept as concrete steps in a case file, never only as a seed.
Some examples, and whatever fails, are played again: an implementation that answers the same calls
differently is a finding of its own kind.
"""

from __future__ import annotations

import random
import shlex
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as with_seed
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from numaproof.conformance.cases import writing
from numaproof.conformance.cases.schema import Case
from numaproof.conformance.differential.lockstep import Stage
from numaproof.conformance.execution.run import Run
from numaproof.conformance.execution.scratch import scratch_folder
from numaproof.conformance.fuzzing.coverage import Reached, answered
from numaproof.conformance.fuzzing.determinism import REPEATS, Repeats, Unlike
from numaproof.conformance.fuzzing.example_databases import Scoped
from numaproof.conformance.fuzzing.exploration import Explorer, Played
from numaproof.conformance.fuzzing.state_machine import TARGETS, NodeMachine
from numaproof.protocol import events

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from hypothesis.database import ExampleDatabase

    from numaproof.conformance.cases.schema import Step
    from numaproof.conformance.execution.run import RunResult, Target
    from numaproof.conformance.execution.stream import Campaign
    from numaproof.conformance.fuzzing.coverage import Thing
    from numaproof.protocol.machine import MachineInfo

BATCH = 100
"""Examples from one seed at the most; the first half are made at random, the rest are steered."""

SMALLEST_BATCH = 25
"""Examples that are too few to be steered to each of the targets."""

SHRINKS = 150
"""Examples that Hypothesis tries to make a failure smaller; what is left is left out after that."""

STEPS = 12
"""Steps of an example at the most, after the first start."""

REPEATED = 25
"""One of so many passing examples is played a second time."""


@dataclass(frozen=True)
class Budget:
    """How long to fuzz: so many examples, or so many seconds, whichever ends first."""

    examples: int | None
    seconds: float | None

    def left(self, done: int, elapsed: float) -> bool:
        """Whether there is budget for another example; for the first there always is."""
        if not done:
            return True
        return (self.examples is None or done < self.examples) and not self.late(elapsed)

    def late(self, elapsed: float) -> bool:
        """Whether the time is up."""
        return self.seconds is not None and elapsed >= self.seconds

    def batch(self, done: int) -> int:
        """How many examples come next: a few batches for each target, where there are enough."""
        if self.examples is None:
            return BATCH
        share = -(-self.examples // len(TARGETS))
        return min(BATCH, max(SMALLEST_BATCH, share), self.examples - done)


@dataclass(frozen=True)
class Lane:
    """How a run goes about it; as it stands, so that the same seed makes the same run.

    Attributes:
        database: keeps what failed, and is looked into first.
        repeated: one of so many passing examples is played a second time; 0 for none.
    """

    database: ExampleDatabase | None = None
    repeated: int = REPEATED


CI = Lane()


class FoundError(AssertionError):
    """An example failed; carries the playing that shows it."""

    def __init__(self, run: ExampleRun, result: RunResult) -> None:
        super().__init__(result.message)
        self.run = run
        self.result = result


class _EnoughError(KeyboardInterrupt):
    """Ends a batch early: an interrupt is what Hypothesis lets through at once."""


class IdleRun:
    """Stands for a playing once enough has been tried: nothing is asked, nothing found."""

    def step(self, step: Step) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Leaves nothing behind."""


class ExampleRun:
    """A playing whose steps are made up as it goes; what it finds is added to `seen`."""

    def __init__(self, target: Target, machine: MachineInfo, seen: list[FoundError]) -> None:
        self._seen = seen
        self._open = ExitStack()
        scratch = self._open.enter_context(scratch_folder())
        self.machine = machine
        self.steps: list[Step] = []
        placeholder = Case(id="fuzz", title="", requirements=(), steps=())
        self.inner = Run(target, placeholder, machine, None, scratch)

    def step(self, step: Step) -> None:
        """Plays one more step.

        Raises:
            FoundError: something is wrong that no known defect explains.
        """
        self.steps.append(step)
        result = self.inner.judge(lambda: self.inner.player.step(step))
        if not result.good:
            self._seen.append(FoundError(self, result))
            raise self._seen[-1]

    def close(self) -> None:
        """Removes the state directories."""
        self._open.close()

    def stage(self) -> Stage:
        """The steps so far as a scenario."""
        case = Case(
            id="fuzz", title="", requirements=(), level="invariants", steps=tuple(self.steps)
        )
        return Stage(case, self.machine)


def fuzz(
    campaign: Campaign, budget: Budget, seed: int, findings: Path, lane: Lane = CI
) -> Iterator[events.AnyEvent]:
    """Fuzzes a target and yields what happens; stops at the first finding.

    A target that claims no `start` can't be fuzzed: that is one example, unsupported. Without a
    database and a budget of seconds the same seed yields the same, but for the times.

    Args:
        campaign: whose target is fuzzed.
        budget: how long.
        seed: where the examples come from: the same seed makes the same examples.
        findings: the directory in which the case file of a finding is written.
        lane: what is kept, and what is played a second time.
    """
    yield campaign.started("fuzz", budget.examples or 0, {}, seed)
    if not campaign.target.capabilities.has("start"):
        yield campaign.ended({"unsupported": 1})
        return
    seeds = random.Random(seed)  # noqa: S311 - reproducible on purpose
    aims = tuple(TARGETS)
    outcomes: Counter[str] = Counter()
    with scratch_folder() as scratch:
        search = _Search(campaign, budget, scratch, lane.repeated, seeds.getrandbits(32))
        kept = Scoped(lane.database, campaign.target) if lane.database else None
        number = done = 0
        while not search.over and budget.left(done, campaign.elapsed()):
            count = budget.batch(done)
            _batch(search, seeds.getrandbits(64), count, aims[number % len(aims)], kept)
            number, done = number + 1, done + min(count, search.taken())
            yield events.Progress(at=campaign.elapsed(), done=done)
        outcomes["pass"] = done
        if found := search.finding():
            outcomes.update({found.outcome: 1, "pass": -1})
            yield found.event(campaign, findings)
    yield search.reached.event(campaign.elapsed())
    yield campaign.ended(outcomes)


@dataclass(frozen=True)
class _Finding:
    """What a run found, as small as it got; `replays` where one playing shows it."""

    case: Case
    machine: MachineInfo
    outcome: events.Outcome
    steps: tuple[events.Step, ...]
    pictures: tuple[events.Picture, ...] = ()
    stderr: str = ""
    replays: bool = True

    @classmethod
    def of_failure(cls, played: Played) -> _Finding:
        result, run = played.result, played.run
        return cls(
            played.case(),
            played.stage.machine,
            result.outcome,
            run.steps(),
            run.pictures(),
            result.stderr,
        )

    @classmethod
    def of_unlike(cls, unlike: Unlike) -> _Finding:
        case = msgspec.structs.replace(
            unlike.stage.case, title=unlike.result.message, machine=unlike.stage.machine
        )
        # Played once, it may end well.
        return cls(case, unlike.stage.machine, unlike.result.outcome, unlike.steps, replays=False)

    def event(self, campaign: Campaign, findings: Path) -> events.DivergenceFound:
        """Writes the case file, and tells of it."""
        findings.mkdir(parents=True, exist_ok=True)
        file = findings / writing.name_of(self.case)
        writing.write(self.case, file)
        words = ("numaproof", "replay", str(file), *campaign.target.options())
        return events.DivergenceFound(
            at=campaign.elapsed(),
            title=self.case.title,
            outcome=self.outcome,
            message=self.case.title,
            machine=self.machine,
            steps=self.steps,
            requirements=self.case.requirements,
            pictures=self.pictures,
            stderr=self.stderr,
            file=str(file),
            reproduce=shlex.join(words) if self.replays else campaign.command,
        )


@dataclass
class _Search:
    """What a run has found and reached, and how often it may still try to make that smaller."""

    campaign: Campaign
    budget: Budget
    scratch: Path
    repeated: int
    offset: int
    reached: Reached = field(default_factory=Reached)
    failed: list[FoundError] = field(default_factory=list)
    unlike: Unlike | None = None
    _left: int = SHRINKS
    _taken: int = 0
    _repeats: Repeats = field(init=False)

    def __post_init__(self) -> None:
        self._repeats = Repeats(self.campaign.target, self.scratch / "repeats")

    @property
    def over(self) -> bool:
        """Whether anything was found."""
        return bool(self.failed or self.unlike)

    def taken(self) -> int:
        """How many examples were played since this was asked last, smaller ones apart."""
        taken, self._taken = self._taken, 0
        return taken

    def open(self, machine: MachineInfo) -> ExampleRun | IdleRun:
        """A playing of the next example, for as long as there is a use for it."""
        if self.failed:
            self._left -= 1
        elif self._taken and self.budget.late(self.campaign.elapsed()):
            raise _EnoughError
        if self._left < 0:
            return IdleRun()
        self._taken += not self.failed
        return ExampleRun(self.campaign.target, machine, self.failed)

    def ended(
        self,
        run: ExampleRun | IdleRun | None,
        things: Mapping[Thing, int],
        values: Mapping[str, float],
    ) -> None:
        """Counts what an example reached, and plays it a second time if it is its turn."""
        if not isinstance(run, ExampleRun) or self.failed:
            return
        calls = run.inner.player.session.calls
        self.reached.add({**things, **answered(calls)}, values)
        if self.repeated and (self.reached.examples + self.offset) % self.repeated == 0:
            self.unlike = self._repeats.unlike(run.stage(), run.inner, times=1)
            if self.unlike:
                raise _EnoughError

    def finding(self) -> _Finding | None:
        """What was found, made small: first by Hypothesis, then by leaving out what can be.

        A failure that is answered differently when it is played again is not taken for one.
        """
        unlike = self.unlike
        if self.failed:
            smallest = self._smallest(min(self.failed, key=_size))
            times = 1 if smallest.result.outcome == "time-out" else REPEATS
            unlike = self._repeats.unlike(smallest.stage, smallest.run, times)
            if not unlike:
                return _Finding.of_failure(smallest)
        return _Finding.of_unlike(self._repeats.smallest(unlike)) if unlike else None

    def _smallest(self, found: FoundError) -> Played:
        run = found.run
        first = Played(run.stage(), found.result, run.inner)
        return Explorer(self.campaign.target, self.scratch / "smaller").smallest(first)


def _size(found: FoundError) -> int:
    """By how much there is to read."""
    return len(msgspec.json.encode((found.run.machine, found.run.steps)))


def _batch(
    search: _Search, seed: int, count: int, aim: str, database: ExampleDatabase | None
) -> None:
    """Plays so many examples; what is wrong with them is in the search afterwards."""

    class Node(NodeMachine):
        capabilities = search.campaign.target.capabilities
        aims = (aim,)

        def open_example(self, machine: MachineInfo) -> ExampleRun | IdleRun:
            return search.open(machine)

        def ended(self, things: Mapping[Thing, int], values: Mapping[str, float]) -> None:
            search.ended(self.example, things, values)

    phases = (Phase.generate, Phase.target, Phase.shrink)
    profile = settings(
        max_examples=count,
        stateful_step_count=STEPS,
        database=database,
        # Hypothesis takes its own seed where it finds itself in CI.
        derandomize=False,
        deadline=None,
        print_blob=False,
        phases=(Phase.reuse, *phases) if database else phases,
        suppress_health_check=tuple(HealthCheck),
        report_multiple_bugs=False,
    )
    try:
        run_state_machine_as_test(with_seed(seed)(Node), settings=profile)
    except (FoundError, _EnoughError):
        pass
    except (Flaky, BaseExceptionGroup):
        # The same calls were answered differently when they were made again, or made no more.
        if not search.failed:
            raise
