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
from numaproof.reports.files import EVENTS, Recorder, read_events
from numaproof.reports.summary import summarize
from numaproof.reports.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.events import AnyEvent

F = TypeVar("F", bound=Callable[..., Any])


def out_option(default: str) -> Callable[[F], F]:
    """The option that names the report folder."""
    return click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(default),
        help="Folder for events.jsonl, junit.xml, report.html, report.md and badge.svg"
        f" (default: {default}).",
    )


def follow(events: Iterator[AnyEvent], out: Path, *, as_json: bool, calls: bool = False) -> int:
    """Shows and records events as they arrive and returns the exit code of the run.

    With `calls`, every call is shown. An interrupt ends the run early; what was measured so far is
    reported as incomplete.
    """
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
        click.echo(codec.encode(summary.plain()))
    return summary.exit_code


def _count(done: Counter[str], event: AnyEvent) -> None:
    match event:
        case CaseFinished() | DivergenceFound():
            done[event.outcome] += 1
        case Progress():
            told = done.total() - done["pass"]
            done["pass"] = max(0, event.done - told)
