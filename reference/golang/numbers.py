"""Numbers as the kubelet reads them from text: what it takes, what it refuses, and its words.

Two ways are in use. *Whole* texts (ids, distances, sizes in names) must be a number and nothing
else. *Leading* numbers (cache attributes, counts of pages) may be followed by anything.
"""

from __future__ import annotations

import re

from numaproof.reference.cadvisor.sysfs import WHITE_SPACE, DiscoveryError

UNSIGNED_LIMIT = 1 << 64
"""Sizes are 64 bits wide, and wrap around where they grow in a multiplication."""

_SIGNED_LIMIT = 1 << 63
_WHOLE = re.compile("([+-]?)([0-9]*)(.*)", re.DOTALL)
# A line break before the number spoils it, other white space does not.
_LEADING = re.compile(f"[{WHITE_SPACE.replace(chr(10), '')}]*([+-]?)([0-9]+)(.*)", re.DOTALL)
_UNDECODED_OFFSET = 0xDC00
_UNDECODED = frozenset(map(chr, range(_UNDECODED_OFFSET + 0x80, _UNDECODED_OFFSET + 0x100)))
_FIVE_DIGITS = 0x10000
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


class NumeralError(DiscoveryError):
    """A text is not a number of the kind asked for."""

    def __init__(self, function: str, text: str, cause: str) -> None:
        """Words it as Go's strconv package does, whose `function` the kubelet calls."""
        super().__init__(f"strconv.{function}: parsing {quote(text)}: {cause}")


def signed(text: str) -> int:
    """The whole text as a decimal number of 64 bits, a sign allowed.

    Raises:
        NumeralError: it is something else; the message is the kubelet's.
    """
    return _whole("Atoi", text)


def unsigned(text: str) -> int:
    """The whole text as a decimal number of 64 bits without a sign.

    Raises:
        NumeralError: it is something else; the message is the kubelet's.
    """
    return _whole("ParseUint", text)


def _whole(function: str, text: str) -> int:
    match = _WHOLE.fullmatch(text)
    assert match
    sign, digits, rest = match.groups()
    value = _value(digits)
    refused_sign = sign and function == "ParseUint"
    # The digits are walked from the left, so one too many is seen before what follows them.
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
    """The number that the text begins with, after spaces; a sign is allowed. None if none."""
    match = _LEADING.match(text)
    if not match:
        return None
    value = -_value(match[2]) if match[1] == "-" else _value(match[2])
    return value if -_SIGNED_LIMIT <= value < _SIGNED_LIMIT else None


def leading_unsigned(text: str, unit: str = "") -> int | None:
    """The number that the text begins with, after spaces, and `unit` right behind it.

    None where there is no such number, it has a sign, or the unit is not there.
    """
    match = _LEADING.match(text)
    if not match or match[1] or not match[3].startswith(unit):
        return None
    value = _value(match[2])
    return value if value < UNSIGNED_LIMIT else None


def _value(digits: str) -> int:
    # Beyond 21 digits any number is out of range, and Python refuses to convert very long ones.
    return int(digits.lstrip("0")[:21] or "0")


def quote(text: str) -> str:
    """The text between double quotes, with everything that does not print escaped."""
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if character in _UNDECODED:
        return f"\\x{code - _UNDECODED_OFFSET:02x}"
    if character.isascii():
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _FIVE_DIGITS else f"\\U{code:08x}"
