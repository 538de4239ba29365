"""Options that take one value, given twice: click would silently use the last value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence


def require_single(command: click.Command, words: Sequence[str]) -> None:
    """Checks that the words of a command have each option with one value only once.

    Raises:
        click.UsageError: an option occurs twice.
    """
    if isinstance(command, click.Group):
        return
    context = click.Context(command, resilient_parsing=True)
    try:
        _, _, order = command.make_parser(context).parse_args(list(words))
    except click.UsageError:
        return  # click reports it when it parses the words itself
    for param in command.params:
        single = isinstance(param, click.Option) and not (
            param.multiple or param.count or param.is_flag
        )
        if single and order.count(param) > 1:
            raise click.UsageError(f"{param.opts[0]} is given twice; give it once")
