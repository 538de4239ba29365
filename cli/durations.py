"""A time that a user types."""

from __future__ import annotations

import re
from typing import Any

import click

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Duration(click.ParamType[float]):
    """A time such as ``0.5``, ``90s``, ``5m`` or ``1h``, in seconds; more than none."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The time in seconds."""
        match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([smh]?)", str(value))
        if match is None or not float(match[1]):
            self.fail(f"{value!r} is not a time such as 90s, 5m or 1h", param, ctx)
        return float(match[1]) * _UNITS[match[2]]
