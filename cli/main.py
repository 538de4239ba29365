"""The `numaproof` command: subcommands, errors and exit codes.

Exit codes: 0 all passed, 1 something failed, 2 the command or its input was wrong, 3 the run was
cut short.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from numaproof import (
    campaign,
    case,
    check,
    config,
    diff,
    discover,
    doctor,
    features,
    fuzz,
    gauntlet,
    init,
    profiles,
    promote,
    record,
    replay,
    serve,
    simulate,
    state,
    upgrade,
)
from numaproof.conformance.cases.releases import ConstraintError
from numaproof.conformance.differential.recordings import RecordingError
from numaproof.conformance.execution.player import CaseError
from numaproof.conformance.promotion.rehearsal import PromotionError
from numaproof.fakesys import DocumentError, ProfileError, TreeError, WriteError
from numaproof.fleet.journal import JournalError
from numaproof.metadata import VERSION
from numaproof.reference.cadvisor.discovery import DiscoveryError
from numaproof.reference.departures.releases import UnknownReleaseError
from numaproof.reports.files import EventsError
from numaproof.simulation.admission import CannotAnswerError
from numaproof.simulation.devices import DevicesError
from numaproof.simulation.upgrades.state_files import NoStateError

if TYPE_CHECKING:
    from types import FrameType

WRONG_INPUT = 2
CUT_SHORT = 3

INPUT_ERRORS = (
    CannotAnswerError,
    CaseError,
    ConstraintError,
    DevicesError,
    DiscoveryError,
    DocumentError,
    EventsError,
    JournalError,
    NoStateError,
    ProfileError,
    PromotionError,
    RecordingError,
    TreeError,
    UnknownReleaseError,
    WriteError,
)
"""What can be wrong with a user's input; each error's message says what to fix."""


class ReaderGoneError(Exception):
    """The reader of our output is gone, as with ``| head``."""


class _Group(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # click would exit with 1, which means that something failed.
            raise ReaderGoneError from None


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 everything passed, 1 something failed, 2 wrong input, 3 interrupted.",
)
@click.version_option(VERSION, prog_name="numaproof")
def cli() -> None:
    """Conformance and fuzz testing for the Kubernetes node resource managers.

    \b
    Example:
      numaproof check
    """


for command in (
    init.init,
    check.check,
    doctor.doctor,
    features.features,
    fuzz.fuzz,
    diff.diff,
    campaign.campaign,
    gauntlet.gauntlet,
    record.record,
    replay.replay,
    promote.promote,
    serve.reference,
    discover.discover,
    case.case_group,
    profiles.profile,
    simulate.simulate,
    state.state,
    config.config,
    upgrade.upgrade,
):
    cli.add_command(command)


def main() -> NoReturn:
    """Runs the command with the arguments of the process and exits."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = cli.main(standalone_mode=False)
        # A full disk may show only now.
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = WRONG_INPUT
    except INPUT_ERRORS as error:
        _complain(str(error))
        code = WRONG_INPUT
    except ReaderGoneError:
        _drop_output()
        code = CUT_SHORT
    except OSError as error:
        _drop_output()
        _complain(f"{error.filename or 'input or output'}: {error.strerror or error}")
        code = WRONG_INPUT
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted")
        code = CUT_SHORT
    sys.exit(code if isinstance(code, int) else 0)


def _drop_output() -> None:
    """Discards unwritten output: Python would try again at exit, and fail with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> None:
    click.echo(f"numaproof: {message}", err=True)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
