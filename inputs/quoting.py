"""Texts as people quote them: each line behind a mark, or between fences of Markdown."""

from __future__ import annotations

import re

_MARK = re.compile(r"(?:[>|] ?)+|# ?")
_FENCE = re.compile(r"^ *(?:```|~~~)\w* *$", re.MULTILINE)


def unquote(text: str) -> str:
    """Removes marks of quotations that all lines have, and fences; lines keep their numbers."""
    text = _FENCE.sub("", text)
    lines = text.split("\n")
    marks = [_MARK.match(line) for line in lines if line.strip()]
    kinds = {mark[0][0] if mark else "" for mark in marks}
    # In the output of lscpu, only some lines are comments.
    if len(kinds) != 1 or "" in kinds or not any(mark and mark.end() for mark in marks):
        return text
    return "\n".join(_MARK.sub("", line, count=1) for line in lines)
