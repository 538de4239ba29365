"""Durations as Go's package ``time`` reads and writes them."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"([0-9.]+)([a-zµμ]+)")
_SECOND = 10**9


def parse(text: str) -> int:
    """The nanoseconds of a duration that is written as it must be, such as ``1h30m``."""
    sign = -1 if text.startswith("-") else 1
    return sign * sum(int(Fraction(number) * _UNITS[unit]) for number, unit in _PART.findall(text))


def shown(nanoseconds: int) -> str:
    """A duration as Go writes it, such as ``1h30m0s``, ``1.5s`` or ``20ms``."""
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if not left:
        return "0s"
    if left < _SECOND:
        unit = next(unit for unit in ("ms", "µs", "ns") if left >= _UNITS[unit])
        return f"{sign}{_decimal(Fraction(left, _UNITS[unit]))}{unit}"
    minutes, rest = divmod(left, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(Fraction(rest, _SECOND))}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _decimal(value: Fraction) -> str:
    whole, rest = divmod(value * _SECOND, _SECOND)
    digits = f"{int(rest):09d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
