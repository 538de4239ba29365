"""Recordings: scenarios with an implementation's answers, in one compressed file.

A file contains JSON lines compressed with xz. The first line identifies the implementation, its
release and the date. Each line after that contains a scenario, as a playable case, and its answers
in call order. Calls are not stored, because they follow from the case and the answers. The same
answers produce the same bytes.
"""

from __future__ import annotations

import lzma
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import checking
from numaproof.conformance.cases.loading import applies
from numaproof.conformance.cases.manifests import containers
from numaproof.conformance.cases.schema import Case, Step
from numaproof.conformance.differential.lockstep import ComparedRun, LockstepResult, Pair, play
from numaproof.conformance.execution.capabilities import Capabilities, NotSupportedError
from numaproof.conformance.execution.implementation import (
    BrokeProtocol,
    Crashed,
    ImplementationFailure,
    InProcess,
)
from numaproof.conformance.execution.run import Scenario, Target
from numaproof.conformance.execution.truncation import cut
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.scenarios import seeded_scenario
from numaproof.conformance.fuzzing.generation.stateless import merge
from numaproof.inputs import door, errors
from numaproof.protocol import codec, events, messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.releases import RELEASES
from numaproof.workdir.output_files import write_file
from numaproof.workdir.removal import remove_tree
from numaproof.workdir.scratch import require_room

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from importlib.resources.abc import Traversable

    from numaproof.conformance.execution.harness_run import HarnessRun


FORMAT = 1
SUFFIX = ".jsonl.xz"

_BUNDLED = "recordings"


class RecordingError(ValueError):
    """A file is not a recording; the message names the file, the line and the problem."""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The origin of recordings.

    `name`, `version` and `language` describe the implementation; `recorded_on` is the
    date (YYYY-MM-DD); `numaproof` is the version that generated the scenarios.
    """

    format: int
    name: str
    version: str
    language: str
    kubernetes: str
    numaproof: str
    recorded_on: str = msgspec.field(name="recorded")


class RecordedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operation and its response without the id; ``$STATE_DIR`` is the state directory."""

    op: str
    answer: dict[str, Any]


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scenario, its answers, and its seed if it was generated."""

    case: Case
    calls: tuple[RecordedCall, ...]
    seed: int | None = None

    @property
    def case_id(self) -> str:
        """The id for selection and reports."""
        return f"{PREFIX}{self.case.id}"

    @property
    def requirement(self) -> events.ReportedRequirement:
        """The requirement for selection and reports."""
        return REQUIREMENT


class Recorded:
    """An implementation that replays recorded answers, whatever the request."""

    def __init__(self, recording: Recording) -> None:
        self._remaining_calls = iter(recording.calls)

    def call(self, operation: str, args: messages.Args) -> messages.Answer:  # noqa: ARG002
        """Returns the next answer.

        Raises:
            BrokeProtocol: the recording has a different operation or no answer here, so it doesn't
                match its case.
        """
        kept = next(self._remaining_calls, None)
        if kept is None or kept.op != operation:
            raise BrokeProtocol(f"the recording has {kept.op if kept else 'no call'} here")
        try:
            return codec.decode_answer(codec.encode({"id": 0, **kept.answer}), 0, operation)
        except codec.ProtocolError as error:
            raise BrokeProtocol(f"the recording has no valid answer here: {error}") from None

    def close(self) -> None:
        """Does nothing, because there is no program to end."""


def kept_answer(answer: messages.Answer) -> dict[str, Any]:
    """Converts an answer to its recorded form: a response without an id."""
    response: dict[str, Any] = msgspec.json.decode(codec.encode_answer(0, answer))
    del response["id"]
    return response


def write(path: Path, source: Source, recordings: Iterable[Recording]) -> None:
    """Writes recordings to a new file, atomically.

    Raises:
        OSError: the file exists or can't be written.
    """
    lines = [codec.encode(source), *(_line(one) for one in recordings)]
    packed = lzma.compress(b"\n".join(lines) + b"\n", preset=9 | lzma.PRESET_EXTREME)
    write_file(path, packed, new=True)


def _line(recording: Recording) -> bytes:
    return codec.encode(msgspec.to_builtins(recording))


def read(file: Path | Traversable) -> tuple[Source, tuple[Recording, ...]]:
    """Reads a file of recordings and their origin.

    Raises:
        DocumentError: the file can't be read or unpacked.
        RecordingError: the file is not a recording.
    """
    packed = door.read(file) if isinstance(file, Path) else file.read_bytes()
    lines = door.unpack_xz(packed, str(file)).splitlines()
    made = list(_read_lines(str(file), lines))
    if not made:
        raise RecordingError(f"{file}: the file is empty")
    return made[0], tuple(made[1:])


def _read_lines(name: str, lines: Iterable[bytes]) -> Iterator[Any]:
    kind: Any = Source
    for number, line in enumerate(lines, 1):
        try:
            made = codec.decode(line, kind)
        except codec.ProtocolError as error:
            raise RecordingError(f"{name}, line {number}: {error}") from None
        if isinstance(made, Source) and made.format != FORMAT:
            message = f"{name}, line 1: format: expected {FORMAT}, got {made.format}"
            raise RecordingError(message)
        if isinstance(made, Source) and made.kubernetes not in RELEASES:
            raise RecordingError(
                f"{name}, line 1: kubernetes: expected one of {', '.join(RELEASES)},"
                f" got {made.kubernetes!r}"
            )
        if isinstance(made, Recording) and made.case.machine is None:
            raise RecordingError(f"{name}, line {number}: the case does not define a machine")
        if isinstance(made, Recording):
            _check(made.case, f"{name}, line {number}")
        yield made
        kind = Recording


def _check(case: Case, place: str) -> None:
    try:
        checking.check(case)
    except checking.WrongCaseError as wrong:
        field = errors.dotted_path(("case", *wrong.path))
        raise RecordingError(f"{place}: {field}: {wrong} ({wrong.fix})") from None


def bundled_file(kubernetes: str) -> Traversable:
    """The file with a release's bundled recordings."""
    return resources.files("numaproof.fixtures") / _BUNDLED / f"kubelet-{kubernetes}{SUFFIX}"


def bundled_recordings(kubernetes: str) -> tuple[Recording, ...]:
    """The bundled recordings of a release's real kubelet; empty if there are none.

    Raises:
        RecordingError: the file is damaged.
    """
    file = bundled_file(kubernetes)
    return read(file)[1] if file.is_file() else ()


def seeded_merges(seeds: Sequence[int], capabilities: Capabilities) -> Case:
    """For each seed, a case with one merge; deterministic for the same capabilities."""
    steps = (Step(merge=merge(Seeded(seed), capabilities), expect="anything") for seed in seeds)
    return Case(
        id=f"merges-{seeds[0]}",
        title="",
        requirements=(),
        level="invariants",
        machine=MachineInfo(),
        steps=tuple(steps),
    )


def record(target: Target, case: Case, seed: int | None, scratch: Path) -> Recording | None:
    """Records an implementation's answers to a scenario; None if it doesn't support the scenario.

    Faults are not recorded. The machine is described rather than discovered from a tree.

    Args:
        target: the implementation to record.
        case: the scenario, with its machine.
        seed: the seed of the scenario, if any.
        scratch: the parent of state directories; empty afterwards.

    Raises:
        CaseError: the case can't be played as written.
        ImplementationFailure: there was no answer, or it was a fault.
    """
    try:
        return _record_case(target, msgspec.structs.replace(case, tree=False), seed, scratch)
    except ImplementationFailure:
        require_room(scratch)
        raise


def _record_case(target: Target, case: Case, seed: int | None, scratch: Path) -> Recording | None:
    assert case.machine is not None
    folder = scratch / "recording"
    try:
        alone = replace(target, oracle=None)
        run = ComparedRun(alone, case, case.machine, None, folder)
        session = run.player.session
        try:
            run.player.play()
            session.check_state()
        except NotSupportedError:
            return None
        answers = [
            (call.operation, session.normal(call.answer))
            for call in session.calls
            if call.answer is not None
        ]
    finally:
        remove_tree(folder)
    for operation, answer in answers:
        if isinstance(answer, messages.Fault):
            raise Crashed(cut(f"{operation} ended in a fault: {answer.message}"), answer.trace)
    calls = tuple(RecordedCall(operation, kept_answer(answer)) for operation, answer in answers)
    return Recording(msgspec.structs.replace(case, title=""), calls, seed)


def record_seed(target: Target, seed: int, scratch: Path) -> Recording | None:
    """Records the scenario generated from a seed; see `record`."""
    return record(target, seeded_scenario(seed, target.capabilities), seed, scratch)


def record_merges(target: Target, seeds: Sequence[int], scratch: Path) -> Recording | None:
    """Records the merges generated from seeds; see `record`."""
    return record(target, seeded_merges(seeds, target.capabilities), seeds[0], scratch)


REQUIREMENT = events.ReportedRequirement(
    id="RECORDED",
    area="recordings",
    statement="Every call is answered as the real kubelet of the release was recorded to answer.",
    document="fixtures/recordings",
    section="docs/fidelity.md, Recordings",
)
"""The requirement of all recordings, for reports; no document states it."""


PREFIX = "recorded-"
"""The prefix of the case ids of recordings."""


def of_target(target: Target) -> tuple[Recording, ...]:
    """The bundled recordings that a target must match.

    Empty unless the target is judged as a kubelet at level admission or above.

    Raises:
        RecordingError: a bundled file is damaged.
    """
    if target.baseline != "kubelet" or not applies("admission", target.level):
        return ()
    return bundled_recordings(target.kubernetes)


def compare(recording: Recording, target: Target, scratch: Path) -> LockstepResult:
    """Plays a recording's calls against a target until an answer differs.

    The target is the left side of the result. Programs can't know which of several equally good
    devices the kubelet chose, so a difference only in devices ends the comparison.
    """
    assert recording.case.machine is not None
    pair = Pair(
        target.implementation,
        Recorded(recording),
        target.capabilities,
        target.level,
        tested_side="left",
    )
    played = play(pair, Scenario(recording.case, recording.case.machine), scratch)
    led = isinstance(target.implementation, InProcess)
    if played.outcome == "fail" and not led and _other_devices(played.steps[-1]):
        return replace(played, outcome="pass", chance=played.operation)
    return played


def run_recording(
    recording: Recording, harness_run: HarnessRun, scratch: Path
) -> events.CaseFinished:
    """Compares a target with a recording and returns the event."""
    began = harness_run.elapsed_seconds()
    played = compare(recording, harness_run.target, scratch)
    now = harness_run.elapsed_seconds()
    shown = played.outcome not in ("pass", "unsupported")
    return events.CaseFinished(
        at=now,
        case=recording.case_id,
        title="The answers are those of the real kubelet",
        machine="its own machine",
        outcome=played.outcome,
        seconds=now - began,
        requirements=(REQUIREMENT.id,),
        message=played.message,
        steps=tuple(map(_with_sides_swapped, played.steps)) if shown else (),
        stderr=played.stderr,
        defect=played.defect,
        reproduce=harness_run.replay(recording.case_id),
        signature=played.signature,
        finding=played.reported_finding(),
    )


def _with_sides_swapped(step: events.ReportedCall) -> events.ReportedCall:
    """The step, with the recorded answer as its expected answer."""
    if step.expected is None:
        return step
    return msgspec.structs.replace(step, answer=step.expected, expected=step.answer)


def _other_devices(step: events.ReportedCall) -> bool:
    """Whether two answers differ only in the devices of containers.

    Later containers of a pod may reuse the devices of earlier ones, so only the first differing
    container counts.
    """
    if _with_device_counts(step.answer) == _with_device_counts(step.expected):
        return True
    mine, theirs = map(_containers, (step.answer, step.expected))
    if not mine or not theirs or mine.keys() != theirs.keys():
        return False
    in_order = containers(step.args["pod"])
    first = next((name for name in in_order if mine[name] != theirs[name]), "")
    return bool(_with_device_counts(mine.get(first)) == _with_device_counts(theirs.get(first)))


def _containers(answer: Mapping[str, Any] | None) -> dict[str, Any]:
    """The containers of an admission, with `devices` filled in."""
    containers = (answer or {}).get("containers") or {}
    return {name: {"devices": {}} | one for name, one in containers.items()}


def _with_device_counts(value: Any) -> Any:
    """Replaces lists of device ids with their lengths."""
    if not isinstance(value, dict):
        return value
    return {
        key: {resource: len(ids or ()) for resource, ids in inner.items()}
        if key == "devices" and isinstance(inner, dict)
        else _with_device_counts(inner)
        for key, inner in value.items()
        if inner or key != "devices"  # which may be left out
    }
