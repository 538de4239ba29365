"""The types of the JSON that ``board --json`` prints; ``docs/schemas`` has the JSON Schema."""

# The schema is generated from these annotations, so their names must exist at run time.
# ruff: noqa: TC001

from __future__ import annotations

from typing import TypedDict

from numaproof.protocol.messages import Level
from numaproof.reports.board.data import Kind
from numaproof.reports.board.standing import State


class RequirementCounts(TypedDict):
    """How many requirements were tested and met.

    `as_kubelet` counts requirements broken only by named defects of the Kubernetes release.
    """

    met: int
    as_kubelet: int
    asked: int


class BoardRow(TypedDict):
    """The results of an implementation; `page` and `badge` are paths within the site.

    `date` is the day on which the newest run started, as YYYY-MM-DD; empty if unknown.
    """

    name: str
    version: str
    language: str
    kubernetes: str
    level: Level
    complete: bool
    date: str
    case_runs: dict[State, int]
    requirements: RequirementCounts
    findings: dict[Kind, int]
    releases: list[str]
    page: str
    badge: str


class BoardReport(TypedDict):
    """The result of `board`."""

    implementations: list[BoardRow]
