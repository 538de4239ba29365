"""Where commands write: files and folders that users name, the terminal, and JSON for programs."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from numaproof.protocol import codec
from numaproof.protocol.events import CaseFinished, DivergenceFound, Progress, RunEnded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.events import AnyEvent
    from numaproof.reports.files import Recorder
    from numaproof.reports.json_output import RunReport
    from numaproof.reports.terminal import Terminal

F = TypeVar("F", bound=Callable[..., Any])


class _OutputPath(click.Path):
    """A path to write to, refused before the work begins if that cannot be written.

    Args:
        check: the function of `numaproof.workdir.output_files` that refuses it.
        file: whether it may be a file.
        folder: whether it may be a folder.
    """

    def __init__(self, check: str, *, file: bool = True, folder: bool = True) -> None:
        super().__init__(file_okay=file, dir_okay=folder, path_type=Path)
        self._check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if ctx and ctx.resilient_parsing:  # for completion, which loads as little as possible
            return path
        from numaproof.workdir import output_files

        try:
            getattr(output_files, self._check)(path)
        except OSError as error:
            self.fail(f"cannot write {error.filename}: {error.strerror}", param, ctx)
        return path


OUTPUT_FILE = _OutputPath("require_writable", folder=False)
OUTPUT_FOLDER = _OutputPath("require_writable_folder", file=False)
OUTPUT_PATH = _OutputPath("resolve_target")


def require_new(file: Path) -> None:
    """Checks that there is no such file, for commands that never overwrite one.

    Raises:
        click.UsageError: there is.
    """
    if file.exists() or file.is_symlink():
        raise click.UsageError(f"{file} already exists; remove it or choose another name")


REPORTS = Path("numaproof-report")
"""The folder of all reports; each command has one of its own in it, unless --out names another."""


REPORT_FILES = ("events.jsonl", "junit.xml", "report.html", "report.md", "badge.svg")
"""The files that commands write to the folder of their reports."""


def out_option(
    command: str, files: Sequence[str] = REPORT_FILES, contents: str = ""
) -> Callable[[F], F]:
    """The option that names the folder of a command's reports, which no other run may write to.

    Args:
        command: the command.
        files: the names of the files that it writes to the folder; they must be regular files.
        contents: how the help calls what it writes (default: the files' names).

    Raises:
        FolderInUseError: another run is writing to it.
        OSError: one of the files cannot be written.
    """
    contents = contents or f"{', '.join(files[:-1])} and {files[-1]}"
    default = REPORTS / command
    option = click.option(
        "--out",
        type=OUTPUT_FOLDER,
        default=default,
        help=f"Folder for {contents} (default: {default}).",
    )

    def decorate(function: F) -> F:
        @option
        @wraps(function)
        def run(*args: Any, out: Path, **options: Any) -> Any:
            from numaproof.workdir.output_files import require_writable
            from numaproof.workdir.output_folder import held_folder

            for name in files:
                require_writable(out / name)
            with held_folder(out):
                return function(*args, out=out, **options)

        return cast("F", run)

    return decorate


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
    afterwards: Callable[[tuple[AnyEvent, ...]], None] | None = None,
) -> int:
    """Shows and records events as they arrive and returns the exit code of the run.

    With `calls`, every call is shown. Where `findings` is the id of the cases that the command
    writes, those of an earlier run are removed. `afterwards` is called with all events. An
    interrupt or an error ends the run early; what was measured so far is reported as incomplete.
    """
    from numaproof.reports.files import Recorder
    from numaproof.reports.groups import causes
    from numaproof.reports.summary import summarize
    from numaproof.reports.terminal import Terminal

    if findings:
        clear_findings(out, findings)
    stream = sys.stderr if as_json else sys.stdout
    recorder = Recorder(out)
    with Terminal(stream, calls=calls) as terminal:
        try:
            with recorder:
                _record(events, recorder, terminal)
        finally:
            terminal.reports = str(out) if recorder.has_reports else ""
    recorded = recorder.events()
    summary = summarize(recorded)
    if as_json:
        report: RunReport = {
            **summary.plain(),
            "causes": [group.plain() for group in causes(summary)],
        }
        click.echo(codec.encode(report))
    elif summary.verdict == "nothing tested":
        # Exit code 2: whoever keeps only standard error learns why.
        click.echo("numaproof: nothing was tested: no case ran, or none is supported", err=True)
    if afterwards:
        afterwards(recorded)
    return summary.exit_code


def _record(events: Iterator[AnyEvent], recorder: Recorder, terminal: Terminal) -> None:
    """Records and shows events; an interrupt is the end of them."""
    done: Counter[str] = Counter()
    began = time.monotonic()
    try:
        for event in events:
            recorder.record(event)
            terminal.show(event)
            _count(done, event)
    except KeyboardInterrupt:
        cut = _early_end(began, done, "interrupted")
        try:
            recorder.record(cut)
        finally:
            terminal.show(cut)
    except Exception as error:
        with suppress(OSError):  # the error may be that nothing can be written
            recorder.record(_early_end(began, done, str(error)))
        # The message itself goes to standard error, once.
        terminal.show(_early_end(began, done, "an error ended it"))
        raise


def _early_end(began: float, outcomes: Counter[str], why: str) -> RunEnded:
    """The end of a run that is cut short."""
    return RunEnded(time.monotonic() - began, complete=False, outcomes=outcomes, message=why)


def _count(outcomes: Counter[str], event: AnyEvent) -> None:
    match event:
        case CaseFinished() | DivergenceFound():
            outcomes[event.outcome] += 1
        case Progress():
            told = outcomes.total() - outcomes["pass"]
            outcomes["pass"] = max(0, event.played_examples - told)
