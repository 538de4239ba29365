"""A run of the harness against one target: the first and the last of its events."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from numaproof.conformance.execution.implementation import left_of
from numaproof.protocol import events

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.conformance.execution.implementation import Implementation
    from numaproof.conformance.execution.run import Target
    from numaproof.conformance.requirements import Registry
    from numaproof.protocol.machine import MachineInfo


@dataclass(frozen=True)
class HarnessRun:
    """One run of the harness against one target.

    Attributes:
        target: what is under test.
        registry: the requirements.
        command: the command line that repeats the run.
        version: of this project.
    """

    target: Target
    registry: Registry
    command: str
    version: str
    began: float = field(default_factory=time.monotonic)

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    def started(
        self,
        kind: Literal["check", "fuzz", "diff"],
        total: int,
        machines: Mapping[str, MachineInfo],
        seed: int | None = None,
        requirements: Iterable[events.ReportedRequirement] = (),
    ) -> events.RunStarted:
        """The first event; `total` counts what is to come.

        `requirements` come to those of the registry.
        """
        return events.RunStarted(
            at=0.0,
            kind=kind,
            numaproof=self.version,
            kubernetes=self.target.kubernetes,
            level=self.target.level,
            command=self.command,
            total=total,
            machines=dict(machines),
            requirements=(
                *(row.event() for row in self.registry.requirements),
                *requirements,
            ),
            implementation=self.target.hello,
            seed=seed,
        )

    def ended(
        self,
        outcomes: Mapping[str, int],
        untested: Iterable[str] = (),
        claims: events.ClaimsReview | None = None,
        beside: Iterable[Implementation] = (),
    ) -> events.RunEnded:
        """The last event, once the target has ended and, if there is any, what ran `beside` it.

        `outcomes` counts by outcome, `untested` are requirement ids.
        """
        left: list[str] = []
        for one in (self.target.implementation, *beside):
            one.close()
            left += left_of(one)
        return events.RunEnded(
            at=self.elapsed(),
            complete=True,
            outcomes=dict(sorted(outcomes.items())),
            untested=tuple(untested),
            claims=claims,
            left=tuple(left),
        )
