"""The types of the JSON that commands print; ``docs/schemas`` has the JSON Schemas."""

# The schemas are generated from these annotations, so their names must exist at run time.
# ruff: noqa: TC001

from __future__ import annotations

from typing import Literal, TypedDict

import msgspec

from numaproof.protocol.events import BaselineDivergence, Outcome
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.messages import Level

Verdict = Literal["passed", "failed", "incomplete", "nothing tested"]
"""The result of a run. If everything was unsupported, nothing was tested."""


class FailedRun(TypedDict):
    """A case run; see `events.CaseFinished`."""

    case: str
    machine: str
    outcome: Outcome
    requirements: list[str]
    violated_requirements: list[str]
    message: str
    defect: str | None
    reproduce: str
    baseline_divergence: BaselineDivergence | None


class Divergence(TypedDict):
    """A failure found by fuzzing; see `events.DivergenceFound`."""

    title: str
    outcome: Outcome
    requirements: list[str]
    message: str
    signature: str
    file: str | None
    reproduce: str


class ChanceAnswer(TypedDict):
    """A call that the right side answered differently when it was repeated."""

    scenario: str
    call: int
    operation: str
    message: str


class CoverageCounts(TypedDict):
    """What fuzzing covered; see `events.Coverage`."""

    examples: int
    counts: dict[str, dict[str, int]]
    highest: dict[str, float]


class Claims(TypedDict):
    """A review of the implementation's claims; see `events.ClaimsReview`."""

    assumes_features: bool
    missing_claims: dict[str, int]
    declined_runs: int
    possible: list[str]
    untrue: list[str]


class Program(TypedDict):
    """An implementation, as its `hello` describes it; see `messages.Hello`."""

    name: str
    version: str
    build: dict[str, str] | None


class RunSummary(TypedDict):
    """The summary of a run: verdict, counts by outcome, and failures.

    `implementation` is null if it did not answer `hello`. `left` is the other side of a comparison,
    and `host` describes the host, where answers may depend on it. `outcomes` counts case runs or,
    when fuzzing, examples. `areas` and `machines` count case runs. `gaps` explains why a run is
    incomplete.
    """

    verdict: Verdict
    exit_code: int
    complete: bool
    gaps: list[str]
    implementation: Program | None
    left: Program | None
    host: str
    seconds: float
    outcomes: dict[Outcome, int]
    areas: dict[str, dict[Outcome, int]]
    machines: dict[str, dict[Outcome, int]]
    failures: list[FailedRun]
    expected_failures: list[FailedRun]
    known_failures: list[FailedRun]
    divergences: list[Divergence]
    known_divergences: list[Divergence]
    by_chance: list[ChanceAnswer]
    coverage: CoverageCounts | None
    untested: list[str]
    claims: Claims | None
    leftover_processes: list[str]


class FailurePlace(TypedDict):
    """A failure that has the cause; `case` is empty for a generated scenario."""

    case: str
    title: str
    machine: str
    outcome: Outcome
    message: str


class Cause(TypedDict):
    """Failures with the same cause; `signatures` counts them by signature."""

    signature: str
    count: int
    signatures: dict[str, int]
    smallest: FailurePlace
    others: list[FailurePlace]


class RunReport(RunSummary):
    """The result of `check`, `fuzz`, `diff` or `replay`: the summary and the causes of failures."""

    causes: list[Cause]


class ChangedRun(TypedDict):
    """A case run in two runs, or what fuzzing found.

    `before` and `after` are its outcomes; null if it is not in that run. `message` and `signature`
    are those of the later run, or of the earlier one if it no longer fails. `seconds_before` and
    `seconds_after` are its durations. `case` is empty for what fuzzing found.
    """

    case: str
    title: str
    machine: str
    before: Outcome | None
    after: Outcome | None
    signature_before: str
    signature: str
    message: str
    reproduce: str
    seconds_before: float
    seconds_after: float


class ComparedRun(TypedDict):
    """One of two compared runs; `commit` and `date` are empty if they are not known.

    `folder` is the path that was named.
    """

    folder: str
    command: str
    implementation: Program | None
    kubernetes: str
    level: str
    verdict: Verdict
    date: str
    commit: str
    gaps: list[str]


class RunComparison(TypedDict):
    """How a later run differs from an earlier one.

    `missing` are case runs of the earlier run that are not in the later one. `still_failing` and
    `still_good` count case runs whose outcome is the same.
    """

    before: ComparedRun
    after: ComparedRun
    exit_code: int
    newly_failing: list[ChangedRun]
    changed_cause: list[ChangedRun]
    no_longer_failing: list[ChangedRun]
    slower: list[ChangedRun]
    missing: list[ChangedRun]
    still_failing: int
    still_good: int


class ConfigurationProblem(TypedDict):
    """A problem that `config check` reports; `section` is the section of the documentation.

    A `note` is not a problem: its message says what was read, from where, and what was left out.
    """

    severity: Literal["error", "warning", "fault", "note"]
    file: str
    field: str
    line: int
    message: str
    fix: str
    section: str


class CaseRow(TypedDict):
    """A case that `case list` lists."""

    id: str
    title: str
    requirements: list[str]
    level: Level
    kubernetes: str
    aliases: list[str]


class ProfileRow(TypedDict):
    """A bundled machine that `profile list` lists."""

    name: str
    title: str


class DiscoveredMachine(MachineInfo, frozen=True):
    """What `discover` finds; `notes` say what was assumed if a description is incomplete."""

    notes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
