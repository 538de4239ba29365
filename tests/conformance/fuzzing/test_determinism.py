"""Playing again: implementations that answer the same calls differently are told from others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, cycle
from pathlib import Path
from typing import Any

import msgspec

from builders.fuzzed import found_in, fuzzed
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.implementation import Crashed, Implementation, InProcess
from numaproof.conformance.execution.run import Scenario, Target
from numaproof.conformance.fuzzing.determinism import DeterminismCheck
from numaproof.conformance.fuzzing.fuzz_options import FuzzOptions
from numaproof.protocol import events, messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference
from numaproof.reports.summary import summarize

MakeTarget = Callable[..., Target]


def run(target: Target, findings: Path, replay_every: int = 5) -> list[events.AnyEvent]:
    return [*fuzzed(target, findings, 50, options=FuzzOptions(replay_every=replay_every))]


def found(stream: list[events.AnyEvent]) -> events.DivergenceFound:
    (one,) = found_in(stream)
    return one


def otherwise(answer: messages.Answer) -> messages.Answer:
    """A refusal in other words."""
    if isinstance(answer, messages.AdmissionRefused):
        return msgspec.structs.replace(answer, message="no")
    return answer


class Changing:
    """The reference, whose answers a change is made to in every second life of the object."""

    lives: Iterator[bool]
    change: Callable[[messages.Answer], messages.Answer]

    def __init__(self) -> None:
        self._reference = Reference()
        self._changes = next(self.lives)

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        answer = self._reference.call(operation, args)
        return type(self).change(answer) if self._changes else answer


def changing(change: Callable[[Any], messages.Answer]) -> type[Changing]:
    body = {"lives": cycle((False, True)), "change": staticmethod(change)}
    return type("One", (Changing,), body)


def test_other_answers_in_another_process_are_an_outcome_of_their_own_and_a_small_case(
    make_target: MakeTarget, tmp_path: Path
) -> None:
    stream = run(make_target(InProcess(changing(otherwise))), tmp_path)
    one = found(stream)
    assert one.outcome == "nondeterministic"
    assert one.message.startswith(
        "the same calls were answered differently: admit: message differs"
    )
    last = one.steps[-1]
    assert last.operation == "admit"
    assert last.answer is not None
    assert last.expected is not None
    answers = [one["message"] for one in (last.answer, last.expected)]
    assert answers.count("no") == 1
    assert [step.problems for step in one.steps[:-1]] == [()] * (len(one.steps) - 1)
    summary = summarize(stream)
    assert summary.verdict == "failed"
    assert summary.tally.of("nondeterministic") == 1
    assert summary.tally.total == summary.tally.passed + 1
    assert one.file is not None
    (case,) = loading.read_file(Path(one.file))
    assert [step.verb for step in case.steps] == ["start", "admit"]


def test_a_failure_that_does_not_come_again_is_no_plain_failure(
    make_target: MakeTarget, tmp_path: Path
) -> None:
    numbers = count()

    def losing(answer: messages.Answer) -> messages.Answer:
        if isinstance(answer, messages.State) and next(numbers) == 12:
            return msgspec.structs.replace(answer, shared=CPUSet())
        return answer

    body = {"lives": iter(lambda: True, False), "change": staticmethod(losing)}
    target = make_target(InProcess(type("One", (Changing,), body)))
    assert found(run(target, tmp_path, replay_every=0)).outcome == "nondeterministic"


def test_a_crash_that_does_not_come_again_is_a_crash_and_no_change_of_answers(
    make_target: MakeTarget, tmp_path: Path
) -> None:
    class Crashing(InProcess):
        left = 20

        def call(self, operation: str, args: messages.Args) -> messages.Answer:
            self.left -= 1
            if self.left == 0:
                raise Crashed("gone", "log")
            return super().call(operation, args)

    one = found(run(make_target(Crashing(Reference)), tmp_path, replay_every=0))
    assert (one.outcome, one.message, one.stderr) == ("crash", "gone (not every time)", "log")
    assert one.signature.startswith("crash at ")


def test_a_fault_is_the_same_whatever_its_trace(
    make_target: MakeTarget, changed: Callable[..., Any], play: Callable[..., Any], tmp_path: Path
) -> None:
    numbers = count()

    def broken(_: messages.Answer) -> messages.Answer:
        return messages.Fault("boom", f"at {next(numbers):#x}")

    target = make_target(InProcess(lambda: changed(reconcile=broken)))
    result, first = play(target, "steps: [{start: {}}, {reconcile: {}}]")
    assert result.outcome == "fault"
    scenario = Scenario(first.case, first.player.session.machine)
    assert DeterminismCheck(target, tmp_path / "again").nondeterminism(scenario, first) is None


def first_or_last(*, last: bool) -> Callable[[], Implementation]:
    """A reference that is led to the first or the last devices that would do."""

    class SteeredImplementation(Reference):
        def call(self, operation: str, args: messages.Args) -> messages.Answer:
            if isinstance(args, messages.AdmitArgs) and last:
                devices = {"vendor.example/nic": ("d1",)}
                self.favour({"app": devices})
            return super().call(operation, args)

    return lambda: InProcess(SteeredImplementation)


def test_devices_of_which_any_would_do_are_no_difference(
    make_target: MakeTarget, play: Callable[..., Any], tmp_path: Path
) -> None:
    text = """
    steps:
    - start:
        config: {cpuManagerPolicy: none}
        devices: {vendor.example/nic: [[0], [0]]}
      expect: anything
    - admit: {pod: p, containers: {app: {limits: {cpu: 1, memory: 1Gi, vendor.example/nic: 1}}}}
      expect: anything
    """
    target = make_target(first_or_last(last=False)())
    _, first = play(target, text)
    held = first.player.session.calls[-1].answer.pods
    assert "d0" in str(held)
    other = make_target(first_or_last(last=True)())
    _, second = play(other, text)
    assert "d1" in str(second.player.session.calls[-1].answer.pods)
    scenario = Scenario(first.case, first.player.session.machine)
    assert DeterminismCheck(other, tmp_path / "again").nondeterminism(scenario, first) is None
