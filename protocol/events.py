"""The stream of events that everything a person or a CI system sees is made from.

A campaign yields these in order, live or from a saved file (``events.jsonl``, one a line). A
stream without `CampaignEnded` is an incomplete run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from numaproof.protocol import codec
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.messages import Hello, Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
]
"""How a case ended on a machine; ``nondeterministic`` where the same calls, made again, were
answered differently, so that nothing can be said of the answers. Only ``pass`` is green; only
``pass``, ``unsupported`` and ``expected failure`` leave a campaign successful, and the last two
are shown as what they are."""

GOOD: frozenset[Outcome] = frozenset({"pass", "unsupported", "expected failure"})
"""Outcomes that do not make a campaign fail."""


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event"):
    """One thing that happened; `at` is seconds since the campaign began."""

    at: float


class Requirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A documented requirement, as reports show it."""

    id: str
    area: str
    statement: str
    document: str
    section: str


class CampaignStarted(Event, frozen=True, tag="campaign started"):
    """A run begins: what runs it, what it is run against, and how much is to come.

    `command` is what a person would type to run it again; `total` counts case runs (a case on
    a machine) or, for fuzzing and for the comparison of two sides, examples.
    """

    kind: Literal["check", "fuzz", "diff"]
    numaproof: str
    kubernetes: str
    level: Level
    command: str
    total: int
    machines: dict[str, MachineInfo]
    requirements: tuple[Requirement, ...]
    implementation: Hello | None = None
    seed: int | None = None


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One call that was made: plain JSON values, as they crossed the protocol.

    `problems` says in sentences what was wrong with the answer; empty where nothing was.
    """

    operation: str
    args: dict[str, Any]
    answer: dict[str, Any] | None = None
    problems: tuple[str, ...] = ()
    expected: dict[str, Any] | None = None


class Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who has a set of CPUs (Linux list format) in a picture: a container, or the reservation."""

    name: str
    cpus: str


class Picture(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The machine at one moment of a failed case: who owned which CPUs."""

    title: str
    owners: tuple[Owner, ...]
    shared: str


class CaseFinished(Event, frozen=True, tag="case finished", omit_defaults=True):
    """A case ran on a machine. Steps and pictures are kept where it did not pass.

    `seconds` is its duration; `stderr` the end of the implementation's standard error, where the
    outcome has to do with the program rather than its answers; `defect` the named defect of an
    expected failure; `reproduce` the command that runs just this again.
    """

    case: str
    title: str
    machine: str
    outcome: Outcome
    seconds: float
    requirements: tuple[str, ...]
    message: str = ""
    steps: tuple[Step, ...] = ()
    pictures: tuple[Picture, ...] = ()
    stderr: str = ""
    defect: str | None = None
    reproduce: str = ""


class DivergenceFound(Event, frozen=True, tag="divergence found", omit_defaults=True):
    """Fuzzing found a failure, already shrunk; `file` is the case file that replays it.

    Where two sides are compared, `Step.expected` is the left one's answer; where an
    implementation answered differently when it was asked again, its first one.
    """

    title: str
    outcome: Outcome
    message: str
    machine: MachineInfo
    steps: tuple[Step, ...]
    requirements: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    stderr: str = ""
    file: str | None = None
    reproduce: str = ""


class AnsweredByChance(Event, frozen=True, tag="answered by chance"):
    """The right side answers a call differently when the same calls are made again.

    No more of the scenario was compared; `call` is the number of that call in it, from 1.
    """

    scenario: str
    call: int
    operation: str
    message: str


class Reached(Event, frozen=True, tag="reached"):
    """What fuzzing reached in its `examples`: how often what was done, and the most of something.

    `counts` has for each subject (such as ``actions``) a count for each thing, `highest` the
    highest value of each of what examples are steered to.
    """

    examples: int
    counts: dict[str, dict[str, int]]
    highest: dict[str, float]


class Progress(Event, frozen=True, tag="progress"):
    """Fuzzing, or comparing, goes on: `done` examples so far. Not kept in saved streams."""

    done: int


class CampaignEnded(Event, frozen=True, tag="campaign ended"):
    """The run came to its end by itself (`complete`) or was cut short.

    `outcomes` counts case runs (or examples) by outcome; `untested` are requirement ids without
    a case.
    """

    complete: bool
    outcomes: dict[str, int]
    untested: tuple[str, ...] = ()
    message: str = ""


AnyEvent = (
    CampaignStarted
    | CaseFinished
    | DivergenceFound
    | AnsweredByChance
    | Reached
    | Progress
    | CampaignEnded
)


def write_line(event: AnyEvent) -> bytes:
    """The event as one line of ``events.jsonl``, with its line break."""
    return codec.encode(event) + b"\n"


def read_lines(lines: Iterable[bytes]) -> Iterator[AnyEvent]:
    """The events of a saved stream, in order.

    A last line without its line break is what a killed run leaves behind, and is left out.

    Raises:
        codec.ProtocolError: a line is not an event; the message names its number.
    """
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            return
        try:
            yield codec.decode(line, AnyEvent)  # type: ignore[arg-type]
        except codec.ProtocolError as error:
            raise codec.ProtocolError(f"line {number}: {error}") from None
