"""Files that a command reads, of which standard input can be one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_read_once(files: Iterable[TextIO | None]) -> None:
    """Checks that at most one of the files is standard input.

    Raises:
        click.UsageError: it is not so.
    """
    if sum(file is not None and file.name == "<stdin>" for file in files) > 1:
        raise click.UsageError("standard input can be read once: only one file can be -")
