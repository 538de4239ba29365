"""Signatures: short strings that name the cause of a failure.

Failures with the same signature are due to the same bug, found in several cases or on several
machines. A signature therefore contains no numbers, sets, ids, paths, values or names that a case
chose, and is the same in every run. Files of known failures contain signatures, so changing their
format invalidates these files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.conformance.judging.finding import Finding, cause, plain
from numaproof.protocol.events import GOOD, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence


_RUNNING = re.compile(r"goroutine \d+ \[running\]:")
"""The head of the trace of an uncaught panic."""

_PYTHON = re.compile(r'^\s*File ".*", line \d+, in (\S+)', re.MULTILINE)
_FRAME = re.compile(r"^\s+at (?:async |new )?([\w.$<>/]+)[ (]", re.MULTILINE)
_RUST = re.compile(r"panicked at (?:'.*', )?\S*?([\w-]+\.rs)")

_ERROR = re.compile(
    r"^(?:panic: |fatal error: |thread '.*' panicked at |Exception in thread |Uncaught "
    r"|[\w.$]*(?:Error|Exception)\b).*",
    re.MULTILINE,
)
"""The line in which Go, Rust, Java, JavaScript or Python reports why a program ends."""


def go_function(trace: str) -> str:
    """The function that panicked first, as ``package.function``; empty if there is no Go trace.

    Go lists the innermost call first. Each call is a line without indentation, followed by an
    indented line. ``panic`` itself is listed only if the program recovered from it.
    """
    calls = [line for line in trace.splitlines() if line and not line[0].isspace()]
    starts = [n for n, line in enumerate(calls) if line.startswith("panic(")]
    if not starts and trace.startswith("panic: "):
        starts = [n for n, line in enumerate(calls) if _RUNNING.fullmatch(line)][:1]
    last = max(starts, default=len(calls))
    for line in calls[last + 1 :]:
        if not line.startswith("runtime."):
            # The last pair of parentheses encloses the arguments; a receiver may have parentheses
            # as well.
            return line[: line.rindex("(")].rpartition("/")[2] if "(" in line else ""
    return ""


def innermost(trace: str) -> str:
    """The innermost function in a trace (in Rust, the file); empty if there is no trace."""
    python = _PYTHON.findall(trace)
    if python:
        return str(
            python[-1]
        )  # Python lists the innermost call, and the last exception, at the end
    for pattern in (_FRAME, _RUST):
        found = pattern.search(trace)
        if found:
            return found[1]
    return go_function(trace)


def last_words(trace: str) -> str:
    """The line that reports why the program ended; empty if there is none."""
    found = _ERROR.findall(trace)
    if not found:
        return ""
    # Python prints the cause of an exception before the exception; other languages print only one.
    return str(found[-1 if _PYTHON.search(trace) else 0])


_LONGEST = 160


@dataclass(frozen=True)
class EndResult:
    """How a run ended.

    Attributes:
        outcome: the outcome.
        message: a sentence that describes it.
        stderr: what the program logged in the meantime, or the trace of a fault.
        defect: the named defect that explains the outcome, or that was expected and didn't show up.
        finding: what was wrong with an answer or was left behind; None if there is no such problem.
        words: how the program broke, excluding the text that it wrote instead of an answer.
        ending: a description of the exit code or signal if the program ended.
    """

    outcome: Outcome
    message: str = ""
    stderr: str = ""
    defect: str | None = None
    finding: Finding | None = None
    words: str = ""
    ending: str = ""


def signature(result: EndResult, operation: str, invariants: Sequence[str] = ()) -> str:
    """The cause of a failure as a short string; empty if the outcome is not a failure.

    Args:
        result: how the run ended.
        operation: the operation that failed; empty if there was no call.
        invariants: the names of the invariants that the call broke.
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
    """Describes a crash by its exit code, error message and innermost function."""
    if found := result.finding and result.finding.mismatch:
        return plain(f"{found.what} expected: {found.expected} got: {found.actual}")
    words = last_words(result.stderr) if result.ending else result.words
    where = innermost(result.stderr)
    parts = [result.ending, plain(words)]
    return ", ".join(one for one in parts if one) + (f" in {plain(where)}" if where else "")
