"""Signatures: a short text that names the cause of a failure.

Failures with the same signature are one bug seen several times, in whatever case and on whatever
machine. A signature therefore has no numbers, sets, ids, paths or values, and no name that a case
chose; it is the same in every run. Files of known failures hold it: a change of its form makes them
stale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.conformance.judging import traces
from numaproof.conformance.judging.finding import cause, plain
from numaproof.protocol.events import GOOD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.conformance.judging.finding import Finding
    from numaproof.protocol.events import Outcome

_LONGEST = 160


@dataclass(frozen=True)
class Ended:
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


def signature(ended: Ended, operation: str, invariants: Sequence[str] = ()) -> str:
    """The cause of a failure as a short text; empty for an outcome that is no failure.

    Args:
        ended: how the run ended.
        operation: the call that shows it; empty if there was none.
        invariants: names of the invariants that the call broke.
    """
    if ended.outcome in GOOD:
        return ""
    if ended.outcome == "fail":
        words = f"invariant {invariants[0]}" if invariants else f"{operation}: {_cause(ended)}"
    else:
        words = _broken(ended, f"{ended.outcome} at {operation or 'no call'}")
    return words[:_LONGEST].rstrip()


def _cause(ended: Ended) -> str:
    return cause(ended.finding) if ended.finding else ""


def _broken(ended: Ended, at: str) -> str:
    match ended.outcome:
        case "missing expected failure":
            return f"{ended.outcome}: {ended.defect}"
        case "nondeterministic":
            return f"{at}: {_cause(ended)}"
        case "protocol error":
            return f"{at}: {plain(ended.words)}"
        case "time-out" | "not run":
            return at
        case _:
            return f"{at}: {_how(ended)}"


def _how(ended: Ended) -> str:
    """How a program broke: its exit code, the words of its trace, the innermost function."""
    if found := ended.finding and ended.finding.mismatch:
        return plain(f"{found.what} expected: {found.expected} got: {found.got}")
    words = traces.last_words(ended.stderr) if ended.ending else ended.words
    where = traces.innermost(ended.stderr)
    parts = [ended.ending, plain(words)]
    return ", ".join(one for one in parts if one) + (f" in {plain(where)}" if where else "")
