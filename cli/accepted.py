"""The options about known failures, shared by the commands that judge by them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from numaproof.protocol.events import CaseFinished

if TYPE_CHECKING:
    from numaproof.conformance.judging.known_failures import KnownFailures

F = TypeVar("F", bound=Callable[..., Any])


def known_failures_options(command: F) -> F:
    """Adds --known-failures and --today to a command."""
    for option in (
        click.option(
            "--today",
            type=click.DateTime(["%Y-%m-%d"]),
            help="Date that known failures are judged at (default: today).",
        ),
        click.option(
            "--known-failures",
            "known_file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="YAML file of failures that do not fail the run.",
        ),
    ):
        command = option(command)
    return command


def known(file: Path | None, today: dt.datetime | None, *, whole: bool) -> KnownFailures:
    """What the options say is known; nothing without a file.

    Raises:
        fakesys.DocumentError: the file is wrong.
    """
    from numaproof.conformance.judging import known_failures
    from numaproof.conformance.judging.known_failures import KnownFailures

    return KnownFailures(known_failures.read(file) if file else (), _day(today), whole=whole)


def write_known_failures(file: Path, out: Path, today: dt.datetime | None) -> None:
    """Writes a first file of known failures from the reports of a run.

    Raises:
        OSError: the file cannot be written.
    """
    from numaproof.conformance.cases import writing
    from numaproof.conformance.judging import known_failures
    from numaproof.reports.files import EVENTS, read_events
    from numaproof.reports.layout import plural

    runs = [one for one in read_events(out / EVENTS) if isinstance(one, CaseFinished)]
    writing.put(known_failures.first_file(runs, str(file), _day(today)), file)
    count = len(known_failures.read(file))
    click.echo(f"{file}: {plural(count, 'known failure')}", err=True)


def _day(today: dt.datetime | None) -> dt.date:
    return (today or dt.datetime.now(dt.UTC)).date()
