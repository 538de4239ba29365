"""The campaign of `numaproof diff`: scenarios on two sides, and what they answer differently."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from numaproof import fakesys
from numaproof.conformance.cases import writing
from numaproof.conformance.cases.releases import includes
from numaproof.conformance.cases.schema import Case, Machines, NoArguments, Step
from numaproof.conformance.differential.lockstep import TRIES, Stage, examine
from numaproof.conformance.execution import machines
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.scratch import scratch_folder
from numaproof.conformance.fuzzing import shrinking
from numaproof.conformance.fuzzing.exploration import life, odd_start
from numaproof.protocol import events
from numaproof.protocol.machine import MachineInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numaproof.conformance.differential.lockstep import Pair, Played
    from numaproof.conformance.execution.machines import Machine
    from numaproof.conformance.execution.stream import Campaign
    from numaproof.protocol.messages import Hello

T = TypeVar("T", bound=msgspec.Struct)

_SHRINK_SECONDS = 60.0
_SHRINK_TRIES = 3
"""Playings of each scenario while it is shrunk: one that chance passes is merely not smaller."""

KINDS = {"life": life, "start": odd_start}
"""What is made of a seed: the life of a node, or one start with something odd in it."""

_NAMES = {"life": "seed", "start": "start"}

_SLOW = frozenset({"time-out", "crash", "protocol error"})
"""Outcomes after which a program starts again, or that took the whole time limit."""


@dataclass(frozen=True)
class Scenario:
    """A scenario of a campaign; `name` tells it from the others."""

    name: str
    stage: Stage


@dataclass(frozen=True)
class Course:
    """How a campaign goes on.

    Attributes:
        findings: the directory in which the case files of differences are written.
        keep_going: whether it goes on after the first difference.
        tries: how often a scenario is played to tell chance from a difference.
        options: of the command, that name both sides again.
    """

    findings: Path
    keep_going: bool = False
    tries: int = TRIES
    options: tuple[str, ...] = ()


def shared_capabilities(left: Hello, right: Hello, kubernetes: str) -> Capabilities:
    """What may be asked of both sides, by the names that the right side has for itself."""
    merged = msgspec.structs.replace(
        right,
        operations=_both(right.operations, left.operations),
        policies=_fields(right.policies, left.policies),
        options=_fields(right.options, left.options),
    )
    return Capabilities(merged, kubernetes)


def _fields(ours: T, theirs: T) -> T:
    names = ours.__struct_fields__
    kept = {name: _both(getattr(ours, name), getattr(theirs, name)) for name in names}
    return msgspec.structs.replace(ours, **kept)


def _both(ours: Sequence[str], theirs: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in ours if one in theirs)


def generated(
    seeds: Iterable[int], capabilities: Capabilities, kind: str = "life"
) -> Iterator[Scenario]:
    """The scenarios of seeds: the same for the same claims; `kind` is one of `KINDS`."""
    for seed in seeds:
        yield Scenario(f"{_NAMES[kind]} {seed}", KINDS[kind](seed, capabilities))


def given(
    cases: Iterable[Case], catalogue: Sequence[Machine], kubernetes: str
) -> Iterator[Scenario]:
    """Cases on every machine that they apply to, without what they expect."""
    for case in cases:
        if not includes(case.kubernetes, kubernetes):
            continue
        if case.machine is not None:
            yield Scenario(f"{case.id} on its own machine", Stage(case, case.machine))
            continue
        for machine in machines.select(catalogue, case.machines):
            named = msgspec.structs.replace(case, machines=Machines(names=(machine.name,)))
            tree = machine.tree if _needs_tree(case) else None
            yield Scenario(
                f"{case.id} on {machine.name}", Stage(named, machine.info or MachineInfo(), tree)
            )


def discovered(trees: Iterable[Path]) -> Iterator[Scenario]:
    """The discovery of trees: directories, or archives that are unpacked for as long as it takes.

    Raises:
        TreeError: there is no tree there.
    """
    for path in trees:
        with fakesys.open_tree(path) as root:
            case = Case(
                id=path.name.partition(".")[0],
                title="A tree is discovered",
                requirements=(),
                machines=Machines(names=(path.name,)),
                steps=(Step(discover=NoArguments(), expect="anything"),),
            )
            yield Scenario(
                f"discovery of {path.name}", Stage(case, MachineInfo(), partial(Path, root))
            )


def _needs_tree(case: Case) -> bool:
    return any(step.discover or (step.start and step.start.tree) for step in case.steps)


def differences(
    pair: Pair, scenarios: Iterable[Scenario], total: int, campaign: Campaign, course: Course
) -> Iterator[events.AnyEvent]:
    """Plays scenarios on both sides and yields what happens.

    The first difference ends it, unless the course says otherwise. Each is shrunk and kept as a
    case file. Where a side breaks by a named defect of the release, that is told, and is none.

    Raises:
        CaseError: a case can't be played as it is written.
    """
    yield campaign.started("diff", total, {})
    outcomes: Counter[str] = Counter()
    with scratch_folder() as scratch:
        for number, scenario in enumerate(scenarios, 1):
            played = examine(pair, scenario.stage, scratch, course.tries)
            outcomes[played.outcome] += 1
            if played.chance:
                yield _by_chance(scenario, played, campaign)
            if played.defect:
                yield _expected(scenario, played, campaign)
            if played.outcome not in events.GOOD:
                yield _found(_Found(pair, scenario, played), campaign, course, scratch)
                if not course.keep_going:
                    break
            yield events.Progress(at=campaign.elapsed(), done=number)
    yield campaign.ended(outcomes)


def _by_chance(scenario: Scenario, played: Played, campaign: Campaign) -> events.AnsweredByChance:
    return events.AnsweredByChance(
        at=campaign.elapsed(),
        scenario=scenario.name,
        call=played.calls,
        operation=played.operation,
        message=played.message,
    )


def _expected(scenario: Scenario, played: Played, campaign: Campaign) -> events.CaseFinished:
    """A scenario that ended where a kubelet breaks by a named defect."""
    return events.CaseFinished(
        at=campaign.elapsed(),
        case=scenario.name,
        title=scenario.stage.case.title,
        machine="its own machine",
        outcome=played.outcome,
        seconds=0.0,
        requirements=(),
        message=played.message,
        steps=played.steps,
        pictures=played.pictures,
        stderr=played.stderr,
        defect=played.defect,
        reproduce=campaign.command,
    )


@dataclass(frozen=True)
class _Found:
    pair: Pair
    scenario: Scenario
    played: Played

    def smallest(self, scratch: Path, tries: int) -> tuple[Stage, Played]:
        """The smallest scenario that ends in the same way, and how it does."""

        def shows(stage: Stage) -> bool:
            return self._same(stage, scratch, min(tries, _SHRINK_TRIES)) is not None

        if self.played.outcome in _SLOW:
            return self.scenario.stage, self.played
        search = shrinking.Shrinking(shows, _SHRINK_SECONDS)
        stage = search.smallest(self.scenario.stage)
        played = self._same(stage, scratch, tries)
        return (stage, played) if played else (self.scenario.stage, self.played)

    def _same(self, stage: Stage, scratch: Path, tries: int) -> Played | None:
        played = examine(self.pair, stage, scratch, tries)
        mine = self.played
        alike = (played.outcome, played.operation) == (mine.outcome, mine.operation)
        return played if alike else None


def _found(
    found: _Found, campaign: Campaign, course: Course, scratch: Path
) -> events.DivergenceFound:
    stage, played = found.smallest(scratch, course.tries)
    title = f"{found.scenario.name}: {played.message}"
    case = shrinking.case_of(stage, title)
    course.findings.mkdir(parents=True, exist_ok=True)
    file = course.findings / writing.name_of(case)
    writing.write(case, file)
    return events.DivergenceFound(
        at=campaign.elapsed(),
        title=title,
        outcome=played.outcome,
        message=title,
        machine=stage.machine,
        steps=played.steps,
        pictures=played.pictures,
        stderr=played.stderr,
        file=str(file),
        reproduce=shlex.join(("numaproof", "diff", str(file), *course.options)),
    )
