"""An answer about a node, as people are shown it: a table, a drawing, and the reasons."""

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
class Row:
    """A container that was admitted, or with `refusal` the pod that was not."""

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
"""The heads of the columns that a table of rows may have."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was looked at, how it is, and why."""

    mark: Mark
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an explanation; `more` items are left out."""

    text: str
    items: tuple[Item, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """Why one pod (or several alike) was refused or admitted.

    `said` is the kubelet's own message, `summary` ours.
    """

    pod: str
    good: bool
    said: str
    summary: str
    steps: tuple[Step, ...]
    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The whole answer; `setting` are names and values of what it holds for."""

    title: str
    good: bool
    setting: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    stories: tuple[Story, ...]
    machine: MachineInfo
    owners: tuple[Owner, ...] = ()
    shared: str = ""
    stock: Stock = NOTHING


def shown(rows: tuple[Row, ...]) -> list[str]:
    """The columns in which a row has something, and always those that a refusal needs."""
    return [
        key for key in HEADS if key in {"pod", "container"} or any(getattr(r, key) for r in rows)
    ]
