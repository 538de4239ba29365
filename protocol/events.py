"""The stream of events from which every report is made.

A run yields these in order, live or from a saved file (``events.jsonl``, one per line). A stream
without `RunEnded` is an incomplete run.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Literal

import msgspec

from numaproof.protocol import codec
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.messages import Hello, Level
from numaproof.protocol.mismatch import Mismatch

Outcome = Literal[
    "pass",
    "fail",
    "unsupported",
    "fault",
    "crash",
    "time-out",
    "protocol error",
    "not run",
    "expected failure",
    "missing expected failure",
    "nondeterministic",
    "known failure",
    "missing known failure",
]
"""How a case ended on a machine. ``nondeterministic`` means that the same calls, made again, got
different answers, so the answers prove nothing. Only ``pass`` is green. ``unsupported`` and
``expected failure`` do not fail a run, but reports show them as such; nor does a ``known failure``,
which a project's own file names. What that file names and passes is a ``missing known failure``."""

GOOD: frozenset[Outcome] = frozenset({"pass", "unsupported", "expected failure", "known failure"})
"""Outcomes that do not fail a run."""


BaselineName = Literal["documented", "kubelet"]
"""Which behaviour is expected where a kubelet contradicts its documentation."""

BaselineChoice = Literal["documented", "kubelet", "either"]
"""The baseline that answers are judged by."""

BASELINE_CHOICES: tuple[BaselineChoice, ...] = ("documented", "kubelet", "either")


class BaselineDivergence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The baseline that an implementation follows where a kubelet contradicts its documentation.

    `defects` names the kubelet's defects behind the contradiction.
    """

    baseline: BaselineName
    defects: tuple[str, ...] = ()


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event"):
    """Something that happened `at` seconds after the run began."""

    at: float


class ReportedRequirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A documented requirement, as reports show it."""

    id: str
    area: str
    statement: str
    document: str
    section: str


# A run is a campaign, and coverage is "reached", in the tags of streams that are already saved.
class RunStarted(Event, frozen=True, tag="campaign started"):
    """A run begins: who runs it, against what, and how much there is to do.

    `command` is the command line that runs it again; `total` counts case runs (a case on a
    machine) or, when fuzzing or comparing two sides, examples.
    """

    kind: Literal["check", "fuzz", "diff"]
    numaproof: str
    kubernetes: str
    level: Level
    command: str
    total: int
    machines: dict[str, MachineInfo]
    requirements: tuple[ReportedRequirement, ...]
    implementation: Hello | None = None
    seed: int | None = None


class ReportedFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is wrong with an answer, as fields of the sentence that says it.

    `source` is who says so: ``expectation``, ``invariant``, ``reference``, ``other side`` or
    ``node``. `rule` is what was compared: a path in the answer, words for a part of it, or the name
    of an invariant. `what` is the sentence without the two sides `expected` and `actual`; it is
    empty if the sentence has none. `requirement` is what is broken, where that is known.
    """

    source: str
    rule: str
    what: str = ""
    expected: str = ""
    actual: str = ""
    requirement: str = ""

    def __str__(self) -> str:
        """The sentence, if it has two sides."""
        return str(Mismatch(self.what, self.expected, self.actual)) if self.what else ""

    def within(self, before: str, after: str = "") -> ReportedFinding:
        """The same with words around its sentence."""
        if not self.what:
            return self
        return msgspec.structs.replace(self, what=before + self.what, actual=self.actual + after)


Sentence = ReportedFinding | str
"""A sentence: the fields of one with two sides, or the text of any other."""


def sentence_of(message: str, finding: ReportedFinding | None) -> Sentence:
    """A sentence for people; the text of one with two sides whose fields are not known."""
    return finding if finding and finding.what else message


def headline(sentence: Sentence) -> str:
    """A sentence without its two sides, for places that have one line."""
    return sentence if isinstance(sentence, str) else sentence.what


class ReportedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One call, as plain JSON values.

    `problems` lists in sentences what is wrong with the answer; it is empty if nothing is.
    `before` lists in sentences what the harness did to the node before it made the call. `findings`
    has the fields of each problem, in their order; streams of earlier versions have none.
    """

    operation: str
    args: dict[str, Any]
    answer: dict[str, Any] | None = None
    problems: tuple[str, ...] = ()
    expected: dict[str, Any] | None = None
    before: tuple[str, ...] = ()
    findings: tuple[ReportedFinding, ...] = ()

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """The problems; where their fields are not known, as text."""
        return tuple(sentence_of(*both) for both in zip_longest(self.problems, self.findings))


class Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who owns a set of CPUs (Linux list format) in a picture: a container, or the reservation."""

    name: str
    cpus: str


class Picture(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which CPUs belonged to whom at one moment of a failed case."""

    title: str
    owners: tuple[Owner, ...]
    shared: str


class ClaimsReview(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a run shows of the claims of an implementation.

    `assumes_features` is whether `hello` named no features; `missing_claims` counts the case runs
    (or examples) that were not asked to the end, by the claim that was missing first;
    `declined_runs` those that the program answered with ``unsupported`` itself. `possible` are
    claims that could be made, and `untrue` claims that the run contradicts, in sentences.
    """

    assumes_features: bool = False
    missing_claims: dict[str, int] = msgspec.field(default_factory=dict)
    declined_runs: int = 0
    possible: tuple[str, ...] = ()
    untrue: tuple[str, ...] = ()


class CaseFinished(Event, frozen=True, tag="case finished", omit_defaults=True):
    """A case ran on a machine. Steps and pictures are kept unless it passed.

    `seconds` is its duration; `stderr` the implementation's standard error in a run that failed,
    without the middle of a long one, or the trace of a fault; `defect` the named defect behind an
    expected failure; `reproduce` the command that repeats just this case run; `signature` the cause
    of a failure in a few words, the same in every case and on every machine; `reason` why a known
    failure is accepted, as its file says it; `baseline_divergence` the baseline followed, where
    either was right and they differ; `finding` the fields of the message, where a wrong answer is
    behind it.

    `needs` are the claims that its calls need, `missing_claim` the first of them that the
    implementation does not make, `declined_claims` those that it makes and answered
    ``unsupported``; `agreed_level` is the highest level at which no answer differs from the
    reference's.

    `requirements` are those of the case, the same however it ends; `violated_requirements` are
    requirements that the answers of a failed run violated, of the case or others, the most telling
    first. Of the `requirements`, `undiscovered` are about what the implementation does not find out
    about a machine, and `unaffected` are met although the run failed: what they are about was
    discovered as it is, and something else was not.
    """

    case: str
    title: str
    machine: str
    outcome: Outcome
    seconds: float
    requirements: tuple[str, ...]
    message: str = ""
    steps: tuple[ReportedCall, ...] = ()
    pictures: tuple[Picture, ...] = ()
    stderr: str = ""
    defect: str | None = None
    reproduce: str = ""
    signature: str = ""
    reason: str = ""
    needs: tuple[str, ...] = ()
    missing_claim: str = ""
    declined_claims: tuple[str, ...] = ()
    agreed_level: Level | None = None
    baseline_divergence: BaselineDivergence | None = None
    undiscovered: tuple[str, ...] = ()
    unaffected: tuple[str, ...] = ()
    violated_requirements: tuple[str, ...] = ()
    finding: ReportedFinding | None = None

    @property
    def judged_requirements(self) -> tuple[str, ...]:
        """The requirements that the run has an outcome for: those violated, then the case's."""
        return tuple(dict.fromkeys((*self.violated_requirements, *self.requirements)))

    def outcome_of(self, requirement: str) -> Outcome:
        """How the run ended for one of the requirements in `judged`."""
        if requirement in self.undiscovered:
            return "unsupported"
        return "pass" if requirement in self.unaffected else self.outcome

    @property
    def broken_requirements(self) -> tuple[str, ...]:
        """The requirements for which the run ended as it did: all that are neither of these."""
        return tuple(
            one for one in self.judged_requirements if self.outcome_of(one) == self.outcome
        )


class DivergenceFound(Event, frozen=True, tag="divergence found", omit_defaults=True):
    """A failure that fuzzing found, already shrunk; `file` is the case file that replays it.

    When two sides are compared, `ReportedCall.expected` is the left side's answer; when an
    implementation is nondeterministic, it is its first answer. `signature` is the cause, as in
    `CaseFinished`; so are `reason`, `baseline_divergence` and `finding`.
    """

    title: str
    outcome: Outcome
    message: str
    machine: MachineInfo
    steps: tuple[ReportedCall, ...]
    requirements: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    stderr: str = ""
    file: str | None = None
    reproduce: str = ""
    signature: str = ""
    reason: str = ""
    baseline_divergence: BaselineDivergence | None = None
    finding: ReportedFinding | None = None


class AnsweredByChance(Event, frozen=True, tag="answered by chance", omit_defaults=True):
    """The right side answered a call differently when the same calls were made again.

    The rest of the scenario was not compared; `call` is the number of that call, from 1, and
    `finding` has the fields of the message.
    """

    scenario: str
    call: int
    operation: str
    message: str
    finding: ReportedFinding | None = None


class Coverage(Event, frozen=True, tag="reached"):
    """What fuzzing covered in its `examples`.

    `counts` maps each subject (such as ``actions``) to how often each thing occurred; `highest`
    holds the highest value of each target that examples are steered to.
    """

    examples: int
    counts: dict[str, dict[str, int]]
    highest: dict[str, float]


class Progress(Event, frozen=True, tag="progress"):
    """The number of examples that fuzzing has played so far. Not in saved streams."""

    played_examples: int


class RunEnded(Event, frozen=True, tag="campaign ended"):
    """The run finished (`complete`) or was cut short.

    `outcomes` counts case runs (or examples) by outcome; `untested_requirements` holds the ids of
    requirements that no case covers; `claims` is about the implementation's own claims;
    `leftover_processes` names the processes that it has started and that could not be ended.
    """

    complete: bool
    outcomes: dict[str, int]
    untested_requirements: tuple[str, ...] = ()
    message: str = ""
    claims: ClaimsReview | None = None
    leftover_processes: tuple[str, ...] = ()


AnyEvent = (
    RunStarted | CaseFinished | DivergenceFound | AnsweredByChance | Coverage | Progress | RunEnded
)


def write_line(event: AnyEvent) -> bytes:
    """The event as one line of ``events.jsonl``, with its line break."""
    return codec.encode(event) + b"\n"
