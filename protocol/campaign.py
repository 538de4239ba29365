"""The events of a campaign: the events of many runs, grouped into units of work.

A campaign's journal contains the events of each unit as one group, in order of arrival. Each group
ends with a `UnitFinished`; events without a matching `UnitFinished` are discarded.
"""

from __future__ import annotations

import hashlib

import msgspec

from numaproof.protocol import events
from numaproof.protocol.messages import Hello, Level


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """The Kubernetes release to emulate, the level of comparison and the baseline."""

    kubernetes: str
    level: Level
    baseline: events.BaselineChoice = "kubelet"

    def __str__(self) -> str:
        side = f" as {self.baseline}" if self.baseline != "kubelet" else ""
        return f"{self.kubernetes} {self.level}{side}"


class CaseSlice(msgspec.Struct, frozen=True, tag="cases"):
    """Cases to run on one machine; if `machine` is empty, each runs on the machine it defines."""

    configuration: Configuration
    machine: str
    number: int
    cases: tuple[str, ...]

    @property
    def id(self) -> str:
        """The unit's id, which is unique within the campaign."""
        return f"{self.configuration}/cases/{self.machine or 'own'}/{self.number}"


class SeedSlice(msgspec.Struct, frozen=True, tag="seeds"):
    """Scenarios generated from `count` seeds, starting at `first`; each has its own machine.

    If `is_guided`, they are a lineage: most are modified copies of earlier scenarios of the unit.
    """

    configuration: Configuration
    first: int
    count: int
    is_guided: bool = False

    @property
    def id(self) -> str:
        """The unit's id, which is unique within the campaign."""
        kind = "lineage" if self.is_guided else "seeds"
        return f"{self.configuration}/{kind}/{self.first}+{self.count}"


class BoundSlice(msgspec.Struct, frozen=True, tag="bound"):
    """`count` parts of what `numaproof exhaust` enumerates, starting at number `first`.

    `bound` and `kind` are the values of that command's options.
    """

    configuration: Configuration
    bound: str
    kind: str
    first: int
    count: int

    @property
    def id(self) -> str:
        """The unit's id, which is unique within the campaign."""
        return f"{self.configuration}/{self.kind}/{self.first}+{self.count}"


class Shrink(msgspec.Struct, frozen=True, tag="shrink", omit_defaults=True):
    """A failed scenario to shrink; it represents all failures with the same signature.

    If `kind` is set, the scenario is the first with this signature in part `seed` of the bound. If
    `case` is set, it is the scenario as a case file, because a lineage's seed is not enough.
    """

    configuration: Configuration
    signature: str
    seed: int
    kind: str = ""
    case: str = ""

    @property
    def id(self) -> str:
        """The unit's id, which is unique within the campaign."""
        return f"{self.configuration}/shrink/{self.signature}/{self.kind}{self.seed}"


Unit = CaseSlice | SeedSlice | BoundSlice | Shrink
"""A unit of work for one worker. A unit is finished completely or not at all."""


class Seeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The seeds from `first` (inclusive) to `stop` (exclusive)."""

    first: int
    stop: int


class CampaignPlanned(events.Event, frozen=True, tag="campaign planned"):
    """The plan of a campaign. The same plan yields the same units and the same summary.

    `program` is the command of the implementation as a list of words; empty for the reference.
    `cases` (the whole table), `selected_cases` (the cases that run) and `machines` are digests of
    the contents. `bound` is the name of the bound to enumerate, and `bound_covers` describes it;
    without a bound, both are empty. If `is_guided`, units of seeds are lineages. `units` counts the
    units of cases, seeds and the bound.
    """

    numaproof: str
    program: tuple[str, ...]
    timeout: float
    implementation: Hello
    configurations: tuple[Configuration, ...]
    cases: str
    selected_cases: str
    machines: dict[str, str]
    runs: int
    seeds: Seeds
    cases_per_unit: int
    seeds_per_unit: int
    shrinks: int
    units: int
    bound: str = ""
    bound_covers: tuple[str, ...] = ()
    is_guided: bool = False

    @property
    def key(self) -> str:
        """Identifies the plan: different plans have different keys."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:12]


class ScenarioFailed(events.Event, frozen=True, tag="scenario failed", omit_defaults=True):
    """A generated scenario failed; failures with the same `signature` have the same cause.

    `reason` explains why a known failure is accepted. `finding` has the fields of the message. If
    `kind` is set, `seed` is the number of a part of the bound, and `count` of its examples failed.
    `case` is the scenario as a case file: the unit's first of each signature in a lineage.
    """

    seed: int
    signature: str
    outcome: events.Outcome
    message: str
    reason: str = ""
    finding: events.ReportedFinding | None = None
    kind: str = ""
    count: int = 1
    case: str = ""


class UnitFinished(events.Event, frozen=True, tag="unit finished", omit_defaults=True):
    """A unit is complete. `outcomes` counts its case runs or scenarios by outcome.

    `seconds` is the worker's running time. `machine` is set for a slice of cases, and `signature`
    is set for a shrink. `notes` report problems that are not findings: failures that did not recur
    and processes that could not be killed. `blocks` are those that the scenarios reached, if the
    program reports its coverage; in a lineage, `kept_scenarios` counts the scenarios that reached
    any before all others. In a journal, `events` counts the preceding lines of the unit, and
    `checksum` covers the plan, those lines and this one.
    """

    unit: str
    configuration: Configuration
    outcomes: dict[events.Outcome, int]
    seconds: float
    machine: str = ""
    signature: str = ""
    notes: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    kept_scenarios: int = 0
    events: int = 0
    checksum: str = ""


UnitEvent = events.CaseFinished | ScenarioFailed | events.DivergenceFound | UnitFinished
"""An event that a worker reports about a unit."""

CampaignEvent = CampaignPlanned | UnitEvent | events.RunEnded
"""A line of a campaign's journal."""


class CampaignFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All failures with the same signature.

    `subject` is the id of a case, or ``scenario``. `first` is the first occurrence in plan order;
    `count` is the number of case runs or scenarios that fail this way. `file` is the path of the
    case file that reproduces the failure, relative to the campaign's folder. `finding` has the
    fields of the message.
    """

    signature: str
    subject: str
    outcome: events.Outcome
    message: str
    count: int
    first: str
    configurations: tuple[str, ...]
    machines: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    file: str | None = None
    reproduce: str = ""
    finding: events.ReportedFinding | None = None


class CampaignTally(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Case runs and scenarios by outcome."""

    cases: dict[events.Outcome, int]
    scenarios: dict[events.Outcome, int]


class CampaignCoverage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The blocks of the program that the scenarios reached.

    `kept_scenarios` counts the scenarios that reached a block before all others of their lineage.
    """

    kept_scenarios: int
    blocks: tuple[str, ...]


class CampaignSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a campaign, which depends only on the plan and not on how units were scheduled.

    `missing` counts the unfinished units, and `message` explains why they are unfinished.
    `coverage` is None unless the program reports its coverage.
    """

    plan: CampaignPlanned
    complete: bool
    missing: int
    tally: CampaignTally
    configurations: dict[str, CampaignTally]
    machines: dict[str, dict[events.Outcome, int]]
    findings: tuple[CampaignFinding, ...]
    message: str = ""
    coverage: CampaignCoverage | None = None

    @property
    def has_findings(self) -> bool:
        """Whether the campaign found any failures."""
        return bool(self.findings)

    @property
    def nothing(self) -> bool:
        """Whether nothing was tested because everything was unsupported."""
        return not {*self.tally.cases, *self.tally.scenarios} - {"unsupported"}
