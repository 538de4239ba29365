"""Sums up the finished units of a campaign, in whatever order they arrive."""

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
class _Alike:
    """Failures of one signature. Places are (configuration, what is in it) in the plan's order."""

    first: tuple[int, int, str] | None = None
    event: CaseFinished | campaign.ScenarioFailed | None = None
    machines: set[str] = field(default_factory=set)
    outcomes: Counter[tuple[int, Outcome]] = field(default_factory=Counter)

    def add(
        self, place: tuple[int, int, str], event: CaseFinished | campaign.ScenarioFailed
    ) -> None:
        self.outcomes[place[0], event.outcome] += 1
        if isinstance(event, CaseFinished):
            self.machines.add(event.machine)
        if self.first is None or place < self.first:
            self.first, self.event = place, event


class FinishedUnits:
    """Counts units as they finish, each once, whoever did it; `known` are the known failures."""

    def __init__(self, plan: campaign.CampaignPlanned, known: KnownFailures | None = None) -> None:
        self.plan = plan
        self._known = known or KnownFailures()
        self.done: set[str] = set()
        self.notes: list[str] = []
        """What is no finding, by unit: not part of the summary, for it may come from outside."""
        self.message = ""
        """Why units are missing; empty while they are still being done."""
        self._shrunk: set[str] = set()
        self._places = {one: number for number, one in enumerate(plan.configurations)}
        self._machines = {name: number for number, name in enumerate(plan.machines)}
        self._outcomes: Counter[tuple[int, bool, Outcome]] = Counter()
        """By configuration, by whether they are those of scenarios, and by outcome."""
        self._by_machine: dict[str, Counter[Outcome]] = {}
        self._alike: dict[tuple[bool, str], _Alike] = {}  # whether of scenarios, signature
        self._smallest: dict[str, DivergenceFound | None] = {}

    def add(self, events: Iterable[campaign.UnitEvent], ended: campaign.UnitFinished) -> None:
        """Counts a unit by its events, unless that has been done before."""
        if ended.unit in self.done:
            return
        self.done.add(ended.unit)
        self.notes += [f"{ended.unit}: {note}" for note in ended.notes]
        if ended.signature:
            self._shrunk.add(ended.unit)
            found = (event for event in events if isinstance(event, DivergenceFound))
            self._smallest[ended.signature] = next(map(self._known.judged_scenario, found), None)
            return
        outcomes = Counter(ended.outcomes)
        for event in events:
            if not isinstance(event, CaseFinished | campaign.ScenarioFailed):
                continue
            judged = self._judged(event)
            if judged.outcome == KNOWN:
                outcomes[event.outcome] -= 1
                outcomes[KNOWN] += 1
            self._add_failure(judged, ended.configuration)
        scenarios = not ended.machine and "/cases/" not in ended.unit
        if not scenarios:
            self._by_machine.setdefault(ended.machine, Counter()).update(+outcomes)
        number = self._places[ended.configuration]
        for outcome, count in (+outcomes).items():
            self._outcomes[number, scenarios, outcome] += count

    def _judged(
        self, event: CaseFinished | campaign.ScenarioFailed
    ) -> CaseFinished | campaign.ScenarioFailed:
        if isinstance(event, CaseFinished):
            return self._known.judged(event)
        return self._known.judged_scenario(event)

    def _add_failure(
        self, event: CaseFinished | campaign.ScenarioFailed, configuration: campaign.Configuration
    ) -> None:
        if event.outcome in GOOD:
            return
        number, scenario = self._places[configuration], isinstance(event, campaign.ScenarioFailed)
        if isinstance(event, campaign.ScenarioFailed):
            place = (number, event.seed, "")
        else:
            machine = self._machines.get(event.machine, len(self._machines))
            place = (number, machine, event.case)
        self._alike.setdefault((scenario, event.signature), _Alike()).add(place, event)

    @property
    def failures(self) -> int:
        """Case runs and scenarios that failed."""
        return sum(one.outcomes.total() for one in self._alike.values())

    @property
    def signatures(self) -> int:
        """How many of them are distinct."""
        return len({like for _, like in self._alike})

    def causes_of_scenarios(self) -> dict[str, str]:
        """A message for each cause that scenarios failed for and that is not known."""
        found = {}
        for (scenario, like), alike in sorted(self._alike.items(), key=itemgetter(0)):
            shown = self._smallest.get(like) or alike.event
            if scenario and shown and shown.outcome not in GOOD:
                found[shown.signature] = shown.message
        return found

    def shrinks(self) -> list[campaign.Shrink]:
        """The first scenario of each signature, to be shrunk.

        It follows from the plan alone once all units of seeds are done, and only then.
        """
        firsts = [
            (alike.first, like)
            for (scenario, like), alike in self._alike.items()
            if alike.first and scenario
        ]
        return [
            campaign.Shrink(self.plan.configurations[first[0]], like, first[1])
            for first, like in sorted(firsts)[: self.plan.shrinks]
        ]

    def summary(self) -> campaign.CampaignSummary:
        """What the units come to; the same for the same units in any order."""
        # What was shrunk before may be a known failure by now.
        shrunk = {one.id for one in self.shrinks()}
        wanted = self.plan.units + len(shrunk)
        missing = wanted - len(self.done - (self._shrunk - shrunk))
        outcomes = self._judged_outcomes()
        names = [*self.plan.machines, ""]
        return campaign.CampaignSummary(
            plan=self.plan,
            complete=not missing,
            missing=missing,
            tally=_tally(outcomes, *self._places.values()),
            configurations={str(one): _tally(outcomes, at) for one, at in self._places.items()},
            machines={
                name or "their own": _sorted(self._by_machine[name])
                for name in names
                if name in self._by_machine
            },
            findings=(*self._findings(), *(() if missing else self._missing())),
            message=self.message if missing else "",
        )

    def _judged_outcomes(self) -> Counter[tuple[int, bool, Outcome]]:
        """The outcomes, with scenarios that are known failures once they are shrunk."""
        found = Counter(self._outcomes)
        for (scenario, like), alike in self._alike.items():
            smallest = self._smallest.get(like)
            if scenario and smallest and smallest.outcome == KNOWN:
                for (number, outcome), count in alike.outcomes.items():
                    found[number, True, KNOWN] += count
                    found[number, True, outcome] -= count
        return +found

    def _missing(self) -> Iterator[campaign.CampaignFinding]:
        """What is known to fail and did not."""
        for one in self._known.missing(0.0):
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
        in_order = sorted(self._alike.items(), key=lambda one: (one[0][0], one[1].first, one[0]))
        merged: dict[str, list[tuple[str, _Alike]]] = {}
        for (scenario, like), alike in in_order:
            smallest = self._smallest.get(like) if scenario else None
            if smallest is None or smallest.outcome != KNOWN:
                # Distinct failures may have shrunk to the same one.
                after = smallest.signature if smallest else like
                merged.setdefault(after, []).append((like, alike))
        for name, group in merged.items():
            yield self._finding(name, group)

    def _finding(self, name: str, group: list[tuple[str, _Alike]]) -> campaign.CampaignFinding:
        like, alike = group[0]
        event, first = alike.event, alike.first
        assert event is not None
        assert first is not None
        # What a scenario shrank to says nothing about a case that fails in the same way.
        smallest = self._smallest.get(like) if isinstance(event, campaign.ScenarioFailed) else None
        configurations = {number for _, one in group for number, _ in one.outcomes}
        machines = {machine for _, one in group for machine in one.machines}
        order = [*self.plan.machines, *sorted(machines - set(self.plan.machines))]
        shown: CaseFinished | DivergenceFound | campaign.ScenarioFailed = smallest or event
        at = self.plan.configurations[first[0]]
        if isinstance(event, CaseFinished):
            subject, where, requirements = event.case, f"on {event.machine}", event.judged
        else:
            subject, where = SCENARIO, f"with seed {first[1]}"
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


def _tally(
    outcomes: Mapping[tuple[int, bool, Outcome], int], *configurations: int
) -> campaign.CampaignTally:
    """The outcomes of configurations, by the numbers of these."""
    counts: tuple[Counter[Outcome], Counter[Outcome]] = Counter(), Counter()
    for (number, scenarios, outcome), count in outcomes.items():
        if number in configurations:
            counts[scenarios][outcome] += count
    return campaign.CampaignTally(*map(_sorted, counts))


def _sorted(counts: Mapping[Outcome, int]) -> dict[Outcome, int]:
    return dict(sorted(counts.items()))
