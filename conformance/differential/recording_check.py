"""Compares an implementation with recordings of the real kubelet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.differential import recordings
from numaproof.conformance.differential.lockstep import LockstepResult, Pair, play
from numaproof.conformance.differential.recordings import Recorded
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.scenario import Scenario
from numaproof.protocol import events

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numaproof.conformance.differential.recordings import Recording
    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.conformance.execution.run import Target

REQUIREMENT = events.ReportedRequirement(
    id="RECORDED",
    area="recordings",
    statement="Every call is answered as the real kubelet of the release was recorded to answer.",
    document="fixtures/recordings",
    section="docs/fidelity.md, Recordings",
)
"""The requirement behind recordings, as reports show it; it comes from no document."""


PREFIX = "recorded-"
"""What the case ids of recordings begin with."""


def of_target(target: Target) -> tuple[Recording, ...]:
    """The bundled recordings that a target must match.

    There are none for a target that is not judged as that kubelet, or at level invariants.

    Raises:
        RecordingError: a bundled file is damaged.
    """
    if target.judged_as != "kubelet" or not applies("admission", target.level):
        return ()
    return recordings.bundled(target.kubernetes)


def name_of(recording: Recording) -> str:
    """The case id of a recording."""
    return f"{PREFIX}{recording.case.id}"


def compare(recording: Recording, target: Target, scratch: Path) -> LockstepResult:
    """Plays a recording's calls against a target until an answer differs from the recorded one.

    In the result, the left side is the target. No other program can know which of several devices a
    kubelet took: if only that differs, nothing more is compared.
    """
    assert recording.case.machine is not None
    pair = Pair(
        target.implementation,
        Recorded(recording),
        target.capabilities,
        target.level,
        tested="left",
    )
    played = play(pair, Scenario(recording.case, recording.case.machine), scratch)
    led = isinstance(target.implementation, InProcess)
    if played.outcome == "fail" and not led and _other_devices(played.steps[-1]):
        return replace(played, outcome="pass", chance=played.operation)
    return played


def finished(recording: Recording, harness_run: HarnessRun, scratch: Path) -> events.CaseFinished:
    """Compares a target with a recording, as a case run."""
    began = harness_run.elapsed()
    played = compare(recording, harness_run.target, scratch)
    now = harness_run.elapsed()
    shown = played.outcome not in ("pass", "unsupported")
    return events.CaseFinished(
        at=now,
        case=name_of(recording),
        title="The answers are those of the real kubelet",
        machine="its own machine",
        outcome=played.outcome,
        seconds=now - began,
        requirements=(REQUIREMENT.id,),
        message=played.message,
        steps=tuple(map(_turned, played.steps)) if shown else (),
        stderr=played.stderr,
        defect=played.defect,
        reproduce=harness_run.replay(name_of(recording)),
        signature=played.signature,
        finding=played.reported(),
    )


def _turned(step: events.ReportedCall) -> events.ReportedCall:
    """A step with the recorded answer as what was expected."""
    if step.expected is None:
        return step
    return msgspec.structs.replace(step, answer=step.expected, expected=step.answer)


def _other_devices(step: events.ReportedCall) -> bool:
    """Whether two answers differ in nothing but which devices containers have.

    What later containers of a pod get follows from those of earlier ones, whose devices they may
    use again: of containers the first that differs counts.
    """
    if _counted(step.answer) == _counted(step.expected):
        return True
    mine, theirs = map(_containers, (step.answer, step.expected))
    if not mine or not theirs or mine.keys() != theirs.keys():
        return False
    spec = step.args["pod"]["spec"]
    in_order = [*(spec.get("initContainers") or ()), *spec["containers"]]
    first = next((one["name"] for one in in_order if mine[one["name"]] != theirs[one["name"]]), "")
    return bool(_counted(mine.get(first)) == _counted(theirs.get(first)))


def _containers(answer: Mapping[str, Any] | None) -> dict[str, Any]:
    """The containers of an admission, each with `devices`, which may be left out."""
    containers = (answer or {}).get("containers") or {}
    return {name: {"devices": {}} | one for name, one in containers.items()}


def _counted(value: Any) -> Any:
    """An answer with the number of devices in the place of their ids."""
    if not isinstance(value, dict):
        return value
    return {
        key: {resource: len(ids or ()) for resource, ids in inner.items()}
        if key == "devices" and isinstance(inner, dict)
        else _counted(inner)
        for key, inner in value.items()
        if inner or key != "devices"  # which may be left out
    }
