"""The options about known failures, shared by the commands that judge by them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from numaproof.cli.outputs import OUTPUT_FILE

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.known_failures.entries import KnownFailureEntry, KnownFailures
    from numaproof.protocol.events import AnyEvent, CaseFinished

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class KnownFailureOptions:
    """What the options about known failures say.

    Attributes:
        file: names what is known; None for nothing.
        output_file: gets entries for what is new; None for none. What it has already is known, too.
        today: the day that dates are compared with.
    """

    file: Path | None
    output_file: Path | None
    today: dt.date

    def known_failures(self, cases: Iterable[Case] = (), *, whole: bool = False) -> KnownFailures:
        """What is known.

        Args:
            cases: those of the run.
            whole: whether it has all of them on all machines.

        Raises:
            inputs.DocumentError: a file is wrong.
        """
        from numaproof.conformance.cases import naming
        from numaproof.conformance.known_failures.entries import KnownFailures

        names = {one.id: naming.names(one) for one in cases}
        return KnownFailures(self._entries(), self.today, whole, names)

    def _entries(self) -> tuple[KnownFailureEntry, ...]:
        from numaproof.conformance.known_failures import entries

        files = dict.fromkeys(one for one in (self.file, self.output_file) if one and one.exists())
        return tuple(entry for file in files for entry in entries.read(file))

    def write_from(self, events: Sequence[AnyEvent]) -> None:
        """Adds what failed in a run, by its events; see `write`."""
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
        """Adds what failed to the file that was asked for, or makes that file.

        After a run that was cut short the file stays as it is: a glob could name cases that were
        not played.

        Args:
            runs: the case runs.
            scenarios: of generated scenarios that failed, a message by signature.
            complete: whether the run came to its end.

        Raises:
            OSError: the file cannot be written.
            inputs.DocumentError: nothing can be added to it.
        """
        if self.output_file is None:
            return
        if not complete:
            click.echo(f"{self.output_file}: not written, as the run was cut short", err=True)
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
    """Adds --known-failures, --write-known-failures and --today, as `failure_options`."""

    @click.option(
        "--known-failures",
        "known_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="YAML file of failures that do not fail the run.",
    )
    @click.option(
        "--write-known-failures",
        "output_file",
        type=OUTPUT_FILE,
        help="Add new failures to a file for --known-failures, or create one.",
    )
    @click.option(
        "--today",
        type=click.DateTime(["%Y-%m-%d"]),
        help="Date on which known failures are judged (default: today).",
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
        made = KnownFailureOptions(known_file, output_file, day)
        return command(*args, failure_options=made, **options)

    return cast("F", apply_options)
