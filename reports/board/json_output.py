"""The JSON that ``board --json`` prints, as types; ``docs/schemas`` publishes its JSON Schema."""

# The schema is made from these annotations, so the names in them must exist at run time.
# ruff: noqa: TC001

from __future__ import annotations

from typing import TypedDict

from numaproof.protocol.messages import Level
from numaproof.reports.board.data import Kind
from numaproof.reports.board.standing import State


class RequirementCounts(TypedDict):
    """How many requirements an implementation was asked about, and how many it meets.

    `as_kubelet` counts those that only named defects of its Kubernetes release break.
    """

    met: int
    as_kubelet: int
    asked: int


class BoardRow(TypedDict):
    """Where one implementation stands; `page` and `badge` are paths in the site."""

    name: str
    version: str
    language: str
    kubernetes: str
    level: Level
    complete: bool
    case_runs: dict[State, int]
    requirements: RequirementCounts
    findings: dict[Kind, int]
    releases: list[str]
    page: str
    badge: str


class BoardReport(TypedDict):
    """The result of `board`."""

    implementations: list[BoardRow]
