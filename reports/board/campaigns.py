"""The journal of a campaign becomes runs: one of cases and one of scenarios for each release."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from numaproof.protocol.campaign import CampaignPlanned, ScenarioFailed, UnitFinished
from numaproof.protocol.events import CaseFinished, DivergenceFound, RunEnded, RunStarted
from numaproof.protocol.machine import MachineInfo
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.protocol.campaign import CampaignEvent, Configuration, UnitEvent
    from numaproof.protocol.events import AnyEvent, ReportedRequirement
    from numaproof.reports.summary import Summary

_UNFINISHED = "The campaign is not finished: the same command resumes it."

_NO_MACHINE = MachineInfo(0, 0, 0, 0, (), ())


class _Played:
    """What came back of one configuration of a campaign."""

    def __init__(self) -> None:
        self.cases: list[CaseFinished] = []
        self.found: list[DivergenceFound] = []
        self.failed: dict[str, ScenarioFailed] = {}
        self.shrunk: set[str] = set()
        self.scenarios: Counter[str] = Counter()

    def add(self, unit: Iterable[UnitEvent], ended: UnitFinished) -> None:
        for event in unit:
            if isinstance(event, CaseFinished):
                self.cases.append(event)
            elif isinstance(event, ScenarioFailed):
                self.failed.setdefault(event.signature, event)
            elif isinstance(event, DivergenceFound):
                self.found.append(event)
        if ended.signature:
            self.shrunk.add(ended.signature)
        elif "/seeds/" in ended.unit:
            self.scenarios.update(ended.outcomes)

    def divergences(self) -> Iterator[DivergenceFound]:
        """What was shrunk, then what was not: of each cause the first."""
        yield from self.found
        for signature, one in self.failed.items():
            if signature not in self.shrunk:
                yield DivergenceFound(
                    at=one.at,
                    title=f"Scenario of seed {one.seed}",
                    outcome=one.outcome,
                    message=one.message,
                    finding=one.finding,
                    machine=_NO_MACHINE,
                    steps=(),
                    signature=signature,
                    reason=one.reason,
                )


def summaries(
    events: Iterable[CampaignEvent], registry: tuple[ReportedRequirement, ...]
) -> Iterator[Summary]:
    """The runs that a campaign amounts to; a unit without its end counts for nothing.

    Args:
        events: the journal, which begins with its plan.
        registry: the requirements, which a journal only names.
    """
    plan: CampaignPlanned | None = None
    played: dict[Configuration, _Played] = {}
    unit: list[UnitEvent] = []
    done = 0
    ended: RunEnded | None = None
    for event in events:
        if isinstance(event, CampaignPlanned):
            plan = plan or event
        elif isinstance(event, UnitFinished):
            played.setdefault(event.configuration, _Played()).add(unit, event)
            unit, done = [], done + (not event.signature)
        elif isinstance(event, RunEnded):
            unit, ended = [], event
        else:
            unit.append(event)
    if plan is None:
        return
    complete = ended is not None and ended.complete and done >= plan.units
    message = "" if complete else _UNFINISHED
    if ended and ended.message and not complete:
        message = f"{_UNFINISHED} {ended.message}"
    for configuration in plan.configurations:
        one = played.get(configuration, _Played())
        if one.cases or not (plan.runs == 0 or complete):
            yield summarize(_cases(plan, configuration, one, registry, message))
        if one.scenarios:
            yield summarize(_scenarios(plan, configuration, one, registry, message))


def _cases(
    plan: CampaignPlanned,
    configuration: Configuration,
    played: _Played,
    registry: tuple[ReportedRequirement, ...],
    unfinished: str,
) -> Iterator[AnyEvent]:
    outcomes: Counter[str] = Counter(one.outcome for one in played.cases)
    yield _started(plan, configuration, registry, "check", outcomes.total())
    yield from sorted(played.cases, key=lambda one: (one.case, one.machine))
    yield _ended(outcomes, unfinished)


def _scenarios(
    plan: CampaignPlanned,
    configuration: Configuration,
    played: _Played,
    registry: tuple[ReportedRequirement, ...],
    unfinished: str,
) -> Iterator[AnyEvent]:
    yield _started(plan, configuration, registry, "fuzz", played.scenarios.total())
    yield from sorted(played.divergences(), key=lambda one: (one.signature, one.title))
    yield _ended(played.scenarios, unfinished)


def _started(
    plan: CampaignPlanned,
    configuration: Configuration,
    registry: tuple[ReportedRequirement, ...],
    kind: str,
    total: int,
) -> RunStarted:
    return RunStarted(
        at=0.0,
        kind="check" if kind == "check" else "fuzz",
        numaproof=plan.numaproof,
        kubernetes=configuration.kubernetes,
        level=configuration.level,
        command="",
        total=total,
        machines={},
        requirements=registry,
        implementation=plan.implementation,
    )


def _ended(outcomes: Counter[str], unfinished: str) -> RunEnded:
    """The end of a run; `unfinished` says why it is not complete, and is empty where it is."""
    complete = not unfinished
    return RunEnded(at=0.0, complete=complete, outcomes=dict(outcomes), message=unfinished)
