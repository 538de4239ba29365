"""The parts of an explanation of an admission, which `numaproof.simulation.explaining` builds."""

from __future__ import annotations

from typing import Literal

import msgspec

from numaproof.protocol.sets import NUMASet

Preference = Literal["preferred", "possible", "impossible"]
"""Whether a set of NUMA nodes is a preferred hint, another hint, or no hint for a request."""


class Candidate(msgspec.Struct, frozen=True):
    """A set of NUMA nodes for a request; `text` says what it has of what was asked for.

    `alike` is the number of other sets that differ only in node ids.
    """

    numa: NUMASet
    mark: Preference
    text: str
    alike: int = 0


class Candidates(msgspec.Struct, frozen=True):
    """The sets worth showing (`told`), and how many more there are."""

    told: tuple[Candidate, ...] = ()
    more: int = 0


class RequestedResources(msgspec.Struct, frozen=True, tag_field="step", tag="request"):
    """The aligned resources that a container (None: the pod as a whole) asks for."""

    container: str | None
    asks: dict[str, int]
    text: str


class ManagerHints(msgspec.Struct, frozen=True, tag_field="step", tag="hints"):
    """The hints of a manager for a resource (None: it has no preference for any)."""

    manager: str
    resource: str | None
    text: str
    candidates: Candidates = Candidates()


class Merge(msgspec.Struct, frozen=True, tag_field="step", tag="merge"):
    """The merged hint; `numa` is None for no affinity."""

    policy: str
    numa: NUMASet | None
    preferred: bool
    admitted: bool
    text: str


class Allocation(msgspec.Struct, frozen=True, tag_field="step", tag="allocation"):
    """A failed allocation; `message` is the kubelet's own.

    `container` is None for the pod as a whole.
    """

    manager: str
    container: str | None
    message: str
    text: str
    candidates: Candidates = Candidates()


class Scheduling(msgspec.Struct, frozen=True, tag_field="step", tag="scheduling"):
    """Why the scheduler would not place the pod on this node."""

    text: str


ExplanationStep = RequestedResources | ManagerHints | Merge | Allocation | Scheduling


class Explanation(msgspec.Struct, frozen=True):
    """Why a pod was refused or admitted: in one sentence, and step by step.

    `advice` says what would certainly help, if anything.
    """

    summary: str
    steps: tuple[ExplanationStep, ...]
    advice: tuple[str, ...] = ()
