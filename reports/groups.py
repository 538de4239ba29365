"""Groups failures by cause, because one bug often makes many cases fail on many machines.

Failures with the same signature have the same cause. A bug that breaks several rules has several
signatures, so two groups are merged if a failure in one of them broke the invariants of both, or if
the invariants judge the same result, which breaks only one of them.
Wrong answers that break no invariant join a group if it is the only one with which they share a
requirement. Each group lists its signatures, so that nothing is hidden.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.inputs.plurals import plural
from numaproof.reports.story import all_failures
from numaproof.reports.untrusted_text import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numaproof.protocol.events import Outcome
    from numaproof.reports.json_output import Cause, FailurePlace
    from numaproof.reports.story import Failure
    from numaproof.reports.summary import Summary


# The same bug shows different numbers and CPU sets on different machines.
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+(?:[-,.]\d+)*")
_INVARIANT = "invariant "
_MERGED_HINT = frozenset(
    f"{_INVARIANT}{name}"
    for name in ("preferred-if-all-agree", "narrowest-preferred-wins", "merged-of-one-hint-each")
)
"""The invariants of a merged hint. A program that ignores which hints are preferred breaks all, but
each result breaks only one.
"""
_UNKNOWN = 1 << 30
"""The size of a machine that has no description."""


def likeness(name: str, outcome: Outcome, message: str) -> str:
    """Returns a substitute for a missing signature: the case and its message without numbers."""
    return f"{name}: {outcome}: {_NUMBERS.sub('#', message)}"


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures with one cause.

    Attributes:
        first: the smallest failure, preferably of a case whose own requirement is violated: the
            fewest calls, then the smallest machine.
        others: all other failures, in the order of the run.
        signatures: how often each signature occurs, starting with that of `first`.
    """

    first: Failure
    others: tuple[Failure, ...]
    signatures: Mapping[str, int]

    @property
    def size(self) -> int:
        """The number of failures."""
        return 1 + len(self.others)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """All failures, starting with `first`."""
        return (self.first, *self.others)

    def examples(self, most: int) -> tuple[Failure, ...]:
        """Returns up to `most` small failures of other cases, with other signatures if possible."""
        signatures, names = {self.first.signature}, {self.first.name or self.first.title}
        found: list[Failure] = []
        by_size = sorted(self.others, key=_size)
        for distinct in (True, False):
            for one in by_size:
                name = one.name or one.title
                if len(found) < most and name not in names:
                    if distinct and one.signature in signatures:
                        continue
                    found.append(one)
                    signatures.add(one.signature)
                    names.add(name)
        return tuple(found)

    def also(self) -> str:
        """Describes the other signatures of the cause; empty if there are none."""
        _, *more = self.signatures.items()
        said = "; ".join(f"{one_line(one, 160)} ({count:,})" for one, count in more)
        return f"also seen as {said}" if said else ""

    def elsewhere(self, most: int) -> str:
        """Names up to `most` other cases or machines that failed; empty if there are none."""
        if not self.others:
            return ""
        places: dict[str, list[str]] = {}
        for one in self.others:
            places.setdefault(visible(one.name or one.title), []).append(visible(one.machine))
        mine = visible(self.first.name or self.first.title)
        if places.keys() == {mine}:
            return f"and on {plural(len(self.others), 'more machine')}: {_few(places[mine], most)}"
        named = [f"{name} ({_few(where, 3)})" for name, where in places.items()]
        runs = plural(len(self.others), "more case run" if self.first.name else "more finding")
        return f"and in {runs}: {_few(named, most)}"

    def plain(self) -> Cause:
        """Returns the group as JSON values."""
        return {
            "signature": next(iter(self.signatures)),
            "count": self.size,
            "signatures": dict(self.signatures),
            "smallest": _place(self.first),
            "others": [_place(one) for one in self.others],
        }


def _few(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


def _place(failure: Failure) -> FailurePlace:
    return {
        "case": failure.name,
        "title": failure.title,
        "machine": failure.machine,
        "outcome": failure.outcome,
        "message": failure.message,
    }


def causes(summary: Summary) -> tuple[FailureGroup, ...]:
    """Groups the failures of a run by cause, the largest group first."""
    return group_failures(all_failures(summary))


def group_failures(failures: Iterable[Failure]) -> tuple[FailureGroup, ...]:
    """Groups failures by cause, the largest group first."""
    alike: dict[str, list[Failure]] = {}
    for number, failure in enumerate(failures):
        like = likeness(failure.name or str(number), failure.outcome, failure.message)
        alike.setdefault(failure.signature or like, []).append(failure)
    places = {name: number for number, name in enumerate(alike)}
    by_size = sorted(
        alike, key=lambda cause: (not cause.startswith(_INVARIANT), -len(alike[cause]))
    )
    merged: dict[str, _Merged] = {}
    for name in by_size:
        one = _Merged([name], alike[name])
        own = one.same_cause(merged)
        if own is None:
            merged[name] = one
        else:
            own.add(one)
    seen: Counter[str] = Counter()
    rank: dict[str, int] = {}
    for name in alike:  # among equally large groups, the first of each case comes first
        case = alike[name][0].name
        rank[name] = seen[case] if case else 0
        seen[case] += name in merged
    largest = sorted(
        merged, key=lambda cause: (-len(merged[cause].failures), rank[cause], places[cause])
    )
    return tuple(merged[name].group(alike) for name in largest)


class _Merged:
    """A group that may still grow."""

    def __init__(self, signatures: list[str], failures: list[Failure]) -> None:
        self.signatures = signatures
        self.failures = list(failures)
        self.requirements = {row.id for one in failures for row in one.requirements}
        self.invariants = {
            f"{_INVARIANT}{found.rule}"
            for one in failures
            for step in one.steps
            for found in step.findings
            if found.source == "invariant"
        }
        self.all_answered = all(one.outcome == "fail" and one.signature for one in failures)

    def same_cause(self, larger: Mapping[str, _Merged]) -> _Merged | None:
        """Returns the larger group that these failures belong to, if any."""
        (name,) = self.signatures
        if name.startswith(_INVARIANT):
            groups = larger.values()
            return next((one for one in groups if one.breaks_together(self)), None)
        if not self.all_answered:
            return None
        near = [one for one in larger.values() if one.all_answered]
        near = [one for one in near if one.requirements & self.requirements]
        return near[0] if len(near) == 1 else None

    def breaks_together(self, other: _Merged) -> bool:
        """Whether a failure broke invariants of both groups, or both have those of one result."""
        return (
            self.breaks(*other.signatures)
            or other.breaks(*self.signatures)
            or all(not _MERGED_HINT.isdisjoint(one.signatures) for one in (self, other))
        )

    def breaks(self, *names: str) -> bool:
        """Whether any failure broke one of these invariants."""
        return not self.invariants.isdisjoint(names)

    def add(self, other: _Merged) -> None:
        self.signatures += other.signatures
        self.failures += other.failures
        self.requirements |= other.requirements
        self.invariants |= other.invariants

    def group(self, alike: Mapping[str, Sequence[Failure]]) -> FailureGroup:
        typical = alike[self.signatures[0]]
        first = min(typical, key=lambda failure: (not failure.violates_own, *_size(failure)))
        others = tuple(one for one in self.failures if one is not first)
        counts = Counter({name: len(alike[name]) for name in self.signatures})
        return FailureGroup(first, others, dict(counts))


def _size(failure: Failure) -> tuple[int, int]:
    return len(failure.steps), _cpus(failure)


def _cpus(failure: Failure) -> int:
    if failure.machine_info is not None:
        return failure.machine_info.num_cores
    told = (step.args.get("machine") for step in failure.steps)
    counts = (one.get("num_cores") for one in told if isinstance(one, dict))
    return next((count for count in counts if isinstance(count, int)), _UNKNOWN)


def counts_line(summary: Summary) -> str:
    """Summarizes the run: failed and total case runs, causes, and counts by outcome."""
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in summary.tally.counts.items())
    what = plural(summary.tally.total, "example" if summary.fuzz else "case run")
    if summary.tally.bad:
        what = f"{summary.tally.bad:,} of {what}"
        if found := len(causes(summary)):
            what += f", {plural(found, 'cause')}"
    return what + (f" ({counts})" if counts else "")


def verdict_line(summary: Summary) -> str:
    """Returns the verdict and the counts in one sentence."""
    head = summary.verdict.capitalize()
    if summary.gaps and summary.verdict != "incomplete":
        head += ", incomplete"
    return f"{head}: {counts_line(summary)}"
