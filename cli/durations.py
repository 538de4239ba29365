"""Durations on the command line."""

from __future__ import annotations

import re
from typing import Any

import click

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Duration(click.ParamType[float]):
    """A positive duration such as ``0.5``, ``90s``, ``5m`` or ``1h``, in seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The duration in seconds."""
        match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([smh]?)", str(value))
        if match is None or not float(match[1]):
            self.fail(f"{value!r} is not a duration such as 90s, 5m or 1h", param, ctx)
        return float(match[1]) * _UNITS[match[2]]
