"""A difference between an expected and an actual value, in words.

The expected value comes from the documentation, the reference, the left side or a recording; the
actual value always comes from the implementation under test. Sets are shown as in the protocol
(``0-3,8``), and all other values are shown as JSON.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

ABSENT = "(absent)"
"""Shown for a missing value."""

_PLAIN = re.compile(r"[0-9A-Za-z][\w.,:/@+-]*")

_LONGEST = 1500
"""Maximum number of characters of a value to show; both values fit in the message of a run."""


@dataclass(frozen=True)
class Mismatch:
    """A difference; its text has one line for each field."""

    what: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.what}\nexpected: {self.expected}\ngot: {self.actual}"


def short_text(value: Any) -> str:
    """Returns a value as text, cut to a maximum length: sets and words as is, others as JSON."""
    is_word = isinstance(value, str) and _PLAIN.fullmatch(value)
    text = value if is_word else json.dumps(value, ensure_ascii=False, default=str)
    more = len(text) - _LONGEST
    noun = "character" if more == 1 else "characters"
    return f"{text[:_LONGEST]}... and {more:,} more {noun}" if more > 0 else text
