"""The types of the JSON that commands print; ``docs/schemas`` has them as JSON Schemas."""

# The schemas are generated from these annotations, so their names must exist at run time.
# ruff: noqa: TC001

from __future__ import annotations

from typing import Literal, TypedDict

from numaproof.protocol.events import BaselineDivergence, Outcome
from numaproof.protocol.messages import Level

Verdict = Literal["passed", "failed", "incomplete", "nothing tested"]
"""The result of a run. If everything was unsupported, nothing was tested."""


class FailedRun(TypedDict):
    """A case run, as `events.CaseFinished` describes it."""

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
    """A failure that fuzzing found, as `events.DivergenceFound` describes it."""

    title: str
    outcome: Outcome
    requirements: list[str]
    message: str
    signature: str
    file: str | None
    reproduce: str


class ChanceAnswer(TypedDict):
    """A call that the right side answered differently the second time."""

    scenario: str
    call: int
    operation: str
    message: str


class CoverageCounts(TypedDict):
    """What fuzzing covered, as `events.Coverage` describes it."""

    examples: int
    counts: dict[str, dict[str, int]]
    highest: dict[str, float]


class Claims(TypedDict):
    """What the run shows of the implementation's claims, as `events.ClaimsReview` describes it."""

    assumes_features: bool
    missing_claims: dict[str, int]
    declined_runs: int
    possible: list[str]
    untrue: list[str]


class RunSummary(TypedDict):
    """The summary of a run: its verdict, its counts by outcome, and everything that failed.

    `outcomes` counts case runs, or examples when fuzzing; `areas` and `machines` count case runs.
    `gaps` says why an incomplete run is incomplete.
    """

    verdict: Verdict
    exit_code: int
    complete: bool
    gaps: list[str]
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
    """Where a cause shows; `case` is empty for a generated scenario."""

    case: str
    title: str
    machine: str
    outcome: Outcome
    message: str


class Cause(TypedDict):
    """Failures with one cause; `signatures` counts each way in which it shows."""

    signature: str
    count: int
    signatures: dict[str, int]
    smallest: FailurePlace
    others: list[FailurePlace]


class RunReport(RunSummary):
    """The result of `check`, `fuzz`, `diff` or `replay`: the summary and the causes of failures."""

    causes: list[Cause]


class ConfigurationProblem(TypedDict):
    """A problem that `config check` reports; `section` names the section of the documents."""

    severity: Literal["error", "warning", "fault"]
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
