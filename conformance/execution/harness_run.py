"""A run of the harness: its first and last events, and runs that end at the handshake."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from numaproof.conformance.execution.implementation import (
    Implementation,
    ImplementationFailure,
    hello_args,
    leftovers_of,
)
from numaproof.conformance.execution.run import RunResult, Target
from numaproof.conformance.judging import signatures
from numaproof.inputs.shell_words import quote_words
from numaproof.protocol import codec, events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numaproof.conformance.requirements import Registry
    from numaproof.protocol.machine import MachineInfo
    from numaproof.protocol.messages import Hello, Level


DEFAULT_TIMEOUT = 30.0
"""The default time limit for a call, in seconds."""


def timeout_options(seconds: float) -> tuple[str, ...]:
    """The command-line option for a time limit; empty for the default."""
    return () if seconds == DEFAULT_TIMEOUT else ("--timeout", f"{seconds:g}s")


@dataclass(frozen=True)
class HarnessRun:
    """One run of the harness against one target.

    Attributes:
        target: the implementation under test.
        registry: the requirements.
        command: the command line that repeats the run.
        version: the version of this project.
        files: the files that cases were read from, by case id. Bundled cases are not included.
        options: other options for `numaproof replay`, such as a time limit.
        rerun_command: the command line that repeats the run with another output folder; empty if it
            is the same as `command`.
        clock: returns the current time in seconds.
        began: when the run started, according to that clock.
        host: the host, where answers may depend on it.
        left: the `hello` of the other side of a comparison.
        origin: when and where the run started, if reports should say so.
        failed_before: the earlier failures that the run repeats, if it plays nothing else.
    """

    target: Target
    registry: Registry
    command: str
    version: str
    files: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    rerun_command: str = ""
    clock: Callable[[], float] = time.monotonic
    began: float = field(default_factory=time.monotonic)
    host: str = ""
    left: Hello | None = None
    origin: events.Origin | None = None
    failed_before: tuple[events.CaseOnMachine, ...] = ()

    def replay(self, case: str, *where: str) -> str:
        """The command that replays a case or recording of this run.

        Args:
            case: its id.
            where: options that select the machine; empty if the case describes its own.
        """
        file = self.files.get(case)
        return (
            self.replay_file(file, "--select", case, *where) if file else self._replay(case, *where)
        )

    def replay_file(self, file: str, *options: str) -> str:
        """The command that replays a file against this run's target."""
        return self._replay(f"./{file}" if file.startswith("-") else file, *options)

    def _replay(self, *words: str) -> str:
        return quote_words(("numaproof", "replay", *words, *self.target.options(), *self.options))

    def elapsed_seconds(self) -> float:
        """Seconds since the start of the run."""
        return self.clock() - self.began

    def started_event(
        self,
        kind: Literal["check", "fuzz", "diff", "exhaust"],
        total: int,
        machines: Mapping[str, MachineInfo],
        seed: int | None = None,
        requirements: Iterable[events.ReportedRequirement] = (),
    ) -> events.RunStarted:
        """The first event of the run; `total` is the number of case runs or examples to come.

        `requirements` are added to the registry's.
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
            left=self.left,
            documents=self.registry.reported_documents(),
            host=self.host,
            origin=self.origin,
            failed_before=self.failed_before,
        )

    def ended_event(
        self,
        outcomes: Mapping[str, int],
        untested_requirements: Iterable[str] = (),
        claims: events.ClaimsReview | None = None,
        other_implementations: Iterable[Implementation] = (),
    ) -> events.RunEnded:
        """Ends the target and any `other_implementations`; returns the last event of the run.

        `outcomes` counts the runs by outcome; `untested_requirements` are requirement ids.
        """
        left: list[str] = []
        for one in (self.target.implementation, *other_implementations):
            one.close()
            left += leftovers_of(one)
        return events.RunEnded(
            at=self.elapsed_seconds(),
            complete=True,
            outcomes=dict(sorted(outcomes.items())),
            untested_requirements=tuple(untested_requirements),
            claims=claims,
            leftover_processes=tuple(left),
        )


CASE = "hello"
"""The id of the only case in a failed handshake's run."""


@dataclass(frozen=True)
class FailedHandshake:
    """A run that ended at the handshake.

    Attributes:
        failure: how the handshake failed.
        registry: the requirements, for the report.
        command: the command line of the run.
        reproduce: the command that reproduces the failure.
        version: the version of this project.
        kubernetes: the requested release.
        level: the requested level.
        seconds: the duration of the handshake.
        origin: when and where the run started.
    """

    failure: ImplementationFailure
    registry: Registry
    command: str
    reproduce: str
    version: str
    kubernetes: str
    level: Level
    seconds: float
    origin: events.Origin

    def events(self) -> Iterator[events.AnyEvent]:
        """The events of the run."""
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
            origin=self.origin,
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
