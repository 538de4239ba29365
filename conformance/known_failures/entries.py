"""Known failures: accepted failures with a cause, a reason and an expiry date.

A file of known failures lets a project detect new failures before all old ones are fixed. Each
entry names cases and one cause (a signature). The run fails if a case fails for a different cause,
if an entry has expired, or if nothing fails for an entry's cause anymore.
"""

from __future__ import annotations

import datetime as dt
import difflib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

import msgspec
import yaml

from numaproof.conformance.cases import naming, writing
from numaproof.inputs import documents, typed
from numaproof.protocol.campaign import ScenarioFailed
from numaproof.protocol.events import GOOD, CaseFinished, DivergenceFound, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


SCENARIO = "scenario"
"""The name of generated scenarios in entries."""


class KnownFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry as written in a file.

    `case` is an id, a glob of ids or `SCENARIO`; `machine` is a glob of names; `signature` is the
    cause exactly as in reports; `issue` is the address of the implementation's issue; and `until`
    is the last day on which the failure is accepted.
    """

    case: str
    signature: str
    reason: str
    machine: str = "*"
    issue: str = ""
    until: dt.date | None = None


class KnownFailuresFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The schema of a file of known failures."""

    known_failures: tuple[KnownFailure, ...]


@dataclass(frozen=True)
class KnownFailureEntry:
    """A known failure and its position (``FILE:LINE``)."""

    known_failure: KnownFailure
    where: str

    def covers(self, names: Iterable[str], machine: str) -> bool:
        """Whether the entry covers a case, under any of its ids, on a machine."""
        return fnmatchcase(machine, self.known_failure.machine) and any(
            fnmatchcase(name, self.known_failure.case) for name in names
        )

    @property
    def has_glob(self) -> bool:
        """Whether the entry can cover several case runs."""
        return any(sign in self.known_failure.case + self.known_failure.machine for sign in "*?[")

    def is_expired(self, today: dt.date) -> bool:
        """Whether the entry's date has passed."""
        return self.known_failure.until is not None and self.known_failure.until < today

    @property
    def explanation(self) -> str:
        """Why the failure is accepted, for reports."""
        one = self.known_failure
        until = f"until {one.until}" if one.until else ""
        more = ", ".join(part for part in (one.issue, until) if part)
        return f"{one.reason} ({more})" if more else one.reason


def read(
    path: Path, known_ids: Callable[[], Iterable[str]] | None = None
) -> tuple[KnownFailureEntry, ...]:
    """Reads the entries of a file.

    Args:
        path: the file.
        known_ids: yields all ids of cases, if entries for other cases are wrong.

    Raises:
        documents.DocumentError: the file can't be read or an entry is invalid.
    """
    document = documents.load(path)
    table = typed.convert(document, KnownFailuresFile)
    for number, one in enumerate(table.known_failures):
        for name in ("case", "signature", "reason", "machine"):
            if not getattr(one, name).strip():
                raise document.error(
                    ("known_failures", number, name),
                    "must not be empty",
                    _FIX.get(name, "leave it out"),
                )
        if one.issue and not one.issue.startswith(("https://", "http://")):
            message = f"expected the address of an issue, got {one.issue!r}"
            raise document.error(("known_failures", number, "issue"), message, "write https://...")
        if known_ids and (others := _unless_matched(one.case, known_ids())):
            similar = naming.did_you_mean(one.case, others).removeprefix("; ")
            raise document.error(
                ("known_failures", number, "case"),
                f"no case matches {one.case!r}",
                similar or "remove the entry, or give the file of your own cases with --cases",
            )
    return tuple(
        KnownFailureEntry(one, f"{document.file}:{document.line(('known_failures', number))}")
        for number, one in enumerate(table.known_failures)
    )


def _unless_matched(case: str, known_ids: Iterable[str]) -> list[str]:
    """All ids, or none if a glob matches any. Later ids may be slow to get."""
    others = []
    for one in known_ids:
        if fnmatchcase(one, case):
            return []
        others.append(one)
    return others


_FIX = {
    "case": "write a case id, a glob of ids, or '*'",
    "signature": "copy the signature from the report",
    "reason": "explain why this failure is accepted",
}


KNOWN: Outcome = "known failure"
MISSING: Outcome = "missing known failure"

Scenario = TypeVar("Scenario", CaseFinished, DivergenceFound, ScenarioFailed)
_Failure = TypeVar("_Failure", CaseFinished, DivergenceFound, ScenarioFailed)

_INSTEAD: Mapping[str, tuple[str, str]] = {
    "pass": ("passes", "pass"),
    "unsupported": ("is unsupported", "are unsupported"),
    "fail": ("fails for another known cause", "fail for other known causes"),
}
"""What runs do instead of failing for an entry's cause, in the singular and plural."""


@dataclass
class KnownFailures:
    """Judges the failures of a run by the entries of a file.

    Attributes:
        entries: the known failures.
        today: the date for checking expiry.
        whole: whether the run includes all cases on all machines. Otherwise, unmatched globs are
            not reported.
        names: all ids of each case, by its id; cases that aren't listed have only that id.
    """

    entries: Sequence[KnownFailureEntry] = ()
    today: dt.date = dt.date.min
    whole: bool = True
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _other_outcomes: dict[KnownFailureEntry, list[str]] = field(init=False, default_factory=dict)
    _failed_entries: set[KnownFailureEntry] = field(init=False, default_factory=set)

    def judge(self, event: CaseFinished) -> CaseFinished:
        """The case run, reclassified as a known failure if an entry matches.

        If the cause differs or the entry has expired, the message explains what to do.
        """
        names = self.names.get(event.case, (event.case,))
        about = [one for one in self.entries if one.covers(names, event.machine)]
        if event.outcome in GOOD:
            self._note(about, "unsupported" if event.outcome == "unsupported" else "pass")
            return event
        judged = _judge(event, about, self.today)
        if judged.outcome != KNOWN:
            self._failed_entries.update(about)
            return judged
        met = [one for one in about if one.known_failure.signature == event.signature]
        self._failed_entries.update(met)
        self._note([one for one in about if one not in met], "fail")
        return judged

    def _note(self, about: Sequence[KnownFailureEntry], outcome: str) -> None:
        for one in about:
            self._other_outcomes.setdefault(one, []).append(outcome)

    def judge_scenario(self, scenario: Scenario) -> Scenario:
        """The scenario, reclassified as a known failure if an entry has its cause.

        Scenarios vary between runs, so entries with other causes are ignored.
        """
        same = [
            one for one in self._scenarios() if one.known_failure.signature == scenario.signature
        ]
        return _judge(scenario, same, self.today)

    def causes_of_scenarios(self) -> frozenset[str]:
        """The signatures of known failures of generated scenarios."""
        entries = (one for one in self._scenarios() if not one.is_expired(self.today))
        return frozenset(one.known_failure.signature for one in entries)

    def _scenarios(self) -> Iterator[KnownFailureEntry]:
        return (one for one in self.entries if one.covers((SCENARIO,), ""))

    def missing(self, at: float) -> Iterator[CaseFinished]:
        """A failed case run for each entry that was tested but matched no failure.

        Entries whose cases were not selected are skipped, as are globs unless the run is whole.

        Args:
            at: seconds since the start of the run.
        """
        for one in self.entries:
            instead = self._other_outcomes.get(one)
            if instead and one not in self._failed_entries and (self.whole or not one.has_glob):
                yield CaseFinished(
                    at=at,
                    case=one.known_failure.case,
                    title=f"Known failure: {one.known_failure.reason}",
                    machine=one.known_failure.machine,
                    outcome=MISSING,
                    seconds=0.0,
                    requirements=(),
                    message=f"{one.where}: {_describe_outcomes(instead)} now: remove the entry",
                    signature=f"{MISSING}: {one.known_failure.signature}",
                )


def _describe_outcomes(outcomes: Sequence[str]) -> str:
    count = len(outcomes)
    does = " or ".join(words[count > 1] for kind, words in _INSTEAD.items() if kind in outcomes)
    return (
        f"1 case run that it names {does}"
        if count == 1
        else f"all {count} case runs that it names {does}"
    )


def _judge(failure: _Failure, about: Sequence[KnownFailureEntry], today: dt.date) -> _Failure:
    same = [one for one in about if one.known_failure.signature == failure.signature]
    valid = next((one for one in same if not one.is_expired(today)), None)
    if valid:
        known = msgspec.structs.replace(failure, outcome=KNOWN, reason=valid.explanation)
        return _reword(known, before=f"{valid.explanation}: ")
    if same:
        entry = max(same, key=lambda candidate: candidate.known_failure.until or today)
        told = f"expired after {entry.known_failure.until}: fix the failure, or extend the date"
    elif about:
        entry = _most_alike(failure.signature, about)
        told = (
            f"known with another cause, {entry.known_failure.signature!r};"
            " if this is the same problem,"
            f" write signature: {failure.signature!r}"
        )
    else:
        return failure
    return _reword(failure, after=f" [{entry.where}: {told}]")


def _reword(failure: _Failure, before: str = "", after: str = "") -> _Failure:
    """Adds text before and after the message."""
    finding = failure.finding and failure.finding.within(before, after)
    message = f"{before}{failure.message}{after}"
    return msgspec.structs.replace(failure, message=message, finding=finding)


def _most_alike(signature: str, about: Sequence[KnownFailureEntry]) -> KnownFailureEntry:
    """The entry most likely to describe the same problem; the first of several."""
    return max(
        about,
        key=lambda entry: (
            difflib.SequenceMatcher(None, entry.known_failure.signature, signature).ratio(),
            not entry.has_glob,
        ),
    )


_HEAD = """\
# Known failures, for `--known-failures {file}`. They don't fail the run.
# The run fails if a case fails for another cause, or if an entry has expired or matches no failure.
# Explain in each `reason` why the failure is accepted, and add who fixes it and until when:
#   issue: https://...
#   until: {year}-12-31
"""

_NO_FAILURE = {*GOOD, MISSING}

Row = dict[str, str]
"""An entry to write."""


def first_file(rows: Sequence[Row], file: str, today: dt.date) -> str:
    """Formats a new file with these entries.

    Args:
        rows: the entries.
        file: the file's name, for its header comment.
        today: the current date.
    """
    return _HEAD.format(file=file, year=today.year) + _dump({"known_failures": [*rows]})


def with_rows(text: str, rows: Sequence[Row], file: str) -> str:
    """Appends entries to the text of a file and leaves the rest unchanged.

    Raises:
        documents.DocumentError: entries can't be appended to the list.
    """
    items = _dump([*rows])
    return writing.with_items(text, "known_failures", items, file, "an entry") if rows else text


def _dump(plain: object) -> str:
    text: str = yaml.safe_dump(plain, sort_keys=False, width=100, allow_unicode=True)
    return text


def rows(
    runs: Sequence[CaseFinished],
    scenarios: Mapping[str, str],
    known_entries: Sequence[KnownFailureEntry] = (),
) -> list[Row]:
    """Entries for the failures of a run, one for each cause and glob of cases.

    A glob is used only if all judged cases that it matches fail for that cause.

    Args:
        runs: all case runs.
        scenarios: messages of failed scenarios, by signature.
        known_entries: existing entries. If a failure has an existing entry, that entry has expired,
            and no new one is added.
    """
    failed: dict[str, dict[str, list[CaseFinished]]] = {}
    for run in runs:
        if run.outcome not in _NO_FAILURE and not _has_entry(
            run.signature, run.case, run.machine, known_entries
        ):
            failed.setdefault(run.signature, {}).setdefault(run.case, []).append(run)
    judged = {run.case for run in runs if run.outcome != "unsupported"}
    return [
        *(
            _row(
                cause,
                case,
                next(iter(cases.values())) if "*" in case else cases[case],
                known_entries,
            )
            for cause, cases in failed.items()
            for case in _globs(frozenset(cases), judged)
        ),
        *(
            {"case": SCENARIO, "signature": cause, "reason": _reason(message, known_entries)}
            for cause, message in scenarios.items()
            if not _has_entry(cause, SCENARIO, "", known_entries)
        ),
    ]


def _has_entry(
    signature: str, case: str, machine: str, known_entries: Sequence[KnownFailureEntry]
) -> bool:
    return any(
        one.known_failure.signature == signature and one.covers((case,), machine)
        for one in known_entries
    )


def _reason(message: str, known_entries: Sequence[KnownFailureEntry]) -> str:
    """The message, excluding the text added by a run with these entries."""
    for one in known_entries:
        message = message.partition(f" [{one.where}: ")[0]
    return message


def _row(
    cause: str, case: str, runs: Sequence[CaseFinished], known_entries: Sequence[KnownFailureEntry]
) -> Row:
    machines = {run.machine for run in runs}
    row = {"case": case}
    if len(machines) == 1 and "*" not in case:
        row["machine"] = runs[0].machine
    return row | {
        "signature": cause,
        "reason": _reason(runs[0].message, known_entries) or runs[0].outcome,
    }


def _globs(
    failed_cases: frozenset[str], judged_cases: Iterable[str], prefix: str = ""
) -> Iterator[str]:
    """Ids, or globs of ids by their first words, that match exactly the failed cases."""
    below: dict[str, list[str]] = {}
    for one in judged_cases:
        word = one.removeprefix(prefix).partition("-")[0]
        below.setdefault(prefix + word, []).append(one)
    for stem, names in below.items():
        wrong = failed_cases.intersection(names)
        if len(names) == 1 or stem in names:
            yield from sorted(wrong)
        elif wrong == set(names):
            yield f"{stem}-*"
        elif wrong:
            yield from _globs(failed_cases, names, f"{stem}-")
