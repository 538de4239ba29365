"""Prepares values for the templates: text, bars, findings with URLs, table cells."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import yaml

from numaproof.inputs.plurals import plural
from numaproof.reports.board.context import NamedDefect
from numaproof.reports.board.data import KINDS, WORDED, slug
from numaproof.reports.board.standing import NOT_ASKED, STATES, Score
from numaproof.reports.values import group_values, segments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numaproof.protocol.events import Outcome, ReportedRequirement
    from numaproof.protocol.messages import Level
    from numaproof.reports.board.data import BoardFinding, FoundIn, MachineSize, Tally
    from numaproof.reports.board.standing import BoardImplementation, Entry, State


_LEGEND: Mapping[State, tuple[str, str]] = {
    "failed": ("✗", "a wrong answer that is not yet explained"),
    "crash": ("†", "crashes, hangs or does not answer"),
    "finding": ("!", "violates the requirement; confirmed by hand"),
    "known failure": ("~", "a known failure of another kind"),
    "own rules": ("◇", "legitimately follows rules of its own"),
    "expected": ("≈", "only named defects of this release's kubelet"),
    "pass": ("✓", "as documented"),
    "unsupported": ("○", "not claimed, so not tested"),
    "untested": ("·", "not covered by any case in the run"),
}

SIGNS = {state: sign for state, (sign, _) in _LEGEND.items()}
"""The sign of each state. Small cells show it without the name."""

MEANINGS = {state: meaning for state, (_, meaning) in _LEGEND.items()}
"""The meaning of each state, for the legend."""

NAMES: Mapping[State, str] = {"expected": "named defect"}
"""The names of states that are not their own."""

Bar = tuple["State", int, str, str]
"""A segment of a bar: state, count, start and width in percent."""


def bars(counts: Mapping[State, int]) -> list[Bar]:
    """Returns the segments of a bar, good states first, excluding untested ones."""
    return segments((one for one in good_first(counts) if one[0] not in NOT_ASKED), 2)


def good_first(counts: Mapping[State, int]) -> list[tuple[State, int]]:
    """Returns counts by state, from good to bad, with untested ones at the end."""
    order = (*STATES[-3::-1], *STATES[-2:])
    return [(one, counts[one]) for one in order if counts.get(one)]


def count_text(state: State, count: int) -> str:
    """Formats a number of findings, case runs or requirements of a kind or state."""
    return f"{count:,} {NAMES.get(state, state) if count == 1 else _PLURALS.get(state, state)}"


_PLURALS: Mapping[State, str] = {
    "crash": "crashes",
    "expected": "named defects",
    "finding": "findings",
    "known failure": "known failures",
}


def tally_text(tally: Tally) -> str:
    """Formats the outcomes of a tally."""
    return ", ".join(_outcome_text(*one) for one in sorted(tally.items()))


def _outcome_text(outcome: Outcome, count: int) -> str:
    one, several = _OUTCOMES.get(outcome, (outcome, f"{outcome}s"))
    return f"{count:,} {one if count == 1 else several}"


_OUTCOMES: Mapping[Outcome, tuple[str, str]] = {
    "pass": ("passed", "passed"),
    "fail": ("failed", "failed"),
    "crash": ("crash", "crashes"),
    "unsupported": ("unsupported", "unsupported"),
    "not run": ("not run", "not run"),
    "nondeterministic": ("nondeterministic", "nondeterministic"),
}
"""The singular and plural of outcomes, if they are irregular."""


def size_text(size: MachineSize | None) -> str:
    """Formats the size of a machine, as far as it is known."""
    if size is None:
        return ""
    parts = ((size.cpus, "CPU"), (size.nodes, "NUMA node"), (size.sockets, "socket"))
    return ", ".join(plural(count, word) for count, word in parts if count)


def dates_text(dates: Sequence[str]) -> str:
    """Formats the dates of runs, which are in order; unknown ones come first and are empty."""
    known = [date for date in dates if date]
    if not known:
        return "with unknown dates"
    span = known[0] if known[0] == known[-1] else f"{known[0]} to {known[-1]}"
    unknown = len(dates) - len(known)
    return f"{span}, {unknown:,} with unknown dates" if unknown else span


def met_text(entry: Entry) -> str:
    """Formats how many of the tested requirements an entry meets."""
    met = entry.requirement_score
    said = f"{met.good:,} of {met.asked_count:,}" if met.asked_count else "nothing tested"
    return f"{said}, {plural(met.as_kubelet, 'named defect')}" if met.as_kubelet else said


@dataclass(frozen=True)
class ShownFinding:
    """A finding of an implementation, and the affected releases, newest first.

    `id` depends only on the implementation, the kind and the reason, so links stay valid.
    """

    id: str
    implementation: BoardImplementation
    entry: Entry
    finding: BoardFinding
    releases: tuple[str, ...]

    @property
    def head(self) -> str:
        """A one-line description."""
        one = self.finding
        return one.reason or next(iter(one.signatures), "") or one.message or one.title

    @property
    def extent(self) -> str:
        """The number of failures or, for generated scenarios, how they were found."""
        if self.finding.cases:
            return plural(self.finding.count, "failure")
        compared = [one for one in self.entry.runs if one.kind == "diff"]
        if any(self.finding in one.findings for one in compared):
            return "found by comparison"
        return "found by fuzzing"

    @property
    def file(self) -> str:
        """The site's case file that replays the finding; empty if there is none."""
        return f"cases/{self.id}.yaml" if self.finding.text and not self.finding.has_calls else ""

    @property
    def command(self) -> str:
        """The command that replays the finding; `CMD` stands for the program's command."""
        one = self.finding
        where = f"--kubernetes {shlex.quote(self.entry.kubernetes)}"
        level = f"--level {shlex.quote(self.entry.level)}"
        rest = f'{where} {level} --implementation "CMD"'
        case = shlex.quote(one.case)
        if self.file and one.case:
            return f"numaproof replay {case} --machine {shlex.quote(one.machine)} {rest}"
        if self.file:
            return f"numaproof replay {self.file} {rest}"
        return f"numaproof check --select {case} {rest}" if one.case else ""

    @property
    def also(self) -> tuple[str, ...]:
        """The requirements that are cited only by cases other than the smallest."""
        cited = {name for one in self.finding.cases for name in one.requirements}
        return tuple(sorted(cited - set(self.finding.requirements)))

    def citing(self, requirement: str) -> tuple[FoundIn, ...]:
        """Returns the cases that cite a requirement."""
        return tuple(one for one in self.finding.cases if requirement in one.requirements)


def shown_findings(implementations: Iterable[BoardImplementation]) -> tuple[ShownFinding, ...]:
    """Returns the findings of the newest version for each release, worst kind first.

    Findings with the same kind and reason (or cause) in several releases are merged.
    """
    made: dict[str, ShownFinding] = {}
    for one in implementations:
        for entry in one.current:
            for finding in entry.findings:
                name = finding.reason or next(iter(finding.signatures), "") or finding.title
                key = f"{one.name}\n{finding.kind}\n{name}"
                found = f"{one.slug}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
                new = ShownFinding(found, one, entry, finding, ())
                before = made.setdefault(found, new)
                releases = dict.fromkeys((*before.releases, entry.kubernetes))
                made[found] = replace(before, releases=tuple(releases))
    return tuple(
        sorted(made.values(), key=lambda shown_finding: KINDS.index(shown_finding.finding.kind))
    )


@dataclass(frozen=True)
class ShownDefect:
    """A named defect that runs show: its description, and where it shows.

    `entries` are the affected versions, oldest first, `requirements` the ids of the requirements
    that it breaks, and `case_ids` the cases that show it.
    """

    defect: NamedDefect
    entries: tuple[Entry, ...]
    requirements: tuple[str, ...]
    case_ids: frozenset[str]


def shown_defects(
    implementations: Iterable[BoardImplementation], defects: Iterable[NamedDefect]
) -> tuple[ShownDefect, ...]:
    """Returns the named defects that runs show, by name."""
    by_name = {one.name: one for one in defects}
    found = group_values(
        (finding.reason, (entry, finding))
        for one in implementations
        for entry in reversed(one.entries)
        for finding in entry.findings
        if finding.kind == "expected"
    )
    return tuple(
        ShownDefect(
            by_name.get(name, NamedDefect(name)),
            tuple({id(entry): entry for entry, _ in found[name]}.values()),
            tuple(
                sorted(
                    {
                        cited
                        for _, finding in found[name]
                        for where in finding.cases
                        for cited in where.requirements
                    }
                )
            ),
            frozenset(where.case for _, finding in found[name] for where in finding.cases),
        )
        for name in sorted(found)
    )


@dataclass(frozen=True)
class VersionChange:
    """The ids of requirements whose state changed between a version and its predecessor.

    `better` and `worse` list requirements that were tested for both versions. A requirement broken
    only by a named defect ranks between a met and a broken one.
    """

    better: tuple[str, ...]
    worse: tuple[str, ...]
    newly_asked: tuple[str, ...]
    no_longer_asked: tuple[str, ...]


def changes(implementation: BoardImplementation) -> list[tuple[Entry, VersionChange | None]]:
    """Returns the versions of an implementation, newest first, with their changes.

    A version is compared with the previous one at the same level.
    """
    made: list[tuple[Entry, VersionChange | None]] = []
    before: dict[Level, Entry] = {}
    for entry in reversed(implementation.entries):
        older = before.get(entry.level)
        made.insert(0, (entry, _change(older, entry) if older else None))
        before[entry.level] = entry
    return made


def _change(before: Entry, after: Entry) -> VersionChange:
    was, now = _requirement_ranks(before), _requirement_ranks(after)
    both = was.keys() & now.keys()
    return VersionChange(
        better=tuple(sorted(one for one in both if now[one] > was[one])),
        worse=tuple(sorted(one for one in both if now[one] < was[one])),
        newly_asked=tuple(sorted(now.keys() - both)),
        no_longer_asked=tuple(sorted(was.keys() - both)),
    )


def _requirement_ranks(entry: Entry) -> dict[str, int]:
    far: dict[State, int] = {"pass": 2, "expected": 1}
    states = entry.states.items()
    return {name: far.get(state, 0) for name, state in states if state not in NOT_ASKED}


@dataclass(frozen=True)
class Area:
    """The requirements of an area."""

    name: str
    requirements: tuple[ReportedRequirement, ...]

    def score(self, entry: Entry) -> Score:
        """Counts the area's requirements by state."""
        return Score(Counter(entry.states.get(one.id, "untested") for one in self.requirements))


def areas(requirements: Iterable[ReportedRequirement]) -> tuple[Area, ...]:
    """Groups requirements by area, in the order of the registry."""
    found = group_values((one.area, one) for one in requirements)
    return tuple(Area(name, tuple(inside)) for name, inside in found.items())


def cell_data(findings: Sequence[ShownFinding]) -> list[dict[str, object]]:
    """Returns the findings and their cases, which the script shows for a cell."""
    return [
        {
            "id": one.id,
            "implementation": one.implementation.slug,
            "kind": one.finding.kind,
            "head": one.head,
            "defect": slug(one.head),
            "signatures": list(one.finding.signatures),
            "cases": [[c.case, c.outcome, c.machines, c.requirements] for c in one.finding.cases],
        }
        for one in findings
        # Cells show only the newest release.
        if one.entry is one.implementation.newest and one.finding.cases
    ]


def version_data(implementations: Iterable[BoardImplementation]) -> dict[str, object]:
    """Returns the versions of implementations that have several, which the script shows for a cell.

    For each requirement, a digit per version is the index of its state.
    """
    return {
        one.slug: {
            "names": [[entry.author.version, entry.date] for entry in one.versions],
            "states": {
                cited: "".join(
                    str(STATES.index(entry.states.get(cited, "untested"))) for entry in one.versions
                )
                for cited in sorted({cited for entry in one.versions for cited in entry.states})
            },
        }
        for one in implementations
        if len(one.versions) > 1
    }


SCENARIO = "scenario"
"""The name of all generated scenarios in files of known failures."""

_NO_REASON = "not explained yet"

Row = dict[str, str]
"""An entry of a file of known failures."""

# Must not contain text from the implementation: a line break would end the comment.
_HEAD = "# Known failures for `--known-failures`. Each reason explains why a failure is accepted.\n"


def known_failures(entry: Entry) -> str:
    """Returns a file of known failures that makes an implementation pass; may be empty.

    Named defects need no entry. A case has a separate entry for each machine if failures with the
    same cause have several reasons.
    """
    rows = list(_rows(entry))
    if not rows:
        return ""
    return _HEAD + yaml.safe_dump(
        {"known_failures": rows}, sort_keys=False, width=100, allow_unicode=True
    )


def commands(entry: Entry, file: str) -> dict[str, str]:
    """Returns the commands that use the file of known failures, by name.

    `CMD` stands for the program's command.
    """
    scenarios = {row["case"] == SCENARIO for row in _rows(entry)}
    options = ("--kubernetes", entry.kubernetes, "--level", entry.level, "--known-failures", file)
    rest = f'--implementation "CMD" {shlex.join(options)}'
    named = (("check", False), ("fuzz", True))
    return {name: f"numaproof {name} {rest}" for name, which in named if which in scenarios}


def _rows(entry: Entry) -> Iterator[Row]:
    findings = [one for one in entry.findings if one.kind != "expected"]
    reasons = group_values(
        ((where.case, where.signature), _reason(one)) for one in findings for where in one.cases
    )
    written: dict[tuple[str, ...], Row] = {}
    for finding in findings:
        for row in _of(finding, reasons):
            key = (row["case"], row.get("machine", "*"), row["signature"])
            if row["signature"]:
                written.setdefault(key, row)
    yield from written.values()


def _of(finding: BoardFinding, reasons: Mapping[tuple[str, str], list[str]]) -> Iterator[Row]:
    reason = _reason(finding)
    if not finding.cases:
        for signature in finding.signatures:
            yield {"case": SCENARIO, "signature": signature, "reason": reason}
    for where in finding.cases:
        last = {"signature": where.signature, "reason": reason}
        if len(where.machines) > 1 and len({*reasons[where.case, where.signature]}) == 1:
            yield {"case": where.case, **last}
        else:
            yield from ({"case": where.case, "machine": one, **last} for one in where.machines)


def _reason(finding: BoardFinding) -> str:
    if finding.reason and finding.kind in WORDED:
        return f"{finding.kind}: {finding.reason}"
    return finding.reason or _NO_REASON
