"""Where implementations stand: their runs, added up, and what each requirement's outcome is."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from numaproof.protocol.events import GOOD
from numaproof.protocol.messages import LEVELS
from numaproof.reports.board.data import KINDS, Kind, slug
from numaproof.reports.story import BROKEN
from numaproof.reports.values import collected

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.protocol.messages import Level
    from numaproof.reports.board.data import Author, BoardFinding, RunData, Tally

State = Literal[Kind, "pass", "unsupported", "untested"]
"""What became of a requirement, or a machine: the worst that any case run about it came to."""

STATES: tuple[State, ...] = get_args(State)
"""The states, the worst first."""

NOT_ASKED: frozenset[State] = frozenset({"unsupported", "untested"})
"""The states of what an implementation was not asked about."""


@dataclass(frozen=True)
class Score:
    """Case runs by how they count."""

    counts: Mapping[State, int]

    @property
    def asked(self) -> int:
        """What the implementation claims, and was asked."""
        return sum(self.counts.values()) - self.counts.get("unsupported", 0)

    @property
    def good(self) -> int:
        """What is as documented."""
        return self.counts.get("pass", 0)

    @property
    def percent(self) -> str:
        """The good ones of those asked, never rounded to 100 %; empty if nothing was asked."""
        if not self.asked:
            return ""
        tenths = 1000 * self.good // self.asked
        return f"{tenths // 10}.{tenths % 10} %" if tenths % 10 else f"{tenths // 10} %"


@dataclass
class Entry:
    """The runs of one version of an implementation in one release, at one level.

    `undocumented` are requirements that no document has, which do not count as requirements.
    """

    author: Author
    kubernetes: str
    level: Level
    runs: list[RunData] = field(default_factory=list)
    undocumented: frozenset[str] = frozenset()

    @cached_property
    def findings(self) -> tuple[BoardFinding, ...]:
        """What its runs found, the worst kind first."""
        found = [one for run in self.runs for one in run.findings]
        return tuple(sorted(found, key=lambda one: KINDS.index(one.kind)))

    @cached_property
    def checks(self) -> tuple[RunData, ...]:
        """The runs of cases."""
        return tuple(run for run in self.runs if run.kind == "check")

    @property
    def gaps(self) -> tuple[str, ...]:
        """Why it is incomplete, in sentences."""
        return tuple(dict.fromkeys(gap for run in self.runs for gap in run.gaps))

    @property
    def failed(self) -> bool:
        """Whether any of its runs failed, as its exit code said; known failures fail none."""
        return any(outcome not in GOOD for run in self.runs for outcome in run.outcomes)

    @cached_property
    def requirements(self) -> Mapping[str, Tally]:
        """The outcomes of all case runs that cite each requirement."""
        return _added(run.requirements for run in self.checks)

    @cached_property
    def machines(self) -> Mapping[str, Tally]:
        """The outcomes on each machine."""
        return _added(run.machines for run in self.checks)

    @cached_property
    def discovery(self) -> Mapping[str, Tally]:
        """The outcomes of cases about discovery on each machine."""
        return _added(run.discovery for run in self.checks)

    @cached_property
    def _by_requirement(self) -> Mapping[str, list[Kind]]:
        return collected(
            (one, finding.kind)
            for finding in self.findings
            for where in finding.cases
            for one in where.requirements
        )

    @cached_property
    def _by_machine(self) -> Mapping[str, list[Kind]]:
        return collected(
            (machine, finding.kind)
            for finding in self.findings
            for where in finding.cases
            if where.discovers
            for machine in where.machines
        )

    @cached_property
    def states(self) -> Mapping[str, State]:
        """What became of each requirement that any case run cites."""
        return {
            one: worst(tally, self._by_requirement.get(one, ()))
            for one, tally in self.requirements.items()
        }

    def discovered(self, machine: str) -> State:
        """What became of discovery on a machine."""
        return worst(self.discovery.get(machine, {}), self._by_machine.get(machine, ()))

    @cached_property
    def score(self) -> Score:
        """Its case runs by how they count."""
        counts: Counter[State] = Counter()
        for run in self.checks:
            for state, count in _run_counts(run):
                counts[state] += count
        return Score({state: counts[state] for state in STATES if counts.get(state)})

    @property
    def met(self) -> Met:
        """How many of the requirements that it was asked about it meets."""
        states = self.states.items()
        return Met.of(Counter(state for one, state in states if one not in self.undocumented))


class Met(NamedTuple):
    """Requirements by how they are met.

    `documented` are met as documented; `as_kubelet` are broken by named defects of the release
    alone, as its kubelet does; `asked` are all that were asked about.
    """

    documented: int
    as_kubelet: int
    asked: int

    @classmethod
    def of(cls, states: Mapping[State, int]) -> Met:
        """How requirements are met, of which so many are in each state."""
        asked = sum(count for state, count in states.items() if state not in NOT_ASKED)
        return cls(states.get("pass", 0), states.get("expected", 0), asked)

    @property
    def is_all(self) -> bool:
        """Whether something was asked about, and nothing else became of it."""
        return self.documented + self.as_kubelet == self.asked > 0


def _run_counts(run: RunData) -> Iterator[tuple[State, int]]:
    known: Counter[Kind] = Counter()
    for finding in run.findings:
        for where in finding.cases:
            if where.outcome == "known failure":
                known[finding.kind] += len(where.machines)
    known["known failure"] += run.outcomes.get("known failure", 0) - known.total()
    yield from known.items()
    for outcome, count in run.outcomes.items():
        if outcome != "known failure":
            yield worst({outcome: 1}, ()), count


def _added(tallies: Iterable[Mapping[str, Tally]]) -> Mapping[str, Tally]:
    found: dict[str, Tally] = {}
    for one in tallies:
        for name, tally in one.items():
            into = found.setdefault(name, {})
            for outcome, count in tally.items():
                into[outcome] = into.get(outcome, 0) + count
    return found


def worst(tally: Tally, kinds: Iterable[Kind]) -> State:
    """The state that a tally amounts to, whose known failures are of these kinds."""
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
    """All entries of one implementation, the newest version and release first.

    `slug` names its page, its column and its badge.
    """

    name: str
    slug: str
    entries: list[Entry]

    @property
    def newest(self) -> Entry:
        """The newest version in the newest release: what tables show."""
        return self.entries[0]

    @cached_property
    def current(self) -> tuple[Entry, ...]:
        """The newest version in each release, the newest release first."""
        found: dict[str, Entry] = {}
        for one in self.entries:
            found.setdefault(one.kubernetes, one)
        return tuple(found[release] for release in sorted(found, key=version_key, reverse=True))


def version_key(version: str) -> tuple[object, ...]:
    """Orders versions: numbers by size, and what comes before a release before it."""
    main, _, before = version.lower().removeprefix("v").partition("-")
    return _parts(main), not before, _parts(before)


def _parts(text: str) -> tuple[tuple[int, int, str], ...]:
    words = re.findall(r"[0-9]+|[a-z]+", text)
    return tuple((1, int(one[:18]), "") if one.isdigit() else (0, 0, one) for one in words)


def implementations(
    runs: Iterable[RunData], undocumented: frozenset[str] = frozenset()
) -> tuple[BoardImplementation, ...]:
    """The implementations that runs are about, in the order of their names.

    A run that is given twice counts once.

    Args:
        runs: the runs.
        undocumented: the ids of requirements that no document has.
    """
    entries: dict[tuple[str, str, str, str], Entry] = {}
    seen: list[RunData] = []
    for run in sorted(runs, key=_order):
        if run in seen[-1:]:
            continue
        seen.append(run)
        key = (run.author.name, run.author.version, run.kubernetes, run.level)
        new = Entry(run.author, run.kubernetes, run.level, undocumented=undocumented)
        entry = entries.setdefault(key, new)
        entry.runs.append(run)
    by_name = collected((entry.author.name, entry) for entry in entries.values())
    slugs: set[str] = set()
    made = []
    for name in sorted(by_name, key=lambda one: (one.lower(), one)):
        newest_first = sorted(by_name[name], key=_newest, reverse=True)
        made.append(BoardImplementation(name, _free(slug(name), slugs), newest_first))
    return tuple(made)


def _newest(entry: Entry) -> tuple[object, ...]:
    return (
        version_key(entry.kubernetes),
        version_key(entry.author.version),
        entry.author.version,
        LEVELS.index(entry.level),
    )


def _order(run: RunData) -> tuple[str, ...]:
    """Any order that follows from the runs alone."""
    author = run.author
    return author.name, author.version, run.kubernetes, run.level, run.kind, repr(run)


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    taken.add(name)
    return name
