"""An answer about a node, as shown to people: a table, a drawing, and the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from numaproof.reports.drawing_stock import NOTHING, Stock

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


def shown(rows: tuple[ContainerRow, ...]) -> list[str]:
    """The columns to show: those that are not empty, and those that a refusal needs."""
    return [
        key for key in HEADS if key in {"pod", "container"} or any(getattr(r, key) for r in rows)
    ]
