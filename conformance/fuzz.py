"""Fuzzing: generated nodes and call sequences, until something is wrong or the budget is spent.

Hypothesis makes the examples, in batches whose seeds follow from one seed; what it finds is
shrunk and kept as concrete steps in a case file, never only as a seed.
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

from numaproof.conformance import casefiles
from numaproof.conformance.beside import Stage
from numaproof.conformance.cases import Case
from numaproof.conformance.mirror import DIFFERS
from numaproof.conformance.playing import Playing
from numaproof.conformance.scratch import scratch_folder
from numaproof.conformance.shrinking import Shrinking
from numaproof.conformance.statemachine import NodeMachine
from numaproof.protocol import events

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numaproof.conformance.campaign import Campaign
    from numaproof.conformance.cases import Step
    from numaproof.conformance.playing import Target, Verdict
    from numaproof.protocol.machine import MachineInfo

BATCH = 25
"""Examples from one seed; between batches the budget is looked at and progress is told."""

SHRINKS = 150
"""Examples that Hypothesis tries to make a failure smaller."""

TRIES = 400
"""Scenarios that are tried after that, each with something left out."""

STEPS = 12
"""Steps of an example at the most, after the first start."""


@dataclass(frozen=True)
class Budget:
    """How long to fuzz: so many examples, or so many seconds, whichever ends first."""

    examples: int | None
    seconds: float | None

    def left(self, done: int, elapsed: float) -> bool:
        """Whether there is budget for another batch; for the first there always is."""
        if not done:
            return True
        return (self.examples is None or done < self.examples) and (
            self.seconds is None or elapsed < self.seconds
        )


class FoundError(AssertionError):
    """An example failed; carries the playing that shows it."""

    def __init__(self, playing: FuzzPlaying, verdict: Verdict) -> None:
        super().__init__(verdict.message)
        self.playing = playing
        self.verdict = verdict


class Idle:
    """Stands for a playing once enough has been tried: nothing is asked, nothing found."""

    def step(self, step: Step) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Leaves nothing behind."""


class FuzzPlaying:
    """A playing whose steps are made up as it goes; what it finds is added to `seen`."""

    def __init__(self, target: Target, machine: MachineInfo, seen: list[FoundError]) -> None:
        self._seen = seen
        self._open = ExitStack()
        scratch = self._open.enter_context(scratch_folder())
        self.machine = machine
        self.steps: list[Step] = []
        placeholder = Case(id="fuzz", title="", requirements=(), steps=())
        self.inner = Playing(target, placeholder, machine, None, scratch)

    def step(self, step: Step) -> None:
        """Plays one more step.

        Raises:
            FoundError: something is wrong that no known defect explains.
        """
        self.steps.append(step)
        verdict = self.inner.judge(lambda: self.inner.player.step(step))
        if not verdict.good:
            self._seen.append(FoundError(self, verdict))
            raise self._seen[-1]

    def close(self) -> None:
        """Removes the state directories."""
        self._open.close()


def fuzz(
    campaign: Campaign, budget: Budget, seed: int, findings: Path
) -> Iterator[events.AnyEvent]:
    """Fuzzes a target and yields what happens; stops at the first finding.

    A target that claims no `start` can't be fuzzed: that is one example, unsupported.

    Args:
        campaign: whose target is fuzzed.
        budget: how long.
        seed: where the examples come from: the same seed makes the same examples.
        findings: the directory in which the case file of a finding is written.
    """
    yield campaign.started("fuzz", budget.examples or 0, {}, seed)
    if not campaign.target.claims.has("start"):
        yield campaign.ended({"unsupported": 1})
        return
    seeds = random.Random(seed)  # noqa: S311 - reproducible on purpose
    done = 0
    found: FoundError | None = None
    while found is None and budget.left(done, campaign.elapsed()):
        count = BATCH if budget.examples is None else min(BATCH, budget.examples - done)
        found = _batch(campaign.target, seeds.getrandbits(64), count)
        done += count
        yield events.Progress(at=campaign.elapsed(), done=done)
    outcomes: Counter[str] = Counter({"pass": done})
    if found:
        yield _divergence(found, campaign, findings)
        outcomes.update({found.verdict.outcome: 1, "pass": -1})
    yield campaign.ended(outcomes)


@dataclass
class _Search:
    """What one batch has found, and how often it may still try to make that smaller."""

    target: Target
    found: list[FoundError] = field(default_factory=list)
    left: int = SHRINKS

    def open(self, machine: MachineInfo) -> FuzzPlaying | Idle:
        self.left -= bool(self.found)
        return FuzzPlaying(self.target, machine, self.found) if self.left >= 0 else Idle()

    def smallest(self) -> FoundError:
        """What Hypothesis made smallest, with all left out of it that it does without."""
        best = min(self.found, key=_size)
        kind = _kind(best)

        def shows(stage: Stage) -> bool:
            nonlocal best
            found = self._replayed(stage)
            if found is None or _kind(found) != kind:
                return False
            best = found
            return True

        stage = Stage(_case(best), best.playing.machine)
        Shrinking(shows, tries=TRIES).smallest(stage)
        return best

    def _replayed(self, stage: Stage) -> FoundError | None:
        """What a scenario shows; None where that is nothing."""
        playing = FuzzPlaying(self.target, stage.machine, [])
        try:
            for step in stage.case.steps:
                playing.step(step)
        except FoundError as found:
            return found
        finally:
            playing.close()
        return None


def _kind(found: FoundError) -> tuple[str, ...]:
    """What stays the same while a failure gets smaller: how it ends, and what is broken."""
    differs = found.verdict.message.startswith(DIFFERS)
    violations = () if differs else found.playing.inner.player.violations[-1:]
    return found.verdict.outcome, str(differs), *(one.invariant for one in violations)


def _size(found: FoundError) -> int:
    """By how much there is to read."""
    return len(msgspec.json.encode((found.playing.machine, found.playing.steps)))


def _batch(target: Target, seed: int, count: int) -> FoundError | None:
    search = _Search(target)

    class Node(NodeMachine):
        claims = target.claims

        def open_playing(self, machine: MachineInfo) -> FuzzPlaying | Idle:
            return search.open(machine)

    profile = settings(
        max_examples=count,
        stateful_step_count=STEPS,
        database=None,
        # Hypothesis takes its own seed where it finds itself in CI.
        derandomize=False,
        deadline=None,
        print_blob=False,
        phases=(Phase.generate, Phase.target, Phase.shrink),
        suppress_health_check=tuple(HealthCheck),
        report_multiple_bugs=False,
    )
    try:
        run_state_machine_as_test(with_seed(seed)(Node), settings=profile)
    except FoundError:
        return search.smallest()
    except (Flaky, BaseExceptionGroup):
        # The same calls were answered differently when they were made again, or made no more.
        if not search.found:
            raise
        return search.smallest()
    return None


def _divergence(found: FoundError, campaign: Campaign, findings: Path) -> events.DivergenceFound:
    playing, verdict, target = found.playing, found.verdict, campaign.target
    case = _case(found)
    findings.mkdir(parents=True, exist_ok=True)
    file = findings / casefiles.name_of(case)
    casefiles.write(case, file)
    words = ("numaproof", "replay", str(file), *target.options())
    return events.DivergenceFound(
        at=campaign.elapsed(),
        title=case.title,
        outcome=verdict.outcome,
        message=verdict.message,
        machine=playing.machine,
        steps=playing.inner.steps(),
        requirements=case.requirements,
        pictures=playing.inner.pictures(),
        stderr=verdict.stderr,
        file=str(file),
        reproduce=shlex.join(words),
    )


def _case(found: FoundError) -> Case:
    violations = found.playing.inner.player.violations
    requirements = tuple(dict.fromkeys(violation.requirement for violation in violations))
    return Case(
        id="fuzz",
        title=found.verdict.message,
        requirements=requirements,
        level="invariants",
        machine=found.playing.machine,
        steps=tuple(found.playing.steps),
    )
