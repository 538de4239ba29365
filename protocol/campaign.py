"""The events of a campaign over many workers: the events of a run, grouped into units of work.

A campaign's journal holds the events of each unit together, units in the order in which they came
back. Each group ends with a `UnitFinished`; events without one that fits them are discarded.
"""

from __future__ import annotations

import hashlib

import msgspec

from numaproof.protocol import events
from numaproof.protocol.messages import Hello, Level


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """The release to behave as, the level at which answers are compared, and the right side."""

    kubernetes: str
    level: Level
    baseline: events.BaselineChoice = "kubelet"

    def __str__(self) -> str:
        side = f" as {self.baseline}" if self.baseline != "kubelet" else ""
        return f"{self.kubernetes} {self.level}{side}"


class CaseSlice(msgspec.Struct, frozen=True, tag="cases"):
    """Cases by id on one machine; an empty machine name means the machine each case defines."""

    configuration: Configuration
    machine: str
    number: int
    cases: tuple[str, ...]

    @property
    def id(self) -> str:
        """Unique within the campaign."""
        return f"{self.configuration}/cases/{self.machine or 'own'}/{self.number}"


class SeedSlice(msgspec.Struct, frozen=True, tag="seeds"):
    """Scenarios generated from `count` seeds, starting at `first`; each defines its machine."""

    configuration: Configuration
    first: int
    count: int

    @property
    def id(self) -> str:
        """Unique within the campaign."""
        return f"{self.configuration}/seeds/{self.first}+{self.count}"


class Shrink(msgspec.Struct, frozen=True, tag="shrink"):
    """A failed scenario to shrink, on behalf of all failures with the same signature."""

    configuration: Configuration
    signature: str
    seed: int

    @property
    def id(self) -> str:
        """Unique within the campaign."""
        return f"{self.configuration}/shrink/{self.signature}/{self.seed}"


Unit = CaseSlice | SeedSlice | Shrink
"""A worker's unit of work. It is finished completely or not at all."""


class Seeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The seeds from `first` (inclusive) to `stop` (exclusive)."""

    first: int
    stop: int


class CampaignPlanned(events.Event, frozen=True, tag="campaign planned"):
    """What a campaign does. The same plan yields the same units and the same summary.

    `program` is the implementation's command as a list of words, empty for the reference; `cases`
    (the whole table), `selected_cases` (those of it that run) and `machines` are digests of their
    contents; `units` counts the units of cases and of seeds.
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

    @property
    def key(self) -> str:
        """Identifies the plan: campaigns with different plans have different keys."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:12]


class ScenarioFailed(events.Event, frozen=True, tag="scenario failed", omit_defaults=True):
    """The scenario of a seed failed; scenarios with the same `signature` fail the same way.

    `reason` is why a known failure is accepted, `finding` has the fields of the message.
    """

    seed: int
    signature: str
    outcome: events.Outcome
    message: str
    reason: str = ""
    finding: events.ReportedFinding | None = None


class UnitFinished(events.Event, frozen=True, tag="unit finished", omit_defaults=True):
    """A unit is complete. `outcomes` counts its case runs, or scenarios, by outcome.

    `seconds` is the time the worker took; `machine` is set for a slice of cases, `signature` for
    a shrink. `notes` say what is no finding of the implementation, but should be known: what broke
    and did not break again, and processes that could not be ended. In a journal, `events` counts
    the lines of the unit before this one, and `checksum` is over the plan, those lines and this
    one.
    """

    unit: str
    configuration: Configuration
    outcomes: dict[events.Outcome, int]
    seconds: float
    machine: str = ""
    signature: str = ""
    notes: tuple[str, ...] = ()
    events: int = 0
    checksum: str = ""


UnitEvent = events.CaseFinished | ScenarioFailed | events.DivergenceFound | UnitFinished
"""What a worker reports about a unit."""

CampaignEvent = CampaignPlanned | UnitEvent | events.RunEnded
"""A line of a campaign's journal."""


class CampaignFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All failures with the same signature.

    `subject` is the id of a case, or ``scenario``; `first` is the first occurrence in the order of
    the plan; `count` the number of case runs or scenarios that fail this way. `file` is the case
    file that replays it, relative to the campaign's folder. `finding` has the fields of the
    message.
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


class CampaignSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a campaign: the same for the same plan, whichever worker did what and when.

    `missing` counts the units that were not finished, and `message` says why they were not.
    """

    plan: CampaignPlanned
    complete: bool
    missing: int
    tally: CampaignTally
    configurations: dict[str, CampaignTally]
    machines: dict[str, dict[events.Outcome, int]]
    findings: tuple[CampaignFinding, ...]
    message: str = ""

    @property
    def has_findings(self) -> bool:
        """Whether there are findings."""
        return bool(self.findings)

    @property
    def nothing(self) -> bool:
        """Whether nothing was tested: everything was unsupported."""
        return not {*self.tally.cases, *self.tally.scenarios} - {"unsupported"}
