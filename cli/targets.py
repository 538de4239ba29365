"""The options that choose what is tested, and the target that they open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from numaproof.cli.durations import Duration
from numaproof.protocol.events import SIDES, JudgedAs
from numaproof.protocol.messages import LEVELS, Level
from numaproof.protocol.releases import NEWEST, RELEASES

if TYPE_CHECKING:
    from numaproof.conformance.execution.run import Target

F = TypeVar("F", bound=Callable[..., Any])

timeout_option = click.option(
    "--timeout",
    type=Duration(),
    default="30s",
    help="Time limit for one call to the program (default: 30s).",
)


release_option = click.option(
    "--kubernetes",
    type=click.Choice(RELEASES),
    default=NEWEST,
    help=f"Kubernetes release (default: {NEWEST}).",
)


as_option = click.option(
    "--as",
    "judged_as",
    type=click.Choice(SIDES),
    help="Which answer is right where the kubelet breaks its documents: theirs, the kubelet's, or"
    " either (default: kubelet at level kubelet and for the reference, else either).",
)


def target_options(command: F) -> F:
    """Adds the options that `open_target` takes to a command."""
    options = (
        click.option(
            "--implementation",
            metavar='"CMD ..."',
            help="Program that speaks the protocol (default: the reference).",
        ),
        timeout_option,
        click.option(
            "--kubernetes",
            type=click.Choice(RELEASES),
            help="Kubernetes release to test against (default: the newest the program claims).",
        ),
        click.option(
            "--level",
            type=click.Choice(LEVELS),
            help="How closely to compare answers (default: the level that the program claims).",
        ),
        as_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def open_target(
    implementation: str | Sequence[str] | None,
    timeout: float,
    kubernetes: str | None,
    level: Level | None,
    judged_as: JudgedAs | None,
    *,
    patient: bool = False,
) -> Iterator[Target]:
    """Opens the target that the options name, as `numaproof.conformance.opening` does.

    Raises:
        click.ClickException: the options do not fit the implementation or each other.
        ImplementationFailure: the program did not answer `hello`.
    """
    from numaproof.cli.metadata import VERSION
    from numaproof.conformance import opening
    from numaproof.conformance.execution.implementation import CannotStartError

    harness = f"numaproof {VERSION}"
    options = opening.TargetOptions(implementation, timeout, kubernetes, level, judged_as)
    try:
        with opening.open_target(options, harness, patient=patient) as target:
            yield target
    except CannotStartError as error:
        raise click.UsageError(str(error)) from None
    except opening.TargetError as error:
        if not error.choice:
            raise click.UsageError(str(error)) from None
        raise click.BadParameter(str(error), param_hint=f"--{error.choice}") from None


@contextmanager
def named_failure() -> Iterator[None]:
    """Says what is wrong with a program that fails in the block, for commands without a report.

    Raises:
        click.ClickException: it failed.
    """
    from numaproof.conformance.execution.implementation import ImplementationFailure

    try:
        yield
    except ImplementationFailure as failure:
        raise click.ClickException(f"the implementation did not answer hello: {failure}") from None
