"""Signatures: findings with the same one are the same failure, wherever they were found."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numaproof.protocol.events import Outcome

_LENGTH = 12

# Numbers, and lists of them, differ between machines and seeds where the bug does not.
_NUMBER = r"(?:0x[0-9a-f]+|\d+(?:[-.]\d+)*)"
_NUMBERS = re.compile(rf"{_NUMBER}(?:, ?{_NUMBER})*")


def signature(subject: str, outcome: Outcome, message: str) -> str:
    """The same for findings that are alike: the same subject, ending, and words.

    Args:
        subject: the case, or for a scenario what it broke.
        outcome: how it ended.
        message: the sentence that says what is wrong; its numbers do not count.
    """
    words = f"{subject}\0{outcome}\0{_NUMBERS.sub('#', message)}"
    return hashlib.sha256(words.encode()).hexdigest()[:_LENGTH]
