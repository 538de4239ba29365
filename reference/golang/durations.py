"""Durations in Go's syntax: numbers with units, such as ``1h30m``."""

from __future__ import annotations

import re

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # the micro sign
    "μs": 10**3,  # the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
"""Nanoseconds."""
_SECOND = _UNITS["s"]
_MOST = 1 << 63
"""The magnitude limit in nanoseconds; only negative durations reach it."""
_PART = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>[^.0-9]*)")


class DurationError(ValueError):
    """The text is not a duration; the message is Go's."""


def nanoseconds(text: str) -> int:
    """Parses a duration like Go's ``time.ParseDuration``; returns nanoseconds.

    Raises:
        DurationError: the text is not a duration, or exceeds about 292 years.

    Requirements: CPU-CONFIG-014, CPU-RECONCILE-003.
    """
    invalid = DurationError(f"time: invalid duration {_quote(text)}")
    at = 1 if text[:1] in ("+", "-") else 0
    if text[at:] == "0":
        return 0
    if at == len(text):
        raise invalid
    total = 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or not (part["whole"] or part["fraction"]):
            raise invalid
        whole = part["whole"].lstrip("0")
        if len(whole) > len(str(_MOST)):
            raise invalid
        total += _part_nanoseconds(text, int(whole or 0), part["fraction"] or "", part["unit"])
        if total > _MOST:
            raise invalid
        at = part.end()
    if text[0] == "-":
        return -total
    if total == _MOST:
        raise invalid
    return total


def format_duration(nanoseconds: int) -> str:
    """Formats a duration like Go's ``Duration.String``, such as ``1h30m0s`` or ``1.5s``."""
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if not left:
        return "0s"
    if left < _SECOND:
        unit = next(unit for unit in ("ms", "µs", "ns") if left >= _UNITS[unit])
        return f"{sign}{_decimal(left, _UNITS[unit])}{unit}"
    minutes, rest = divmod(left, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, _SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _decimal(amount: int, size: int) -> str:
    whole, rest = divmod(amount, size)
    digits = f"{rest * _SECOND // size:09d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def _part_nanoseconds(text: str, whole: int, fraction: str, unit: str) -> int:
    if whole > _MOST:
        raise DurationError(f"time: invalid duration {_quote(text)}")
    if not unit:
        raise DurationError(f"time: missing unit in duration {_quote(text)}")
    if unit not in _UNITS:
        raise DurationError(f"time: unknown unit {_quote(unit)} in duration {_quote(text)}")
    size = _UNITS[unit]
    digits = fraction[: len(str(_MOST)) - 1]
    part: int = int(digits or 0) * size // 10 ** len(digits)
    return whole * size + part


def _quote(text: str) -> str:
    """Quotes a text like Go's package ``time``, which escapes non-ASCII characters byte by byte."""
    quoted = ""
    for character in text:
        if character < " " or character > "\x7f":
            quoted += "".join(f"\\x{byte:02x}" for byte in character.encode(errors="replace"))
        else:
            quoted += f"\\{character}" if character in '"\\' else character
    return f'"{quoted}"'
