"""Suggestions for misspelt names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LISTED = 10
"""Maximum number of known names to list in a message if none resembles the unknown name."""


def closest(name: str, known_names: Iterable[str]) -> str | None:
    """Returns the known name most similar to an unknown one; None if none is similar."""
    # Compare without case: a name in the wrong case should match the right one.
    by_folded = {one.casefold(): one for one in known_names}
    close = get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[close[0]] if close else None


def suggestion(name: str, known_names: Iterable[str]) -> str:
    """Suggests a fix for an unknown name: the most similar name, or all names if there are few."""
    listed = list(known_names)
    if close := closest(name, listed):
        return f"did you mean {close}?"
    return f"use one of {', '.join(listed)}" if 0 < len(listed) <= MAX_LISTED else "remove it"


def is_slip(name: str, known_name: str) -> bool:
    """Whether two names differ only in case, or by one missing, extra or swapped letter."""
    one, other = sorted((name.casefold(), known_name.casefold()), key=len)
    if len(one) == len(other):
        apart = [n for n, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
        swapped = sorted(one) == sorted(other) and len(apart) == 2  # noqa: PLR2004 - a swap
        return len(apart) <= 1 or swapped
    return len(other) == len(one) + 1 and any(
        other[:n] + other[n + 1 :] == one for n in range(len(other))
    )
