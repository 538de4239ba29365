"""Parses numbers like Go, with the same syntax and error messages.

Package ``strconv`` parses *whole* strings. Package ``fmt`` scans *leading* numbers, which any text
may follow.
"""

from __future__ import annotations

import math
import re
import struct

from numaproof.reference.golang.text import WHITE_SPACE, quote

UNSIGNED_LIMIT = 1 << 64
"""Unsigned integers have 64 bits; products wrap around."""

_SIGNED_LIMIT = 1 << 63
_WHOLE = re.compile("([+-]?)([0-9]*)(.*)", re.DOTALL)
# White space may precede the number, except line breaks.
_LEADING = re.compile(f"[{WHITE_SPACE.replace(chr(10), '')}]*([+-]?)([0-9]+)(.*)", re.DOTALL)
_DIGITS = "[0-9](?:_?[0-9])*"
_HEXADECIMAL = "_?[0-9a-f](?:_?[0-9a-f])*"
_FLOAT = re.compile(
    rf"nan|[+-]?(?:inf(?:inity)?|(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:e[+-]?{_DIGITS})?"
    rf"|0x(?:{_HEXADECIMAL}\.?(?:[0-9a-f](?:_?[0-9a-f])*)?|\.{_HEXADECIMAL})p[+-]?{_DIGITS})",
    re.IGNORECASE,
)


class NumeralError(ValueError):
    """A text is not a number of the requested kind."""

    def __init__(self, function: str, text: str, cause: str) -> None:
        super().__init__(f"strconv.{function}: parsing {quote(text)}: {cause}")


def parse_signed(text: str) -> int:
    """Parses a whole text as a signed 64-bit decimal number.

    Raises:
        NumeralError: the text is not such a number; the message is Go's.
    """
    return _whole("Atoi", text)


def parse_unsigned(text: str) -> int:
    """Parses a whole text as an unsigned 64-bit decimal number.

    Raises:
        NumeralError: the text is not such a number; the message is Go's.
    """
    return _whole("ParseUint", text)


def _whole(function: str, text: str) -> int:
    match = _WHOLE.fullmatch(text)
    assert match
    sign, digits, rest = match.groups()
    value = _value(digits)
    refused_sign = sign and function == "ParseUint"
    # Go reads digits from the left, so an overflow precedes any error in the rest of the text.
    if value >= UNSIGNED_LIMIT and not refused_sign:
        raise NumeralError(function, text, "value out of range")
    if not digits or rest or refused_sign:
        raise NumeralError(function, text, "invalid syntax")
    if sign == "-":
        value = -value
    if function == "Atoi" and not -_SIGNED_LIMIT <= value < _SIGNED_LIMIT:
        raise NumeralError(function, text, "value out of range")
    return value


def leading_signed(text: str) -> int | None:
    """Scans a signed number at the start of the text, after spaces; None if there is none."""
    match = _LEADING.match(text)
    if not match:
        return None
    value = -_value(match[2]) if match[1] == "-" else _value(match[2])
    return value if -_SIGNED_LIMIT <= value < _SIGNED_LIMIT else None


def leading_unsigned(text: str, unit: str = "") -> int | None:
    """Scans an unsigned number at the start of the text, after spaces, followed by `unit`.

    Returns None if there is no number, if it has a sign, or if the unit is missing.
    """
    match = _LEADING.match(text)
    if not match or match[1] or not match[3].startswith(unit):
        return None
    value = _value(match[2])
    return value if value < UNSIGNED_LIMIT else None


def _value(digits: str) -> int:
    # More than 21 digits are out of range, and Python refuses to convert very long numbers.
    return int(digits.lstrip("0")[:21] or "0")


def float32(text: str) -> float:
    """Parses a whole text as a 32-bit floating-point number.

    Raises:
        NumeralError: the text is not such a number; the message is Go's.
    """
    if not _FLOAT.fullmatch(text):
        raise NumeralError("ParseFloat", text, "invalid syntax")
    plain = text.replace("_", "").lower()
    try:
        found = single(float.fromhex(plain) if "x" in plain else float(plain))
    except OverflowError:
        found = math.inf
    if math.isinf(found) and "inf" not in plain:
        raise NumeralError("ParseFloat", text, "value out of range")
    return found


def single(number: float) -> float:
    """Rounds to the nearest 32-bit floating-point number.

    Raises:
        OverflowError: the number is too large for 32 bits.
    """
    found: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return found
