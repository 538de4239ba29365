"""Describes what is wrong with a line that should be a JSON object, for the program's author."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

_WORDS = (
    ("Expecting value", "a value is missing"),
    ("Expecting property name", "a field name in double quotes is missing"),
    ("Expecting ':'", "a colon is missing"),
    ("Expecting ','", "a comma or a closing bracket is missing"),
    ("Extra data", "more text follows the object"),
    ("Invalid control character", "a control character in a string is not escaped"),
    ("Unterminated string", "a string is not closed"),
    ("Invalid \\", "a backslash in a string does not begin an escape sequence"),
    ("Illegal trailing comma", "there is a comma before a closing bracket"),
)
"""Messages of Python's JSON parser, each with a clearer one."""

_TYPES = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}


@dataclass
class ReadJSON:
    """The object on a line, as far as it can be read, and the problems in the line.

    Attributes:
        value: the object; None if there is none.
        problems: each problem, with an example or a fix.
    """

    value: dict[str, Any] | None = None
    problems: list[tuple[str, str]] = field(default_factory=list)

    def wrong(self, sentence: str, right: str) -> None:
        """Adds a problem."""
        self.problems.append((sentence, right))


def read(line: bytes, right: str = "") -> ReadJSON:
    """Reads a line slightly more leniently than JSON; `right` is an example of a valid line."""
    found = ReadJSON()
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        at = f"byte {error.start + 1} ({line[error.start]:#04x})"
        found.wrong(f"the line is not UTF-8: {at} does not start a character", "write UTF-8")
        return found
    if text.startswith("\ufeff"):
        found.wrong("the line begins with a byte order mark", "write UTF-8 without one")
        text = text[1:]
    odd: list[str] = []

    def constant(name: str) -> float:
        odd.append(name)
        return float(name)

    try:
        value = json.loads(text, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        found.wrong(*_no_json(text, error, right))
        return found
    for key in repeated_keys(text):
        found.wrong(f"an object has the key {key!r} more than once", "write each key once")
    if odd:
        found.wrong(
            f"the line has {odd[0]}, which JSON does not allow", "write a number, or leave it out"
        )
    if isinstance(value, dict):
        found.value = _whole_characters(found, value)
    else:
        found.wrong(
            f"the line is not a JSON object but {_TYPES.get(type(value), 'a number')}", right
        )
    return found


def repeated_keys(text: bytes | str) -> list[str]:
    """Returns the keys that occur more than once in the same object."""
    repeated: dict[str, None] = {}

    def note(pairs: list[tuple[str, Any]]) -> None:
        counted = Counter(key for key, _ in pairs)
        repeated.update(dict.fromkeys(key for key, times in counted.items() if times > 1))

    json.loads(text, object_pairs_hook=note, parse_int=str)
    return list(repeated)


def _whole_characters(reading: ReadJSON, value: dict[str, Any]) -> dict[str, Any] | None:
    """Replaces unpaired surrogates, which can be neither written nor displayed."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        reading.wrong("the line is not JSON: it is nested too deeply", "")
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        reading.wrong(
            "the line has half of a surrogate pair, which is not a character",
            "write complete characters",
        )
        value = json.loads(text.encode("utf-8", "replace"))
    return value


def _no_json(text: str, error: Exception, right: str) -> tuple[str, str]:
    begins = text.strip()
    if not begins:
        return "the line is empty", "write exactly one line for each response"
    if begins in {"{", "["}:
        return (
            "the line is not JSON: it ends after its first bracket",
            "write the whole response on one line, not indented",
        )
    if begins.lower().startswith("content-length"):
        return (
            "the line is a header, as used by language servers",
            "write only JSON, one object per line",
        )
    if begins.startswith(("{'", "{u'", '{"id": None')):
        return (
            "the line is not JSON but a Python dictionary",
            f"`json.dumps(...)` writes JSON: {right}",
        )
    return f"the line is not JSON: {_why(error)}", right


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if not isinstance(error, json.JSONDecodeError):
        return "a number has too many digits"
    known = (words for begin, words in _WORDS if error.msg.startswith(begin))
    return f"{next(known, 'it is malformed')} at character {error.pos + 1}"
