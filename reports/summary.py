"""Folds events into a summary, the basis of all reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast, get_args, get_type_hints

import msgspec

from numaproof.inputs.plurals import plural
from numaproof.protocol import events
from numaproof.reports.json_output import (
    ChanceAnswer,
    Claims,
    CoverageCounts,
    Divergence,
    FailedRun,
    Program,
    RunSummary,
    Verdict,
)
from numaproof.reports.values import group_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.protocol.messages import Hello

E = TypeVar("E")
T = TypeVar("T")
K = TypeVar("K")

OUTCOMES: tuple[events.Outcome, ...] = get_args(events.Outcome)
"""All outcomes, in the order of reports."""

NO_AREA = "(no requirement)"
"""The area of cases without a known requirement."""

KNOWN_FAILURES = "known failures"
"""The area for known-failure entries that no case run matched; the entry failed, not a case."""

EXIT_CODES: Mapping[Verdict, int] = {
    "passed": 0,
    "failed": 1,
    "nothing tested": 2,
    "incomplete": 3,
}
"""The exit code of the command for each verdict."""


@dataclass(frozen=True, slots=True)
class OutcomeTally:
    """Counts by outcome, in the order of `OUTCOMES`, omitting outcomes that did not occur."""

    counts: Mapping[events.Outcome, int]

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return sum(self.counts.values())

    @property
    def pass_count(self) -> int:
        """The number of passes."""
        return self.counts.get("pass", 0)

    @property
    def bad(self) -> int:
        """The number of outcomes that make the run fail."""
        return sum(count for outcome, count in self.counts.items() if outcome not in events.GOOD)

    def of(self, outcome: events.Outcome) -> int:
        """Returns the count of an outcome."""
        return self.counts.get(outcome, 0)


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a run.

    A case is always counted in the area of its first requirement, so the areas add up to the total.
    `runs` holds the case runs in order; `failures` holds those that failed. `gaps` holds sentences
    that explain why the run is incomplete; it is empty for a complete run.

    When fuzzing, `tally` counts examples; `runs` and the tables by area, case and machine are
    empty; and `expected_failures` includes scenarios that hit a named defect.
    """

    start: events.RunStarted | None
    end: events.RunEnded | None
    tally: OutcomeTally
    areas: Mapping[str, OutcomeTally]
    machines: Mapping[str, OutcomeTally]
    matrix: Mapping[tuple[str, str], OutcomeTally]
    by_requirement: Mapping[str, OutcomeTally]
    requirements: Mapping[str, events.ReportedRequirement]
    runs: tuple[events.CaseFinished, ...]
    failures: tuple[events.CaseFinished, ...]
    expected_failures: tuple[events.CaseFinished, ...]
    known_failures: tuple[events.CaseFinished, ...]
    divergences: tuple[events.DivergenceFound, ...]
    by_chance: tuple[events.AnsweredByChance, ...]
    coverage: events.Coverage | None
    untested_ids: tuple[str, ...]
    gaps: tuple[str, ...]
    seconds: float

    @property
    def fuzz(self) -> bool:
        """Whether the run played generated examples, as `fuzz` and `diff` do."""
        return self.start is not None and self.start.kind != "check"

    @property
    def kind(self) -> str:
        """The kind of run: ``check``, ``fuzz`` or ``diff``."""
        return self.start.kind if self.start else "check"

    @property
    def known_examples(self) -> tuple[events.DivergenceFound, ...]:
        """The known failures that fuzzing found, each with its smallest example."""
        return tuple(one for one in self.divergences if one.outcome == "known failure")

    @property
    def has_failed(self) -> bool:
        """Whether anything failed, even in an incomplete run."""
        return self.tally.bad > 0 or any(one.outcome not in events.GOOD for one in self.divergences)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the run; "failed" takes precedence over "incomplete"."""
        if self.has_failed:
            return "failed"
        if self.gaps:
            return "incomplete"
        if self.tally.total == self.tally.of("unsupported"):
            return "nothing tested"
        return "passed"

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return EXIT_CODES[self.verdict]

    def plain(self) -> RunSummary:
        """Returns the summary as JSON values."""
        claims = self.end.claims if self.end else None
        coverage, start = self.coverage, self.start
        return {
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "complete": not self.gaps,
            "gaps": list(self.gaps),
            "implementation": _program(start.implementation) if start else None,
            "left": _program(start.left) if start else None,
            "host": start.host if start else "",
            "seconds": self.seconds,
            "outcomes": dict(self.tally.counts),
            "areas": {area: dict(tally.counts) for area, tally in self.areas.items()},
            "machines": {name: dict(tally.counts) for name, tally in self.machines.items()},
            "failures": [_part(FailedRun, run) for run in self.failures],
            "expected_failures": [_part(FailedRun, run) for run in self.expected_failures],
            "known_failures": [_part(FailedRun, run) for run in self.known_failures],
            "divergences": [
                _part(Divergence, one) for one in self.divergences if one.outcome != "known failure"
            ],
            "known_divergences": [_part(Divergence, one) for one in self.known_examples],
            "by_chance": [_part(ChanceAnswer, one) for one in self.by_chance],
            "coverage": _part(CoverageCounts, coverage) if coverage else None,
            "untested": list(self.untested_ids),
            "claims": _part(Claims, claims) if claims else None,
            "leftover_processes": list(self.end.leftover_processes) if self.end else [],
        }

    def area(self, run: events.CaseFinished) -> str:
        """Returns the area in which a case run is counted."""
        return area_of(run, self.requirements)

    def find_requirements(self, ids: Iterable[str]) -> tuple[events.ReportedRequirement, ...]:
        """Returns the requirements with these ids, with placeholders for unknown ones."""
        unknown = "(not in the registry of this run)"
        return tuple(
            self.requirements.get(one, events.ReportedRequirement(one, NO_AREA, unknown, "", ""))
            for one in ids
        )


def area_of(
    run: events.CaseFinished, requirements: Mapping[str, events.ReportedRequirement]
) -> str:
    """Returns the area of the case's first known requirement, regardless of the outcome."""
    if run.outcome == "missing known failure":
        return KNOWN_FAILURES
    return next(
        (requirements[one].area for one in run.requirements if one in requirements), NO_AREA
    )


def summarize(stream: Iterable[events.AnyEvent]) -> Summary:
    """Folds a stream of events, complete or not, into a summary."""
    every = list(stream)
    started = next(_of(events.RunStarted, every), None)
    ended = next(_of(events.RunEnded, reversed(every)), None)
    reached = next(_of(events.Coverage, reversed(every)), None)
    played, divergences = (
        list(_of(events.CaseFinished, every)),
        list(_of(events.DivergenceFound, every)),
    )
    known = {one.id: one for one in started.requirements} if started else {}
    fuzz = started is not None and started.kind != "check"
    runs = [] if fuzz else played
    areas = [area_of(run, known) for run in runs]
    machines = [run.machine for run in runs]
    outcomes = [run.outcome for run in runs]
    if fuzz:
        done = max((one.played_examples for one in _of(events.Progress, every)), default=0)
        tally = _examples(ended, divergences, done)
    else:
        tally = _tally(Counter(outcomes))
    return Summary(
        start=started,
        end=ended,
        tally=tally,
        # In the order of the registry, then cases without an area.
        areas=_tally_by([*(one.area for one in known.values()), *areas], areas, outcomes),
        machines=_tally_by([*(started.machines if started else ()), *machines], machines, outcomes),
        matrix=_tally_by((), zip(areas, machines, strict=True), outcomes),
        by_requirement=_tally_by(
            (),
            (one for run in runs for one in run.judged_requirements),
            (run.outcome_of(one) for run in runs for one in run.judged_requirements),
        ),
        requirements=known,
        runs=tuple(runs),
        failures=tuple(run for run in runs if run.outcome not in events.GOOD),
        expected_failures=tuple(run for run in played if run.outcome == "expected failure"),
        known_failures=tuple(run for run in runs if run.outcome == "known failure"),
        divergences=tuple(divergences),
        by_chance=tuple(_of(events.AnsweredByChance, every)),
        coverage=reached,
        untested_ids=ended.untested_requirements if ended else (),
        gaps=tuple(_gaps(started, ended, tally)),
        seconds=max((event.at for event in every), default=0.0),
    )


def _of(kind: type[E], stream: Iterable[events.AnyEvent]) -> Iterator[E]:
    return (event for event in stream if isinstance(event, kind))


def _tally(counts: Mapping[events.Outcome, int]) -> OutcomeTally:
    return OutcomeTally({outcome: counts[outcome] for outcome in OUTCOMES if counts.get(outcome)})


def _tally_by(
    order: Iterable[K], keys: Iterable[K], outcomes: Iterable[events.Outcome]
) -> dict[K, OutcomeTally]:
    """Counts outcomes by key: first the keys in `order`, then the others as they appear."""
    found = group_values(zip(keys, outcomes, strict=True))
    ordered = dict.fromkeys([*order, *found])
    return {key: _tally(Counter(found[key])) for key in ordered if key in found}


def _examples(
    end: events.RunEnded | None, divergences: Iterable[events.DivergenceFound], example_count: int
) -> OutcomeTally:
    """Counts examples by outcome, using the last event or, if it is missing, the events so far."""
    if end is not None:
        return _tally({one: end.outcomes.get(one, 0) for one in OUTCOMES})
    found = Counter(one.outcome for one in divergences)
    found["pass"] += max(example_count - found.total(), 0)
    return _tally(found)


def _gaps(
    start: events.RunStarted | None, end: events.RunEnded | None, tally: OutcomeTally
) -> Iterator[str]:
    if start is None and (end is None or end.complete):
        yield "The first event is missing."
    if end is None:
        yield (
            "The last event is missing: the run was killed, is still in progress, or could not"
            " write it."
        )
        return
    if not end.complete:
        yield end.message or "The run was interrupted."
        return
    counted = sum(end.outcomes.values())
    if counted != tally.total:
        last = plural(counted, "case run")
        yield f"The last event counts {last}, but the file has {tally.total:,}."
    elif start is not None and start.kind == "check" and tally.total < start.total:
        yield f"The file has only {tally.total:,} of {plural(start.total, 'case run')}."


def _program(who: Hello | None) -> Program | None:
    return _part(Program, who) if who else None


def _part(kind: type[T], event: msgspec.Struct) -> T:
    """Returns the fields that a part of the summary shares with an event, as JSON values."""
    return cast(
        "T", {name: msgspec.to_builtins(getattr(event, name)) for name in get_type_hints(kind)}
    )
