"""The options for known failures, shared by several commands."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from numaproof.cli.choice import Date
from numaproof.cli.outputs import OUTPUT_FILE

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.known_failures.entries import KnownFailureEntry, KnownFailures
    from numaproof.protocol.events import AnyEvent, CaseFinished

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class KnownFailureOptions:
    """The values of the options for known failures.

    Attributes:
        file: the file of known failures, if any.
        output_file: the file that new failures are added to, if any. Its existing entries also
            count as known failures.
        today: the date to use when judging entries.
    """

    file: Path | None
    output_file: Path | None
    today: dt.date

    def known_failures(
        self,
        cases: Iterable[Case] = (),
        *,
        whole: bool = False,
        known_ids: Callable[[], Iterable[str]] | None = None,
    ) -> KnownFailures:
        """Reads the known failures.

        Args:
            cases: the cases of the run.
            whole: whether the run plays every case on every machine.
            known_ids: yields all ids of cases, if entries for other cases are wrong.

        Raises:
            inputs.DocumentError: a file is invalid.
        """
        from numaproof.conformance.cases import naming
        from numaproof.conformance.known_failures.entries import KnownFailures

        names = {one.id: naming.names(one) for one in cases}
        return KnownFailures(self._entries(known_ids), self.today, whole, names)

    def _entries(
        self, known_ids: Callable[[], Iterable[str]] | None = None
    ) -> tuple[KnownFailureEntry, ...]:
        from numaproof.conformance.known_failures import entries

        files = dict.fromkeys(one for one in (self.file, self.output_file) if one and one.exists())
        return tuple(entry for file in files for entry in entries.read(file, known_ids))

    def write_from(self, events: Sequence[AnyEvent]) -> None:
        """Adds the failures among a run's events to the output file; see `write`."""
        if self.output_file is None:
            return
        from numaproof.protocol.events import GOOD, CaseFinished, DivergenceFound, RunEnded

        runs = [one for one in events if isinstance(one, CaseFinished)]
        found = [one for one in events if isinstance(one, DivergenceFound)]
        causes = {one.signature: one.message for one in found if one.outcome not in GOOD}
        complete = any(isinstance(one, RunEnded) and one.complete for one in events)
        self.write(runs, causes, complete=complete)

    def write(
        self, runs: Sequence[CaseFinished], scenarios: Mapping[str, str], *, complete: bool
    ) -> None:
        """Adds failures to the output file, which is created if necessary.

        After an incomplete run, the file is not changed, because new globs could match cases that
        were not played.

        Args:
            runs: the case runs.
            scenarios: a message for each signature of the generated scenarios that failed.
            complete: whether the run is complete.

        Raises:
            OSError: the file cannot be written.
            inputs.DocumentError: the file is invalid, so entries cannot be added.
        """
        if self.output_file is None:
            return
        if not complete:
            click.echo(f"{self.output_file}: not written, because the run is incomplete", err=True)
            return
        from numaproof.conformance.known_failures import entries
        from numaproof.inputs import door
        from numaproof.inputs.plurals import plural
        from numaproof.workdir.output_files import update_file

        file = self.output_file
        rows: list[entries.Row] = []

        def text() -> str:
            rows[:] = entries.rows(runs, scenarios, self._entries())
            if file.exists():
                return entries.with_rows(door.read_text(file), rows, str(file))
            return entries.first_file(rows, str(file), self.today)

        update_file(file, text)
        click.echo(f"{file}: {plural(len(rows), 'new known failure')}", err=True)


def known_failures_options(command: F) -> F:
    """Adds --known-failures, --write-known-failures and --today as `failure_options`."""

    @click.option(
        "--known-failures",
        "known_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="YAML file of known failures, which don't make the run fail.",
    )
    @click.option(
        "--write-known-failures",
        "output_file",
        type=OUTPUT_FILE,
        help="Add new failures to this file, for use with --known-failures; create it if"
        " necessary.",
    )
    @click.option(
        "--today",
        type=Date(),
        metavar="YYYY-MM-DD",
        help="Date to use when judging known failures (default: today).",
    )
    @wraps(command)
    def apply_options(
        *args: Any,
        known_file: Path | None,
        output_file: Path | None,
        today: dt.datetime | None,
        **options: Any,
    ) -> Any:
        day = (today or dt.datetime.now(dt.UTC)).date()
        return command(
            *args, failure_options=KnownFailureOptions(known_file, output_file, day), **options
        )

    return cast("F", apply_options)
