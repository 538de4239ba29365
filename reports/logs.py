"""What a program wrote to its standard error: the head and the end of a long trace."""

from __future__ import annotations

import re

from numaproof.inputs.plurals import plural
from numaproof.reports.untrusted import visible

_WIDEST = 500
"""Maximum length of a line."""

_TRACE = re.compile(
    r"Traceback \(most recent call last\)|panic: |fatal error: |Exception in thread "
    r"|thread '.*' panicked at |(?:Uncaught )?[\w.$]*(?:Error|Exception)\b"
)
"""How the first line of a trace begins: in Python, Go, Java, Rust and JavaScript."""


def both_ends(log: str, most: int) -> str:
    """About `most` lines of a log, hidden characters made visible.

    What says why a program ended stands at the head of a trace in some languages and at its end in
    others. Of a longer log the head of the trace and the end are shown, and a note counts the
    lines between them.
    """
    lines = [_bounded(line) for line in visible(log).strip("\n").split("\n")]
    if len(lines) <= most:
        return "\n".join(lines)
    starts = (number for number, line in enumerate(lines) if _TRACE.match(line))
    start = next(starts, 0)
    half = most // 2
    shown = [f"… {plural(start, 'line')} before …"] if start else []
    rest = lines[start:]
    if len(rest) > most:
        left = len(rest) - 2 * half
        rest = [*rest[:half], f"… {plural(left, 'line')} between …", *rest[-half:]]
    return "\n".join([*shown, *rest])


def _bounded(line: str) -> str:
    half = _WIDEST // 2
    return line if len(line) <= _WIDEST else f"{line[:half]} … {line[-half:]}"
