"""Summarizes the finished units of a campaign, regardless of their order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from numaproof.conformance.known_failures.entries import KNOWN, SCENARIO, KnownFailures
from numaproof.protocol import campaign
from numaproof.protocol.events import GOOD, CaseFinished, DivergenceFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.protocol.events import Outcome


@dataclass
class _FailureGroup:
    """Failures with the same signature. `first` is the earliest place in the plan's order."""

    first: tuple[int, int, str] | None = None
    event: CaseFinished | campaign.ScenarioFailed | None = None
    machines: set[str] = field(default_factory=set)
    outcomes: Counter[tuple[int, Outcome]] = field(default_factory=Counter)

    def add(
        self, place: tuple[int, int, str], event: CaseFinished | campaign.ScenarioFailed
    ) -> None:
        self.outcomes[place[0], event.outcome] += _count(event)
        if isinstance(event, CaseFinished):
            self.machines.add(event.machine)
        if self.first is None or place < self.first:
            self.first, self.event = place, event


class FinishedUnits:
    """Collects finished units, counting each only once."""

    def __init__(
        self, plan: campaign.CampaignPlanned, known_failures: KnownFailures | None = None
    ) -> None:
        self.plan = plan
        self._known_failures = known_failures or KnownFailures()
        self.done_units: set[str] = set()
        self.notes: list[str] = []
        """Notes by unit. They are not in the summary, because they may have external causes."""
        self.message = ""
        """Why units are missing; empty while the campaign is running."""
        self._shrunk: set[str] = set()
        self._places = {one: number for number, one in enumerate(plan.configurations)}
        self._machines = {name: number for number, name in enumerate(plan.machines)}
        self._outcomes: Counter[tuple[int, bool, Outcome]] = Counter()
        """Counts by configuration, whether they are for scenarios, and outcome."""
        self._by_machine: dict[str, Counter[Outcome]] = {}
        self._failure_groups: dict[
            tuple[bool, str], _FailureGroup
        ] = {}  # for scenarios?, signature
        self._smallest: dict[str, DivergenceFound | None] = {}
        self._blocks: set[str] = set()
        self._kept_scenarios = 0

    def add(self, events: Iterable[campaign.UnitEvent], end_event: campaign.UnitFinished) -> None:
        """Adds a finished unit, unless it was added before."""
        if end_event.unit in self.done_units:
            return
        self.done_units.add(end_event.unit)
        self.notes += [f"{end_event.unit}: {note}" for note in end_event.notes]
        self._blocks.update(end_event.blocks)
        self._kept_scenarios += end_event.kept_scenarios
        if end_event.signature:
            self._shrunk.add(end_event.unit)
            found = (event for event in events if isinstance(event, DivergenceFound))
            self._smallest[end_event.signature] = next(
                map(self._known_failures.judge_scenario, found), None
            )
            return
        outcomes = Counter(end_event.outcomes)
        for event in events:
            if not isinstance(event, CaseFinished | campaign.ScenarioFailed):
                continue
            judged = self._apply_known_failures(event)
            if judged.outcome == KNOWN:
                outcomes[event.outcome] -= _count(event)
                outcomes[KNOWN] += _count(event)
            self._add_failure(judged, end_event.configuration)
        scenarios = not end_event.machine and "/cases/" not in end_event.unit
        if not scenarios:
            self._by_machine.setdefault(end_event.machine, Counter()).update(+outcomes)
        number = self._places[end_event.configuration]
        for outcome, count in (+outcomes).items():
            self._outcomes[number, scenarios, outcome] += count

    def _apply_known_failures(
        self, event: CaseFinished | campaign.ScenarioFailed
    ) -> CaseFinished | campaign.ScenarioFailed:
        if isinstance(event, CaseFinished):
            return self._known_failures.judge(event)
        return self._known_failures.judge_scenario(event)

    def _add_failure(
        self, event: CaseFinished | campaign.ScenarioFailed, configuration: campaign.Configuration
    ) -> None:
        if event.outcome in GOOD:
            return
        number, scenario = self._places[configuration], isinstance(event, campaign.ScenarioFailed)
        if isinstance(event, campaign.ScenarioFailed):
            place = (number, event.seed, event.kind)
        else:
            machine = self._machines.get(event.machine, len(self._machines))
            place = (number, machine, event.case)
        self._failure_groups.setdefault((scenario, event.signature), _FailureGroup()).add(
            place, event
        )

    @property
    def failures(self) -> int:
        """The number of failed case runs and scenarios."""
        return sum(one.outcomes.total() for one in self._failure_groups.values())

    @property
    def signatures(self) -> int:
        """The number of distinct failures."""
        return len({like for _, like in self._failure_groups})

    def causes_of_scenarios(self) -> dict[str, str]:
        """Returns a message for each unknown cause of failed scenarios."""
        found = {}
        for (scenario, like), alike in sorted(self._failure_groups.items(), key=itemgetter(0)):
            shown = self._smallest.get(like) or alike.event
            if scenario and shown and shown.outcome not in GOOD:
                found[shown.signature] = shown.message
        return found

    def shrinks(self) -> list[campaign.Shrink]:
        """Returns the first scenario of each signature, to be shrunk.

        The result depends only on the plan once all units of seeds are done.
        """
        firsts = [
            (alike.first, like, alike.event.case)
            for (_, like), alike in self._failure_groups.items()
            if alike.first and isinstance(alike.event, campaign.ScenarioFailed)
        ]
        return [
            campaign.Shrink(self.plan.configurations[number], like, seed, kind, case)
            for (number, seed, kind), like, case in sorted(firsts)[: self.plan.shrinks]
        ]

    def summary(self) -> campaign.CampaignSummary:
        """Returns the summary, which does not depend on the order of the units."""
        # A failure that was shrunk before may be a known failure now.
        shrunk = {one.id for one in self.shrinks()}
        wanted = self.plan.units + len(shrunk)
        missing = wanted - len(self.done_units - (self._shrunk - shrunk))
        outcomes = self._judged_outcomes()
        names = [*self.plan.machines, ""]
        return campaign.CampaignSummary(
            plan=self.plan,
            complete=not missing,
            missing=missing,
            tally=_tally(outcomes, *self._places.values()),
            configurations={str(one): _tally(outcomes, at) for one, at in self._places.items()},
            machines={
                name or "their own": _sort_counts(self._by_machine[name])
                for name in names
                if name in self._by_machine
            },
            findings=(*self._findings(), *(() if missing else self._missing())),
            message=self.message if missing else "",
            coverage=self._coverage(),
        )

    def _coverage(self) -> campaign.CampaignCoverage | None:
        if not self._blocks:
            return None
        return campaign.CampaignCoverage(self._kept_scenarios, tuple(sorted(self._blocks)))

    def _judged_outcomes(self) -> Counter[tuple[int, bool, Outcome]]:
        """Returns the outcomes, counting scenarios that shrank to a known failure as known."""
        found = Counter(self._outcomes)
        for (scenario, like), alike in self._failure_groups.items():
            smallest = self._smallest.get(like)
            if scenario and smallest and smallest.outcome == KNOWN:
                for (number, outcome), count in alike.outcomes.items():
                    found[number, True, KNOWN] += count
                    found[number, True, outcome] -= count
        return +found

    def _missing(self) -> Iterator[campaign.CampaignFinding]:
        """Yields known failures that did not occur."""
        for one in self._known_failures.missing(0.0):
            yield campaign.CampaignFinding(
                signature=one.signature,
                subject=one.case,
                outcome=one.outcome,
                message=one.message,
                count=1,
                first=f"on {one.machine}",
                configurations=(),
            )

    def _findings(self) -> Iterator[campaign.CampaignFinding]:
        in_order = sorted(
            self._failure_groups.items(), key=lambda item: (item[0][0], item[1].first, item[0])
        )
        merged: dict[str, list[tuple[str, _FailureGroup]]] = {}
        for (scenario, like), alike in in_order:
            smallest = self._smallest.get(like) if scenario else None
            if smallest is None or smallest.outcome != KNOWN:
                # Distinct failures may have shrunk to the same failure.
                after = smallest.signature if smallest else like
                merged.setdefault(after, []).append((like, alike))
        for name, group in merged.items():
            yield self._finding(name, group)

    def _finding(
        self, name: str, group: list[tuple[str, _FailureGroup]]
    ) -> campaign.CampaignFinding:
        like, alike = group[0]
        event, first = alike.event, alike.first
        assert event is not None
        assert first is not None
        # A shrunk scenario says nothing about a case with the same failure.
        smallest = self._smallest.get(like) if isinstance(event, campaign.ScenarioFailed) else None
        configurations = {number for _, one in group for number, _ in one.outcomes}
        machines = {machine for _, one in group for machine in one.machines}
        order = [*self.plan.machines, *sorted(machines - set(self.plan.machines))]
        shown: CaseFinished | DivergenceFound | campaign.ScenarioFailed = smallest or event
        at = self.plan.configurations[first[0]]
        if isinstance(event, CaseFinished):
            subject, where, requirements = (
                event.case,
                f"on {event.machine}",
                event.judged_requirements,
            )
        else:
            subject, where = SCENARIO, f"with seed {first[1]}"
            if self.plan.is_guided:
                where = f"in life {first[1]}"
            if event.kind:
                where = f"in part {first[1]} of the {event.kind}"
            requirements = smallest.requirements if smallest else ()
        return campaign.CampaignFinding(
            signature=name,
            subject=subject,
            outcome=shown.outcome,
            message=shown.message,
            finding=shown.finding,
            count=sum(one.outcomes.total() for _, one in group),
            first=f"{where}, {at}",
            configurations=tuple(
                str(self.plan.configurations[one]) for one in sorted(configurations)
            ),
            machines=tuple(one for one in order if one in machines),
            requirements=requirements,
            file=smallest.file if smallest else None,
            reproduce="" if isinstance(shown, campaign.ScenarioFailed) else shown.reproduce,
        )


def _count(event: CaseFinished | campaign.ScenarioFailed) -> int:
    """The number of case runs or scenarios that failed this way."""
    return event.count if isinstance(event, campaign.ScenarioFailed) else 1


def _tally(
    outcomes: Mapping[tuple[int, bool, Outcome], int], *configurations: int
) -> campaign.CampaignTally:
    counts: tuple[Counter[Outcome], Counter[Outcome]] = Counter(), Counter()
    for (number, scenarios, outcome), count in outcomes.items():
        if number in configurations:
            counts[scenarios][outcome] += count
    return campaign.CampaignTally(*map(_sort_counts, counts))


def _sort_counts(counts: Mapping[Outcome, int]) -> dict[Outcome, int]:
    return dict(sorted(counts.items()))
