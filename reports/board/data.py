"""Board data: what a site needs to know of a run, in a thousandth of the bytes of its events.

A file of it is one JSON object, tagged ``numaproof board``. It may hold requirements, runs or both;
what several files hold is added up.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import msgspec

from numaproof.protocol.events import Outcome, ReportedRequirement
from numaproof.protocol.messages import Level

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = 1
"""The version of the format; a reader refuses others."""

TAG = "numaproof board"
_RECORDINGS = "recordings"
"""The area of the requirement that every recording stands for."""

SUFFIX = ".board.json"
"""What the names of files of board data end with, in a folder of them."""

Kind = Literal["failed", "crash", "finding", "known failure", "own rules", "expected"]
"""What a finding is.

``failed`` is a wrong answer that nobody has accounted for, ``crash`` a crash or a hang, known or
not. The next three are known failures by what their reasons begin with: a broken requirement,
anything else, and rules that are legitimately different. ``expected`` is a named defect of the
release.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds, the worst first."""

MAX_NAME, MAX_LINE, MAX_PARAGRAPH, MAX_TEXT = 120, 300, 1_000, 12_000
"""Characters of a name, a line, several lines and a file that board data may have."""

Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
Line = Annotated[str, msgspec.Meta(max_length=MAX_LINE)]
Paragraph = Annotated[str, msgspec.Meta(max_length=MAX_PARAGRAPH)]
FileText = Annotated[str, msgspec.Meta(max_length=MAX_TEXT + 100)]
"""A file, and the note where it is cut."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A count, as large as other readers of JSON have it exactly."""

Tally = dict[Outcome, Count]
"""Counts of case runs, or of generated scenarios, by outcome."""

WORDED: tuple[Kind, ...] = ("finding", "own rules", "crash")
"""The kinds that the reason of a known failure names with its first words."""

_KIND = re.compile(rf"({'|'.join(WORDED)})\s*:\s*", re.IGNORECASE)


def kind_of(reason: str) -> tuple[Kind, str]:
    """What a known failure is by its reason, and the reason without the word that says so."""
    found = _KIND.match(reason)
    if found is None:
        return "known failure", reason
    kinds: dict[str, Kind] = {one: one for one in KINDS}
    return kinds[found[1].lower()], reason[found.end() :]


class _Compact(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the parts of board data."""


class Author(_Compact, frozen=True):
    """The implementation that a run is about, as its ``hello`` has it.

    `discovers` are the fields of a machine that it finds out; None is all of them.
    """

    name: Name
    version: Name
    language: Name
    operations: tuple[Name, ...] = ()
    homepage: Line = ""
    discovers: tuple[Name, ...] | None = None


class MachineSize(_Compact, frozen=True):
    """How large a machine is."""

    cpus: int
    nodes: int
    sockets: int


class FoundIn(_Compact, frozen=True):
    """A case that shows a finding, and the machines on which it does so for one cause.

    `requirements` are those that it breaks there, `signature` is the cause; `discovers` is whether
    it is about discovery.
    """

    case: Name
    outcome: Outcome
    machines: tuple[Name, ...]
    requirements: tuple[Name, ...]
    discovers: bool = False
    signature: Line = ""


class BoardFinding(_Compact, frozen=True):
    """Failures with one cause, or with one reason.

    `title`, `case` and `machine` are those of the smallest of them; `case` is empty if it was
    generated. `text` is a file that replays it or, where `has_calls` is set, the calls that were
    made. `signatures` counts the failures by cause; `message` says what was wrong.
    """

    kind: Kind
    outcome: Outcome
    title: Line
    signatures: dict[Line, Count]
    reason: Paragraph = ""
    message: Paragraph = ""
    case: Name = ""
    machine: Name = ""
    text: FileText = ""
    has_calls: bool = msgspec.field(default=False, name="played")
    requirements: tuple[Name, ...] = ()
    cases: tuple[FoundIn, ...] = ()

    @property
    def count(self) -> int:
        """The number of failures."""
        return sum(self.signatures.values())


class RunData(_Compact, frozen=True):
    """One run of an implementation, in one release and at one level.

    `outcomes` are those of case runs, or of generated scenarios if `kind` is not ``check``.
    `requirements` has the outcomes of the case runs that cite each, `machines` of those on each,
    `discovery` of those that are about discovery alone. `gaps` says why the run is incomplete;
    `left_out` counts the findings beyond those that are kept.
    """

    kind: Literal["check", "fuzz", "diff"]
    author: Author
    kubernetes: Name
    level: Level
    numaproof: Name
    outcomes: Tally
    requirements: dict[Name, Tally] = msgspec.field(default_factory=dict)
    machines: dict[Name, Tally] = msgspec.field(default_factory=dict)
    discovery: dict[Name, Tally] = msgspec.field(default_factory=dict)
    sizes: dict[Name, MachineSize] = msgspec.field(default_factory=dict)
    findings: tuple[BoardFinding, ...] = ()
    gaps: tuple[Line, ...] = ()
    left_out: Count = 0


class BoardData(_Compact, frozen=True, tag_field="data", tag=TAG):
    """A file of board data."""

    version: int
    requirements: tuple[ReportedRequirement, ...] = ()
    runs: tuple[RunData, ...] = ()


def is_documented(requirement: ReportedRequirement) -> bool:
    """Whether a document has a requirement: what recordings are checked for is in none."""
    return bool(requirement.document) and requirement.area != _RECORDINGS


def encode_board_data(
    runs: Iterable[RunData], requirements: Iterable[ReportedRequirement] = ()
) -> bytes:
    """A file of board data: one line for each run and each requirement, to compare by line."""
    data = BoardData(VERSION, tuple(requirements), tuple(runs))
    lines = {
        "requirements": [msgspec.json.encode(one) for one in data.requirements],
        "runs": [msgspec.json.encode(one) for one in data.runs],
    }
    parts = [f'"data":"{TAG}"'.encode(), f'"version":{VERSION}'.encode()]
    parts += [
        f'"{name}":[\n'.encode() + b",\n".join(inside) + b"\n]"
        for name, inside in lines.items()
        if inside
    ]
    return b"{" + b",\n".join(parts) + b"}\n"


def slug(text: str) -> str:
    """A text as part of a file's name and of an address."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:60].strip("-") or "unnamed"


def run_key(run: RunData) -> tuple[str, ...]:
    """What runs have in common of which one takes the place of another."""
    return run.author.name, run.author.version, run.kubernetes, run.level, run.kind


def data_name(run: RunData) -> str:
    """What a run's own file of board data is called."""
    return "-".join(slug(one) for one in run_key(run)) + SUFFIX
