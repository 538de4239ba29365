"""Text functions that behave like Go's packages ``strings``, ``unicode`` and ``strconv``."""

from __future__ import annotations

import re

WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""The characters that ``strings.TrimSpace`` trims. NUL is not included."""

_UNDECODED_OFFSET = 0xDC00
_UNDECODED = re.compile("[\udc80-\udcff]")
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
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def printable(text: str) -> str:
    """Replaces each byte that is not UTF-8 with U+FFFD."""
    return _UNDECODED.sub("\ufffd", text)


def quote(text: str) -> str:
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if _UNDECODED.match(character):
        return f"\\x{code - _UNDECODED_OFFSET:02x}"
    if character.isascii():
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _FIVE_DIGITS else f"\\U{code:08x}"


def boolean(text: str) -> bool:
    """Parses a boolean like ``strconv.ParseBool``.

    Raises:
        ValueError: the text is not a boolean; the message is Go's.
    """
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')
