"""An answer about a node, as shown to people: a table, a drawing, and the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from numaproof.reports.layout import NOTHING, Stock

if TYPE_CHECKING:
    from numaproof.protocol.events import Owner
    from numaproof.protocol.machine import MachineInfo

Mark = Literal["good", "fair", "bad"]

SIGNS: dict[Mark, str] = {"good": "✓", "fair": "~", "bad": "✗"}


@dataclass(frozen=True, slots=True)
class ContainerRow:
    """An admitted container or, with `refusal`, a refused pod."""

    pod: str
    container: str = ""
    cpus: str = ""
    memory: str = ""
    devices: str = ""
    aligned: str = ""
    refusal: str = ""


HEADS = {
    "pod": "pod",
    "container": "container",
    "cpus": "exclusive CPUs",
    "memory": "memory",
    "devices": "devices",
    "aligned": "aligned to",
}
"""The column heads of the table of rows."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that was considered, its mark, and why."""

    mark: Mark
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class StoryStep:
    """A step of an explanation; `more` counts the items not shown."""

    text: str
    items: tuple[Item, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """Why a pod, or several identical ones, was refused or admitted.

    `said` is the kubelet's message, `summary` ours.
    """

    pod: str
    good: bool
    said: str
    summary: str
    steps: tuple[StoryStep, ...]
    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShownDefect:
    """A named defect of the kubelet: what happens, and where it is described, by page and issue."""

    name: str
    what: str
    page: str
    issue: str

    def __str__(self) -> str:
        """The defect in a line, with where it is described."""
        where = " · ".join(filter(None, (self.page, self.issue)))
        return f"{self.name}: {self.what} ({where})"


@dataclass(frozen=True, slots=True)
class ShapedAnswer:
    """An answer that defects of the kubelet shaped.

    Attributes:
        subject: what the answer is about.
        summary: what came about how, in one sentence.
        differences: what differs, the kubelet's answer and the documented one.
        defects: the defects.
    """

    subject: str
    summary: str
    differences: tuple[tuple[str, str, str], ...]
    defects: tuple[ShownDefect, ...]


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """The whole answer; `setting` holds the names and values of what it applies to."""

    title: str
    good: bool
    setting: tuple[tuple[str, str], ...]
    rows: tuple[ContainerRow, ...]
    stories: tuple[Story, ...]
    machine: MachineInfo
    owners: tuple[Owner, ...] = ()
    shared: str = ""
    stock: Stock = NOTHING
    shaped: tuple[ShapedAnswer, ...] = ()


def mark_of(answer: AnswerReport) -> Mark:
    """Good, bad, or fair: the answer is good, but not by the documents."""
    if not answer.good:
        return "bad"
    return "fair" if answer.shaped else "good"


def shown(rows: tuple[ContainerRow, ...]) -> list[str]:
    """The columns to show: those that are not empty, and those that a refusal needs."""
    return [
        key for key in HEADS if key in {"pod", "container"} or any(getattr(r, key) for r in rows)
    ]
