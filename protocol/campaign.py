"""The events of a campaign over many workers: those of one run, and the units that they come in.

In the file of a campaign the events of a unit stand together, in the order in which units came
back, and end with its `UnitFinished`. What has no such end did not happen.
"""

from __future__ import annotations

import hashlib

import msgspec

from numaproof.protocol.events import (
    CampaignEnded,
    CaseFinished,
    DivergenceFound,
    Event,
    Outcome,
)
from numaproof.protocol.messages import Hello, Level


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """What an implementation is asked to behave as, and held to."""

    kubernetes: str
    level: Level
    documented: bool = False

    def __str__(self) -> str:
        return f"{self.kubernetes} {self.level}" + (" documented" if self.documented else "")


class CaseSlice(msgspec.Struct, frozen=True, tag="cases"):
    """Cases by id on one machine; an empty machine's name stands for those that cases bring."""

    configuration: Configuration
    machine: str
    number: int
    cases: tuple[str, ...]

    @property
    def id(self) -> str:
        """Tells the unit from all others of its campaign."""
        return f"{self.configuration}/cases/{self.machine or 'own'}/{self.number}"


class SeedRange(msgspec.Struct, frozen=True, tag="seeds"):
    """Generated scenarios of `count` seeds from `first` on; each brings its machine."""

    configuration: Configuration
    first: int
    count: int

    @property
    def id(self) -> str:
        """Tells the unit from all others of its campaign."""
        return f"{self.configuration}/seeds/{self.first}+{self.count}"


class Shrink(msgspec.Struct, frozen=True, tag="shrink"):
    """The scenario of a seed that failed, to be made smaller, for all that fail with it."""

    configuration: Configuration
    signature: str
    seed: int

    @property
    def id(self) -> str:
        """Tells the unit from all others of its campaign."""
        return f"{self.configuration}/shrink/{self.signature}/{self.seed}"


Unit = CaseSlice | SeedRange | Shrink
"""What one worker does in one go. It is done as a whole or not at all."""


class Seeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seeds from `first` up to but without `stop`; none where they are the same."""

    first: int
    stop: int


class CampaignPlanned(Event, frozen=True, tag="campaign planned"):
    """What a campaign does. The same plan makes the same units, and the same summary.

    `program` are the words of the implementation's command, none for the reference; `cases` and
    `machines` are digests of what they hold; `units` counts those of cases and seeds.
    """

    numaproof: str
    program: tuple[str, ...]
    timeout: float
    implementation: Hello
    configurations: tuple[Configuration, ...]
    select: str
    cases: str
    machines: dict[str, str]
    runs: int
    seeds: Seeds
    cases_per_unit: int
    seeds_per_unit: int
    shrinks: int
    units: int

    @property
    def key(self) -> str:
        """Tells campaigns with other plans apart."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:12]


class ScenarioFailed(Event, frozen=True, tag="scenario failed"):
    """The scenario of a seed did not end well; those of one `signature` fail alike."""

    seed: int
    signature: str
    outcome: Outcome
    message: str


class UnitFinished(Event, frozen=True, tag="unit finished", omit_defaults=True):
    """All of a unit was done. `outcomes` counts case runs, or scenarios, by outcome.

    `seconds` is how long it took its worker; `machine` is that of a slice of cases, `signature`
    that of the failures of which one was made smaller.
    """

    unit: str
    configuration: Configuration
    outcomes: dict[Outcome, int]
    seconds: float
    machine: str = ""
    signature: str = ""


UnitEvent = CaseFinished | ScenarioFailed | DivergenceFound | UnitFinished
"""What a worker tells of a unit."""

CampaignEvent = CampaignPlanned | UnitEvent | CampaignEnded
"""A line of a campaign's file."""


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything that fails alike.

    `subject` is the id of a case, or ``scenario``; `first` says where it is seen first in the
    order of the plan; `count` how many case runs or scenarios fail so. `file` is the case file
    that replays it, below the campaign's folder.
    """

    signature: str
    subject: str
    outcome: Outcome
    message: str
    count: int
    first: str
    configurations: tuple[str, ...]
    machines: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    file: str | None = None
    reproduce: str = ""


class Tally(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Case runs and scenarios by outcome."""

    cases: dict[Outcome, int]
    scenarios: dict[Outcome, int]


class CampaignSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a campaign comes to: the same for the same plan, whoever did which unit when.

    `missing` counts units that were not done.
    """

    plan: CampaignPlanned
    complete: bool
    missing: int
    tally: Tally
    configurations: dict[str, Tally]
    machines: dict[str, dict[Outcome, int]]
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether anything was found wrong."""
        return bool(self.findings)

    @property
    def nothing(self) -> bool:
        """Whether nothing was tested: everything was unsupported."""
        return not {*self.tally.cases, *self.tally.scenarios} - {"unsupported"}
