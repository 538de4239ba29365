"""What `numaproof doctor` finds: a dialogue with a program, and what is wrong with each line."""

from __future__ import annotations

import re

from numaproof.protocol.events import ReportedFinding, Sentence, sentence_of
from numaproof.protocol.messages import Strict

_VARYING = (
    (re.compile(r"(?s)answered twice.*"), "answered twice"),
    (re.compile(r"(?s)(there is output [^:]*):.*"), r"\1"),
    (re.compile(r"(?s); so must .*"), ""),
    (re.compile(r"(?s)'.{30,}'"), "''"),
    (re.compile(r"uid-\w+"), "UID"),
    (re.compile(r"pods\.UID\."), "containers."),
    (re.compile(r"containers\.\w+\."), "containers.NAME."),
    (re.compile(r"\(\[[^)]*\)"), "([])"),
    (re.compile(r"\d+"), "0"),
)
"""What varies between two sentences about one mistake, and what stands for it."""


class Finding(Strict, frozen=True):
    """One thing that is wrong, or that could be better.

    Attributes:
        wrong: what is wrong, in one sentence.
        right: what would be right: an example, or how to fix it.
        advice: whether it could be better, but breaks nothing.
        log: the end of the program's standard error, where that may tell why.
        after: the exchange whose effect this one shows, such as ``admit (5)``; mostly empty.
        finding: the fields of `wrong`, where a judge said it of an answer.
    """

    wrong: str
    right: str = ""
    advice: bool = False
    log: str = ""
    after: str = ""
    finding: ReportedFinding | None = None

    @property
    def sentence(self) -> Sentence:
        """What is wrong."""
        return sentence_of(self.wrong, self.finding)

    @property
    def cause(self) -> str:
        """What it is the same as elsewhere: the broken invariant, else the sentence.

        Sentences that differ in pods, ids, numbers or what the program wrote alone are the same.
        """
        if self.finding and self.finding.source == "invariant":
            return self.finding.rule
        same = self.wrong
        for pattern, instead in _VARYING:
            same = pattern.sub(instead, same)
        return same


class Exchange(Strict, frozen=True):
    """A request and what came back, or another moment in the life of the program.

    Attributes:
        number: the number of the exchange, from 1.
        process: the number of the process of the program, from 1.
        step: the operation; ``end of input`` and ``clean-up`` are no operations.
        about: why the request is made, or what must happen.
        request: the line that was sent, without its end; empty if none was.
        response: the lines that came back, or what happened.
        seconds: until the answer.
        findings: what is wrong with it.
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
    """A whole dialogue.

    Attributes:
        command: the program, as a person types it.
        name: of the implementation; empty if it did not say.
        healthy: whether nothing is wrong; there may be advice.
        seconds: how long the dialogue took.
        exchanges: everything that was said, in order.
        not_claimed: the operations that were left out because ``hello`` does not claim them.
        next_steps: what to do next, the most urgent first.
        next_findings: the fields of each step that has two sides; None for others.
    """

    command: str
    name: str
    healthy: bool
    seconds: float
    exchanges: tuple[Exchange, ...]
    not_claimed: tuple[str, ...]
    next_steps: tuple[str, ...]
    next_findings: tuple[ReportedFinding | None, ...] = ()
