"""Decodes JSON like Go's ``encoding/json``, including its error messages.

The syntax of the whole text is checked first. Then values are stored in fields, whose names are
matched regardless of case. The first value of the wrong type is reported after all others have been
stored. An error from a type with its own decoder ends decoding immediately.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numaproof.reference.golang import numbers
from numaproof.reference.golang.syntax import GoJSONError, Number, Pairs, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Text:
    """A JSON string; `go` is the name of the Go type."""

    go: str = "string"


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A JSON number below 2**64 without a sign or fraction."""

    go: str = "uint64"


@dataclass(frozen=True, slots=True)
class Signed:
    """A JSON number without a fraction that fits in `bits` bits, including the sign."""

    go: str = "int"
    bits: int = 64


@dataclass(frozen=True, slots=True)
class Boolean:
    """``true`` or ``false``; None if absent or ``null``."""

    go: str = "bool"


@dataclass(frozen=True, slots=True)
class Custom:
    """A type with its own decoder, `read`, which takes a value that `parse` returned.

    A ValueError from `read` ends decoding; a TypeError means that the value has the wrong type.
    """

    go: str
    read: Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """A JSON object with arbitrary keys and values of one kind.

    With `integer_keys`, keys are integers in quotes, stored as integers. An absent object is None
    unless it `starts_empty`; ``null`` is always None.
    """

    values: Kind
    go: str
    integer_keys: bool = False
    starts_empty: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """A JSON array with values of one kind; None if absent or ``null``."""

    values: Kind
    go: str


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """A JSON object with the given fields, for the Go type `go`.

    A `pointer` is None for ``null``. `embedded_in` names the embedded structure that a field
    belongs to, for errors. If `check` is set, the type has its own decoder, and a ValueError from
    `check` is one of its errors. `dump` replaces Go's default dump.
    """

    go: str
    fields: Mapping[str, Kind]
    pointer: bool = False
    embedded_in: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Mapping[str, Any]], object] | None = None
    dump: Callable[[Any], str] | None = None


Kind = Text | Unsigned | Signed | Boolean | Custom | Map | Array | Fields


def decode_partly(data: bytes, kind: Kind) -> tuple[Any, str]:
    """Decodes as much as possible; returns the value, and the error or an empty string."""
    try:
        tree = parse(data)
    except GoJSONError as error:
        return zero(kind), str(error)
    return _decode_tree(tree, kind)


def convert(value: Any, kind: Kind) -> tuple[Any, str]:
    """Decodes plain Python values as `decode_partly` decodes JSON."""
    return _decode_tree(_tree(value), kind)


def _decode_tree(tree: Any, kind: Kind) -> tuple[Any, str]:
    store = _Store()
    found = store.convert(tree, kind, None, None, "")
    return found, store.error


def _tree(value: Any) -> Any:
    """Converts plain Python values to those that `parse` would return."""
    match value:
        case dict():
            return Pairs((key, _tree(inner)) for key, inner in value.items())
        case list() | tuple():
            return [_tree(inner) for inner in value]
        case int() | float() if not isinstance(value, bool):
            return Number(str(value))
        case _:
            return value


class _Store:
    """Stores a parsed text in fields, and keeps the error that aborted it, else the first error."""

    def __init__(self) -> None:
        self.error = ""
        self.has_aborted = False

    def convert(self, tree: Any, kind: Kind, old: Any, struct: str | None, path: str) -> Any:
        """Returns a field's new value, which is `old` if the JSON value does not replace it."""
        found = old if old is not None else zero(kind)
        match kind:
            case Custom():
                found = self.decode_custom(tree, kind, struct, path)
            case Map() | Array() | Fields(pointer=True) if tree is None:
                found = None
            case _ if tree is None:
                pass
            case Text() | Boolean() if isinstance(tree, str if isinstance(kind, Text) else bool):
                found = tree
            case Unsigned() | Signed() if isinstance(tree, Number):
                found = self.decode_number(tree.text, kind, found, struct, path)
            case Map() if isinstance(tree, Pairs):
                found = self.decode_map(tree, kind, found, struct, path)
            case Array() if isinstance(tree, list):
                found = [self.convert(value, kind.values, None, struct, path) for value in tree]
            case Fields(check=check) if check is not None:
                found = self.decode_checked(tree, kind, struct, path)
            case Fields() if isinstance(tree, Pairs):
                found = self.decode_fields(tree, kind, found, struct, path)
            case _:
                self.report_mismatch(_name(tree), kind.go, struct, path)
        return found

    def decode_fields(
        self, tree: Pairs, kind: Fields, old: Any, struct: str | None, path: str
    ) -> dict[str, Any]:
        found = dict(old or _zeros(kind))
        names = {name.lower(): name for name in kind.fields}
        # For types with their own decoder, errors name the structure around them.
        if kind.check is None or struct is None:
            struct = kind.go.rpartition(".")[2]
        for key, value in tree:
            name = key if key in kind.fields else names.get(key.lower())
            if name is not None:
                place = ".".join(filter(None, (path, kind.embedded_in.get(name), name)))
                found[name] = self.convert(value, kind.fields[name], found[name], struct, place)
                if self.has_aborted:
                    break
        return found

    def decode_checked(
        self, tree: Any, kind: Fields, struct: str | None, path: str
    ) -> dict[str, Any]:
        own = _Store()
        found = _zeros(kind)
        if isinstance(tree, Pairs):
            found = own.decode_fields(tree, kind, None, struct, path)
        elif tree is not None:
            own.report_mismatch(_name(tree), kind.go, struct, path)
        assert kind.check is not None
        try:
            if not own.error:
                kind.check(found)
        except ValueError as error:
            own.error = str(error)
        if own.error:
            self.error, self.has_aborted = own.error, True
        return found

    def decode_custom(self, tree: Any, kind: Custom, struct: str | None, path: str) -> Any:
        try:
            return kind.read(tree)
        except TypeError:
            self.report_mismatch(_name(tree), kind.go, struct, path)
        except ValueError as error:
            self.error, self.has_aborted = str(error), True
        return None

    def decode_number(
        self, text: str, kind: Unsigned | Signed, old: int, struct: str | None, path: str
    ) -> int:
        found = _integer(text, kind)
        if found is None:
            self.report_mismatch(f"number {text}", kind.go, struct, path)
            return old
        return found

    def decode_map(
        self, tree: Pairs, kind: Map, old: Any, struct: str | None, path: str
    ) -> dict[Any, Any]:
        found = dict(old or {})
        for key, value in tree:
            stored = self.convert(value, kind.values, None, struct, path)
            if self.has_aborted:
                break
            place = _integer(key, Signed()) if kind.integer_keys else key
            if place is None:
                self.report_mismatch(f"number {key}", "int", struct, path)
            else:
                found[place] = stored
        return found

    def report_mismatch(self, value: str, go: str, struct: str | None, path: str) -> None:
        place = f"struct field {struct}.{path}" if struct else "value"
        self.error = self.error or f"json: cannot unmarshal {value} into Go {place} of type {go}"


def zero(kind: Kind) -> Any:
    match kind:
        case Text():
            return ""
        case Unsigned() | Signed():
            return 0
        case Boolean() | Custom():
            return None
        case Map():
            return {} if kind.starts_empty else None
        case Array() | Fields(pointer=True):
            return None
        case Fields():
            return _zeros(kind)


def _zeros(kind: Fields) -> dict[str, Any]:
    return {name: zero(field) for name, field in kind.fields.items()}


def _integer(text: str, kind: Unsigned | Signed) -> int | None:
    try:
        if isinstance(kind, Unsigned):
            return numbers.parse_unsigned(text)
        number = numbers.parse_signed(text)
    except numbers.NumeralError:
        return None
    limit = 1 << kind.bits - 1
    return number if -limit <= number < limit else None


def _name(tree: Any) -> str:
    match tree:
        case bool():
            return "bool"
        case str():
            return "string"
        case Number():
            return "number"
        case Pairs():
            return "object"
        case _:
            return "array"
