"""Seeds on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence


class Seeds(click.ParamType["Sequence[int]"]):
    """Seeds ``A:B``, from A up to but without B, and single ones, with commas between them."""

    name = "A:B"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Sequence[int]:
        """The seeds, each once, in the order given."""
        if not isinstance(value, str):
            return list(value)
        seeds: dict[int, None] = {}
        for part in value.split(","):
            try:
                found = _range(part)
            except ValueError:
                self.fail(f"{part!r} is not a range of seeds such as 0:1000", param, ctx)
            if found.start < 0 or not found:
                self.fail(f"there are no seeds in {part!r}; write the lower first", param, ctx)
            seeds |= dict.fromkeys(found)
        return list(seeds)


def _range(part: str) -> range:
    """``A:B``, or one seed.

    Raises:
        ValueError: it is neither.
    """
    first, colon, end = part.partition(":")
    return range(int(first), int(end) if colon else int(first) + 1)
