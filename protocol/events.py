"""The stream of events behind every report.

A run yields these events in order, live or from a saved file (``events.jsonl``, one per line). A
stream without `RunEnded` comes from an incomplete run.
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
"""The outcome of a case run.

``nondeterministic`` means that repeating the same calls gave different answers, so the answers
prove nothing. Only ``pass`` is green. ``unsupported``, ``expected failure`` and ``known failure``
(listed in a project's own file) don't make a run fail, but reports show them. A listed failure that
passes is a ``missing known failure``."""

GOOD: frozenset[Outcome] = frozenset({"pass", "unsupported", "expected failure", "known failure"})
"""Outcomes that do not fail a run."""


BaselineName = Literal["documented", "kubelet"]
"""A behaviour to expect where the kubelet contradicts its documentation."""

BaselineChoice = Literal["documented", "kubelet", "either"]
"""The baseline that answers are compared with."""

BASELINE_CHOICES: tuple[BaselineChoice, ...] = ("documented", "kubelet", "either")


class BaselineDivergence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The baseline that an implementation follows where the kubelet contradicts its documentation.

    `defects` names the kubelet defects that cause the contradiction.
    """

    baseline: BaselineName
    defects: tuple[str, ...] = ()


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event"):
    """An event, `at` seconds after the start of the run."""

    at: float


class ReportedDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A document that requirements cite, as reports show it.

    `title` is in English; `original_title` is in the document's own language, whose BCP 47 tag is
    `lang`, and is empty for English. `kubernetes` is the described release. `address` is the
    document's URL, empty if unknown. `anchors` maps sections, by their names in requirements, to
    fragments of the address. Numbers of issues, and paths of source files, belong to the GitHub
    `repository`.
    """

    title: str
    language: str
    original_title: str = ""
    lang: str = "en"
    kubernetes: str = ""
    address: str = ""
    anchors: dict[str, str] = msgspec.field(default_factory=dict)
    repository: str = "kubernetes/kubernetes"


class ReportedRequirement(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A documented requirement, as reports show it.

    `document` is the key of a document, and `also` are the keys of others that state it.
    """

    id: str
    area: str
    statement: str
    document: str
    section: str
    also: tuple[str, ...] = ()


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When and where a run started.

    `date` is in UTC, such as ``2026-03-01T12:00:00Z``. `commit` is the commit of the working
    directory, followed by ``-dirty`` if tracked files have changes; empty if it is not known.
    `platform` describes the operating system, the processor and Python.
    """

    date: str = ""
    commit: str = ""
    platform: str = ""


CaseOnMachine = tuple[str, str]
"""A case run: the ids of the case and of the machine."""


# Saved streams call a run a campaign, and coverage "reached", so these tags must not change.
class RunStarted(Event, frozen=True, tag="campaign started"):
    """A run starts.

    `command` is the command that repeats the run. `total` counts case runs (one case on one
    machine) or, when fuzzing or comparing two implementations, examples. `left` is the other side
    of a comparison. `host` describes the host, where answers may depend on it. `origin` is None for
    runs of a library, and in streams of earlier versions. `documents` are the documents that
    the requirements cite, by key; streams of earlier versions have none. `bound` says what was
    enumerated, one sentence for each kind, and `bound_name` is its name. `failed_before` are the
    only case runs of a run that repeats earlier failures, including those that don't exist anymore.
    """

    kind: Literal["check", "fuzz", "diff", "exhaust"]
    numaproof: str
    kubernetes: str
    level: Level
    command: str
    total: int
    machines: dict[str, MachineInfo]
    requirements: tuple[ReportedRequirement, ...]
    implementation: Hello | None = None
    seed: int | None = None
    left: Hello | None = None
    documents: dict[str, ReportedDocument] = msgspec.field(default_factory=dict)
    host: str = ""
    origin: Origin | None = None
    bound: tuple[str, ...] = ()
    bound_name: str = ""
    failed_before: tuple[CaseOnMachine, ...] = ()


class ReportedFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A problem in an answer, split into the fields of its message.

    `source` is the check that failed: ``expectation``, ``invariant``, ``reference``, ``other
    side`` or ``node``. `rule` identifies what was compared: a path in the answer, a description of
    a part, or the name of an invariant. `what` is the message, excluding `expected` and `actual`;
    empty if the message has no such values. `requirement` is the violated requirement, if known.
    """

    source: str
    rule: str
    what: str = ""
    expected: str = ""
    actual: str = ""
    requirement: str = ""

    def __str__(self) -> str:
        """The message, if it has an expected and an actual value."""
        return str(Mismatch(self.what, self.expected, self.actual)) if self.what else ""

    def within(self, before: str, after: str = "") -> ReportedFinding:
        """Adds text before and after the message."""
        if not self.what:
            return self
        return msgspec.structs.replace(self, what=before + self.what, actual=self.actual + after)


Sentence = ReportedFinding | str
"""A message: its fields if it has an expected and an actual value, its text otherwise."""


def sentence_of(message: str, finding: ReportedFinding | None) -> Sentence:
    """Returns the fields of a message if known, and its text otherwise."""
    return finding if finding and finding.what else message


def headline(sentence: Sentence) -> str:
    """Returns a message minus its expected and actual values, for places with a single line."""
    return sentence if isinstance(sentence, str) else sentence.what


class ReportedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One call, as plain JSON values.

    `problems` describes the problems in the answer, and `findings` has the fields of each, in the
    same order; streams of earlier versions have no `findings`. `before` describes what the harness
    did to the node before the call.
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
        """The problems, with their fields where known."""
        return tuple(sentence_of(*both) for both in zip_longest(self.problems, self.findings))


class Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The owner of a set of CPUs (Linux list format) in a picture: a container or the system."""

    name: str
    cpus: str


class Picture(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The owners of a machine's CPUs at one moment of a failed case."""

    title: str
    owners: tuple[Owner, ...]
    shared: str


class ClaimsReview(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How an implementation's claims compare with its answers in a run.

    `assumes_features` is true if `hello` listed no features. `missing_claims` counts the case runs
    (or examples) that stopped early, by the first missing claim; `declined_runs` counts the runs
    that the program itself declined with ``unsupported``. `possible` describes claims that could be
    added; `untrue` describes claims that the run contradicts.
    """

    assumes_features: bool = False
    missing_claims: dict[str, int] = msgspec.field(default_factory=dict)
    declined_runs: int = 0
    possible: tuple[str, ...] = ()
    untrue: tuple[str, ...] = ()


class CaseFinished(Event, frozen=True, tag="case finished", omit_defaults=True):
    """A case run ended. Steps and pictures are omitted if it passed.

    `stderr` is the implementation's standard error in a failed run (shortened in the middle), or
    the trace of a fault. `defect` is the named defect behind an expected failure. `reproduce` is
    the command that repeats this case run. `signature` identifies the cause of a failure across
    cases and machines. `reason` explains why a known failure is accepted. `baseline_divergence` is
    the baseline that the answers followed, if either baseline was acceptable and they differ.
    `finding` has the fields of the message if an answer was wrong. `case_text` is a case file with
    only this case, in a failed run. With `only_invariants`, the case is above the claimed level:
    its steps accepted any answer that broke no invariant, so the run says nothing about its
    `requirements`.

    `needs` are the claims that the calls need, up to the first call that needs a missing one.
    `missing_claim` is the first claim that the implementation lacks; `declined_claims` are claims
    that it makes, although it answered with ``unsupported``. `agreed_level` is the highest level at
    which all answers agree with the reference's.

    `requirements` are the case's requirements, whatever the outcome. `violated_requirements` are
    the requirements that the answers of a failed run violated, from this case or others, most
    specific first. Two subsets of `requirements` have their own outcomes: `undiscovered`
    requirements depend on properties that the implementation does not discover, and `unaffected`
    requirements are met although discovery of something else failed.
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
    case_text: str = ""
    only_invariants: bool = False

    @property
    def judged_requirements(self) -> tuple[str, ...]:
        """The requirements for which this run has an outcome, violated ones first."""
        own = () if self.only_invariants else self.requirements
        return tuple(dict.fromkeys((*self.violated_requirements, *own)))

    @property
    def violates_own(self) -> bool:
        """Whether a failed run violated a requirement of its own case, not only of others."""
        violated = self.violated_requirements
        return not violated or not {*violated}.isdisjoint(self.requirements)

    def outcome_of(self, requirement: str) -> Outcome:
        """The outcome of the run for one of the `judged_requirements`."""
        if requirement in self.undiscovered:
            return "unsupported"
        return "pass" if requirement in self.unaffected else self.outcome

    @property
    def broken_requirements(self) -> tuple[str, ...]:
        """The judged requirements that share the run's outcome."""
        return tuple(
            one for one in self.judged_requirements if self.outcome_of(one) == self.outcome
        )


class DivergenceFound(Event, frozen=True, tag="divergence found", omit_defaults=True):
    """A failure found by fuzzing, already shrunk.

    `file` is the case file that reproduces it, and `case_text` is its contents.

    `ReportedCall.expected` is the left side's answer in a comparison of two implementations, and
    the first answer of a nondeterministic implementation. `signature`, `reason`,
    `baseline_divergence` and `finding` are as in `CaseFinished`.
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
    case_text: str = ""


class AnsweredByChance(Event, frozen=True, tag="answered by chance", omit_defaults=True):
    """In a comparison, the right side answered a call differently when the calls were repeated.

    The rest of the scenario was not compared. `call` is the number of that call, starting at 1, and
    `finding` has the fields of the message.
    """

    scenario: str
    call: int
    operation: str
    message: str
    finding: ReportedFinding | None = None


class Coverage(Event, frozen=True, tag="reached"):
    """What fuzzing covered in its `examples`.

    `counts` maps each subject (such as ``actions``) to the number of occurrences of each value.
    `highest` holds the highest value of each target that guides the search.
    """

    examples: int
    counts: dict[str, dict[str, int]]
    highest: dict[str, float]


class Progress(Event, frozen=True, tag="progress"):
    """The number of examples that fuzzing has played so far. Saved streams do not contain it."""

    played_examples: int


class RunEnded(Event, frozen=True, tag="campaign ended"):
    """The run finished (`complete`) or was interrupted.

    `outcomes` counts case runs (or examples) by outcome. `untested_requirements` lists the ids of
    requirements that no case covers. `claims` reviews the implementation's own claims.
    `leftover_processes` names processes started by the implementation that could not be killed.
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
    """Returns the event as one line of ``events.jsonl``, including the line break."""
    return codec.encode(event) + b"\n"
