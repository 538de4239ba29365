"""The options that choose what is tested, and the target that they open."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from numaproof.durations import Duration
from numaproof.protocol.events import SIDES, JudgedAs
from numaproof.protocol.messages import LEVELS, Hello, Level
from numaproof.protocol.releases import NEWEST, RELEASES

if TYPE_CHECKING:
    from numaproof.conformance.execution.implementation import Implementation
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
    """Opens the target that the options name and closes it when the block ends.

    Several programs are one target, each for the releases that it claims. The reference itself is
    on the side that it is judged by. Where `patient`, a program that is killed before it answers
    `hello` is asked once more.

    Raises:
        click.ClickException: the options do not fit the implementation or each other.
        ImplementationFailure: the program did not answer `hello`.
    """
    from numaproof.conformance.differential.by_release import ByRelease
    from numaproof.conformance.execution.implementation import (
        CannotStartError,
        handshake,
        patient_handshake,
    )
    from numaproof.conformance.execution.run import Target, reference, usual
    from numaproof.conformance.execution.subprocesses import Subprocess
    from numaproof.conformance.judging.sides import DOCUMENTED, KUBELET
    from numaproof.metadata import VERSION

    given = (implementation,) if isinstance(implementation, str) else implementation or ()
    commands = [_words(one) for one in given]
    programs: list[Implementation] = [Subprocess(words, timeout) for words in commands]
    own = reference(DOCUMENTED if judged_as == "documented" else KUBELET)
    reached: Implementation = programs[0] if programs else own
    harness = f"numaproof {VERSION}"
    try:
        if len(programs) > 1:
            reached = ByRelease(programs, harness)
        hello = (patient_handshake if patient else handshake)(reached, harness)
        yield Target(
            implementation=reached,
            hello=hello,
            kubernetes=_release(hello, kubernetes),
            level=_level(hello, level),
            command=commands[0] if len(commands) == 1 else (),
            oracle=reference if commands or judged_as == "either" else None,
            judged_as=judged_as or usual(hello),
        )
    except CannotStartError as error:
        raise click.UsageError(str(error)) from None
    finally:
        for one in (*programs, reached):
            one.close()


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


def _words(implementation: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(implementation))
    except ValueError as error:
        raise click.BadParameter(f"{error}", param_hint="--implementation") from None
    if not words:
        raise click.BadParameter("the command is empty", param_hint="--implementation")
    return words


def _release(hello: Hello, asked: str | None) -> str:
    from numaproof.reference.departures.releases import UnknownReleaseError

    claimed = [one for one in RELEASES if one in hello.kubernetes]
    if not claimed:
        raise UnknownReleaseError(
            f"{hello.name} claims releases {', '.join(hello.kubernetes) or 'none'};"
            f" numaproof knows {', '.join(RELEASES)}"
        )
    if asked and asked not in claimed:
        raise click.BadParameter(
            f"{hello.name} claims {', '.join(claimed)}, not {asked}", param_hint="--kubernetes"
        )
    return asked or (NEWEST if NEWEST in claimed else claimed[-1])


def _level(hello: Hello, asked: Level | None) -> Level:
    from numaproof.conformance.cases.loading import applies

    if asked and not applies(asked, hello.level):
        raise click.BadParameter(
            f"{hello.name} claims only level {hello.level}, below {asked}",
            param_hint="--level",
        )
    return asked or hello.level
