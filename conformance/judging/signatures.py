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

import msgspec

from numaproof.conformance.judging import traces
from numaproof.conformance.judging.comparison import OUTCOME
from numaproof.conformance.judging.expectations import A_REFUSAL
from numaproof.conformance.judging.oracle import APART, DIFFERS
from numaproof.protocol import machine, messages
from numaproof.protocol.events import GOOD
from numaproof.protocol.mismatch import ABSENT, Mismatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.protocol.events import Outcome

_LONGEST = 160


@dataclass(frozen=True)
class Evidence:
    """What is known of a failure.

    Attributes:
        outcome: how the run ended.
        message: the sentence that says so.
        operation: the call that shows it; empty if there was none.
        invariants: names of the invariants that the call broke.
        trace: what a broken program left: the trace of a fault, or its standard error.
        defect: the named defect that should have shown and did not.
    """

    outcome: Outcome
    message: str = ""
    operation: str = ""
    invariants: Sequence[str] = ()
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
    return f"{evidence.operation}: {_kind(evidence.message)}"


def _broken(evidence: Evidence) -> str:
    at = f"{evidence.outcome} at {evidence.operation or 'no call'}"
    match evidence.outcome:
        case "missing expected failure":
            return f"{evidence.outcome}: {evidence.defect}"
        case "nondeterministic":
            return f"{at}: {_kind(evidence.message)}"
        case "protocol error":
            # What the program wrote instead of an answer comes last, and is never the same.
            return f"{at}: {_plain(_WRITTEN.sub('', evidence.message))}"
        case "time-out" | "not run":
            return at
        case _:
            return f"{at}: {_words(evidence)}"


_WRITTEN = re.compile(r"(?:; the line was |(?<=asked for): ).*", re.DOTALL)
_EXIT = re.compile(r"(?:exit code \d+|signal SIG\w+)")


def _words(evidence: Evidence) -> str:
    """How a program broke: its exit code, the words of its trace, the innermost function."""
    exits = _EXIT.search(evidence.message)
    words = traces.last_words(evidence.trace) if exits else evidence.message
    where = traces.innermost(evidence.trace)
    parts = [exits[0] if exits else "", _plain(words)]
    return ", ".join(one for one in parts if one) + (f" in {_plain(where)}" if where else "")


# Sentences without what differs between machines, cases and seeds

_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_NUMBER = r"(?:0x[0-9a-f]+|\d+(?:[-.]\d+)*)"
_NUMBERS = re.compile(rf"\[?{_NUMBER}(?:, ?{_NUMBER})*\]?", re.IGNORECASE)


def _plain(words: str) -> str:
    """Words without quoted values and numbers, on one line."""
    return " ".join(_NUMBERS.sub("#", _QUOTED.sub("'…'", words)).split())


_BETWEEN = re.compile(r"^(\S+) (?:is .* against .*|(is only on one side))$", re.DOTALL)
_REFUSED = re.compile(r"^refused with (\S+) \(.*\): expected (.*)$", re.DOTALL)
_MISSING = re.compile(r"^there is no container \S+")
_OWNER = re.compile(r" of .*")
_GIVEN = re.compile(r" \(.*")


_REMARK = re.compile(r" \((?:only the order differs|lists .* more than once)\)$")


def _sentence(problem: str) -> str:
    """A problem in the words from which signatures were made first, so that they stay the same."""
    found = Mismatch.read(problem)
    if found is None:
        return problem.removeprefix(DIFFERS)
    expected, got = found.expected, found.got
    apart = found.what.startswith(DIFFERS) or found.what.endswith(APART)
    what = _REMARK.sub("", found.what.removeprefix(DIFFERS).removesuffix(APART))
    if apart and what == OUTCOME:
        return f"{got} against {expected}"
    if apart:
        one_side = ABSENT in (expected, got)
        return f"{what} is only on one side" if one_side else f"{what} is {got} against {expected}"
    if what == OUTCOME:
        refused = got.startswith("refused")
        return f"{got}: expected {expected.removeprefix(A_REFUSAL) if refused else expected}"
    return f"{what}: expected {expected}, got {got}"


def _kind(problem: str) -> str:
    """The kind of a wrong answer, from the sentence that describes it.

    Such a sentence comes from the oracle (``containers.app.cpus is '1' against '2'``) or from
    expectations (``exclusive CPUs of app (0-1): expected 3 CPUs, got 2``).
    """
    problem = _sentence(problem)
    if found := _BETWEEN.match(problem):
        return f"{_fields(found[1])} {found[2] or 'differs'}"
    if found := _REFUSED.match(problem):
        return f"refused with {found[1]}, expected {found[2]}"
    if _MISSING.match(problem):
        return "a container is missing"
    if problem.startswith(("accepted", "refused", "a fault", "hints of ", "there is no file ")):
        return _plain(problem.partition(": expected {")[0])
    # Which of its properties is wrong depends on what the case looks at.
    subject = _GIVEN.sub("", _OWNER.sub("", problem.partition(": ")[0].partition(" has no ")[0]))
    if "/" in subject:
        subject = "devices"  # the name of their resource
    return f"{_fields(subject) if '.' in subject else _plain(subject)} not as expected"


_FIELDS = frozenset(
    field.encode_name
    for module in (messages, machine)
    for one in vars(module).values()
    if isinstance(one, type) and issubclass(one, msgspec.Struct)
    for field in msgspec.structs.fields(one)
) | {"machine", "nodes"}
"""The names of fields that messages have; any other name in a path is a case's own choice."""


def _fields(path: str) -> str:
    """A path in an answer, of which the names that a case chose are left out.

    The name of a checkpoint file stays; what is inside the file does not.
    """
    if path.startswith("files."):
        return ".".join(path.split(".")[:2])
    parts = [one if one in _FIELDS else "*" for one in path.split(".")]
    return ".".join(part for n, part in enumerate(parts) if part != "*" or parts[n - 1] != "*")
