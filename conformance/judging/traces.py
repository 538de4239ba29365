"""Reads what a broken program left behind: where it broke, and in what words.

Standard error and traces come from any language. Only what is the same in every run is kept:
functions and messages, not paths, lines, addresses or arguments.
"""

from __future__ import annotations

import re

_PYTHON = re.compile(r'^\s*File ".*", line \d+, in (\S+)', re.MULTILINE)
_FRAME = re.compile(r"^\s+at (?:async |new )?([\w.$<>/]+)[ (]", re.MULTILINE)
_RUST = re.compile(r"panicked at (?:'.*', )?\S*?([\w-]+\.rs)")

_ERROR = re.compile(
    r"^(?:panic: |fatal error: |thread '.*' panicked at |Exception in thread |Uncaught "
    r"|[\w.$]*(?:Error|Exception)\b).*",
    re.MULTILINE,
)
"""The line in which Go, Rust, Java, JavaScript or Python says why a program ends."""


def go_function(trace: str) -> str:
    """The function that panicked first, as ``package.function``; empty where no trace says it.

    Go lists the calls from the innermost, each by a line of its own with a deeper one below.
    """
    calls = [line for line in trace.splitlines() if line and not line[0].isspace()]
    last = max((n for n, line in enumerate(calls) if line.startswith("panic(")), default=len(calls))
    for line in calls[last + 1 :]:
        if not line.startswith("runtime."):
            # The arguments are the last pair of parentheses; a receiver may have one too.
            return line[: line.rindex("(")].rpartition("/")[2] if "(" in line else ""
    return ""


def innermost(trace: str) -> str:
    """The function (in Rust, the file) in which a program broke; empty where no trace says it."""
    python = _PYTHON.findall(trace)
    if python:
        return str(python[-1])  # the outermost comes first, and a cause before its effect
    for pattern in (_FRAME, _RUST):
        found = pattern.search(trace)
        if found:
            return found[1]
    return go_function(trace)


def last_words(trace: str) -> str:
    """The line that says why the program ended; empty where none does."""
    found = _ERROR.findall(trace)
    if not found:
        return ""
    # Python prints the cause of an exception before the exception; others print one.
    return str(found[-1 if _PYTHON.search(trace) else 0])
