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
class Evidence:
    """What is known of a failure.

    Attributes:
        outcome: how the run ended.
        operation: the call that shows it; empty if there was none.
        finding: what was wrong with an answer; None if nothing was.
        invariants: names of the invariants that the call broke.
        words: how a program broke, in words, its own among them.
        ending: the exit code or signal of a program that ended, in words; mostly empty.
        trace: what a broken program left: the trace of a fault, or its standard error.
        defect: the named defect that should have shown and did not.
    """

    outcome: Outcome
    operation: str = ""
    finding: Finding | None = None
    invariants: Sequence[str] = ()
    words: str = ""
    ending: str = ""
    trace: str = ""
    defect: str | None = None


def signature(evidence: Evidence) -> str:
    """The cause of a failure as a short text; empty for an outcome that is no failure."""
    if evidence.outcome in GOOD:
        return ""
    words = _wrong(evidence) if evidence.outcome == "fail" else _broken(evidence)
    return words[:_LONGEST].rstrip()


def _wrong(evidence: Evidence) -> str:
    if evidence.invariants:
        return f"invariant {evidence.invariants[0]}"
    return f"{evidence.operation}: {cause(evidence.finding) if evidence.finding else ''}"


def _broken(evidence: Evidence) -> str:
    at = f"{evidence.outcome} at {evidence.operation or 'no call'}"
    match evidence.outcome:
        case "missing expected failure":
            return f"{evidence.outcome}: {evidence.defect}"
        case "nondeterministic" if evidence.finding:
            return f"{at}: {cause(evidence.finding)}"
        case "protocol error":
            return f"{at}: {plain(evidence.words)}"
        case "time-out" | "not run":
            return at
        case _:
            return f"{at}: {_how(evidence)}"


def _how(evidence: Evidence) -> str:
    """How a program broke: its exit code, the words of its trace, the innermost function."""
    if found := evidence.finding and evidence.finding.mismatch:
        return plain(f"{found.what} expected: {found.expected} got: {found.got}")
    words = traces.last_words(evidence.trace) if evidence.ending else evidence.words
    where = traces.innermost(evidence.trace)
    parts = [evidence.ending, plain(words)]
    return ", ".join(one for one in parts if one) + (f" in {plain(where)}" if where else "")
