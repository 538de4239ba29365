"""Board data: a compact summary of a run, about a thousandth the size of its events.

A file of board data is a JSON object tagged ``numaproof board``. It contains requirements, runs or
both. Several files can be combined.
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
"""The version of the format; other versions are refused."""

TAG = "numaproof board"
_RECORDINGS = "recordings"
"""The area of the requirement that recordings check."""

SUFFIX = ".board.json"
"""The suffix of board data files in a folder."""

Kind = Literal["failed", "crash", "finding", "known failure", "own rules", "expected"]
"""The kind of a finding.

``failed`` is an unexplained wrong answer, ``crash`` a crash or a hang, known or not. The next three
are known failures, according to the start of their reason: a broken requirement, anything else, and
legitimately different rules. ``expected`` is a named defect of the release.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds, the worst first."""

MAX_NAME, MAX_LINE, MAX_PARAGRAPH, MAX_TEXT = 120, 300, 1_000, 12_000
"""Maximum length of a name, a line, a paragraph and a file in board data."""

Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
Line = Annotated[str, msgspec.Meta(max_length=MAX_LINE)]
Paragraph = Annotated[str, msgspec.Meta(max_length=MAX_PARAGRAPH)]
FileText = Annotated[str, msgspec.Meta(max_length=MAX_TEXT + 100)]
"""The text of a file; if it is truncated, a note is appended."""

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
"""A date as YYYY-MM-DD."""

Date = Annotated[str, msgspec.Meta(pattern=f"^({DATE.pattern})?$")]
"""A date, or an empty string if it is unknown."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A count that all JSON parsers represent exactly."""

Tally = dict[Outcome, Count]
"""Counts of case runs or generated scenarios by outcome."""

WORDED: tuple[Kind, ...] = ("finding", "own rules", "crash")
"""The kinds that can prefix the reason of a known failure, as in ``own rules: ...``."""

_KIND = re.compile(rf"({'|'.join(WORDED)})\s*:\s*", re.IGNORECASE)


def kind_of(reason: str) -> tuple[Kind, str]:
    """Returns the kind of a known failure, and its reason without the kind prefix."""
    found = _KIND.match(reason)
    if found is None:
        return "known failure", reason
    kinds: dict[str, Kind] = {one: one for one in KINDS}
    return kinds[found[1].lower()], reason[found.end() :]


class _Compact(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base class of board data."""


class Author(_Compact, frozen=True):
    """The implementation under test, according to its ``hello``.

    `discovers` lists the machine fields that it discovers; None means all of them.
    """

    name: Name
    version: Name
    language: Name
    operations: tuple[Name, ...] = ()
    homepage: Line = ""
    discovers: tuple[Name, ...] | None = None


class MachineSize(_Compact, frozen=True):
    """The size of a machine."""

    cpus: int
    nodes: int
    sockets: int


class FoundIn(_Compact, frozen=True):
    """A case that shows one cause of a finding, and the machines on which it does so.

    `requirements` lists the violated requirements, `signature` identifies the cause, and
    `discovers` indicates whether the case tests discovery.
    """

    case: Name
    outcome: Outcome
    machines: tuple[Name, ...]
    requirements: tuple[Name, ...]
    discovers: bool = False
    signature: Line = ""


class BoardFinding(_Compact, frozen=True):
    """Failures with the same cause or the same reason.

    `title`, `case` and `machine` describe the smallest failure; `case` is empty for a generated
    scenario. `text` is a case file that replays it or, with `has_calls`, the list of calls.
    `signatures` counts the failures by cause. `message` describes the problem.
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
    """A run of an implementation for one release and level.

    `outcomes` counts case runs or, if `kind` is not ``check``, generated scenarios. `requirements`
    counts case runs by cited requirement; `machines` counts them by machine. `discovery` counts
    only those that test discovery, by machine. `gaps` explains why the run is incomplete.
    `left_out` counts the findings that were dropped because there were too many. `date` is the day
    on which the run started (UTC), as YYYY-MM-DD, or empty if unknown. `bound` says what was
    enumerated.
    """

    kind: Literal["check", "fuzz", "diff", "exhaust"]
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
    date: Date = ""
    bound: tuple[Line, ...] = ()


class BoardData(_Compact, frozen=True, tag_field="data", tag=TAG):
    """A file of board data."""

    version: int
    requirements: tuple[ReportedRequirement, ...] = ()
    runs: tuple[RunData, ...] = ()


def is_documented(requirement: ReportedRequirement) -> bool:
    """Whether a requirement comes from a document rather than from recordings."""
    return bool(requirement.document) and requirement.area != _RECORDINGS


def encode_board_data(
    runs: Iterable[RunData], requirements: Iterable[ReportedRequirement] = ()
) -> bytes:
    """Encodes board data with one line per run and requirement so that diffs are readable."""
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
    """Turns text into a part of a file name and URL."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:60].strip("-") or "unnamed"


def unique_slugs(names: Iterable[str]) -> dict[str, str]:
    """Returns a different slug for each name; the order decides which of two keeps its own."""
    names_by_slug: dict[str, str] = {}
    for name in names:
        free, number = slug(name), 1
        while free in names_by_slug:
            number += 1
            free = f"{slug(name)}-{number}"
        names_by_slug[free] = name
    return {name: slug for slug, name in names_by_slug.items()}


def run_key(run: RunData) -> tuple[str, ...]:
    """Returns the key of a run; a newer run replaces older runs with the same key."""
    return run.author.name, run.author.version, run.kubernetes, run.level, run.kind


def data_name(run: RunData) -> str:
    """Returns the name of a run's board data file."""
    return "-".join(slug(one) for one in run_key(run)) + SUFFIX
