"""Seeds on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence


class SeedRangeParam(click.ParamType[range]):
    """Seeds ``A:B``, from A up to but excluding B; there may be billions."""

    name = "A:B"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        """The seeds, in order."""
        if isinstance(value, range):
            return value
        first, _, stop = str(value).partition(":")
        try:
            seeds = range(int(first), int(stop))
        except ValueError:
            self.fail(f"{value!r} is not a range of seeds such as 0:1000", param, ctx)
        if seeds.start < 0 or not seeds:
            self.fail(f"{value!r} contains no seeds; put the lower bound first", param, ctx)
        return seeds


class SeedsParam(click.ParamType["Sequence[int]"]):
    """Seed ranges ``A:B`` and single seeds, separated by commas."""

    name = "A:B"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Sequence[int]:
        """The seeds in the order given, without repetition."""
        if not isinstance(value, str):
            return list(value)
        seeds: dict[int, None] = {}
        for part in value.split(","):
            alone = part.isdecimal()
            found = [int(part)] if alone else SeedRangeParam().convert(part, param, ctx)
            seeds |= dict.fromkeys(found)
        return list(seeds)
