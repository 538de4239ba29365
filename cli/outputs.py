"""The output of commands: files, report folders, the terminal and JSON."""

from __future__ import annotations

import errno
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

from numaproof.cli.choice import IntRange
from numaproof.protocol import codec
from numaproof.protocol.events import CaseFinished, DivergenceFound, Progress, RunEnded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.protocol.events import AnyEvent
    from numaproof.reports.files import Recorder
    from numaproof.reports.json_output import RunReport
    from numaproof.reports.terminal import Terminal

F = TypeVar("F", bound=Callable[..., Any])


class _OutputPath(click.Path):
    """A path to write to, checked before the command does any work.

    Args:
        check: the function in `numaproof.workdir.output_files` that checks the path.
        file: whether the path may be a file.
        folder: whether the path may be a folder.
    """

    def __init__(self, check: str, *, file: bool = True, folder: bool = True) -> None:
        super().__init__(file_okay=file, dir_okay=folder, path_type=Path)
        self._check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Checks and returns the path."""
        path = Path(os.fsdecode(value))
        if path.is_dir() and not self.dir_okay:
            self.fail(f"'{path}' is a folder; expected a file", param, ctx)
        if path.is_file() and not self.file_okay:
            self.fail(f"'{path}' is a file; expected a folder", param, ctx)
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if ctx and ctx.resilient_parsing:  # shell completion, which must be fast
            return path
        from numaproof.workdir import output_files

        try:
            getattr(output_files, self._check)(path)
        except OSError as error:
            self.fail(f"cannot write {error.filename}: {error.strerror}", param, ctx)
        if self.file_okay and not path.parent.is_dir():
            self.fail(
                f"{path}: the folder {path.parent} does not exist; create it first", param, ctx
            )
        return path


OUTPUT_FILE = _OutputPath("require_writable", folder=False)
OUTPUT_FOLDER = _OutputPath("require_writable_folder", file=False)
OUTPUT_PATH = _OutputPath("resolve_target")


_NEVER_READ = (".html", ".svg")


def require_no_input(
    outputs: Iterable[Path | None], inputs: Sequence[Path], names: Iterable[str] = ()
) -> None:
    """Checks that the output files are neither inputs nor each other.

    Args:
        outputs: the output files; None if an option is missing.
        inputs: files, and folders whose files are inputs.
        names: the values of options that may be names of files.

    Raises:
        click.UsageError: an output is an input.
    """
    seen = {path.resolve() for path in (*inputs, *map(Path, names))}
    folders = [path.resolve() for path in inputs if path.is_dir()]
    for output in filter(None, outputs):
        target = output.resolve()
        is_read = output.exists() and output.suffix not in _NEVER_READ
        if target in seen or (is_read and any(map(target.is_relative_to, folders))):
            raise click.UsageError(f"{output} is already an input or output; name another file")
        seen.add(target)


def require_new(file: Path) -> None:
    """Checks that a file does not exist, for commands that never overwrite files.

    Raises:
        click.UsageError: the file exists.
    """
    if file.exists() or file.is_symlink():
        raise click.UsageError(f"{file} already exists; remove it or choose another name")


REPORTS = Path("numaproof-report")
"""The default folder for reports, with a subfolder for each command."""


REPORT_FILES = ("events.jsonl", "junit.xml", "report.html", "report.md", "badge.svg")
"""The files in a report folder."""


def out_option(
    command: str, files: Sequence[str] = REPORT_FILES, contents: str = ""
) -> Callable[[F], F]:
    """Returns the option for a command's report folder, which is locked during the run.

    Args:
        command: the command's name.
        files: the names of the files that it writes.
        contents: describes the files in the help (default: their names).

    Raises:
        FolderInUseError: another run is writing to the folder.
        OSError: a file cannot be written.
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
    type=IntRange(1),
    default=1,
    metavar="N",
    help="Play each case N times, each time in a new process; a case whose answers differ is"
    " reported as nondeterministic (default: 1).",
)


FINDINGS = "findings"
"""The subfolder for case files in a report folder."""


def clear_findings(out: Path, case: str) -> None:
    """Removes case files left by an earlier run of the same command; keeps all other files.

    Args:
        out: the command's report folder.
        case: the prefix of the ids and file names of the command's cases.
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
    """Shows and records events as they arrive, and returns the exit code of the run.

    After an interrupt or an error, everything recorded so far is reported as an incomplete run.

    Args:
        events: the events of the run.
        out: the folder for the reports.
        as_json: whether to print the summary as JSON.
        calls: whether to show every call.
        findings: the id prefix of the earlier run's case files to remove; empty for none.
        afterwards: called with all events.
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
        # Standard error must explain exit code 2.
        click.echo("numaproof: nothing was tested: no case ran, or none is supported", err=True)
    if afterwards:
        afterwards(recorded)
    return summary.exit_code


def _record(events: Iterator[AnyEvent], recorder: Recorder, terminal: Terminal) -> None:
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
        why = "interrupted" if is_terminal_gone(error) else str(error)
        with suppress(OSError):  # the disk may be full
            recorder.record(_early_end(began, done, why))
        # The command prints the message itself to standard error.
        terminal.show(_early_end(began, done, "stopped by an error"))
        raise


def is_terminal_gone(error: BaseException) -> bool:
    """Whether the terminal was closed. On a busy machine, its signal comes after the error."""
    return isinstance(error, OSError) and error.errno == errno.EIO and error.filename is None


def _early_end(began: float, outcomes: Counter[str], why: str) -> RunEnded:
    return RunEnded(time.monotonic() - began, complete=False, outcomes=outcomes, message=why)


def _count(outcomes: Counter[str], event: AnyEvent) -> None:
    match event:
        case CaseFinished() | DivergenceFound():
            outcomes[event.outcome] += 1
        case Progress():
            told = outcomes.total() - outcomes["pass"]
            outcomes["pass"] = max(0, event.played_examples - told)
