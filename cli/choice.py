"""Options with a fixed set of values that suggest the right one for a typo."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import click


class Choice(click.Choice[Any]):
    """A `click.Choice` whose error suggests the value that was probably meant."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Returns the error for a value that is not a choice."""
        words = [one for one in map(str, self.choices) if one[0].isalpha()]  # not releases
        near = [one for one in words if one.startswith(str(value))]
        near = near or get_close_matches(str(value), words, n=1)
        if len(near) == 1:
            return f"unknown value {value!r}; did you mean {near[0]!r}?"
        return super().get_invalid_choice_message(value, ctx)
