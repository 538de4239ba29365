"""Opens the implementation under test: the reference, or programs that speak the protocol."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.differential.by_release import ByRelease
from numaproof.conformance.execution.harness_run import DEFAULT_TIMEOUT
from numaproof.conformance.execution.implementation import (
    Implementation,
    handshake,
    patient_handshake,
)
from numaproof.conformance.execution.run import Target, default_baseline, reference
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.conformance.judging.baselines import DOCUMENTED, KUBELET
from numaproof.protocol.releases import NEWEST, RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.protocol.events import BaselineChoice
    from numaproof.protocol.messages import Hello, Level


class TargetError(ValueError):
    """An argument doesn't fit the implementation; `choice` is the argument's name, or empty."""

    def __init__(self, choice: str, message: str) -> None:
        super().__init__(message)
        self.choice = choice


@dataclass(frozen=True)
class TargetOptions:
    """What to test, and how to judge it.

    Attributes:
        implementation: the command line of a program, or of several programs for different
            releases; None for the reference.
        timeout: the time limit for a call, in seconds.
        kubernetes: the release to test against; None for the newest that the program claims.
        level: how closely to compare answers; None for the level that the program claims.
        baseline: which behaviour to expect where the kubelet contradicts its documentation; None
            for the default that follows from the program's claims.
    """

    implementation: str | Sequence[str] | None = None
    timeout: float = DEFAULT_TIMEOUT
    kubernetes: str | None = None
    level: Level | None = None
    baseline: BaselineChoice | None = None


@contextmanager
def open_target(
    options: TargetOptions, harness: str = "numaproof", *, patient: bool = False
) -> Iterator[Target]:
    """Opens a target and closes it at the end of the block.

    The reference follows the baseline that it is judged by.

    Args:
        options: what to open.
        harness: the harness's name in `hello`.
        patient: whether to repeat `hello` once if the program is killed before it answers.

    Raises:
        TargetError: an option doesn't fit the implementation, or a command line is invalid.
        CannotStartError: the program can't be started.
        ImplementationFailure: the program didn't answer `hello`.
    """
    given = () if options.implementation is None else options.implementation
    commands = [_words(one) for one in ((given,) if isinstance(given, str) else given)]
    programs: list[Implementation] = [Subprocess(words, options.timeout) for words in commands]
    own = reference(DOCUMENTED if options.baseline == "documented" else KUBELET)
    reached: Implementation = programs[0] if programs else own
    try:
        if len(programs) > 1:
            reached = ByRelease(programs, harness)
        hello = (patient_handshake if patient else handshake)(reached, harness)
        yield Target(
            implementation=reached,
            hello=hello,
            kubernetes=_release(hello, options.kubernetes),
            level=_level(hello, options.level),
            command=commands[0] if len(commands) == 1 else (),
            oracle=reference if commands or options.baseline == "either" else None,
            baseline=options.baseline or default_baseline(hello),
        )
    finally:
        for one in (*programs, reached):
            one.close()


def _words(implementation: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(implementation))
    except ValueError as error:
        raise TargetError("implementation", f"{error}") from None
    if not words:
        raise TargetError("implementation", "the command is empty")
    return words


def _release(hello: Hello, requested_release: str | None) -> str:
    claimed = [one for one in RELEASES if one in hello.kubernetes]
    if not claimed:
        raise TargetError(
            "",
            f"{hello.name} claims releases {', '.join(hello.kubernetes) or 'none'};"
            f" numaproof supports {', '.join(RELEASES)}",
        )
    if requested_release and requested_release not in claimed:
        message = f"{hello.name} claims {', '.join(claimed)}, not {requested_release}"
        raise TargetError("kubernetes", message)
    return requested_release or (NEWEST if NEWEST in claimed else claimed[-1])


def _level(hello: Hello, requested_level: Level | None) -> Level:
    if requested_level and not applies(requested_level, hello.level):
        message = f"{hello.name} claims only level {hello.level}, below {requested_level}"
        raise TargetError("level", message)
    return requested_level or hello.level
