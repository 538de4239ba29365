"""The `numaproof` command: subcommands, errors and exit codes.

Exit codes: 0 everything passed, 1 something failed, 2 the input was invalid or the machine could
not run the command (for example because of a full disk), 3 the run was interrupted. Commands that
only print something are killed by SIGPIPE if their reader exits.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

from numaproof.cli.commands import COMMANDS, LazyGroup
from numaproof.cli.outputs import is_terminal_gone
from numaproof.reports.safe_streams import shown_streams

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

WRONG_INPUT = 2
CUT_SHORT = 3
_READER_GONE = 128 + signal.SIGPIPE
"""The exit code that shells report for a program killed by SIGPIPE."""


_RUNS = frozenset(
    {"board", "campaign", "check", "diff", "exhaust", "fuzz", "init", "promote", "record"}
    | {"reference", "replay"}
)
"""Commands with effects other than output; all others are pointless without a reader."""


class ReaderGoneError(Exception):
    """The process that reads our output has exited, as with ``| head``.

    Attributes:
        during_run: whether this interrupted a run.
    """

    def __init__(self, *, during_run: bool) -> None:
        super().__init__()
        self.during_run = during_run


class _Entry(LazyGroup):
    def make_context(self, *args: Any, **options: Any) -> click.Context:
        with _reader_needed():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _reader_needed(ctx):
            result = super().invoke(ctx)
            # A full disk may only be noticed here.
            sys.stdout.flush()
            return result


@contextmanager
def _reader_needed(ctx: click.Context | None = None) -> Iterator[None]:
    """Raises `ReaderGoneError`; click would exit with 1, as if a case had failed."""
    try:
        yield
    except BrokenPipeError:
        helped = not {"-h", "--help"}.isdisjoint(sys.argv)
        during_run = ctx is not None and ctx.invoked_subcommand in _RUNS and not helped
        raise ReaderGoneError(during_run=during_run) from None


@click.group(
    cls=_Entry,
    sections=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 everything passed, 1 something failed, 2 invalid input, 3 interrupted.",
)
@click.version_option(package_name="numaproof", prog_name="numaproof")
def cli() -> None:
    """Conformance and fuzz testing for the Kubernetes node resource managers.

    \b
    Example:
      numaproof check
    """


def main(name: str = "numaproof") -> NoReturn:
    """Runs the command with this name, with the arguments of the process, and exits."""
    for one in (signal.SIGTERM, signal.SIGHUP):
        # nohup ignores a closed terminal on purpose.
        if signal.getsignal(one) is not signal.SIG_IGN:
            signal.signal(one, _interrupt)
    if os.environ.get("_NUMAPROOF_COMPLETE", "").startswith("fish"):
        _complete_whole_lines()
    closed = sys.stdout is None
    with shown_streams():
        code = _no_output() if closed else _run(name)
    if code == _READER_GONE:
        # Die of the signal like any other program, as `set -o pipefail` expects.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    sys.exit(code)


def _complete_whole_lines() -> None:
    """Makes click's completion for fish split lines only at the first comma.

    click's own script splits at every comma, which truncates descriptions and values.
    """
    from click.shell_completion import FishComplete, add_completion_class

    class WholeFishComplete(FishComplete):
        source_template = FishComplete.source_template.replace(
            'string split ","', 'string split --max 1 ","'
        )

    add_completion_class(WholeFishComplete)


def _no_output() -> int:
    _complain("standard output is closed; redirect it to /dev/null to discard it")
    return WRONG_INPUT


def _run(name: str) -> int:
    try:
        if name == "numaproof":
            code = cli.main(standalone_mode=False)
        else:
            from numaproof.cli.kubectl_plugin import collect

            code = collect.main(prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = WRONG_INPUT
    except ReaderGoneError as error:
        _drop_output()
        code = CUT_SHORT if error.during_run else _READER_GONE
    except OSError as error:
        _drop_output()
        if is_terminal_gone(error):
            return CUT_SHORT
        _complain(f"{error.filename or 'input or output'}: {error.strerror or error}")
        code = WRONG_INPUT
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted")
        code = CUT_SHORT
    except Exception as error:
        if not _is_input_error(error):
            raise
        _complain(str(error))
        code = WRONG_INPUT
    return code if isinstance(code, int) else 0


def _is_input_error(error: Exception) -> bool:
    # Importing these errors loads most of the project, so do it only after an error.
    from numaproof.cli.input_errors import INPUT_ERRORS

    return isinstance(error, INPUT_ERRORS)


def _drop_output() -> None:
    """Discards unwritten output; Python would try to write it at exit and fail with code 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> None:
    with suppress(OSError):  # the reader may have exited
        click.echo(f"numaproof: {message}", err=True)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
