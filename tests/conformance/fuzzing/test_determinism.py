"""Replays detect implementations that answer the same calls differently."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from builders.devices import choosing
from builders.fuzz_runs import found_in, fuzz_events
from builders.targets import changed_reference, target_of
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.implementation import Crashed, InProcess
from numaproof.conformance.execution.run import Scenario
from numaproof.conformance.fuzzing.determinism import DeterminismCheck
from numaproof.conformance.fuzzing.fuzz_options import FuzzOptions
from numaproof.protocol import events, messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.conformance.execution.run import Run, RunResult, Target

    Play = Callable[..., tuple[RunResult, Run]]


def find_divergence(
    target: Target, findings: Path, replay_every: int = 0
) -> events.DivergenceFound:
    """Returns the only finding of a run."""
    options = FuzzOptions(replay_every=replay_every)
    (one,) = found_in([*fuzz_events(target, findings, 50, options=options)])
    return one


def test_nondeterminism_is_an_outcome_with_a_small_case(
    tmp_path: Path,
) -> None:
    lives = count()

    class Changing(Reference):
        """Refuses with a different message in every second life."""

        def __init__(self) -> None:
            super().__init__()
            self._changes = next(lives) % 2

        def call(self, operation: str, args: messages.Args) -> messages.Answer:
            answer = super().call(operation, args)
            if isinstance(answer, messages.AdmissionRefused) and self._changes:
                return msgspec.structs.replace(answer, message="no")
            return answer

    one = find_divergence(target_of(InProcess(Changing)), tmp_path, replay_every=5)
    assert one.outcome == "nondeterministic"
    words = "the same calls were answered differently: admit: message differs"
    assert one.message.startswith(words)
    last = one.steps[-1]
    answers = [answer["message"] for answer in (last.answer, last.expected) if answer]
    assert (len(answers), answers.count("no")) == (2, 1)
    assert [step.problems for step in one.steps[:-1]] == [()] * (len(one.steps) - 1)
    (case,) = loading.read_file(tmp_path / str(one.file))
    assert [step.verb for step in case.steps] == ["start", "admit"]


def test_a_failure_that_does_not_repeat_is_nondeterministic(tmp_path: Path) -> None:
    numbers = count()

    def losing(answer: messages.State) -> messages.State:
        lost = next(numbers) == 12
        return msgspec.structs.replace(answer, shared=CPUSet()) if lost else answer

    assert (
        find_divergence(target_of(changed_reference(state=losing)), tmp_path).outcome
        == "nondeterministic"
    )


def test_a_crash_that_does_not_repeat_is_still_a_crash(
    tmp_path: Path,
) -> None:
    numbers = count()

    class Crashing(InProcess):
        def call(self, operation: str, args: messages.Args) -> messages.Answer:
            if next(numbers) == 20:
                raise Crashed("gone", "log")
            return super().call(operation, args)

    one = find_divergence(target_of(Crashing(Reference)), tmp_path)
    assert (one.outcome, one.message, one.stderr) == ("crash", "gone (not every time)", "log")
    assert one.signature.startswith("crash at ")


def test_faults_are_equal_despite_different_traces(play: Play, tmp_path: Path) -> None:
    numbers = count()
    broken = changed_reference(reconcile=lambda _: messages.Fault("boom", f"at {next(numbers):#x}"))
    result, first = play(target_of(broken), "steps: [{start: {}}, {reconcile: {}}]")
    assert result.outcome == "fault"
    assert agrees(target_of(broken), first, tmp_path)


def agrees(target: Target, first: Run, folder: Path) -> bool:
    """Returns whether a target repeats its answers in a run."""
    scenario = Scenario(first.case, first.player.session.machine)
    return DeterminismCheck(target, folder / "again").nondeterminism(scenario, first) is None


def test_equivalent_devices_are_no_difference(play: Play, tmp_path: Path) -> None:
    class Last(Reference):
        """Takes the last device."""

        def call(self, operation: str, args: messages.Args) -> messages.Answer:
            if isinstance(args, messages.AdmitArgs):
                self.prefer(choosing(args.pod, "vendor.example/nic", "d1"))
            return super().call(operation, args)

    text = """
    devices: {vendor.example/nic: [[0], [0]]}
    steps:
    - start: {config: {cpuManagerPolicy: none}}
    - admit: {pod: p, containers: {app: {limits: {cpu: 1, memory: 1Gi, vendor.example/nic: 1}}}}
    """
    runs = [play(target_of(InProcess(one)), text)[1] for one in (Reference, Last)]
    held: list[Any] = [run.player.session.calls[-1].answer for run in runs]
    assert ["d1" in str(state.pods) for state in held] == [False, True]
    assert agrees(target_of(InProcess(Last)), runs[0], tmp_path)
