"""Numbers as Go reads them from text: what it accepts, what it refuses, and its words.

Package ``strconv`` reads *whole* texts, which must be a number and nothing else. Package ``fmt``
scans *leading* numbers, which anything may follow.
"""

from __future__ import annotations

import math
import re
import struct

from numaproof.reference.golang.text import WHITE_SPACE, quote

UNSIGNED_LIMIT = 1 << 64
"""Unsigned integers are 64 bits wide; products wrap around."""

_SIGNED_LIMIT = 1 << 63
_WHOLE = re.compile("([+-]?)([0-9]*)(.*)", re.DOTALL)
# A line break before the number spoils it, other white space does not.
_LEADING = re.compile(f"[{WHITE_SPACE.replace(chr(10), '')}]*([+-]?)([0-9]+)(.*)", re.DOTALL)
_DIGITS = "[0-9](?:_?[0-9])*"
_HEXADECIMAL = "_?[0-9a-f](?:_?[0-9a-f])*"
_FLOAT = re.compile(
    rf"nan|[+-]?(?:inf(?:inity)?|(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:e[+-]?{_DIGITS})?"
    rf"|0x(?:{_HEXADECIMAL}\.?(?:[0-9a-f](?:_?[0-9a-f])*)?|\.{_HEXADECIMAL})p[+-]?{_DIGITS})",
    re.IGNORECASE,
)


class NumeralError(ValueError):
    """A text is not a number of the kind asked for."""

    def __init__(self, function: str, text: str, cause: str) -> None:
        """Words it as the `function` of package ``strconv`` does."""
        super().__init__(f"strconv.{function}: parsing {quote(text)}: {cause}")


def parse_signed(text: str) -> int:
    """The whole text as a decimal number of 64 bits, a sign allowed.

    Raises:
        NumeralError: it is something else; the message is Go's.
    """
    return _whole("Atoi", text)


def parse_unsigned(text: str) -> int:
    """The whole text as a decimal number of 64 bits without a sign.

    Raises:
        NumeralError: it is something else; the message is Go's.
    """
    return _whole("ParseUint", text)


def _whole(function: str, text: str) -> int:
    match = _WHOLE.fullmatch(text)
    assert match
    sign, digits, rest = match.groups()
    value = _value(digits)
    refused_sign = sign and function == "ParseUint"
    # Go walks the digits from the left, so it sees one too many before what follows them.
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
    """The number that the text begins with, after spaces, a sign allowed; None if there is none."""
    match = _LEADING.match(text)
    if not match:
        return None
    value = -_value(match[2]) if match[1] == "-" else _value(match[2])
    return value if -_SIGNED_LIMIT <= value < _SIGNED_LIMIT else None


def leading_unsigned(text: str, unit: str = "") -> int | None:
    """The number that the text begins with, after spaces, and `unit` right behind it.

    None if there is no such number, if it has a sign, or if the unit is missing.
    """
    match = _LEADING.match(text)
    if not match or match[1] or not match[3].startswith(unit):
        return None
    value = _value(match[2])
    return value if value < UNSIGNED_LIMIT else None


def _value(digits: str) -> int:
    # Beyond 21 digits any number is out of range, and Python refuses to convert very long ones.
    return int(digits.lstrip("0")[:21] or "0")


def float32(text: str) -> float:
    """The whole text as a floating-point number of 32 bits.

    Raises:
        NumeralError: it is something else; the message is Go's.
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
    """The nearest number of 32 bits.

    Raises:
        OverflowError: the number is too large for 32 bits.
    """
    found: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return found
