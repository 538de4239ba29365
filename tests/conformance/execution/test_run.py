"""Cases played against the reference, healthy and changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from numaproof.conformance.execution.implementation import (
    BrokeProtocol,
    Crashed,
    ImplementationFailure,
    InProcess,
    TimedOut,
)
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.player import CaseError
from numaproof.conformance.execution.run import Run, RunResult, Target
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.protocol.machine import MachineInfo

Play = Callable[[Target, str], tuple[RunResult, Run]]
MakeTarget = Callable[..., Target]

STATIC = 'config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}\n'
POD = "{pod: a, containers: {app: {limits: {cpu: 2, memory: 1Gi}}}}"
ADMIT = STATIC + f"steps:\n- admit: {POD}\n"


def test_a_case_that_is_as_expected_passes_and_every_call_is_kept(
    play: Play, reference: Target
) -> None:
    text = ADMIT + "  expect: {containers: {app: {exclusive: '${smt}'}}}\n"
    result, run = play(reference, text)
    assert result == RunResult("pass")
    assert [step.operation for step in run.steps()] == ["start", "state", "admit", "state"]
    assert [picture.title for picture in run.pictures()] == ["before", "after"]
    assert [owner.name for owner in run.pictures()[1].owners] == ["a/app", "reserved"]


def test_the_state_directory_is_shown_as_a_word(play: Play, reference: Target) -> None:
    _, run = play(reference, ADMIT)
    assert run.steps()[0].args["state_dir"] == "$STATE_DIR"


def test_what_is_expected_in_other_releases_does_not_count(play: Play, reference: Target) -> None:
    text = ADMIT + (
        "  expect:\n"
        "  - {kubernetes: '< 1.36', containers: {app: {exclusive: 3}}}\n"
        "  - {kubernetes: '>= 1.36', containers: {app: {exclusive: 2}}}\n"
    )
    verdict, _ = play(replace(reference, kubernetes="1.36"), text)
    assert verdict == RunResult("pass")
    verdict, _ = play(replace(reference, kubernetes="1.35"), text)
    assert verdict.outcome == "fail"


def test_a_case_that_is_not_as_expected_fails_and_stops(play: Play, reference: Target) -> None:
    text = ADMIT + "  expect: {containers: {app: {exclusive: 3}}}\n- reconcile: {}\n"
    result, run = play(reference, text)
    assert result.outcome == "fail"
    assert result.message == "exclusive CPUs of app\nexpected: 3 CPUs\ngot: 2 CPUs (2-3)"
    assert run.steps()[-1].operation == "state"
    assert run.steps()[-2].problems == (result.message,)


UPGRADE = (
    "config: {cpuManagerPolicy: static, reservedSystemCPUs: '0'}\n"
    f"steps:\n- admit: {POD}\n- start: {{kubernetes: '1.36'}}\n"
)


def test_a_start_of_another_release_goes_on_with_what_the_first_left_behind(
    play: Play, reference: Target
) -> None:
    text = UPGRADE + (
        "  expect:\n"
        "  - {kubernetes: '< 1.36', refused: cpu}\n"
        "  - {kubernetes: '>= 1.36', allocatable: '1-7'}\n"
        "- state: {}\n"
        "  expect: {pods: {a: {app: {exclusive: 2-3}}}}\n"
    )
    result, run = play(reference, text)
    assert result == RunResult("pass")
    releases = [step.args["kubernetes"] for step in run.steps() if step.operation == "start"]
    assert releases == ["1.35", "1.36"]


def test_a_release_that_is_not_claimed_is_unsupported(play: Play, make_target: MakeTarget) -> None:
    target = make_target(InProcess(Reference), kubernetes="1.35")
    hello = msgspec.structs.replace(target.hello, kubernetes=("1.35",))
    result, _ = play(replace(target, hello=hello), UPGRADE)
    said = "the implementation does not have Kubernetes 1.36"
    assert (result.outcome, result.message) == ("unsupported", said)


def test_every_verb_can_be_played(play: Play, reference: Target) -> None:
    result, run = play(
        reference,
        STATIC
        + f"""
let: {{two: smt, three: 3}}
steps:
- assign: {{available: "${{all}}", count: "${{two}}"}}
  expect: {{cpus: "0-1"}}
- start: {{}}
  expect: {{all: "${{cpus}}"}}
- admit: {POD}
- state: {{}}
  expect: {{shared: "${{all - core(1)}}"}}
- hints: {{pod: a, container: app}}
- reconcile: {{}}
- tamper: {{file: cpu_manager_state, how: delete}}
- start: {{gone: [a]}}
- state: {{}}
  expect: {{pods: {{}}, shared: "${{all}}"}}
- admit: a
- remove: a
""",
    )
    assert result == RunResult("pass")
    assert {"assign", "start", "hints", "reconcile", "remove"} <= {
        step.operation for step in run.steps()
    }


def test_a_machine_can_lose_cpus_between_two_starts(play: Play, reference: Target) -> None:
    result, _ = play(
        reference,
        STATIC
        + """
steps:
- start: {}
- tamper: {file: cpu_manager_state, how: delete}
- start: {offline: "7"}
  expect: {all: "0-6"}
- state: {}
  expect: {shared: "${all}"}
""",
    )
    assert result == RunResult("pass")


def test_the_memory_of_a_machine_can_change_between_two_starts(
    play: Play, reference: Target
) -> None:
    result, _ = play(
        reference,
        """
config:
  memoryManagerPolicy: Static
  systemReserved: {memory: 924Mi}
  reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]
steps:
- start: {}
- start: {memory: [{node: 0, bytes: "${memory(0) + 4096}"}]}
  expect: {refused: memory}
- tamper: {file: memory_manager_state, how: delete}
- start: {}
  expect: {memory: {memory: "${memory(0) - gib(1)}"}}
""",
    )
    assert result == RunResult("pass")


def test_a_tree_is_discovered_where_there_is_one(
    tmp_path: Path, laptop: ProfileMachine, reference: Target, make_case: Callable[[str], Any]
) -> None:
    case = make_case(
        """
        config: {kubeReserved: {cpu: "1"}}
        steps:
        - discover: {}
          expect: {machine: {num_cores: "${cpus}"}}
        - start: {tree: true}
          expect: {all: "${all}"}
        """
    )
    machine = ProfileMachine(laptop.profile, tmp_path)
    assert machine.info is not None
    run = Run(reference, case, machine.info, machine.tree, tmp_path / "scratch")
    assert run.play() == RunResult("pass")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("steps: [{discover: {}}]", "step 1: there is no tree of this machine"),
        ("steps: [{start: {}}, {admit: lost}]", "step 2: no earlier step describes the pod lost"),
        ("steps: [{start: {gone: [lost]}}]", "step 1: gone: the pod lost is not on the node"),
        ("steps: [{assign: {available: '${lost}', count: 1}}]", "'lost' is not known here"),
        ("steps: [{assign: {available: '0', count: '${all}'}}]", "step 1: "),
        ("steps: [{start: {offline: x}}]", "step 1: "),
    ],
)
def test_a_case_that_cannot_be_played_names_itself_and_the_step(
    play: Play, reference: Target, text: str, complaint: str
) -> None:
    with pytest.raises(CaseError, match=complaint) as caught:
        play(reference, text)
    assert str(caught.value).startswith("case test, step ")


RESTART = ADMIT + "- start: {config: {%s}}\n  expect: {readmission: {%s}}\n"


def test_a_restart_admits_the_pods_on_the_node_again(play: Play, reference: Target) -> None:
    result, run = play(reference, RESTART % ("", ""))
    assert result == RunResult("pass")
    assert [step.operation for step in run.steps()].count("admit") == 2


def test_a_refused_readmission_must_be_expected(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    def refusing_later() -> Any:
        answers = iter(range(100))
        refusal = messages.AdmissionRefused("Other", "no")
        return changed(admit=lambda answer: refusal if next(answers) else answer)

    _, run = play(make_target(InProcess(refusing_later)), RESTART % ("", ""))
    said = "the outcome\nexpected: success\ngot: refused with Other (no)"
    assert said in map(str, run.player.problems)
    _, run = play(make_target(InProcess(refusing_later)), RESTART % ("", "a: Other"))
    assert not any("refused" in str(problem) for problem in run.player.problems)


def test_a_broken_invariant_is_the_headline_before_a_difference_from_the_reference(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    def reserved(answer: messages.Admitted) -> messages.Admitted:
        one = msgspec.structs.replace(answer.containers["app"], exclusive=CPUSet([0, 2]))
        return messages.Admitted({"app": one})

    target = make_target(InProcess(lambda: changed(admit=reserved)), oracle=True)
    result, run = play(target, ADMIT)
    assert run.player.problems[0].source == "reference"
    assert result.message.endswith("[state-keeps-what-was-given]")
    assert run.signature(result) == "invariant state-keeps-what-was-given"


def test_an_unsupported_readmission_is_unsupported(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    answers = iter(range(100))
    missing = messages.Unsupported("admitting twice")
    implementation = InProcess(
        lambda: changed(admit=lambda answer: missing if next(answers) else answer)
    )
    result, _ = play(make_target(implementation), RESTART % ("", ""))
    message = "the implementation does not have admitting twice"
    assert result == RunResult("unsupported", message)


def test_an_unsupported_answer_is_neither_a_pass_nor_a_failure(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    implementation = InProcess(lambda: changed(admit=lambda _: messages.Unsupported("pods")))
    result, _ = play(make_target(implementation), ADMIT)
    assert result == RunResult("unsupported", "the implementation does not have pods")
    assert result.good


def test_a_fault_is_a_fault_with_its_trace(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    implementation = InProcess(lambda: changed(admit=lambda _: messages.Fault("boom", "line 3")))
    result, run = play(make_target(implementation), ADMIT)
    assert result == RunResult("fault", "boom", "line 3", words="boom")
    assert not result.good
    assert [step.operation for step in run.steps()][-1] == "admit"


def test_a_broken_invariant_fails_a_case_that_expects_nothing_of_it(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    def losing(state: messages.State) -> messages.State:
        return msgspec.structs.replace(state, shared=state.shared - CPUSet([7]))

    target = make_target(InProcess(lambda: changed(state=losing)))
    result, run = play(target, ADMIT)
    assert result.outcome == "fail"
    assert result.message.endswith("[no-cpu-lost]")
    found = [one.invariant for one in run.player.violations]
    assert found == ["no-cpu-lost", "cpu-file-says-what-is-held"]


def test_a_state_that_is_not_answered_is_left_unchecked(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    target = make_target(InProcess(lambda: changed(state=lambda _: messages.Unsupported("state"))))
    result, run = play(target, ADMIT)
    assert result == RunResult("pass")
    assert run.pictures() == ()


def test_without_a_claimed_state_it_is_not_asked_for(play: Play, make_target: MakeTarget) -> None:
    target = make_target(InProcess(Reference), operations=("start", "admit"))
    result, run = play(target, ADMIT)
    assert result == RunResult("pass")
    assert [step.operation for step in run.steps()] == ["start", "admit"]


def test_another_placement_differs_from_the_reference_at_level_placement_and_above(
    play: Play, make_target: MakeTarget
) -> None:
    class Elsewhere(Reference):
        """Reserves another CPU, but as many."""

        def start(self, args: messages.StartArgs) -> messages.Started:
            config = {**args.config, "reservedSystemCPUs": "3"}
            return super().start(msgspec.structs.replace(args, config=config))

    def outcome(level: messages.Level) -> RunResult:
        target = make_target(InProcess(Elsewhere), oracle=True, level=level)
        return play(target, ADMIT)[0]

    assert outcome("invariants") == outcome("admission") == RunResult("pass")
    assert outcome("placement").outcome == "fail"
    assert outcome("placement").message.startswith(
        "differs from the reference: cpus.allocatable\nexpected: 1-7\ngot: 0-2,4-7"
    )


def test_the_same_answers_as_the_reference_pass_with_it_beside(
    play: Play, make_target: MakeTarget
) -> None:
    target = make_target(InProcess(Reference), oracle=True)
    text = RESTART % ("cpuManagerPolicy: none", "")
    result, _ = play(target, text.replace("expect: {readmission: {}}", "expect: {refused: cpu}"))
    assert result == RunResult("pass")
    tamper = ADMIT + "- tamper: {file: cpu_manager_state, how: checksum}\n"
    result, _ = play(target, tamper + "- start: {}\n  expect: {refused: cpu}\n")
    assert result == RunResult("pass")


def test_several_bad_options_may_be_refused_with_any_of_them(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    def other(answer: messages.Answer) -> messages.Answer:
        if isinstance(answer, messages.StartRefused):
            message = answer.message.replace("bogus-a", "x").replace("bogus-b", "bogus-a")
            return msgspec.structs.replace(answer, message=message.replace("x", "bogus-b"))
        return answer

    options = "{cpuManagerPolicyOptions: {bogus-a: 'true', bogus-b: 'true'}}"
    text = STATIC + f"steps:\n- start: {{config: {options}}}\n  expect: {{refused: cpu}}\n"
    target = make_target(InProcess(lambda: changed(start=other)), oracle=True)
    assert play(target, text)[0] == RunResult("pass")
    assign = (
        "steps:\n- assign:\n    {available: '0-7', count: 1,"
        " options: {bogus-a: 'true', bogus-b: 'true'}}\n  expect: {refused: cpu}\n"
    )
    target = make_target(InProcess(lambda: changed(assign=other)), oracle=True)
    assert play(target, assign)[0] == RunResult("pass")


@pytest.mark.parametrize("kind", [Crashed, TimedOut, BrokeProtocol])
def test_no_answer_ends_the_case_as_what_it_was(
    play: Play, reference: Target, kind: type[ImplementationFailure]
) -> None:
    class Failing:
        def call(self, operation: str, _: messages.Args) -> messages.Answer:
            raise kind(f"no answer to {operation}", "last words")

        def close(self) -> None:
            pass

    target = Target(Failing(), reference.hello, "1.35", "kubelet")
    result, run = play(target, ADMIT)
    said = "no answer to start"
    assert result == RunResult(kind.outcome, said, "last words", words=said)
    (step,) = run.steps()
    assert step.answer is None


@pytest.mark.parametrize(
    "step",
    [
        "admit: lost",
        "remove: {pod: lost}",
        "hints: {pod: {pod: x, containers: {app: {}}}}",
        "state: {}",
    ],
)
def test_a_step_that_expects_anything_is_left_out_where_it_makes_no_sense(
    play: Play, reference: Target, step: str
) -> None:
    down = "steps:\n- start: {config: {cpuManagerPolicy: bogus}}\n  expect: {refused: cpu}\n"
    result, run = play(reference, down + f"- {step}\n  expect: anything\n")
    assert result == RunResult("pass")
    assert len(run.steps()) == 1


def test_a_step_that_expects_anything_is_made_where_it_makes_sense(
    play: Play, reference: Target
) -> None:
    steps = ["admit: a", "reconcile: {}", "remove: {pod: a, container: other}"]
    steps += ["remove: {pod: a}", "remove: {pod: a}", "start: {}"]
    text = ADMIT + "".join(f"- {step}\n  expect: anything\n" for step in steps)
    result, run = play(reference, text)
    assert result == RunResult("pass")
    made = [step.operation for step in run.steps() if step.operation != "state"]
    assert made == ["start", "admit", "admit", "reconcile", "remove", "start"]


UNEVEN = """
config: {cpuManagerPolicy: static, kubeReserved: {cpu: 1}}
steps:
- start: {offline: "7"}
  expect: anything
- assign: {available: "0,2,4", count: 2}
  expect: anything
- admit: {pod: a, containers: {app: {limits: {cpu: 1, memory: 64Mi}}}}
  expect: anything
- reconcile: {}
  expect: anything
"""


def test_a_defect_explains_no_difference_from_the_reference(
    make_target: MakeTarget,
    make_case: Callable[[str], Case],
    changed: Callable[..., Any],
    info: MachineInfo,
    tmp_path: Path,
) -> None:
    def silent(answer: messages.Reconciled) -> messages.Reconciled:
        return messages.Reconciled(answer.updates[1:])

    def result(*, oracle: bool) -> RunResult:
        target = make_target(InProcess(lambda: changed(reconcile=silent)), oracle=oracle)
        folder = tmp_path / str(oracle)
        return Run(target, make_case(UNEVEN), info, None, folder).play()

    alone, beside = result(oracle=False), result(oracle=True)
    assert (alone.outcome, alone.defect) == ("expected failure", "free-core-by-average")
    assert beside.outcome == "fail"
    assert beside.message.startswith("differs from the reference: ")


def test_a_defect_explains_no_expectation_that_is_not_met(
    make_target: MakeTarget, make_case: Callable[[str], Case], info: MachineInfo, tmp_path: Path
) -> None:
    def result(expect: str) -> RunResult:
        steps = UNEVEN[: UNEVEN.index("- admit")].removesuffix("expect: anything\n")
        case = make_case(f"{steps}expect: {expect}\n")
        target = make_target(InProcess(Reference), oracle=False)
        return Run(target, case, info, None, tmp_path / str(len(expect))).play()

    met, unmet = result("{cpus: 2}"), result("{refused: cpu}")
    assert (met.outcome, met.defect) == ("expected failure", "free-core-by-average")
    assert (unmet.outcome, unmet.defect) == ("fail", None)


def test_what_the_harness_does_between_calls_stands_before_the_call_that_follows(
    play: Play, reference: Target
) -> None:
    text = ADMIT + (
        "- tamper: {file: cpu_manager_state, how: truncate}\n"
        "- tamper: {file: memory_manager_state, how: delete}\n"
        "- tamper: {file: memory_manager_state, how: delete}\n"
        "- start: {}\n  expect: {refused: cpu}\n"
        "- tamper: {file: cpu_manager_state, how: write, text: '{}'}\n"
        "- tamper: {file: cpu_manager_state, how: delete}\n"
        "- start:\n"
        "    offline: '7'\n    gone: [a]\n    kubernetes: '1.36'\n"
        "    memory: [{node: 0, bytes: 8589934592}]\n"
        "- state: {}\n"
    )
    result, run = play(reference, text)
    assert result.message == ""
    starts = [step.before for step in run.steps() if step.operation == "start"]
    assert starts == [
        (),
        (
            "cut cpu_manager_state to its first half",
            "deleted memory_manager_state",
            "left memory_manager_state alone: it is empty or missing",
        ),
        (
            "wrote cpu_manager_state: {}",
            "deleted cpu_manager_state",
            "changed the release from Kubernetes 1.35 to 1.36",
            "took pod a off the node while nothing ran",
            "took CPU 7 offline",
            "changed the memory of NUMA node 0 to 8589934592 bytes",
        ),
    ]
    assert not any(step.before for step in run.steps() if step.operation != "start")
