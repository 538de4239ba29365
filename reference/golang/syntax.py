"""JSON syntax as Go's ``encoding/json`` checks it, including its error messages."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from numaproof.reference.golang.text import quote

_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_DIGITS = re.compile(r"[0-9]*")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class GoJSONError(ValueError):
    """The text cannot be decoded; the message is Go's."""


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number, as written."""

    text: str


class Pairs(tuple[tuple[str, Any], ...]):
    """An object's fields in order, including repeated names."""

    __slots__ = ()


def parse(data: bytes) -> Any:
    """Parses a JSON text.

    Objects become `Pairs`, and numbers become `Number`; the other types are Python's.

    Raises:
        GoJSONError: the text is not JSON.
    """
    # Python parses plain JSON in the same way, but faster. Surrogates and invalid bytes differ.
    if b"\\u" not in data:
        with suppress(ValueError, RecursionError):
            return _PLAIN_JSON.decode(data.decode())
    scanner = _Scanner(data)
    try:
        return scanner.document()
    except RecursionError:
        # Go's limit is 10,000 levels; checkpoints have at most five.
        return scanner.fail("exceeded max depth")


def _no_number(word: str) -> NoReturn:
    """Rejects NaN and Infinity, which only Python accepts."""
    raise ValueError(word)


_PLAIN_JSON = json.JSONDecoder(
    object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=_no_number
)


class _Scanner:
    def __init__(self, data: bytes) -> None:
        # One character per byte, to match Go's positions and its quoting of bytes.
        self.text = data.decode("latin-1")
        self.at = 0

    def document(self) -> Any:
        tree = self.value()
        self.space()
        if self.at < len(self.text):
            self.fail("after top-level value")
        return tree

    def fail(self, where: str) -> NoReturn:
        if self.at >= len(self.text):
            raise GoJSONError("unexpected end of JSON input")
        raise GoJSONError(f"invalid character {_quote_character(self.text[self.at])} {where}")

    def fail_within(self, where: str) -> NoReturn:
        """Fails inside a token, where Go reports the end of the text as a space."""
        if self.at >= len(self.text):
            raise GoJSONError(f"invalid character ' ' {where}")
        self.fail(where)

    def space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def value(self) -> Any:
        self.space()
        first = self.peek()
        if first == "{":
            return self.object()
        if first == "[":
            return self.array()
        if first == '"':
            return self.string()
        for word, meaning in (("true", True), ("false", False), ("null", None)):
            if first == word[0]:
                return self.literal(word, meaning)
        if first and first in "-0123456789":
            return self.number()
        return self.fail("looking for beginning of value")

    def object(self) -> Pairs:
        self.at += 1
        pairs: list[tuple[str, Any]] = []
        self.space()
        if self.peek() == "}":
            self.at += 1
            return Pairs(pairs)
        while True:
            self.space()
            if self.peek() != '"':
                self.fail("looking for beginning of object key string")
            key = self.string()
            self.space()
            if self.peek() != ":":
                self.fail("after object key")
            self.at += 1
            pairs.append((key, self.value()))
            self.space()
            if self.peek() not in (",", "}"):
                self.fail("after object key:value pair")
            self.at += 1
            if self.text[self.at - 1] == "}":
                return Pairs(pairs)

    def array(self) -> list[Any]:
        self.at += 1
        items: list[Any] = []
        self.space()
        if self.peek() == "]":
            self.at += 1
            return items
        while True:
            items.append(self.value())
            self.space()
            if self.peek() not in (",", "]"):
                self.fail("after array element")
            self.at += 1
            if self.text[self.at - 1] == "]":
                return items

    def literal(self, word: str, meaning: bool | None) -> bool | None:  # noqa: FBT001 - a value
        for _place, letter in enumerate(word):
            if self.peek() != letter:
                self.fail_within(f"in literal {word} (expecting {_quote_character(letter)})")
            self.at += 1
        return meaning

    def digits(self, where: str) -> None:
        found = _DIGITS.match(self.text, self.at)
        assert found is not None
        if found.end() == self.at:
            self.fail_within(where)
        self.at = found.end()

    def number(self) -> Number:
        start = self.at
        if self.peek() == "-":
            self.at += 1
        if self.peek() == "0":
            self.at += 1
        else:
            self.digits("in numeric literal")
        if self.peek() == ".":
            self.at += 1
            self.digits("after decimal point in numeric literal")
        if self.peek() in ("e", "E"):
            self.at += 1
            if self.peek() in ("+", "-"):
                self.at += 1
            self.digits("in exponent of numeric literal")
        return Number(self.text[start : self.at])

    def string(self) -> str:
        self.at += 1
        parts: list[str] = []
        while True:
            found = _PLAIN.match(self.text, self.at)
            assert found is not None
            parts.append(found.group().encode("latin-1").decode("utf-8", "replace"))
            self.at = found.end()
            mark = self.peek()
            if mark == '"':
                self.at += 1
                return _join_parts(parts)
            if mark != "\\":
                self.fail("in string literal")
            self.at += 1
            parts.append(self.escape())

    def escape(self) -> str:
        mark = self.peek()
        if mark in _ESCAPES and mark:
            self.at += 1
            return _ESCAPES[mark]
        if mark != "u":
            self.fail_within("in string escape code")
        self.at += 1
        start = self.at
        for _ in range(4):
            if not self.peek() or self.peek() not in "0123456789abcdefABCDEF":
                self.fail_within("in \\u hexadecimal character escape")
            self.at += 1
        return chr(int(self.text[start : self.at], 16))


def _join_parts(parts: list[str]) -> str:
    # Two escaped surrogates form one character; a lone one becomes the replacement character.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _quote_character(character: str) -> str:
    return {"'": r"'\''", '"': "'\"'"}.get(character) or f"'{quote(character)[1:-1]}'"
