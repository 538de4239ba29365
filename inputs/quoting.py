"""Texts as people quote them: each line behind a mark, or between fences of Markdown."""

from __future__ import annotations

import re

_QUOTED = re.compile(r"(?:[>|] ?)+")
_COMMENTED = re.compile(r"# ?")
_FENCE = re.compile(r"^ *(?:```|~~~)\w* *$", re.MULTILINE)


def unquote(text: str) -> str:
    """Removes marks of quotations that all lines have, and fences; lines keep their numbers."""
    return _without(_QUOTED, _FENCE.sub("", text))


def uncomment(text: str) -> str:
    """Removes the mark of a comment if all lines have it."""
    return _without(_COMMENTED, text)


def _without(mark: re.Pattern[str], text: str) -> str:
    lines = text.split("\n")
    if not all(mark.match(line) for line in lines if line.strip()):
        return text
    return "\n".join(mark.sub("", line, count=1) for line in lines)
