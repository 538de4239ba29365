"""A command whose options can depend on their order, and on whether they have a value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL = "*"
"""The value of an option that is given without one."""

_ORDER = "numaproof.order"


class OrderedCommand(click.Command):
    """A command that records the order of its options.

    An option with a `flag_value` can be given without a value. In that case, click would take the
    file that follows as its value.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the arguments."""
        words = [*_with_values(self, args)]
        _, _, order = self.make_parser(ctx).parse_args([*words])
        ctx.meta[_ORDER] = tuple(param.name for param in order)
        return super().parse_args(ctx, words)


def options_in_order(ctx: click.Context) -> tuple[str, ...]:
    """Returns the names of the options in the order of the command line, each as often as given."""
    order: tuple[str, ...] = ctx.meta[_ORDER]
    return order


def _with_values(command: click.Command, args: list[str]) -> Iterator[str]:
    """Adds `ALL` to options that have an optional value and precede a file."""
    optional = {
        name
        for param in command.params
        if isinstance(param, click.Option) and param.flag_value == ALL
        for name in param.opts
    }
    end = args.index("--") if "--" in args else len(args)
    for at, word in enumerate(args):
        value = args[at + 1] if at + 1 < len(args) else ""
        is_file = value == "-" or (bool(value) and Path(value).exists())
        yield f"{word}={ALL}" if word in optional and at < end and is_file else word
