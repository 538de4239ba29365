"""The result of `numaproof doctor`: the dialogue with a program and the problems in each line."""

from __future__ import annotations

import re

from numaproof.protocol.events import ReportedFinding, Sentence, sentence_of
from numaproof.protocol.messages import Strict

_VARYING = (
    (re.compile(r"(?s)answered twice.*"), "answered twice"),
    (re.compile(r"(?s)(unexpected output [^:]*):.*"), r"\1"),
    (re.compile(r"(?s); so must .*"), ""),
    (re.compile(r"(?s)'.{30,}'"), "''"),
    (re.compile(r"uid-\w+"), "UID"),
    (re.compile(r"pods\.UID\."), "containers."),
    (re.compile(r"containers\.\w+\."), "containers.NAME."),
    (re.compile(r"\(\[[^)]*\)"), "([])"),
    (re.compile(r"\d+"), "0"),
)
"""Parts that vary between messages about the same mistake, with their replacements."""


class Finding(Strict, frozen=True):
    """A problem or a suggestion.

    Attributes:
        wrong: the problem, in one sentence.
        right: an example of a correct line, or how to fix the problem.
        advice: whether this is only a suggestion.
        log: the end of the program's standard error, if it may explain the problem.
        after: the exchange that caused the problem, such as ``admit (5)``; usually empty.
        finding: the fields of `wrong`, if it comes from judging an answer.
    """

    wrong: str
    right: str = ""
    advice: bool = False
    log: str = ""
    after: str = ""
    finding: ReportedFinding | None = None

    @property
    def sentence(self) -> Sentence:
        """The problem, with its fields if known."""
        return sentence_of(self.wrong, self.finding)

    @property
    def cause(self) -> str:
        """Identifies a mistake: the broken invariant, or the message stripped of its details.

        Messages that differ only in pods, ids, numbers or the program's output have the same cause.
        """
        if self.finding and self.finding.source == "invariant":
            return self.finding.rule
        same = self.wrong
        for pattern, instead in _VARYING:
            same = pattern.sub(instead, same)
        return same


class Exchange(Strict, frozen=True):
    """A request and its response, or another event while the program runs.

    Attributes:
        number: the number of the exchange, starting at 1.
        process: the number of the program's process, starting at 1.
        step: the operation, ``end of input`` or ``clean-up``.
        about: why the request is made, or what must happen.
        request: the line sent, without its line break; empty if nothing was sent.
        response: the lines received, or a description of what happened.
        seconds: the time until the response.
        findings: the problems in the response.
    """

    number: int
    process: int
    step: str
    about: str
    request: str
    response: str
    seconds: float
    findings: tuple[Finding, ...] = ()


class Diagnosis(Strict, frozen=True):
    """A complete dialogue with a program.

    Attributes:
        command: the program, as typed in a shell.
        name: the name of the implementation; empty if it reported none.
        healthy: whether there are no problems; there may be suggestions.
        seconds: how long the dialogue took.
        exchanges: all exchanges, in order.
        not_claimed: the operations skipped because ``hello`` does not claim them.
        next_steps: what to do next, most urgent first.
        next_findings: for each step, its fields if it has an expected and an actual value, else
            None.
    """

    command: str
    name: str
    healthy: bool
    seconds: float
    exchanges: tuple[Exchange, ...]
    not_claimed: tuple[str, ...]
    next_steps: tuple[str, ...]
    next_findings: tuple[ReportedFinding | None, ...] = ()


class HostCheck(Strict, frozen=True):
    """Something that running a kubelet needs.

    Attributes:
        name: what is needed.
        state: what was found.
        fix: how to provide it; empty if it is there.
    """

    name: str
    state: str
    fix: str = ""


class KubeletDiagnosis(Strict, frozen=True):
    """Whether a kubelet can be checked on this host.

    Attributes:
        kubelet: the path of the binary.
        healthy: whether everything is there.
        checks: what was found, in order; the first one that lacks something may be the last.
    """

    kubelet: str
    healthy: bool
    checks: tuple[HostCheck, ...]
