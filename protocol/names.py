"""Suggestions for unknown names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


def unknown(label: str, name: str, known_names: Collection[str]) -> str:
    """Returns an error message that suggests the nearest known name, or lists all of them."""
    cases = {one.lower(): one for one in known_names}
    nearest = get_close_matches(name.lower(), cases, n=1)
    hint = (
        f"did you mean {cases[nearest[0]]!r}?"
        if nearest
        else f"expected one of {', '.join(known_names)}"
    )
    return f"unknown {label} {name!r}; {hint}"
