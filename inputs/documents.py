"""YAML documents that record the line of each value.

All handwritten files, such as machine profiles and case tables, are read here, so that every error
can name the file, line and field. The language is the unambiguous part of YAML: ``true``,
``false``, ``null``, decimal numbers, strings, lists and mappings. Tags, duplicate keys, numbers
beyond 64 bits, excessive depth or size, and aliases (unless allowed) are errors.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from numaproof.inputs import door, json_documents
from numaproof.inputs.errors import DocumentError, PathTuple, dotted_path
from numaproof.inputs.plurals import plural

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # pragma: no cover - PyYAML built without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

__all__ = [
    "HANDWRITTEN",
    "LISTING",
    "Document",
    "DocumentError",
    "Limits",
    "MergedDocument",
    "PathTuple",
    "apply_patch",
    "dotted_path",
    "load",
    "parts",
    "value_at",
]


class Limits(NamedTuple):
    """How large a file can be.

    Attributes:
        size: bytes in the file, and characters in all its strings after expanding aliases.
        values: values after expanding aliases.
    """

    size: int
    values: int


MAX_DEPTH = 40
HANDWRITTEN = Limits(door.DOCUMENT_BYTES, 100_000)
LISTING = Limits(door.MAX_BYTES, 1_000_000)
"""The limits of a listing of several thousand pods, which the user's own cluster writes."""

_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1
_MAX_DIGITS = 20


def _integer(text: str) -> int:
    # Readers in other languages have at most 64 bits for a number.
    if len(text.lstrip("+-")) > _MAX_DIGITS or not _SMALLEST <= (number := int(text)) <= _LARGEST:
        raise OverflowError
    return number


def _fraction(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise OverflowError
    return number


_TAG = "tag:yaml.org,2002:"

_SCALARS: dict[str, Any] = {
    "str": str,
    "int": _integer,
    "float": _fraction,
    "bool": lambda text: text == "true",
    "null": lambda _: None,
}

_IMPLICIT = (
    ("bool", re.compile(r"true|false")),
    ("null", re.compile(r"~|null|")),
    ("int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)")),
    ("float", re.compile(r"[-+]?[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?")),
)
"""Patterns of plain scalars that are not strings: only JSON's types (no ``on``, no ``1:30``)."""

_OCTAL = re.compile(r"0[0-7]{1,21}")
"""Numbers that are octal to the parser of Kubernetes (YAML 1.1), such as ``0644``."""

_TAB = re.compile(r" *\t")
"""The start of a line that is indented with a tab."""

_PERHAPS_NO_TEXT = frozenset("tfn~-+0123456789")
"""First characters of plain scalars that may not be strings."""

_Place = tuple[int, "Mapping[str, _Place]"]
"""The line of a value, from 0 (in a mapping: of its key), and the places of its children."""

_NOTHING: Mapping[str, _Place] = {}


class Document:
    """A parsed document.

    Attributes:
        file: the name to use in messages.
        data: the contents as dicts, lists, str, int, float, bool and None.
        values: the number of values, after expanding aliases.
    """

    __slots__ = ("_before", "_place", "data", "file", "values")

    def __init__(
        self, file: str, place: _Place, data: Any, values: int = 0, before: int = 0
    ) -> None:
        """Creates a document; `before` lines of the file precede it."""
        self.file = file
        self.data = data
        self.values = values
        self._place = place
        self._before = before

    def locate(self, path: PathTuple = ()) -> tuple[str, int]:
        """Returns the file and line (from 1) of the value at ``path``.

        If there is none, they are those of its nearest existing parent. For a value in a mapping,
        this is the line of its key.
        """
        place = self._place
        for step in path:
            found = place[1].get(str(step))
            if found is None:
                break
            place = found
        return self.file, self._before + place[0] + 1

    def line(self, path: PathTuple = ()) -> int:
        """Returns the line of the value at ``path``, as `locate` does."""
        return self.locate(path)[1]

    def below(self, path: PathTuple) -> "Document":
        """Returns the existing value at ``path`` as a document, with the file's line numbers."""
        place, data = self._place, self.data
        for step in path:
            place, data = place[1].get(str(step), (place[0], {})), data[step]
        return Document(self.file, place, data, self.values, self._before)

    def at_lines(self, lines: Sequence[int]) -> "Document":
        """Returns the document with other line numbers: the one at index 0 replaces the first."""

        def move(place: _Place) -> _Place:
            line = lines[min(self._before + place[0], len(lines) - 1)] - 1
            return line, {step: move(child) for step, child in place[1].items()}

        return Document(self.file, move(self._place), self.data, self.values)

    def error(self, path: PathTuple, message: str, fix: str = "") -> DocumentError:
        """Creates an error about the value at ``path``."""
        file, line = self.locate(path)
        return DocumentError(file, line, dotted_path(path), message, fix)


_NO_MARKS: Mapping[str, Document] = {}


class MergedDocument(Document):
    """A mapping whose values come from several documents, each with its own file and lines."""

    __slots__ = ("_around", "_marks", "_parts")

    def __init__(
        self,
        around: Document,
        parts: Mapping[str, Document],
        marks: Mapping[str, Document] = _NO_MARKS,
    ) -> None:
        """Merges `parts` by name.

        Names in `marks` have a place, but no value. All others are where `around` is.
        """
        data = {name: part.data for name, part in parts.items()}
        super().__init__(around.file, (0, {}), data, around.values)
        self._around = around
        self._parts = dict(parts)
        self._marks = marks

    def locate(self, path: PathTuple = ()) -> tuple[str, int]:
        """Returns the file and line of the value at ``path``, or of its nearest parent."""
        name = str(path[0]) if path else ""
        part = self._parts.get(name) or self._marks.get(name)
        return part.locate(path[1:]) if part else self._around.locate()

    def below(self, path: PathTuple) -> Document:
        """Returns the existing value at ``path`` as a document with its file and lines."""
        return self._parts[str(path[0])].below(path[1:]) if path else self


def parts(document: Document) -> dict[str, Document]:
    """Returns the values of a mapping as documents, by name."""
    return {name: document.below((name,)) for name in document.data}


def apply_patch(document: Document, patch: Document) -> Document:
    """Applies a JSON merge patch (RFC 7396): null removes a value, and lists are replaced."""
    found = parts(document)
    for name, part in parts(patch).items():
        below = found.get(name)
        if part.data is None:
            found.pop(name, None)
        elif not isinstance(part.data, dict):
            found[name] = part
        elif below is not None and isinstance(below.data, dict):
            found[name] = apply_patch(below, part)
        else:
            found[name] = apply_patch(MergedDocument(part, {}), part)
    return MergedDocument(document, found)


def value_at(value: Any, path: PathTuple) -> Any:
    """Returns the value at a path through mappings and lists; None if there is none."""
    for step in path:
        if isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def load(
    source: str | os.PathLike[str],
    *,
    file: str | None = None,
    aliases: bool = False,
    before: int = 0,
    limits: Limits = HANDWRITTEN,
) -> Document:
    """Parses YAML from a file or from text.

    Args:
        source: a ``Path`` to read, or the text itself as a ``str``.
        file: the name to use in messages instead of the path.
        aliases: allow aliases and merge keys (``<<``), and read ``010`` as octal, as other YAML
            parsers do.
        before: number of lines that precede the text in the file.
        limits: how large it can be.

    Raises:
        DocumentError: the file is unreadable, too large or too deep, or has invalid syntax, an
            alias, a duplicate or non-string key, or an unknown tag.
    """
    if isinstance(source, str):
        name, text = file or "<text>", source
        if len(text) > limits.size:
            raise DocumentError(name, 0, "", f"longer than {limits.size:,} characters", "split it")
    else:
        name = file or os.fspath(source)
        text = door.read_text(source, name=name, most=limits.size)
    if limits is LISTING and (document := _read_json(name, text, before, limits)):
        return document
    try:
        events = list(_events(name, text, before, limits))
        reader = _Reader(name, before, events, limits, aliases=aliases)
        data, place = reader.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = before + mark.line + 1 if mark is not None else 0
        if mark is not None and _TAB.match("".join(text.splitlines()[mark.line : mark.line + 1])):
            message, fix = "not YAML: a tab in the indentation", "indent with spaces"
            raise DocumentError(name, line, "", message, fix) from None
        raise DocumentError(name, line, "", f"not YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        line = before + text.encode()[: error.position].count(b"\n") + 1
        raise DocumentError(name, line, "", f"not YAML: {error.reason}") from None
    return Document(name, place, data, reader.values, before)


def _read_json(name: str, text: str, before: int, limits: Limits) -> Document | None:
    """Reads text that is plain JSON within the limits; None for other text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        data = json_documents.parse(text)
    except json_documents.UnusualJSONError:
        return None
    values, depth = json_documents.measure(data)
    if values > limits.values or depth > MAX_DEPTH:
        return None
    return _JSONDocument(name, json_documents.Places(text), data, values, before)


class _JSONDocument(Document):
    """A JSON document whose lines are found when needed."""

    __slots__ = ("_places",)

    def __init__(
        self, file: str, places: json_documents.Places, data: Any, values: int, before: int
    ) -> None:
        super().__init__(file, (0, {}), data, values, before)
        self._places = places

    def locate(self, path: PathTuple = ()) -> tuple[str, int]:
        return self.file, self._before + self._places.line(path) + 1

    def below(self, path: PathTuple) -> Document:
        data = self.data
        for step in path:
            data = data[step]
        return _JSONDocument(self.file, self._places.below(path), data, self.values, self._before)


def _events(name: str, text: str, before: int, limits: Limits) -> Iterator[Any]:
    """Yields the parser's events, up to a maximum number and depth."""
    depth = values = 0
    event: Any
    for event in yaml.parse(text, Loader=_SafeLoader):
        line = before + event.start_mark.line + 1
        values += isinstance(event, yaml.NodeEvent)
        if values > 2 * limits.values:  # a value and its key
            raise DocumentError(name, line, "", f"more than {limits.values:,} values", "split it")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                message = f"nested deeper than {MAX_DEPTH} levels"
                raise DocumentError(name, line, "", message, "flatten it")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        yield event


class _Reader:
    """Converts events to plain values and their places, up to a maximum size.

    An alias is read by going back to the events of its anchor.
    """

    def __init__(
        self, file: str, before: int, events: Sequence[Any], limits: Limits, *, aliases: bool
    ) -> None:
        self._file = file
        self._before = before
        self._events = events
        self._limits = limits
        self._aliases = aliases
        self._at = 0
        self._anchors: dict[str, int] = {}
        self._characters = 0
        self.values = 0

    def document(self) -> tuple[Any, _Place]:
        """Reads the text's only document; None if the text is empty."""
        # The first event starts the stream, the second a document.
        if not isinstance(self._events[1], yaml.DocumentStartEvent):
            return None, (0, {})
        self._at = 2
        data, place = self._value(())
        after = self._events[self._at + 1]
        if isinstance(after, yaml.DocumentStartEvent):
            raise self._syntax_error(after, "but found another document")
        return data, place

    def _value(self, path: PathTuple) -> tuple[Any, _Place]:
        event = self._events[self._at]
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._read_alias(event, path)
        if event.anchor is not None:
            self._record_anchor(event)
        self._at += 1
        self.values += 1
        size, values = self._limits
        if len(path) > MAX_DEPTH or self.values > values or self._characters > size:
            what = (
                "too large after expanding aliases"
                if self._aliases
                else f"more than {values:,} values"
            )
            raise self._error(event, path[:1], what, "use fewer")
        line: int = event.start_mark.line
        if kind is yaml.ScalarEvent:
            return self._scalar(event, path), (line, _NOTHING)
        inner: dict[str, _Place] = {}
        if kind is yaml.MappingStartEvent:
            self._check_tag(event, "map", path)
            return self._mapping(path, inner), (line, inner)
        self._check_tag(event, "seq", path)
        return self._sequence(path, inner), (line, inner)

    def _read_alias(self, event: Any, path: PathTuple) -> tuple[Any, _Place]:
        back, self._at = self._at + 1, self._find_anchor(event)
        found = self._value(path)
        self._at = back
        return found

    def _find_anchor(self, alias: Any) -> int:
        if not self._aliases:
            raise self._error(alias, (), "YAML aliases are not allowed", "repeat the value")
        if alias.anchor not in self._anchors:
            raise self._syntax_error(alias, f"found undefined alias {alias.anchor!r}")
        return self._anchors[alias.anchor]

    def _record_anchor(self, event: Any) -> None:
        if self._anchors.setdefault(event.anchor, self._at) != self._at:
            raise self._syntax_error(event, f"found duplicate anchor {event.anchor!r}")

    def _check_tag(self, event: Any, expected_kind: str, path: PathTuple) -> None:
        if event.tag not in (None, "!", _TAG + expected_kind):
            raise self._error(event, path, f"YAML tag {event.tag} is not allowed", "remove the tag")

    def _scalar(self, event: Any, path: PathTuple) -> Any:
        text: str = event.value
        self._characters += len(text)
        kind = "str"
        if event.tag not in (None, "!"):
            kind = event.tag.removeprefix(_TAG)
            if kind not in _SCALARS:
                self._check_tag(event, "str", path)
        elif event.implicit[0] and (not text or text[0] in _PERHAPS_NO_TEXT):
            kind = next((name for name, form in _IMPLICIT if form.fullmatch(text)), kind)
            if self._aliases and _OCTAL.fullmatch(text):
                kind, text = "int", str(int(text, 8))
        try:
            return _SCALARS[kind](text)
        except OverflowError:
            shown = f"{text[:20]}... of {plural(len(text), 'character')}"
            message = f"the number {shown} does not fit in 64 bits"
            raise self._error(
                event, path, message, "use a smaller number, or quote it if it is text"
            ) from None
        except ValueError:
            raise self._error(event, path, f"not a number: {text[:20]!r}") from None

    def _sequence(self, path: PathTuple, places: dict[str, _Place]) -> list[Any]:
        result: list[Any] = []
        while type(self._events[self._at]) is not yaml.SequenceEndEvent:
            each = len(result)
            value, places[str(each)] = self._value((*path, each))
            result.append(value)
        self._at += 1
        return result

    def _mapping(self, path: PathTuple, places: dict[str, _Place]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while type(event := self._events[self._at]) is not yaml.MappingEndEvent:
            key = self._key(path)
            line = event.start_mark.line
            if key in result:
                message = (
                    f"duplicate key {key!r}, first in line {self._before + places[key][0] + 1}"
                )
                raise self._error(event, (*path, key), message, "remove one of the two")
            first = self._events[self._at]
            value, place = self._value((*path, key))
            places[key] = (line, place[1])
            if key == "<<" and self._aliases:
                merged |= self._merge_values(first, value, path)
            else:
                result[key] = value
        self._at += 1
        return merged | result

    def _key(self, path: PathTuple) -> str:
        event = self._events[self._at]
        if type(event) is yaml.AliasEvent:
            event = self._events[self._find_anchor(event)]
        elif event.anchor is not None:
            self._record_anchor(event)
        if type(event) is not yaml.ScalarEvent:
            raise self._error(event, path, "keys must be strings", "quote the key")
        self._at += 1
        self._characters += len(event.value)
        key: str = event.value
        return key

    def _merge_values(self, event: Any, value: Any, path: PathTuple) -> dict[str, Any]:
        """Returns the value of a merge key: a mapping, or several in order of precedence."""
        result: dict[str, Any] = {}
        for mapping in reversed(value if isinstance(value, list) else [value]):
            if not isinstance(mapping, dict):
                raise self._error(
                    event, path, "only mappings can be merged", "use a mapping's anchor"
                )
            result |= mapping
        return result

    def _syntax_error(self, event: Any, problem: str) -> DocumentError:
        return self._error(event, (), f"not YAML: {problem}")

    def _error(self, event: Any, path: PathTuple, message: str, fix: str = "") -> DocumentError:
        line = self._before + event.start_mark.line + 1
        return DocumentError(self._file, line, dotted_path(path), message, fix)
