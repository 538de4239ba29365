"""Ranges of seeds on the command line."""

from __future__ import annotations

from typing import Any

import click


class Seeds(click.ParamType[range]):
    """Seeds ``A:B``, from A up to but without B; or one seed."""

    name = "A:B"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        """The seeds as a range."""
        if isinstance(value, range):
            return value
        first, colon, end = str(value).partition(":")
        try:
            low = int(first)
            seeds = range(low, int(end) if colon else low + 1)
        except ValueError:
            self.fail(f"{value!r} is not a range of seeds such as 0:1000", param, ctx)
        if low < 0 or not seeds:
            self.fail(f"there are no seeds in {value!r}; write the lower first", param, ctx)
        return seeds
