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

_LONGEST = 1500
"""Characters of a value that are shown: both values fit into the message of a run."""


@dataclass(frozen=True)
class Mismatch:
    """A difference; as text, it has a line for each of its parts."""

    what: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.what}\nexpected: {self.expected}\ngot: {self.actual}"


def short_text(value: Any) -> str:
    """The beginning of a plain value: a set or a word as it is, anything else as JSON."""
    is_word = isinstance(value, str) and _PLAIN.fullmatch(value)
    text = value if is_word else json.dumps(value, ensure_ascii=False, default=str)
    more = len(text) - _LONGEST
    return f"{text[:_LONGEST]}... and {more:,} more characters" if more > 0 else text
