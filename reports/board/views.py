"""What the templates of a site show: words, bars, findings with addresses, cells."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.reports.board.data import KINDS
from numaproof.reports.board.standing import STATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numaproof.protocol.events import ReportedRequirement
    from numaproof.reports.board.data import BoardFinding, FoundIn, Kind, Tally
    from numaproof.reports.board.standing import BoardImplementation, Entry, State

SIGNS: Mapping[State, str] = {
    "failed": "✗",
    "crash": "†",
    "finding": "✗",
    "known failure": "~",
    "own rules": "◇",
    "expected": "≈",
    "pass": "✓",
    "unsupported": "○",
    "untested": "·",
}
"""A sign for each state, beside its name or, where there is no room, in its place."""

MEANINGS: Mapping[State, str] = {
    "failed": "a wrong answer that nobody has accounted for",
    "crash": "crashes, hangs or does not answer",
    "finding": "breaks the requirement, checked by hand",
    "known failure": "a known failure of another kind",
    "own rules": "different by rules of its own, which are legitimate",
    "expected": "a named defect of the release, as its kubelet has it",
    "pass": "as documented",
    "unsupported": "not claimed, so not asked",
    "untested": "in no case of the run",
}
"""What each state says, for the legend."""

Bar = tuple["State", int, str, str]
"""A segment of a bar: state, count, start and width in percent."""


def bars(counts: Mapping[State, int]) -> list[Bar]:
    """The segments of a bar, the good ones first; what was not asked has none."""
    shown = [one for one in good_first(counts) if one[0] not in {"unsupported", "untested"}]
    total = sum(count for _, count in shown)
    made, at = [], 0
    for state, count in shown:
        made.append((state, count, f"{100 * at / total:.2f}", f"{100 * count / total:.2f}"))
        at += count
    return made


def good_first(counts: Mapping[State, int]) -> list[tuple[State, int]]:
    """Counts by state: what passed, then worse and worse, what was not asked at the end."""
    last = ("untested", "unsupported")
    order: list[State] = [one for one in reversed(STATES) if one not in last]
    order += [one for one in STATES if one in last]
    return [(one, counts[one]) for one in order if counts.get(one)]


def counted(kind: Kind, count: int) -> str:
    """So many findings of a kind."""
    return f"{count:,} {kind if count == 1 else _PLURALS.get(kind, kind)}"


_PLURALS: Mapping[Kind, str] = {
    "crash": "crashes",
    "finding": "findings",
    "known failure": "known failures",
}


def state_number(state: State) -> int:
    """The number of a state, which names its class."""
    return STATES.index(state)


def tally_text(tally: Tally) -> str:
    """The outcomes of a tally in words."""
    return ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(tally.items()))


def met_text(entry: Entry) -> str:
    """How many requirements an entry meets, of those that it was asked about."""
    met, asked = entry.met
    return f"{met:,} of {asked:,}" if asked else "nothing asked"


@dataclass(frozen=True)
class ShownFinding:
    """A finding of an implementation, and the releases in which it has it, the newest first.

    `id` is the same in every site as long as the implementation and the reason are.
    """

    id: str
    implementation: BoardImplementation
    entry: Entry
    finding: BoardFinding
    releases: tuple[str, ...]

    @property
    def head(self) -> str:
        """What it is about, in a line."""
        one = self.finding
        return one.reason or next(iter(one.signatures), "") or one.message or one.title

    @property
    def file(self) -> str:
        """The site's file that replays it; empty where there is none."""
        return f"cases/{self.id}.yaml" if self.finding.text and not self.finding.played else ""

    @property
    def command(self) -> str:
        """The command that replays it; `CMD` stands for the program's."""
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

    def citing(self, requirement: str) -> tuple[FoundIn, ...]:
        """Its cases that cite a requirement."""
        return tuple(one for one in self.finding.cases if requirement in one.requirements)


def shown_findings(implementations: Iterable[BoardImplementation]) -> tuple[ShownFinding, ...]:
    """The findings of the newest version in each release, the worst kind first.

    What has the same kind and reason (or cause) in several releases is one finding.
    """
    made: dict[str, ShownFinding] = {}
    for one in implementations:
        for entry in one.current:
            for finding in entry.findings:
                name = finding.reason or next(iter(finding.signatures), "") or finding.title
                key = f"{one.name}\n{finding.kind}\n{name}"
                found = f"{one.slug}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
                if found not in made:
                    made[found] = ShownFinding(found, one, entry, finding, (entry.kubernetes,))
                elif entry.kubernetes not in made[found].releases:
                    before = made[found]
                    releases = (*before.releases, entry.kubernetes)
                    made[found] = ShownFinding(found, one, before.entry, before.finding, releases)
    return tuple(sorted(made.values(), key=lambda one: KINDS.index(one.finding.kind)))


@dataclass(frozen=True)
class VersionChange:
    """What is different between a version and the one before it."""

    since: Entry
    better: tuple[str, ...]
    worse: tuple[str, ...]


def changes(one: BoardImplementation) -> list[tuple[Entry, VersionChange | None]]:
    """The versions of an implementation, the newest first, each with what it changed."""
    made: list[tuple[Entry, VersionChange | None]] = []
    for number, entry in enumerate(one.entries):
        before = one.entries[number + 1] if number + 1 < len(one.entries) else None
        made.append((entry, None if before is None else _change(before, entry)))
    return made


def _change(before: Entry, after: Entry) -> VersionChange:
    good = {"pass", "expected"}
    asked = sorted(
        one
        for one in before.states.keys() & after.states.keys()
        if "unsupported" not in {before.states[one], after.states[one]}
    )
    was = {one: before.states[one] in good for one in asked}
    now = {one: after.states[one] in good for one in asked}
    return VersionChange(
        before,
        tuple(one for one in asked if now[one] and not was[one]),
        tuple(one for one in asked if was[one] and not now[one]),
    )


@dataclass(frozen=True)
class Area:
    """The requirements of an area, and how many of them an implementation meets."""

    name: str
    requirements: tuple[ReportedRequirement, ...]

    def counts(self, entry: Entry) -> dict[State, int]:
        """The requirements by what became of them."""
        counts: dict[State, int] = {}
        for one in self.requirements:
            state = entry.states.get(one.id, "untested")
            counts[state] = counts.get(state, 0) + 1
        return counts

    def met(self, entry: Entry) -> str:
        """The requirements met of those asked about; empty if nothing was asked."""
        counts = self.counts(entry)
        asked = len(self.requirements) - counts.get("unsupported", 0) - counts.get("untested", 0)
        good = counts.get("pass", 0) + counts.get("expected", 0)
        return f"{good}/{asked}" if asked else ""


def areas(requirements: Iterable[ReportedRequirement]) -> tuple[Area, ...]:
    """The requirements by area, both in the order of the registry."""
    found: dict[str, list[ReportedRequirement]] = {}
    for one in requirements:
        found.setdefault(one.area, []).append(one)
    return tuple(Area(name, tuple(inside)) for name, inside in found.items())


def cell_data(findings: Sequence[ShownFinding]) -> list[dict[str, object]]:
    """What the script shows of a cell beside what the page has: the findings and their cases."""
    return [
        {
            "id": one.id,
            "implementation": one.implementation.slug,
            "kind": one.finding.kind,
            "head": one.head,
            "signatures": list(one.finding.signatures),
            "cases": [[c.case, c.outcome, c.machines, c.requirements] for c in one.finding.cases],
        }
        for one in findings
        # A cell is about the newest release.
        if one.entry is one.implementation.newest and one.finding.cases
    ]
