"""Option types whose errors say which values are expected."""

from __future__ import annotations

import re
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


class ReleaseChoice(Choice):
    """A Kubernetes release such as 1.33, also written as a version: v1.33.2, v1.33.2-eks-1."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the release, without the parts of the version that follow."""
        return super().convert(minor_release(str(value)) or value, param, ctx)


def minor_release(version: str) -> str | None:
    """Returns the minor release of a version such as v1.33.2; None if it is malformed."""
    found = _VERSION.fullmatch(version)
    return found[1] if found else None


_VERSION = re.compile(r"v?(\d+\.\d+)(?:\.\d+(?:[-+.].*)?)?")


class IntRange(click.IntRange):
    """An integer with a lower bound."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Returns the integer."""
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            expected = f"expected an integer of at least {self.min}"
            self.fail(f"{str(value)!r} is invalid; {expected}", param, ctx)


class Date(click.DateTime):
    """A date such as 2026-01-31."""

    def __init__(self) -> None:
        super().__init__(["%Y-%m-%d"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns midnight of the date."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a date; expected one such as 2026-01-31", param, ctx)
