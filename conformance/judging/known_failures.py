"""Known failures: what an implementation is known to fail, why, and until when that is accepted.

A file of known failures lets a project gate on new failures before the old ones are fixed. Each
entry names cases and one cause (a signature). The run fails where a case fails for another cause,
where an entry is past its date, and where nothing fails for its cause any more.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec
import yaml

from numaproof.inputs import documents, fitting
from numaproof.protocol.events import GOOD, CaseFinished

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numaproof.protocol.events import Outcome

KNOWN: Outcome = "known failure"
MISSING: Outcome = "missing known failure"


class KnownFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry as it is written.

    `case` is an id or a glob of ids, `machine` a glob of names, `signature` the cause, exactly as
    reports show it, `issue` the address of the owner's issue, `until` the last day on which the
    failure is accepted.
    """

    case: str
    signature: str
    reason: str
    machine: str = "*"
    issue: str = ""
    until: dt.date | None = None


class KnownFailuresFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of known failures."""

    known_failures: tuple[KnownFailure, ...]


@dataclass(frozen=True)
class KnownFailureEntry:
    """A known failure, and where it is written (``FILE:LINE``)."""

    written: KnownFailure
    where: str

    def covers(self, names: Iterable[str], machine: str) -> bool:
        """Whether it is about a case, by any of its ids, on a machine."""
        return fnmatchcase(machine, self.written.machine) and any(
            fnmatchcase(name, self.written.case) for name in names
        )

    @property
    def has_glob(self) -> bool:
        """Whether it may be about several case runs."""
        return any(sign in self.written.case + self.written.machine for sign in "*?[")

    def expired(self, today: dt.date) -> bool:
        """Whether its date has passed."""
        return self.written.until is not None and self.written.until < today

    @property
    def told(self) -> str:
        """Why the failure is accepted, as reports say it."""
        one = self.written
        until = f"until {one.until}" if one.until else ""
        more = ", ".join(part for part in (one.issue, until) if part)
        return f"{one.reason} ({more})" if more else one.reason


def read(path: Path) -> tuple[KnownFailureEntry, ...]:
    """The entries of a file.

    Raises:
        documents.DocumentError: the file cannot be read or an entry is wrong.
    """
    document = documents.load(path)
    table = fitting.convert(document, KnownFailuresFile)
    for number, one in enumerate(table.known_failures):
        for name in ("case", "signature", "reason", "machine"):
            if not getattr(one, name).strip():
                raise document.error(
                    ("known_failures", number, name), "it is empty", _FIX.get(name, "leave it out")
                )
        if one.issue and not one.issue.startswith(("https://", "http://")):
            raise document.error(
                ("known_failures", number, "issue"),
                f"{one.issue!r} is not the address of an issue",
                "write it as https://...",
            )
    return tuple(
        KnownFailureEntry(one, f"{document.file}:{document.line(('known_failures', number))}")
        for number, one in enumerate(table.known_failures)
    )


_FIX = {
    "case": "write a case id, a glob of ids, or '*'",
    "signature": "copy the signature from the report",
    "reason": "say why this failure is accepted",
}


@dataclass
class KnownFailures:
    """Judges the failures of one run by the entries of a file.

    Attributes:
        entries: what is known.
        today: the day that dates are compared with.
        whole: whether the run has all cases on all machines. A part of them does not show that
            nothing of a glob fails any more.
    """

    entries: Sequence[KnownFailureEntry] = ()
    today: dt.date = dt.date.min
    whole: bool = True
    _passed: dict[KnownFailureEntry, list[str]] = field(default_factory=dict)
    _failed: set[KnownFailureEntry] = field(default_factory=set)

    def judged(self, finished: CaseFinished, names: Iterable[str]) -> CaseFinished:
        """A case run as it counts: a known failure, or as it was.

        A failure for another cause, or past its date, stays one; its message then says what to do.

        Args:
            finished: the case run.
            names: the id of the case, and those that it had before.
        """
        about = [one for one in self.entries if one.covers(names, finished.machine)]
        if finished.outcome in GOOD:
            if finished.outcome != "unsupported":
                for one in about:
                    self._passed.setdefault(one, []).append(finished.machine)
            return finished
        self._failed.update(about)
        return _judged(finished, about, self.today)

    def missing(self, at: float) -> Iterator[CaseFinished]:
        """A failed case run for each entry that was put to the test and whose cases all pass.

        An entry whose cases were not selected, or are unsupported, is not judged, nor is one with
        a glob where the run is not whole.

        Args:
            at: seconds since the run began.
        """
        for one in self.entries:
            machines = self._passed.get(one)
            if machines and one not in self._failed and (self.whole or not one.has_glob):
                count = len(machines)
                runs = (
                    "1 case run that it names passes"
                    if count == 1
                    else (f"all {count} case runs that it names pass")
                )
                yield CaseFinished(
                    at=at,
                    case=one.written.case,
                    title=f"Known failure: {one.written.reason}",
                    machine=one.written.machine,
                    outcome=MISSING,
                    seconds=0.0,
                    requirements=(),
                    message=f"{one.where}: {runs} now: remove the entry",
                    signature=f"{MISSING}: {one.written.signature}",
                )


def _judged(
    failure: CaseFinished, about: Sequence[KnownFailureEntry], today: dt.date
) -> CaseFinished:
    same = [one for one in about if one.written.signature == failure.signature]
    valid = next((one for one in same if not one.expired(today)), None)
    if valid:
        return msgspec.structs.replace(
            failure, outcome=KNOWN, message=f"{valid.told}: {failure.message}"
        )
    if same:
        entry = same[0]
        told = f"known until {entry.written.until}: fix it, or move the date"
    elif about:
        entry = about[0]
        told = (
            f"known with another cause, {entry.written.signature!r}; if this is the same problem,"
            f" write signature: {failure.signature!r}"
        )
    else:
        return failure
    return msgspec.structs.replace(failure, message=f"{failure.message} [{entry.where}: {told}]")


_HEAD = """\
# Failures that are known, for `numaproof check --known-failures {file}`. They do not fail the run.
# A failure for another cause does, and so does an entry whose cases pass, or whose date is past.
# Say in each `reason` why the failure is accepted, and add who fixes it and until when:
#   issue: https://...
#   until: {year}-12-31
"""


def first_file(runs: Sequence[CaseFinished], file: str, today: dt.date) -> str:
    """A file of the failures of a run, to begin with.

    There is an entry for each cause and glob of cases. A glob is written only where all cases of
    the run that it matches fail for that cause.

    Args:
        runs: all case runs.
        file: its name, for the comment at its head.
        today: the day it is made.
    """
    failed: dict[str, dict[str, list[CaseFinished]]] = {}
    for run in runs:
        if run.outcome not in GOOD:
            failed.setdefault(run.signature, {}).setdefault(run.case, []).append(run)
    judged = {run.case for run in runs if run.outcome != "unsupported"}
    rows = [
        _row(cause, case, next(iter(cases.values())) if "*" in case else cases[case])
        for cause, cases in failed.items()
        for case in _globs(frozenset(cases), judged)
    ]
    text = yaml.safe_dump({"known_failures": rows}, sort_keys=False, width=100, allow_unicode=True)
    return _HEAD.format(file=file, year=today.year) + text


def _row(cause: str, case: str, runs: Sequence[CaseFinished]) -> dict[str, str]:
    machines = {run.machine for run in runs}
    row = {"case": case}
    if len(machines) == 1 and "*" not in case:
        row["machine"] = runs[0].machine
    return row | {"signature": cause, "reason": runs[0].message or runs[0].outcome}


def _globs(failed: frozenset[str], judged: Iterable[str], begun: str = "") -> Iterator[str]:
    """Ids, or globs of ids that begin with the same words, that match what failed and no more."""
    below: dict[str, list[str]] = {}
    for one in judged:
        word = one.removeprefix(begun).partition("-")[0]
        below.setdefault(begun + word, []).append(one)
    for stem, names in below.items():
        wrong = failed.intersection(names)
        if len(names) == 1 or stem in names:
            yield from sorted(wrong)
        elif wrong == set(names):
            yield f"{stem}-*"
        elif wrong:
            yield from _globs(failed, names, f"{stem}-")
