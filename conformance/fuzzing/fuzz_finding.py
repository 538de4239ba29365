"""What a fuzz run found, shrunk, as a case file and an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases import writing
from numaproof.conformance.execution.shown import reported
from numaproof.conformance.fuzzing import shrinking
from numaproof.protocol import events

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.conformance.fuzzing.determinism import Nondeterminism
    from numaproof.conformance.fuzzing.exploration import ScenarioRun
    from numaproof.protocol.machine import MachineInfo


_REPEATS = 10
"""Times to replay what is not answered alike each time."""


@dataclass(frozen=True)
class FuzzFinding:
    """A shrunk finding; `replays` says whether a single run shows it."""

    case: Case
    machine: MachineInfo
    outcome: events.Outcome
    message: str
    steps: tuple[events.ReportedCall, ...]
    pictures: tuple[events.Picture, ...] = ()
    stderr: str = ""
    signature: str = ""
    parted: events.Parted | None = None
    replays: bool = True
    finding: events.ReportedFinding | None = None

    @classmethod
    def of_failure(cls, played: ScenarioRun) -> FuzzFinding:
        result, run = played.result, played.run
        return cls(
            _marked(played.case(), cut_short=played.cut_short),
            played.scenario.machine,
            result.outcome,
            result.message,
            run.steps(),
            run.pictures(),
            result.stderr,
            played.signature,
            run.parted(result),
            finding=reported(result.finding),
        )

    @classmethod
    def of_nondeterminism(cls, nondeterminism: Nondeterminism) -> FuzzFinding:
        result, finding = nondeterminism.result, nondeterminism.reported
        case = msgspec.structs.replace(
            nondeterminism.scenario.case,
            title=events.headline(events.said(result.message, finding)),
            machine=nondeterminism.scenario.machine,
        )
        # A single run may pass.
        return cls(
            _marked(case, cut_short=nondeterminism.cut_short),
            nondeterminism.scenario.machine,
            result.outcome,
            result.message,
            nondeterminism.steps,
            stderr=result.stderr,
            signature=nondeterminism.signature,
            replays=False,
            finding=finding,
        )

    def event(self, harness_run: HarnessRun, findings: Path) -> events.DivergenceFound:
        """Writes the case file and returns the event about it."""
        file = findings / writing.name_of(self.case)
        writing.write(self.case, file)
        repeated = () if self.replays else ("--repeat", str(_REPEATS))
        return events.DivergenceFound(
            at=harness_run.elapsed(),
            title=self.case.title,
            outcome=self.outcome,
            message=self.message,
            machine=self.machine,
            steps=self.steps,
            requirements=self.case.requirements,
            pictures=self.pictures,
            stderr=self.stderr,
            file=str(file),
            reproduce=harness_run.replay_file(str(file), *repeated),
            signature=self.signature,
            parted=self.parted,
            finding=self.finding,
        )


def _marked(case: Case, *, cut_short: bool) -> Case:
    title = f"{case.title} ({shrinking.CUT_SHORT})" if cut_short else case.title
    return msgspec.structs.replace(case, title=title)
