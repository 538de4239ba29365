"""What an explanation of an admission is made of; `numaproof.simulation.explaining` makes it."""

from __future__ import annotations

from typing import Literal

import msgspec

from numaproof.protocol.sets import NUMASet

Mark = Literal["preferred", "possible", "impossible"]
"""What a set of NUMA nodes is for a request: a preferred hint, another hint, or none."""


class Candidate(msgspec.Struct, frozen=True):
    """A set of NUMA nodes for a request, and in `text` what it has of what was asked.

    `alike` is how many more sets there are that differ in nothing but the ids of the nodes.
    """

    numa: NUMASet
    mark: Mark
    text: str
    alike: int = 0


class Candidates(msgspec.Struct, frozen=True):
    """The sets worth telling, and how many more there are."""

    told: tuple[Candidate, ...] = ()
    more: int = 0


class Request(msgspec.Struct, frozen=True, tag_field="step", tag="request"):
    """What a container (None: the pod as a whole) is due of what is aligned, by resource."""

    container: str | None
    asks: dict[str, int]
    text: str


class Hints(msgspec.Struct, frozen=True, tag_field="step", tag="hints"):
    """What a manager answered for a resource (None: for none at all)."""

    manager: str
    resource: str | None
    text: str
    candidates: Candidates = Candidates()


class Merge(msgspec.Struct, frozen=True, tag_field="step", tag="merge"):
    """What the hints merged to; `numa` is None for no affinity."""

    policy: str
    numa: NUMASet | None
    preferred: bool
    admitted: bool
    text: str


class Allocation(msgspec.Struct, frozen=True, tag_field="step", tag="allocation"):
    """What a manager could not give; `message` is the kubelet's own.

    A container of None is the pod as a whole.
    """

    manager: str
    container: str | None
    message: str
    text: str
    candidates: Candidates = Candidates()


class Scheduling(msgspec.Struct, frozen=True, tag_field="step", tag="scheduling"):
    """Why the scheduler would not place the pod on this node."""

    text: str


Step = Request | Hints | Merge | Allocation | Scheduling


class Explanation(msgspec.Struct, frozen=True):
    """Why a pod was refused, or admitted as it was: in one sentence, and step by step.

    `advice` says what would help, where that is certain.
    """

    summary: str
    steps: tuple[Step, ...]
    advice: tuple[str, ...] = ()
