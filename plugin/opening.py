"""Opens the program under test for a session of tests."""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import pytest

from numaproof.cli.targets import Duration, open_target
from numaproof.conformance.execution.implementation import ImplementationFailure
from numaproof.conformance.known_failures import entries
from numaproof.conformance.known_failures.entries import KnownFailures
from numaproof.inputs.errors import DocumentError
from numaproof.protocol.events import SIDES
from numaproof.protocol.garbage import freeze_at_exit
from numaproof.protocol.messages import LEVELS
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.conformance.execution.run import Target


@contextmanager
def opened(
    implementation: str,
    kubernetes: str | None,
    level: str | None,
    timeout: str | None,
    judged_as: str | None,
) -> Iterator[Target]:
    """The target of a command, past its handshake; it is stopped when the block ends.

    An error fails the tests that need the target, without a traceback of the plugin.
    """
    freeze_at_exit()
    chosen: Any = _one_of("level", level, LEVELS)
    release = _one_of("kubernetes", kubernetes, RELEASES)
    side: Any = _one_of("as", judged_as, SIDES)
    try:
        seconds = Duration().convert(timeout or "30s", None, None)
        with open_target(implementation, seconds, release, chosen, side) as target:
            yield target
    except click.ClickException as error:
        raise _failed(f"numaproof: {error.format_message()}") from None
    except ImplementationFailure as failure:
        log = f"\n{failure.stderr}" if failure.stderr else ""
        raise _failed(
            f"numaproof: {implementation!r} did not answer hello: {failure}{log}"
        ) from None


def known(file: str | None, config: pytest.Config) -> KnownFailures:
    """What the project's file names; nothing without a file. A wrong one fails the tests."""
    try:
        found = entries.read(config.rootpath / file) if file else ()
    except DocumentError as error:
        raise _failed(f"numaproof: {error}") from None
    # A test plays one case on one machine.
    return KnownFailures(found, dt.datetime.now(dt.UTC).date(), whole=False)


def _one_of(name: str, value: str | None, known: Sequence[str]) -> str | None:
    if value is not None and value not in known:
        raise _failed(f"invalid numaproof_{name} {value!r}: choose from {', '.join(known)}")
    return value


def _failed(message: str) -> BaseException:
    return pytest.fail.Exception(message, pytrace=False)
