"""One scenario on two sides: what is a difference, what is chance, what broke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from numaproof.conformance.cases import loading
from numaproof.conformance.differential.lockstep import LockstepResult, Pair, examine, play
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import (
    Crashed,
    Implementation,
    InProcess,
    TimedOut,
    hello_args,
)
from numaproof.conformance.execution.run import Scenario
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo

HELLO = Reference().hello(hello_args("tests"))

CASE = """
cases:
  - id: one
    title: t
    requirements: [r]
    config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}
    steps:
      - admit: {pod: a, containers: {app: {limits: {cpu: 2, memory: 64Mi}}}}
        expect: {refused: never}
      - start: {}
      - remove: a
"""


class Altered:
    """The reference, whose admissions go through a change."""

    def __init__(self, change: Callable[[messages.Admitted], messages.Answer]) -> None:
        self._reference = Reference()
        self._change = change

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        answer = self._reference.call(operation, args)
        return self._change(answer) if isinstance(answer, messages.Admitted) else answer

    def close(self) -> None:
        pass


def on(cpus: str) -> Callable[[messages.Admitted], messages.Answer]:
    """Says that containers run on these CPUs."""

    def change(answer: messages.Admitted) -> messages.Answer:
        ran = {
            name: msgspec.structs.replace(one, cpus=CPUSet.parse(cpus))
            for name, one in answer.containers.items()
        }
        return messages.Admitted(ran)

    return change


def turns(answers: Iterable[str]) -> Callable[[messages.Admitted], messages.Answer]:
    """Says another of these CPUs each time, and the truth for ``-``."""
    left = iter(answers)

    def change(answer: messages.Admitted) -> messages.Answer:
        cpus = next(left)
        return answer if cpus == "-" else on(cpus)(answer)

    return change


@pytest.fixture
def scenario(info: MachineInfo) -> Scenario:
    (case,) = loading.parse(CASE, "case.yaml")
    return Scenario(case, info)


def pair(right: Implementation, left: Implementation | None = None, **capabilities: Any) -> Pair:
    hello = msgspec.structs.replace(HELLO, **capabilities)
    return Pair(left or InProcess(Reference), right, Capabilities(hello, "1.35"), "kubelet")


def test_two_sides_that_agree_pass_whatever_the_case_expects(
    scenario: Scenario, tmp_path: Path
) -> None:
    played = play(pair(InProcess(Reference)), scenario, tmp_path)
    # start, admit, state, start, admit again, remove, state
    assert played == LockstepResult("pass", calls=7)
    assert list(tmp_path.iterdir()) == []


def test_the_first_difference_ends_a_scenario_with_both_answers_and_both_nodes(
    scenario: Scenario, tmp_path: Path
) -> None:
    played = play(pair(Altered(on("7"))), scenario, tmp_path)
    assert played.outcome == "fail"
    assert played.message == "admit: containers.app.cpus differs\nexpected: 2-3\ngot: 7"
    assert [step.operation for step in played.steps] == ["start", "admit"]
    last = played.steps[-1]
    assert last.answer is not None
    assert last.expected is not None
    assert last.answer["containers"]["app"]["cpus"] == "7"
    assert last.expected["containers"]["app"]["cpus"] == "2-3"
    assert last.problems == ("containers.app.cpus differs\nexpected: 2-3\ngot: 7",)
    assert [one.title for one in played.pictures] == ["expected", "got"]


def test_no_picture_is_made_of_nodes_that_tell_no_state(scenario: Scenario, tmp_path: Path) -> None:
    operations = tuple(one for one in HELLO.operations if one != "state")
    played = play(pair(Altered(on("7")), operations=operations), scenario, tmp_path)
    assert played.outcome == "fail"
    assert played.pictures == ()


def test_a_scenario_without_any_call_passes(info: MachineInfo, tmp_path: Path) -> None:
    steps = CASE.partition("- admit")[0] + "- tamper: {file: cpu_manager_state, how: delete}\n"
    (case,) = loading.parse(steps, "case.yaml")
    played = play(pair(InProcess(Reference)), Scenario(case, info), tmp_path)
    assert played == LockstepResult("pass")


def test_a_difference_below_the_level_is_none(scenario: Scenario, tmp_path: Path) -> None:
    lower = msgspec.structs.replace(HELLO)
    admission = Pair(
        InProcess(Reference), Altered(on("7")), Capabilities(lower, "1.35"), level="admission"
    )
    assert play(admission, scenario, tmp_path).outcome == "pass"


def test_what_one_side_does_not_have_is_not_asked(scenario: Scenario, tmp_path: Path) -> None:
    played = play(pair(InProcess(Reference), operations=("start",)), scenario, tmp_path)
    assert played.outcome == "unsupported"
    assert played.message == "one side does not have operation admit"


class Broken:
    """Answers until an admission is asked for."""

    def __init__(self, failure: Exception) -> None:
        self._reference = Reference()
        self._failure = failure

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        if operation == "admit":
            raise self._failure
        return self._reference.call(operation, args)

    def close(self) -> None:
        pass


def test_a_call_that_never_ends_is_a_time_out_and_is_not_tried_again(
    scenario: Scenario, tmp_path: Path
) -> None:
    played = examine(pair(Broken(TimedOut("no answer", "log"))), scenario, tmp_path)
    assert (played.outcome, played.message, played.stderr) == ("time-out", "no answer", "log")
    assert played.operation == "admit"
    assert played.steps[-1].answer is None


def test_a_broken_left_side_is_distinguished_from_a_broken_right_one(
    scenario: Scenario, tmp_path: Path
) -> None:
    played = play(pair(InProcess(Reference), Broken(Crashed("gone"))), scenario, tmp_path)
    assert (played.outcome, played.message) == ("crash", "the left side: gone")


def test_a_fault_on_one_side_is_a_fault(scenario: Scenario, tmp_path: Path) -> None:
    def break_down(_: messages.Admitted) -> messages.Answer:
        return messages.Fault("index out of range")

    played = play(pair(Altered(break_down)), scenario, tmp_path)
    assert played.outcome == "fault"
    assert played.message == "admit: the outcome differs\nexpected: accepted\ngot: a fault"


def test_a_side_that_once_agrees_to_the_end_passes(scenario: Scenario, tmp_path: Path) -> None:
    chancy = Altered(turns(["7", "6", "-", "-"]))
    played = examine(pair(chancy), scenario, tmp_path)
    assert played.outcome == "pass"
    assert played.chance == ""


def test_answers_that_differ_from_run_to_run_are_chance(scenario: Scenario, tmp_path: Path) -> None:
    chancy = Altered(turns(["7", "6"] * 12))
    played = examine(pair(chancy), scenario, tmp_path)
    assert played.outcome == "pass"
    assert played.chance == "admit"
    assert played.message.startswith("admit: containers.app.cpus differs")


def test_a_difference_beyond_chance_is_found(scenario: Scenario, tmp_path: Path) -> None:
    # The first admission agrees now and then; the one after the restart never does.
    chancy = Altered(turns(["7", "-", "6", "5", "-", "6", "-", "6"] + ["-", "6"] * 20))
    played = examine(pair(chancy), scenario, tmp_path)
    assert played.outcome == "fail"
    assert played.calls == 5
    assert played.message == "admit: containers.app.cpus differs\nexpected: 2-3\ngot: 6"
