"""The handshake with an implementation, and the run that ends there because it failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.conformance.execution.implementation import hello_args
from numaproof.conformance.execution.run import RunResult
from numaproof.conformance.judging import signatures
from numaproof.protocol import codec, events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.execution.implementation import ImplementationFailure
    from numaproof.conformance.requirements import Registry
    from numaproof.protocol.messages import Level

CASE = "hello"
"""The id of the only case of such a run."""


@dataclass(frozen=True)
class FailedHandshake:
    """A run whose only call was the handshake.

    Attributes:
        failure: how the handshake failed.
        registry: the requirements, for the report.
        command: the command of the run.
        reproduce: the command that shows the failure again.
        version: of this project.
        kubernetes: the release that was asked for.
        level: the level that was asked for.
        seconds: how long the handshake took.
    """

    failure: ImplementationFailure
    registry: Registry
    command: str
    reproduce: str
    version: str
    kubernetes: str
    level: Level
    seconds: float

    def events(self) -> Iterator[events.AnyEvent]:
        """The run, as events."""
        yield events.RunStarted(
            at=0.0,
            kind="check",
            numaproof=self.version,
            kubernetes=self.kubernetes,
            level=self.level,
            command=self.command,
            total=1,
            machines={},
            requirements=tuple(row.event() for row in self.registry.requirements),
        )
        yield events.CaseFinished(
            at=self.seconds,
            case=CASE,
            title="The implementation answers hello",
            machine="no machine",
            outcome=self.failure.outcome,
            seconds=self.seconds,
            requirements=(),
            message=str(self.failure),
            steps=(
                events.ReportedCall(
                    "hello", codec.to_plain(hello_args(f"numaproof {self.version}"))
                ),
            ),
            stderr=self.failure.stderr,
            reproduce=self.reproduce,
            signature=signatures.signature(RunResult.of_failure(self.failure), CASE),
        )
        yield events.RunEnded(
            at=self.seconds,
            complete=True,
            outcomes={self.failure.outcome: 1},
        )
