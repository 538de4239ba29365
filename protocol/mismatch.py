"""A difference in words: what differs, what was expected, and what came instead.

Wherever a difference is shown, expected is what the documents, the reference, the left side or a
recording says, and got is what the implementation under test says. Values are shown as the
protocol has them: sets as ``0-3,8``, anything else as JSON.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

ABSENT = "(absent)"
"""Shown for a value that one side does not have."""

_PLAIN = re.compile(r"[0-9A-Za-z][\w.,:/@+-]*")
_LINES = re.compile(r"(?P<what>.*?)\nexpected: (?P<expected>.*?)\ngot: (?P<got>.*)", re.DOTALL)

_LONGEST = 1500
"""Characters of a value that are shown: both values fit into the message of a run."""


@dataclass(frozen=True)
class Mismatch:
    """A difference; as text, it has a line for each of its parts."""

    what: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.what}\nexpected: {self.expected}\ngot: {self.got}"

    @classmethod
    def read(cls, text: str) -> Mismatch | None:
        """The difference that a text is; None if it is another text."""
        found = _LINES.fullmatch(text)
        return cls(found["what"], found["expected"], found["got"]) if found else None

    @classmethod
    def of(cls, what: str, expected: Any, got: Any) -> Mismatch:
        """A difference between values."""
        return cls(what, shown(expected), shown(got))


def swapped(text: str) -> str:
    """The text with what was expected and what came in each other's place."""
    found = Mismatch.read(text)
    return str(Mismatch(found.what, found.got, found.expected)) if found else text


def what_differs(text: str) -> str:
    """The text without the sides of a difference, for places that have one line."""
    found = Mismatch.read(text)
    return found.what if found else text


def shown(value: Any) -> str:
    """The beginning of a plain value: a set or a word as it is, anything else as JSON."""
    is_word = isinstance(value, str) and _PLAIN.fullmatch(value)
    text = value if is_word else json.dumps(value, ensure_ascii=False, default=str)
    more = len(text) - _LONGEST
    return f"{text[:_LONGEST]}... and {more:,} more characters" if more > 0 else text
