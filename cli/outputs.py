"""Where the events of a run go: the terminal, the folder of reports, and JSON for programs."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from numaproof.protocol import codec
from numaproof.protocol.events import CaseFinished, DivergenceFound, Progress, RunEnded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.events import AnyEvent

F = TypeVar("F", bound=Callable[..., Any])


REPORTS = Path("numaproof-report")
"""The folder of all reports; each command has one of its own in it, unless --out names another."""


def out_option(
    command: str, contents: str = "events.jsonl, junit.xml, report.html, report.md and badge.svg"
) -> Callable[[F], F]:
    """The option that names the folder of a command's reports."""
    default = REPORTS / command
    return click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=default,
        help=f"Folder for {contents} (default: {default}).",
    )


repeat_option = click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Play each case N times, each time in a new process; cases whose answers differ are"
    " nondeterministic (default: 1).",
)


FINDINGS = "findings"
"""The folder of case files in that of a command's reports."""


def clear_findings(out: Path, case: str) -> None:
    """Removes the case files that an earlier run of the same command wrote; other files stay.

    Args:
        out: the folder of the command's reports.
        case: the id of the cases that the command writes, with which the files' names begin.
    """
    for file in (out / FINDINGS).glob(f"{case}-{'[0-9a-f]' * 8}.yaml"):
        file.unlink()


def follow(
    events: Iterator[AnyEvent],
    out: Path,
    *,
    as_json: bool,
    calls: bool = False,
    findings: str = "",
) -> int:
    """Shows and records events as they arrive and returns the exit code of the run.

    With `calls`, every call is shown. Where `findings` is the id of the cases that the command
    writes, those of an earlier run are removed. An interrupt ends the run early; what was measured
    so far is reported as incomplete.
    """
    from numaproof.reports.files import EVENTS, Recorder, read_events
    from numaproof.reports.groups import causes
    from numaproof.reports.summary import summarize
    from numaproof.reports.terminal import Terminal

    if findings:
        clear_findings(out, findings)
    stream = sys.stderr if as_json else sys.stdout
    done: Counter[str] = Counter()
    began = time.monotonic()
    with Recorder(out) as recorder, Terminal(stream, reports=str(out), calls=calls) as terminal:
        try:
            for event in events:
                recorder.record(event)
                terminal.show(event)
                _count(done, event)
        except KeyboardInterrupt:
            at = time.monotonic() - began
            cut = RunEnded(at=at, complete=False, outcomes=done, message="interrupted")
            recorder.record(cut)
            terminal.show(cut)
    summary = summarize(read_events(out / EVENTS))
    if as_json:
        found = [group.plain() for group in causes(summary)]
        click.echo(codec.encode({**summary.plain(), "causes": found}))
    elif summary.verdict == "nothing tested":
        # Exit code 2: whoever keeps only standard error learns why.
        click.echo("numaproof: nothing was tested: no case ran, or none is supported", err=True)
    return summary.exit_code


def _count(done: Counter[str], event: AnyEvent) -> None:
    match event:
        case CaseFinished() | DivergenceFound():
            done[event.outcome] += 1
        case Progress():
            told = done.total() - done["pass"]
            done["pass"] = max(0, event.done - told)
