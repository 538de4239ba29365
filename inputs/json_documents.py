"""Long JSON documents, such as listings of pods: read fast; lines are found when needed."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numaproof.inputs.errors import PathTuple

_SPACE = re.compile(r"[ \t\r\n]*")
_INTEGER_DIGITS = 18


class UnusualJSONError(ValueError):
    """The text isn't JSON, or JSON that means something else in YAML."""


def parse(text: str) -> Any:
    """Parses JSON whose meaning is the same in YAML.

    Raises:
        UnusualJSONError: it has duplicate keys or unusual numbers, or isn't JSON.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_mapping,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError) as error:
        raise UnusualJSONError(str(error)) from None


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UnusualJSONError("duplicate keys")
    return found


def _integer(text: str) -> int:
    if len(text) > _INTEGER_DIGITS:
        raise UnusualJSONError("a long number")
    return int(text)


def _fraction(text: str) -> float:
    if "e" in text.lower():
        raise UnusualJSONError("an exponent")
    return float(text)


def _refuse(text: str) -> float:
    raise UnusualJSONError(text)


def measure(data: Any) -> tuple[int, int]:
    """Returns the number of values in parsed JSON, and the depth of its nesting."""
    values = depth = 0
    level: Sequence[Any] = [data]
    while level:
        values += len(level)
        depth += 1
        inside: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inside += one.values()
            elif isinstance(one, list):
                inside += one
        level = inside
    return values, depth


class Places:
    """The lines of the values in a valid JSON text, or in a part of it."""

    def __init__(self, text: _Scanner | str, path: PathTuple = ()) -> None:
        """Creates the places of the values below `path`."""
        self._scanner = _Scanner(text) if isinstance(text, str) else text
        self._path = path

    def below(self, path: PathTuple) -> Places:
        """Returns the places of the values inside an existing one."""
        return Places(self._scanner, (*self._path, *path))

    def line(self, path: PathTuple) -> int:
        """Returns the line, from 0, of the value at a path, or of its nearest existing parent.

        For a value in a mapping, this is the line of its key.
        """
        return self._scanner.line((*self._path, *path))


class _Scanner:
    """Finds the lines of values; scans each list or mapping once, when needed."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._decode = json.JSONDecoder().raw_decode
        self._children: dict[int, Mapping[str, tuple[int, int]]] = {}
        self._breaks: list[int] = []

    def line(self, path: PathTuple) -> int:
        place = at = self._skip(0)
        for step in path:
            found = self._inside(at).get(str(step))
            if found is None:
                break
            place, at = found
        if not self._breaks:
            self._breaks += (match.start() for match in re.finditer(r"\n|$", self._text))
        return bisect_left(self._breaks, place)

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        assert found is not None
        return found.end()

    def _inside(self, at: int) -> Mapping[str, tuple[int, int]]:
        """Returns where each value inside the one at `at` has its key, and where it starts."""
        if at not in self._children:
            self._children[at] = self._scan(at)
        return self._children[at]

    def _scan(self, at: int) -> Mapping[str, tuple[int, int]]:
        text = self._text
        opening = text[at]
        found: dict[str, tuple[int, int]] = {}
        if opening not in "{[":
            return found
        at = self._skip(at + 1)
        while text[at] not in "}]":
            place = at
            key = str(len(found))
            if opening == "{":
                key, at = self._decode(text, at)
                at = self._skip(self._skip(at) + 1)
            found[key] = (place, at)
            _, at = self._decode(text, at)
            at = self._skip(at)
            if text[at] == ",":
                at = self._skip(at + 1)
        return found
