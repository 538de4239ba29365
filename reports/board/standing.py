"""Combines the runs of each implementation and determines the state of each requirement."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from numaproof.protocol.events import GOOD
from numaproof.protocol.messages import LEVELS
from numaproof.reports.board.data import KINDS, Kind, run_key, unique_slugs
from numaproof.reports.story import BROKEN
from numaproof.reports.values import group_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.protocol.events import Outcome
    from numaproof.protocol.messages import Level
    from numaproof.reports.board.data import Author, BoardFinding, FoundIn, RunData, Tally

State = Literal[Kind, "pass", "unsupported", "untested"]
"""The state of a requirement or a machine: the worst result of all related case runs."""

STATES: tuple[State, ...] = get_args(State)
"""All states, the worst first."""

NOT_ASKED: frozenset[State] = frozenset({"unsupported", "untested"})
"""The states of requirements that were not tested."""


@dataclass(frozen=True)
class Score:
    """Counts of case runs or requirements by state."""

    counts: Mapping[State, int]

    @property
    def asked_count(self) -> int:
        """The number of items that were tested."""
        return sum(count for state, count in self.counts.items() if state not in NOT_ASKED)

    @property
    def good(self) -> int:
        """The number of items that are as documented."""
        return self.counts.get("pass", 0)

    @property
    def as_kubelet(self) -> int:
        """The number of items broken only by named defects of the release's kubelet."""
        return self.counts.get("expected", 0)

    @property
    def is_all(self) -> bool:
        """Whether anything was tested and all of it is good or as in the kubelet."""
        return self.good + self.as_kubelet == self.asked_count > 0

    @property
    def fraction(self) -> float:
        """The good share of tested items; -1 if there are none."""
        return self.good / self.asked_count if self.asked_count else -1.0

    @property
    def percent(self) -> str:
        """The good share of tested items, never rounded up to 100 %; empty if there are none."""
        if not self.asked_count:
            return ""
        tenths = 1000 * self.good // self.asked_count
        return f"{tenths // 10}.{tenths % 10} %" if tenths % 10 else f"{tenths // 10} %"


@dataclass
class Entry:
    """The runs of one version of an implementation for one release and level.

    `undocumented_ids` are requirements without a document, which are not counted.
    """

    author: Author
    kubernetes: str
    level: Level
    runs: list[RunData]
    undocumented_ids: frozenset[str] = frozenset()

    @cached_property
    def findings(self) -> tuple[BoardFinding, ...]:
        """The findings of all runs, worst kind first."""
        found = [one for run in self.runs for one in run.findings]
        return tuple(sorted(found, key=lambda finding: KINDS.index(finding.kind)))

    @cached_property
    def checks(self) -> tuple[RunData, ...]:
        """The runs that checked cases."""
        return tuple(run for run in self.runs if run.kind == "check")

    @property
    def gaps(self) -> tuple[str, ...]:
        """The reasons why the runs are incomplete, as sentences."""
        return tuple(dict.fromkeys(gap for run in self.runs for gap in run.gaps))

    @property
    def date(self) -> str:
        """The date of the newest run whose date is known, as YYYY-MM-DD; may be empty."""
        return max(run.date for run in self.runs)

    @property
    def has_failed(self) -> bool:
        """Whether any run failed. Known failures don't make a run fail."""
        return any(outcome not in GOOD for run in self.runs for outcome in run.outcomes)

    @cached_property
    def requirements(self) -> Mapping[str, Tally]:
        """The outcomes of the case runs that cite each requirement."""
        return _sum_tallies(run.requirements for run in self.checks)

    @cached_property
    def machines(self) -> Mapping[str, Tally]:
        """The outcomes of the case runs on each machine."""
        return _sum_tallies(run.machines for run in self.checks)

    @cached_property
    def discovery(self) -> Mapping[str, Tally]:
        """The outcomes of discovery cases on each machine."""
        return _sum_tallies(run.discovery for run in self.checks)

    @cached_property
    def _where(self) -> tuple[tuple[Kind, FoundIn], ...]:
        return tuple((one.kind, where) for one in self.findings for where in one.cases)

    @cached_property
    def states(self) -> Mapping[str, State]:
        """The state of each requirement that a case run cites."""
        kinds = group_values(
            (one, kind) for kind, where in self._where for one in where.requirements
        )
        return {one: worst(tally, kinds.get(one, ())) for one, tally in self.requirements.items()}

    @cached_property
    def discovery_states(self) -> Mapping[str, State]:
        """The state of discovery on each machine."""
        about = [(kind, where) for kind, where in self._where if where.discovers]
        kinds = group_values((machine, kind) for kind, where in about for machine in where.machines)
        return {name: worst(tally, kinds.get(name, ())) for name, tally in self.discovery.items()}

    @cached_property
    def score(self) -> Score:
        """The case runs by state."""
        counts: Counter[State] = Counter()
        for run in self.checks:
            counts += _run_counts(run)
        return Score({state: counts[state] for state in STATES if counts[state]})

    @property
    def requirement_score(self) -> Score:
        """The documented requirements by state."""
        states = self.states.items()
        return Score(Counter(state for one, state in states if one not in self.undocumented_ids))


def _run_counts(run: RunData) -> Counter[State]:
    counts: Counter[State] = Counter()
    for finding in run.findings:
        known = (where for where in finding.cases if where.outcome == "known failure")
        counts[finding.kind] += sum(len(where.machines) for where in known)
    counts["known failure"] += run.outcomes.get("known failure", 0) - counts.total()
    for outcome, count in run.outcomes.items():
        if outcome != "known failure":
            counts[worst({outcome: 1}, ())] += count
    return counts


def _sum_tallies(tallies: Iterable[Mapping[str, Tally]]) -> Mapping[str, Tally]:
    found: dict[str, Counter[Outcome]] = {}
    for one in tallies:
        for name, tally in one.items():
            found.setdefault(name, Counter()).update(tally)
    return found


def worst(tally: Tally, kinds: Iterable[Kind]) -> State:
    """Returns the worst state in a tally whose known failures are of these kinds."""
    bad = [outcome for outcome in tally if outcome not in GOOD]
    if bad:
        return "crash" if all(one in BROKEN for one in bad) else "failed"
    if "known failure" in tally:
        known = [one for one in kinds if one not in {"failed", "expected"}]
        return min(known, key=KINDS.index, default="known failure")
    if "expected failure" in tally:
        return "expected"
    if "pass" in tally:
        return "pass"
    return "unsupported" if tally else "untested"


@dataclass
class BoardImplementation:
    """All entries of an implementation, newest release and version first.

    `slug` is used in the names of its page, column and badge.
    """

    name: str
    slug: str
    entries: list[Entry]

    @property
    def newest(self) -> Entry:
        """The newest version for the newest release; it is the one shown in tables."""
        return self.entries[0]

    @cached_property
    def current(self) -> tuple[Entry, ...]:
        """The newest version for each release, newest release first."""
        found = {one.kubernetes: one for one in reversed(self.entries)}
        return tuple(found[release] for release in sorted(found, key=version_key, reverse=True))

    @cached_property
    def versions(self) -> tuple[Entry, ...]:
        """The versions whose cases were checked, at their highest level, oldest first."""
        found: dict[tuple[str, str], Entry] = {}
        for entry in self.entries:
            if entry.checks:
                found.setdefault((entry.kubernetes, entry.author.version), entry)
        return tuple(reversed(found.values()))

    @property
    def is_discoverer(self) -> bool:
        """Whether the newest version only discovers machines, and allocates nothing."""
        return set(self.newest.author.operations) - {"hello"} == {"discover"}


def version_key(version: str) -> tuple[object, ...]:
    """Returns a sort key for versions: numbers by value, pre-releases before releases."""
    main, _, before = version.lower().removeprefix("v").partition("-")
    return _parts(main), not before, _parts(before)


def _parts(text: str) -> tuple[tuple[int, int, str], ...]:
    words = re.findall(r"[0-9]+|[a-z]+", text)
    return tuple((1, int(one[:18]), "") if one.isdigit() else (0, 0, one) for one in words)


def implementations(
    runs: Iterable[RunData], undocumented_ids: frozenset[str] = frozenset()
) -> tuple[BoardImplementation, ...]:
    """Groups runs by implementation, sorted by name.

    Args:
        runs: the runs; duplicates are ignored.
        undocumented_ids: the ids of requirements without a document.
    """
    in_order = sorted(runs, key=lambda run: (*run_key(run), repr(_without_date(run)), run.date))
    # Of runs that differ only in their dates, the newest counts.
    distinct = (list(same)[-1] for _, same in groupby(in_order, key=_without_date))
    by_entry = group_values((run_key(run)[:4], run) for run in distinct)
    entries = (
        Entry(several[0].author, several[0].kubernetes, several[0].level, several, undocumented_ids)
        for several in by_entry.values()
    )
    by_name = group_values((entry.author.name, entry) for entry in entries)
    slugs = unique_slugs(sorted(by_name, key=lambda label: (label.lower(), label)))
    return tuple(
        BoardImplementation(name, slug, sorted(by_name[name], key=_age, reverse=True))
        for name, slug in slugs.items()
    )


def _without_date(run: RunData) -> RunData:
    return msgspec.structs.replace(run, date="")


def _age(entry: Entry) -> tuple[object, ...]:
    version = entry.author.version
    versions = version_key(entry.kubernetes), version_key(version), version
    return *versions, LEVELS.index(entry.level)
