"""Judging the failures of a run by what is known."""

from __future__ import annotations

import datetime as dt
import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import msgspec

from numaproof.conformance.known_failures.entries import SCENARIO
from numaproof.protocol.campaign import ScenarioFailed
from numaproof.protocol.events import GOOD, CaseFinished, DivergenceFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.conformance.known_failures.entries import KnownFailureEntry
    from numaproof.protocol.events import Outcome

KNOWN: Outcome = "known failure"
MISSING: Outcome = "missing known failure"

Scenario = TypeVar("Scenario", CaseFinished, DivergenceFound, ScenarioFailed)
_Failure = TypeVar("_Failure", CaseFinished, DivergenceFound, ScenarioFailed)

_INSTEAD: Mapping[str, tuple[str, str]] = {
    "pass": ("passes", "pass"),
    "unsupported": ("is unsupported", "are unsupported"),
    "fail": ("fails for another known cause", "fail for other known causes"),
}
"""What runs do that no longer fail for the cause of an entry, of one run and of several."""


@dataclass
class KnownFailures:
    """Judges the failures of one run by the entries of a file.

    Attributes:
        entries: what is known.
        today: the day that dates are compared with.
        whole: whether the run has all cases on all machines. A part of them does not show that
            nothing of a glob fails any more.
        names: the ids by which entries may name a case, by its id; its id alone for others.
    """

    entries: Sequence[KnownFailureEntry] = ()
    today: dt.date = dt.date.min
    whole: bool = True
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _instead: dict[KnownFailureEntry, list[str]] = field(init=False, default_factory=dict)
    _failed: set[KnownFailureEntry] = field(init=False, default_factory=set)

    def judged(self, finished: CaseFinished) -> CaseFinished:
        """A case run as it counts: a known failure, or as it was.

        A failure for another cause, or past its date, stays one; its message then says what to do.
        """
        names = self.names.get(finished.case, (finished.case,))
        about = [one for one in self.entries if one.covers(names, finished.machine)]
        if finished.outcome in GOOD:
            self._note(about, "unsupported" if finished.outcome == "unsupported" else "pass")
            return finished
        judged = _judged(finished, about, self.today)
        if judged.outcome != KNOWN:
            self._failed.update(about)
            return judged
        met = [one for one in about if one.written.signature == finished.signature]
        self._failed.update(met)
        self._note([one for one in about if one not in met], "fail")
        return judged

    def _note(self, about: Sequence[KnownFailureEntry], instead: str) -> None:
        for one in about:
            self._instead.setdefault(one, []).append(instead)

    def judged_scenario(self, found: Scenario) -> Scenario:
        """A generated scenario that failed as it counts, likewise.

        Scenarios differ from run to run, so only an entry with the same cause is about one.
        """
        same = [one for one in self._scenarios() if one.written.signature == found.signature]
        return _judged(found, same, self.today)

    def causes_of_scenarios(self) -> frozenset[str]:
        """The signatures for which generated scenarios are known to fail."""
        entries = (one for one in self._scenarios() if not one.expired(self.today))
        return frozenset(one.written.signature for one in entries)

    def _scenarios(self) -> Iterator[KnownFailureEntry]:
        return (one for one in self.entries if one.covers((SCENARIO,), ""))

    def missing(self, at: float) -> Iterator[CaseFinished]:
        """A failed case run for each entry that was put to the test and that nothing failed for.

        An entry whose cases were not selected is not judged, nor is one with a glob where the run
        is not whole.

        Args:
            at: seconds since the run began.
        """
        for one in self.entries:
            instead = self._instead.get(one)
            if instead and one not in self._failed and (self.whole or not one.has_glob):
                yield CaseFinished(
                    at=at,
                    case=one.written.case,
                    title=f"Known failure: {one.written.reason}",
                    machine=one.written.machine,
                    outcome=MISSING,
                    seconds=0.0,
                    requirements=(),
                    message=f"{one.where}: {_told(instead)} now: remove the entry",
                    signature=f"{MISSING}: {one.written.signature}",
                )


def _told(instead: Sequence[str]) -> str:
    count = len(instead)
    does = " or ".join(words[count > 1] for kind, words in _INSTEAD.items() if kind in instead)
    return (
        f"1 case run that it names {does}"
        if count == 1
        else f"all {count} case runs that it names {does}"
    )


def _judged(failure: _Failure, about: Sequence[KnownFailureEntry], today: dt.date) -> _Failure:
    same = [one for one in about if one.written.signature == failure.signature]
    valid = next((one for one in same if not one.expired(today)), None)
    if valid:
        known = msgspec.structs.replace(failure, outcome=KNOWN, reason=valid.told)
        return _reworded(known, before=f"{valid.told}: ")
    if same:
        entry = max(same, key=lambda one: one.written.until or today)
        told = f"known until {entry.written.until}: fix it, or move the date"
    elif about:
        entry = _most_alike(failure.signature, about)
        told = (
            f"known with another cause, {entry.written.signature!r}; if this is the same problem,"
            f" write signature: {failure.signature!r}"
        )
    else:
        return failure
    return _reworded(failure, after=f" [{entry.where}: {told}]")


def _reworded(failure: _Failure, before: str = "", after: str = "") -> _Failure:
    """The same with words around its message."""
    finding = failure.finding and failure.finding.within(before, after)
    message = f"{before}{failure.message}{after}"
    return msgspec.structs.replace(failure, message=message, finding=finding)


def _most_alike(signature: str, about: Sequence[KnownFailureEntry]) -> KnownFailureEntry:
    """The entry that is most likely about the same problem; of equals the first."""
    return max(
        about,
        key=lambda one: (
            difflib.SequenceMatcher(None, one.written.signature, signature).ratio(),
            not one.has_glob,
        ),
    )
