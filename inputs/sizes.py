"""Formats amounts of memory."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int, digits: int = 1) -> str:
    """Formats bytes in the largest binary unit, with at most `digits` decimal places."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:  # noqa: PLR2004 - the step between units
        value, unit = value / 1024, unit + 1
    # Round down, so that free memory is never overstated.
    factor = 10**digits
    text = f"{int(value * factor) / factor:.{digits}f}".rstrip("0").removesuffix(".")
    return f"{text} {_UNITS[unit]}"
