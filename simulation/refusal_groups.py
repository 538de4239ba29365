"""Groups refused pods by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.simulation.causes import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.simulation.admission import PodResult


class RefusalGroup(msgspec.Struct, frozen=True):
    """Pods that are refused for the same reason.

    Attributes:
        reason: the kubelet's reason, such as ``TopologyAffinityError``.
        cause: why; None if it is unknown.
        pods: the number of pods.
        example: the name of the first of them.
        summary: why that one is refused, with its amounts.
        advice: what would certainly help that one.
    """

    reason: str
    cause: Cause | None
    pods: int
    example: str
    summary: str = ""
    advice: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The cause in words, or else the reason."""
        return str(self.cause) if self.cause else self.reason


def refusal_groups(results: Iterable[PodResult]) -> tuple[RefusalGroup, ...]:
    """Groups refused pods by cause, the largest group first."""
    groups: dict[tuple[str, Cause | None], list[PodResult]] = {}
    for one in results:
        if one.refusal:
            cause = one.explanation.cause if one.explanation else None
            groups.setdefault((one.refusal.reason, cause), []).append(one)
    found = [
        RefusalGroup(reason, cause, len(members), members[0].pod, *_details(members[0]))
        for (reason, cause), members in groups.items()
    ]
    return tuple(sorted(found, key=lambda group: -group.pods))


def _details(result: PodResult) -> tuple[str, tuple[str, ...]]:
    why = result.explanation
    return (why.summary, why.advice) if why else ("", ())
