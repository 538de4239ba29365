"""Known failures: what an implementation is known to fail, why, and until when that is accepted.

A file of known failures lets a project gate on new failures before the old ones are fixed. Each
entry names cases and one cause (a signature). The run fails where a case fails for another cause,
where an entry is past its date, and where nothing fails for its cause any more.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from numaproof.inputs import documents, fitting

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SCENARIO = "scenario"
"""What entries call every generated scenario."""


class KnownFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry as it is written.

    `case` is an id or a glob of ids, or `SCENARIO`, `machine` a glob of names, `signature` the
    cause, exactly as reports show it, `issue` the address of the owner's issue, `until` the last
    day on which the failure is accepted.
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
    return _entries(documents.load(path))


def parse(text: str, file: str) -> tuple[KnownFailureEntry, ...]:
    """The entries in the text of a file.

    Raises:
        documents.DocumentError: an entry is wrong.
    """
    return _entries(documents.load(text, file=file))


def _entries(document: documents.Document) -> tuple[KnownFailureEntry, ...]:
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
