"""JSON as Go's ``encoding/json`` reads it, error texts included.

The kubelet shows these texts when a checkpoint file is damaged. A text is first checked as a
whole for syntax; then values are stored in fields, whose names match in any case, and the first
value of a wrong type is reported after all the others are stored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping

_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_DIGITS = re.compile(r"[0-9]*")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEEPEST = 10000


class GoJSONError(ValueError):
    """The text is not what is wanted; the message is Go's."""


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number as it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """Wants a JSON string; `go` is the name of the Go type."""

    go: str = "string"


@dataclass(frozen=True, slots=True)
class Unsigned:
    """Wants a JSON number without sign or fraction below 2**64."""

    go: str = "uint64"


@dataclass(frozen=True, slots=True)
class Keyed:
    """Wants a JSON object with any keys, all values of one kind."""

    values: Kind
    go: str


@dataclass(frozen=True, slots=True)
class Fields:
    """Wants a JSON object with these fields, as the Go structure `go` has them."""

    go: str
    fields: Mapping[str, Kind]


Kind = Text | Unsigned | Keyed | Fields


def decode(data: bytes, kind: Kind) -> Any:
    """The value of `kind` that the text holds; ``null`` leaves a field at its zero value.

    Raises:
        GoJSONError: bad syntax, or a value of a wrong type.
    """
    tree = _Scanner(data).document()
    store = _Store()
    found = store.convert(tree, kind, None, None, "")
    if store.error:
        raise GoJSONError(store.error)
    return found


class _Scanner:
    """Reads one JSON text; an object becomes a list of pairs, a number stays as written."""

    def __init__(self, data: bytes) -> None:
        # Every byte one character, so that positions and Go's quoting of bytes agree.
        self.text = data.decode("latin-1")
        self.at = 0

    def document(self) -> Any:
        tree = self.value(1)
        self.space()
        if self.at < len(self.text):
            self.fail("after top-level value")
        return tree

    def fail(self, where: str) -> NoReturn:
        if self.at >= len(self.text):
            raise GoJSONError("unexpected end of JSON input")
        raise GoJSONError(f"invalid character {_quoted(self.text[self.at])} {where}")

    def space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Any:
        self.space()
        first = self.peek()
        if first in ("{", "[") and depth > _DEEPEST:
            raise GoJSONError("exceeded max depth")
        if first == "{":
            return self.object(depth)
        if first == "[":
            return self.array(depth)
        if first == '"':
            return self.string()
        for word, meaning in (("true", True), ("false", False), ("null", None)):
            if first == word[0]:
                return self.literal(word, meaning)
        if first and first in "-0123456789":
            return self.number()
        return self.fail("looking for beginning of value")

    def object(self, depth: int) -> list[tuple[str, Any]]:
        self.at += 1
        pairs: list[tuple[str, Any]] = []
        self.space()
        if self.peek() == "}":
            self.at += 1
            return _Pairs(pairs)
        while True:
            self.space()
            if self.peek() != '"':
                self.fail("looking for beginning of object key string")
            key = self.string()
            self.space()
            if self.peek() != ":":
                self.fail("after object key")
            self.at += 1
            pairs.append((key, self.value(depth + 1)))
            self.space()
            if self.peek() not in (",", "}"):
                self.fail("after object key:value pair")
            self.at += 1
            if self.text[self.at - 1] == "}":
                return _Pairs(pairs)

    def array(self, depth: int) -> tuple[Any, ...]:
        self.at += 1
        items: list[Any] = []
        self.space()
        if self.peek() == "]":
            self.at += 1
            return ()
        while True:
            items.append(self.value(depth + 1))
            self.space()
            if self.peek() not in (",", "]"):
                self.fail("after array element")
            self.at += 1
            if self.text[self.at - 1] == "]":
                return tuple(items)

    def literal(self, word: str, meaning: bool | None) -> bool | None:  # noqa: FBT001 - a value
        for place, letter in enumerate(word):
            if self.peek() != letter:
                self.fail(f"in literal {word} (expecting {_quoted(word[place])})")
            self.at += 1
        return meaning

    def digits(self, where: str) -> None:
        found = _DIGITS.match(self.text, self.at)
        assert found is not None
        if found.end() == self.at:
            self.fail(where)
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
                return _joined(parts)
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
            self.fail("in string escape code")
        self.at += 1
        start = self.at
        for _ in range(4):
            if not self.peek() or self.peek() not in "0123456789abcdefABCDEF":
                self.fail("in \\u hexadecimal character escape")
            self.at += 1
        return chr(int(self.text[start : self.at], 16))


class _Pairs(list[tuple[str, Any]]):
    """An object's fields in order, repeated names included."""


def _joined(parts: list[str]) -> str:
    # Two escaped surrogates make one character; a lone one becomes the replacement character.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _quoted(character: str) -> str:
    if character == "'":
        return r"'\''"
    if character == '"':
        return "'\"'"
    escapes = {"\\": r"\\", "\a": r"\a", "\b": r"\b", "\f": r"\f", "\v": r"\v"}
    escapes |= {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
    if character in escapes:
        return f"'{escapes[character]}'"
    code = ord(character)
    if code < 0x20 or code == 0x7F:  # noqa: PLR2004 - ASCII control characters
        return f"'\\x{code:02x}'"
    return f"'{character}'" if character.isprintable() else f"'\\u{code:04x}'"


class _Store:
    """Stores a parsed text in fields, keeping the first error."""

    def __init__(self) -> None:
        self.error = ""

    def convert(self, tree: Any, kind: Kind, old: Any, struct: str | None, path: str) -> Any:
        """The value for a place that holds `old`, which stays where the text says nothing."""
        if tree is None:
            return old if old is not None else zero(kind)
        match kind:
            case Text() if isinstance(tree, str):
                return tree
            case Unsigned() if isinstance(tree, Number):
                if tree.text.isdigit() and int(tree.text) < 1 << 64:
                    return int(tree.text)
                return self.wrong(f"number {tree.text}", kind, old, struct, path)
            case Keyed() if isinstance(tree, _Pairs):
                entries = dict(old or {})
                for key, value in tree:
                    entries[key] = self.convert(value, kind.values, None, struct, path)
                return entries
            case Fields() if isinstance(tree, _Pairs):
                return self.fields(tree, kind, old, path)
            case _:
                return self.wrong(_name(tree), kind, old, struct, path)

    def fields(self, tree: _Pairs, kind: Fields, old: Any, path: str) -> dict[str, Any]:
        found = dict(old) if old is not None else zero(kind)
        names = {name.lower(): name for name in kind.fields}
        for key, value in tree:
            name = key if key in kind.fields else names.get(key.lower())
            if name is not None:
                place = f"{path}.{name}" if path else name
                found[name] = self.convert(
                    value, kind.fields[name], found[name], kind.go.rpartition(".")[2], place
                )
        return found

    def wrong(self, value: str, kind: Kind, old: Any, struct: str | None, path: str) -> Any:
        place = f"struct field {struct}.{path}" if struct else "value"
        self.error = self.error or (
            f"json: cannot unmarshal {value} into Go {place} of type {kind.go}"
        )
        return old if old is not None else zero(kind)


def zero(kind: Kind) -> Any:
    """What a place of this kind holds before anything is stored."""
    match kind:
        case Text():
            return ""
        case Unsigned():
            return 0
        case Keyed():
            return {}
        case Fields():
            return {name: zero(field) for name, field in kind.fields.items()}


def _name(tree: Any) -> str:
    match tree:
        case bool():
            return "bool"
        case str():
            return "string"
        case Number():
            return "number"
        case _Pairs():
            return "object"
        case _:
            return "array"
