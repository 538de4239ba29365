"""Writing a file of known failures from what failed in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from numaproof.conformance.cases import lists
from numaproof.conformance.known_failures.entries import SCENARIO
from numaproof.conformance.known_failures.verdicts import MISSING
from numaproof.protocol.events import GOOD, CaseFinished

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numaproof.conformance.known_failures.entries import KnownFailureEntry

_HEAD = """\
# Failures that are known, for `--known-failures {file}`. They do not fail the run.
# A failure for another cause does, and so does an entry whose cases pass, or whose date is past.
# Say in each `reason` why the failure is accepted, and add who fixes it and until when:
#   issue: https://...
#   until: {year}-12-31
"""

_NO_FAILURE = {*GOOD, MISSING}

Row = dict[str, str]
"""An entry to be written."""


def first_file(rows: Sequence[Row], file: str, today: dt.date) -> str:
    """A new file with these entries.

    Args:
        rows: the entries.
        file: its name, for the comment at its head.
        today: the day it is made.
    """
    return _HEAD.format(file=file, year=today.year) + _dumped({"known_failures": [*rows]})


def with_rows(text: str, rows: Sequence[Row], file: str) -> str:
    """The text of a file with more entries at its end; the rest of it stays as it is.

    Raises:
        documents.DocumentError: nothing can be added to its list.
    """
    items = _dumped([*rows])
    return lists.with_items(text, "known_failures", items, file, "an entry") if rows else text


def _dumped(plain: object) -> str:
    text: str = yaml.safe_dump(plain, sort_keys=False, width=100, allow_unicode=True)
    return text


def rows(
    runs: Sequence[CaseFinished],
    scenarios: Mapping[str, str],
    known: Sequence[KnownFailureEntry] = (),
) -> list[Row]:
    """Entries for what failed, one for each cause and glob of cases.

    A glob is written only where all cases of the run that it matches fail for that cause.

    Args:
        runs: all case runs.
        scenarios: of generated scenarios that failed, a message by signature.
        known: entries that there are already. What fails for their cause is past its date, and
            gets no other entry.
    """
    failed: dict[str, dict[str, list[CaseFinished]]] = {}
    for run in runs:
        if run.outcome not in _NO_FAILURE and not _has_entry(
            run.signature, run.case, run.machine, known
        ):
            failed.setdefault(run.signature, {}).setdefault(run.case, []).append(run)
    judged = {run.case for run in runs if run.outcome != "unsupported"}
    return [
        *(
            _row(cause, case, next(iter(cases.values())) if "*" in case else cases[case], known)
            for cause, cases in failed.items()
            for case in _globs(frozenset(cases), judged)
        ),
        *(
            {"case": SCENARIO, "signature": cause, "reason": _reason(message, known)}
            for cause, message in scenarios.items()
            if not _has_entry(cause, SCENARIO, "", known)
        ),
    ]


def _has_entry(signature: str, case: str, machine: str, known: Sequence[KnownFailureEntry]) -> bool:
    return any(one.written.signature == signature and one.covers((case,), machine) for one in known)


def _reason(message: str, known: Sequence[KnownFailureEntry]) -> str:
    """A message without what a run by these entries has added to it."""
    for one in known:
        message = message.partition(f" [{one.where}: ")[0]
    return message


def _row(
    cause: str, case: str, runs: Sequence[CaseFinished], known: Sequence[KnownFailureEntry]
) -> Row:
    machines = {run.machine for run in runs}
    row = {"case": case}
    if len(machines) == 1 and "*" not in case:
        row["machine"] = runs[0].machine
    return row | {"signature": cause, "reason": _reason(runs[0].message, known) or runs[0].outcome}


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
