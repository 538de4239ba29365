"""Starts the program under test for a test session."""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import pytest

from numaproof.cli.targets import Duration, open_target
from numaproof.conformance.execution.implementation import ImplementationFailure
from numaproof.conformance.known_failures import entries
from numaproof.inputs.errors import DocumentError
from numaproof.protocol.events import BASELINE_CHOICES
from numaproof.protocol.garbage import freeze_at_exit
from numaproof.protocol.messages import LEVELS
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.conformance.execution.run import Target


@contextmanager
def start_target(implementation: str, options: Mapping[str, str | None]) -> Iterator[Target]:
    """Starts a program and yields the target after its handshake; stops it after the block.

    Errors fail the tests that need the target, without a traceback. `options` holds the plugin's
    options by name.
    """
    freeze_at_exit()
    for name, known in (
        ("level", LEVELS),
        ("kubernetes", RELEASES),
        ("baseline", BASELINE_CHOICES),
    ):
        value = options[name]
        if value is not None and value not in known:
            choices = ", ".join(known)
            raise _failure(f"invalid numaproof_{name} {value!r} (expected one of {choices})")
    level: Any = options["level"]
    side: Any = options["baseline"]
    try:
        seconds = Duration().convert(options["timeout"] or "30s", None, None)
        with open_target(implementation, seconds, options["kubernetes"], level, side) as target:
            yield target
    except click.ClickException as error:
        raise _failure(f"numaproof: {error.format_message()}") from None
    except ImplementationFailure as failure:
        log = f"\n{failure.stderr}" if failure.stderr else ""
        raise _failure(
            f"numaproof: {implementation!r} did not answer hello: {failure}{log}"
        ) from None


def read_known_failures(file: str | None, config: pytest.Config) -> entries.KnownFailures:
    """Reads the project's known failures, if a file is given; an invalid file fails the tests."""
    try:
        found = entries.read(config.rootpath / file) if file else ()
    except DocumentError as error:
        raise _failure(f"numaproof: {error}") from None
    # A test runs one case on one machine.
    return entries.KnownFailures(found, dt.datetime.now(dt.UTC).date(), whole=False)


def _failure(message: str) -> BaseException:
    return pytest.fail.Exception(message, pytrace=False)
