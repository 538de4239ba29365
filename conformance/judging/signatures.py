"""Signatures: a short text that names the cause of a failure.

Failures with the same signature are one bug seen several times, in whatever case and on whatever
machine. A signature therefore has no numbers, sets, ids, paths or values, and no name that a case
chose; it is the same in every run. Files of known failures hold it: a change of its form makes them
stale.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.conformance.judging.finding import Finding, cause, plain
from numaproof.protocol.events import GOOD, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence


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


_LONGEST = 160


@dataclass(frozen=True)
class EndResult:
    """How a run ended.

    Attributes:
        outcome: how.
        message: the same in one sentence.
        stderr: what the program logged meanwhile, or the trace of a fault.
        defect: the named defect behind it, which may be one that should have shown and did not.
        finding: what was wrong with an answer, or with what was left; None if nothing was.
        words: how a program broke, without what it wrote instead of an answer.
        ending: the exit code or signal of a program that ended, in words.
    """

    outcome: Outcome
    message: str = ""
    stderr: str = ""
    defect: str | None = None
    finding: Finding | None = None
    words: str = ""
    ending: str = ""


def signature(result: EndResult, operation: str, invariants: Sequence[str] = ()) -> str:
    """The cause of a failure as a short text; empty for an outcome that is no failure.

    Args:
        result: how the run ended.
        operation: the call that shows it; empty if there was none.
        invariants: names of the invariants that the call broke.
    """
    if result.outcome in GOOD:
        return ""
    if result.outcome == "fail":
        words = f"invariant {invariants[0]}" if invariants else f"{operation}: {_cause(result)}"
    else:
        words = _failure_text(result, f"{result.outcome} at {operation or 'no call'}")
    return words[:_LONGEST].rstrip()


def _cause(result: EndResult) -> str:
    return cause(result.finding) if result.finding else ""


def _failure_text(result: EndResult, at: str) -> str:
    match result.outcome:
        case "missing expected failure":
            return f"{result.outcome}: {result.defect}"
        case "nondeterministic":
            return f"{at}: {_cause(result)}"
        case "protocol error":
            return f"{at}: {plain(result.words)}"
        case "time-out" | "not run":
            return at
        case _:
            return f"{at}: {_how(result)}"


def _how(result: EndResult) -> str:
    """How a program broke: its exit code, the words of its trace, the innermost function."""
    if found := result.finding and result.finding.mismatch:
        return plain(f"{found.what} expected: {found.expected} got: {found.actual}")
    words = last_words(result.stderr) if result.ending else result.words
    where = innermost(result.stderr)
    parts = [result.ending, plain(words)]
    return ", ".join(one for one in parts if one) + (f" in {plain(where)}" if where else "")
