"""Where kubelets break their documents, an implementation that is no kubelet may do either."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.differences import parts
from numaproof import fakesys
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run, RunResult, Target
from numaproof.conformance.judging.baselines import DOCUMENTED, Baseline, Baselines
from numaproof.conformance.trees import tree_of
from numaproof.protocol import messages
from numaproof.protocol.events import Parted
from numaproof.protocol.sets import CPUSet
from numaproof.reference.deviations.defects import CHANGES
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo
    from numaproof.protocol.messages import Level

Play = Callable[..., tuple[RunResult, Run]]
MakeTarget = Callable[..., Target]

AVERAGE, REUSED = "free-core-by-average", "init-cpus-not-reused"
EMPTY = "strict-reservation-empty-pool-refused"

STATIC = "config: {cpuManagerPolicy: static, reservedSystemCPUs: '0'}\n"
APP = "containers: {app: {limits: {cpu: 2, memory: 64Mi}}}"
INIT = "init: {setup: {limits: {cpu: 1, memory: 64Mi}}}, " + APP
REUSES = STATIC + f"steps:\n- start: {{}}\n- admit: {{pod: a, {INIT}}}\n"
UNEVEN = STATIC + f'steps:\n- start: {{offline: "7"}}\n- admit: {{pod: b, {APP}}}\n'
"""One core has lost a CPU: a kubelet hands out the reserved CPU 0 with its sibling."""

USED_UP = """
config:
  cpuManagerPolicy: static
  cpuManagerPolicyOptions: {strict-cpu-reservation: "true"}
  reservedSystemCPUs: "0"
steps:
- admit: {pod: a, containers: {app: {limits: {cpu: 7, memory: 64Mi}}}}
- start: {}
- state: {}
  expect: {pods: {a: {}}}
- remove: a
"""
"""A kubelet does not start again once the shared pool is empty."""


def one(
    make: MakeTarget, *defects: str, documented: bool = True, judged_as: str = "either", **more: Any
) -> Target:
    """The reference following a baseline, compared with the others."""
    implementation = InProcess(
        lambda: Reference(documented=documented, exceptions=frozenset(defects))
    )
    made: dict[str, Any] = {"level": "placement", "oracle": True, **more}
    return make(implementation, judged_as=judged_as, **made)


@pytest.mark.parametrize(
    ("text", "defect"), [(REUSES, REUSED), (UNEVEN, AVERAGE), (USED_UP, EMPTY)]
)
def test_whoever_keeps_to_the_documents_passes_where_kubelets_break_them(
    play: Play, make_target: MakeTarget, text: str, defect: str
) -> None:
    result, run = play(one(make_target), text)
    assert result == RunResult("pass")
    assert run.parted(result) == Parted("documented", (defect,))


@pytest.mark.parametrize(
    ("text", "defect"), [(REUSES, REUSED), (UNEVEN, AVERAGE), (USED_UP, EMPTY)]
)
def test_whoever_does_as_kubelets_do_passes_too(
    play: Play, make_target: MakeTarget, text: str, defect: str
) -> None:
    result, run = play(one(make_target, documented=False), text)
    assert result == RunResult("pass")
    assert run.parted(result) == Parted("kubelet", (defect,))


@pytest.mark.parametrize("level", ["invariants", "admission", "placement", "kubelet"])
def test_only_what_the_documents_say_is_right_if_that_is_asked_for(
    play: Play, make_target: MakeTarget, level: Level
) -> None:
    def outcome(*, documented: bool, judged_as: str) -> str:
        target = one(make_target, documented=documented, judged_as=judged_as, level=level)
        return play(target, REUSES + "- state: {}\n  expect: {shared: 6}\n")[0].outcome

    assert outcome(documented=True, judged_as="documented") == "pass"
    assert outcome(documented=False, judged_as="documented") == "fail"
    assert outcome(documented=True, judged_as="either") == "pass"
    assert outcome(documented=False, judged_as="either") == "pass"


def test_only_what_the_kubelet_does_is_right_if_that_is_asked_for(
    play: Play, make_target: MakeTarget
) -> None:
    def outcome(*, documented: bool) -> str:
        return play(one(make_target, documented=documented, judged_as="kubelet"), REUSES)[0].outcome

    assert (outcome(documented=False), outcome(documented=True)) == ("pass", "fail")


@pytest.mark.parametrize(("shared", "left"), [(EMPTY, 5), (REUSED, 4)])
def test_one_defect_may_be_shared_and_another_not(
    play: Play, make_target: MakeTarget, shared: str, left: int
) -> None:
    rest = f"containers: {{app: {{limits: {{cpu: {left}, memory: 64Mi}}}}}}"
    text = USED_UP.replace("steps:\n", f"steps:\n- admit: {{pod: b, {INIT}}}\n").replace(
        "containers: {app: {limits: {cpu: 7, memory: 64Mi}}}", rest
    )
    text = text.replace("pods: {a: {}}", "pods: {a: {}, b: {}}")
    result, run = play(one(make_target, shared), text)
    assert result == RunResult("pass")
    assert run.parted(result) == Parted("kubelet", (shared,))


def test_two_defects_may_show_in_one_answer(play: Play, make_target: MakeTarget) -> None:
    text = UNEVEN.replace(APP, INIT)
    result, run = play(one(make_target, documented=False), text)
    assert result == RunResult("pass")
    assert run.parted(result) == Parted("kubelet", (AVERAGE, REUSED))
    for shared in (AVERAGE, REUSED):
        assert play(one(make_target, shared), text)[0] == RunResult("pass")


def test_where_both_answer_alike_there_is_nothing_to_report(
    play: Play, make_target: MakeTarget
) -> None:
    result, run = play(one(make_target), STATIC + f"steps:\n- admit: {{pod: a, {APP}}}\n")
    assert result == RunResult("pass")
    assert run.parted(result) is None


def test_an_answer_of_no_baseline_is_a_failure_against_the_documents(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    def more(answer: messages.Answer) -> messages.Answer:
        assert isinstance(answer, messages.Admitted)
        containers = {
            name: msgspec.structs.replace(one, cpus=one.cpus | CPUSet([0]))
            for name, one in answer.containers.items()
        }
        return messages.Admitted(containers)

    wrong = InProcess(lambda: changed(admit=more))
    target = make_target(wrong, oracle=True, level="placement", judged_as="either")
    result, _ = play(target, REUSES)
    assert result.outcome == "fail"
    assert result.message.startswith("differs from the reference: containers.app.cpus")


def test_once_a_baseline_is_left_later_answers_are_compared_with_it(
    play: Play, make_target: MakeTarget
) -> None:
    class Forgetful(Reference):
        """A kubelet that keeps to the documents for the second pod."""

        def __init__(self) -> None:
            super().__init__()
            self._other = Reference(documented=True)

        def call(self, operation: str, args: messages.Args) -> messages.Answer:
            documented = self._other.call(operation, args)
            second = isinstance(args, messages.AdmitArgs) and "b" in args.pod["metadata"]["uid"]
            return documented if second else super().call(operation, args)

    text = REUSES + f"- admit: {{pod: b, {APP}}}\n"
    target = make_target(InProcess(Forgetful), oracle=True, level="placement", judged_as="either")
    result, run = play(target, text)
    assert result.outcome == "fail"
    assert run.parted(result) == Parted("kubelet", (REUSED,))


def test_an_expectation_that_no_baseline_meets_stays_one(
    play: Play, make_target: MakeTarget
) -> None:
    text = REUSES + "- state: {}\n  expect: {shared: 3}\n"
    for documented in (True, False):
        result, _ = play(one(make_target, documented=documented), text)
        assert result.outcome == "fail"
        assert "expected: 3 CPUs" in result.message


def test_an_expectation_that_both_baselines_meet_stays_one(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    refused = messages.AdmissionRefused("SomeError", "no")
    target = make_target(
        InProcess(lambda: changed(admit=lambda _: refused)),
        oracle=True,
        level="invariants",
        judged_as="either",
    )
    result, run = play(target, REUSES)
    assert result.outcome == "fail"
    assert run.parted(result) is None


@pytest.mark.parametrize("documented", [True, False])
def test_an_expectation_of_the_kubelets_way_is_one_of_two(
    play: Play, make_target: MakeTarget, *, documented: bool
) -> None:
    text = REUSES + "- state: {}\n  expect: {shared: 5}\n"
    for level in ("invariants", "admission", "placement"):
        result, run = play(one(make_target, documented=documented, level=level), text)
        assert result == RunResult("pass")
        if documented:
            assert run.parted(result) == Parted("documented", (REUSED,))


@pytest.mark.parametrize("level", ["invariants", "admission", "placement"])
def test_an_invariant_that_a_kubelet_breaks_may_be_broken_as_it_does(
    play: Play, make_target: MakeTarget, level: Level
) -> None:
    text = UNEVEN.rstrip() + "\n  expect: anything\n"
    result, run = play(one(make_target, documented=False, level=level), text)
    assert result == RunResult("pass")
    assert run.parted(result) == Parted("kubelet", (AVERAGE,))
    alone, run = play(one(make_target, documented=False, level=level, oracle=False), text)
    assert alone.outcome == "fail"
    assert run.player.violations


def test_an_invariant_that_is_broken_in_another_way_stays_so(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    def shared(answer: messages.State) -> messages.State:
        return msgspec.structs.replace(answer, shared=answer.shared | CPUSet([1, 2]))

    target = make_target(
        InProcess(lambda: changed(state=shared)),
        oracle=True,
        level="invariants",
        judged_as="either",
    )
    result, run = play(target, UNEVEN)
    assert result.outcome == "fail"
    assert run.player.violations


def test_a_checkpoint_changed_by_hand_is_changed_for_every_baseline(
    play: Play, make_target: MakeTarget
) -> None:
    text = (
        REUSES
        + "- tamper: {file: cpu_manager_state, how: checksum}\n"
        + "- start: {}\n  expect: {refused: cpu}\n"
        + "- tamper: {file: cpu_manager_state, how: delete}\n"
        + f"- start: {{gone: [a]}}\n- admit: {{pod: b, {INIT}}}\n"
    )
    for documented in (True, False):
        result, _ = play(one(make_target, documented=documented, level="kubelet"), text)
        assert result == RunResult("pass")


def test_each_baseline_reads_a_tree_once_and_only_those_that_discover_otherwise(
    tmp_path: Path,
) -> None:
    info = ProfileMachine(fakesys.load_profile("epyc-12-nodes"), tmp_path).info
    assert info is not None
    read: list[Baseline] = []

    class Reading(Reference):
        def __init__(self, baseline: Baseline) -> None:
            super().__init__(documented=baseline.documented, exceptions=baseline.exceptions)
            self._baseline = baseline

        def discover(self, args: messages.DiscoverArgs) -> MachineInfo:
            read.append(self._baseline)
            return super().discover(args)

    tree = tree_of(info)
    args = messages.DiscoverArgs(tree.path, "1.37")
    judge = Baselines(Reading, tmp_path, "placement")
    wrong = msgspec.structs.replace(info, num_sockets=9)
    assert parts(judge.disagreement("discover", args, wrong))[0] == "num_sockets"
    assert not judge.allows(args, lambda _, __: False)
    assert DOCUMENTED in read
    assert len(read) == len({*read})
    named = {name for baseline in read for name in baseline.exceptions}
    assert named <= {change.name for change in CHANGES}, "no defect shows in a discovered machine"
