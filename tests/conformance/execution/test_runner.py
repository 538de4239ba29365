"""Runs of cases on machines, as events."""

from __future__ import annotations

import shlex
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.targets import ChangedReference, ProcessBacked, case_of, changed_reference, target_of
from numaproof.conformance.cases.schema import StartStep, open_step
from numaproof.conformance.check import check
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.execution.implementation import Crashed, InProcess, handshake
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.requirements import load_registry
from numaproof.protocol import events, messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.run import Target

STATIC = 'config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}\n'
GOOD = msgspec.structs.replace(case_of(STATIC + "steps: [{state: {}}]"), id="good-case")
BAD = msgspec.structs.replace(
    case_of(STATIC + "steps: [{state: {}, expect: {shared: 3}}]"), id="bad-case"
)

ADMITTED = case_of(
    STATIC + "steps: [{admit: {pod: a, containers: {app: {limits: {cpu: 2, memory: 64Mi}}}}}]"
)


def check_events(
    target: Target, cases: list[Case], *catalogue: ProfileMachine
) -> list[events.AnyEvent]:
    run = HarnessRun(target, load_registry(), "numaproof check", "0.1")
    return list(check(runner.select(cases, catalogue, target), run))


def test_a_run_has_a_start_every_case_and_an_end(reference: Target, laptop: ProfileMachine) -> None:
    started, good, bad, ended = check_events(reference, [GOOD, BAD], laptop)
    assert isinstance(started, events.RunStarted)
    assert started.total == 2
    assert list(started.machines) == ["laptop-4c8t"]
    assert isinstance(good, events.CaseFinished)
    assert (good.outcome, good.steps) == ("pass", ())
    assert isinstance(bad, events.CaseFinished)
    assert bad.outcome == "fail"
    assert bad.message == "the shared pool\nexpected: 3 CPUs\ngot: 8 CPUs (0-7)"
    assert [step.operation for step in bad.steps] == ["start", "state", "state", "state"]
    assert [picture.title for picture in bad.pictures] == ["before", "after"]
    assert isinstance(ended, events.RunEnded)
    assert ended.complete
    assert ended.outcomes == {"fail": 1, "pass": 1}
    assert summarize([started, good, bad, ended]).verdict == "failed"


def test_cases_for_other_releases_are_omitted(reference: Target, laptop: ProfileMachine) -> None:
    old = msgspec.structs.replace(GOOD, kubernetes="< 1.34")
    assert runner.select([old], [laptop], reference) == []


def without_pods(answer: messages.Answer) -> messages.Answer:
    assert isinstance(answer, messages.State)
    return msgspec.structs.replace(answer, pods={})


@pytest.mark.parametrize(
    ("case", "changes", "outcome", "judged"),
    [
        (BAD, {}, "pass", ()),
        (ADMITTED, {"start": lambda _: messages.StartRefused("config", "no")}, "pass", ()),
        (ADMITTED, {"state": without_pods}, "fail", ("CPU-REMOVE-003",)),
    ],
)
def test_a_case_above_the_level_is_judged_only_by_the_invariants(
    case: Case,
    changes: dict[str, Any],
    outcome: str,
    judged: tuple[str, ...],
    laptop: ProfileMachine,
) -> None:
    target = target_of(changed_reference(**changes), level="invariants")
    _, played, _ = check_events(target, [case], laptop)
    assert isinstance(played, events.CaseFinished)
    assert (played.outcome, played.only_invariants) == (outcome, True)
    assert (played.requirements, played.judged_requirements) == (case.requirements, judged)


class Forgetful(ChangedReference):
    """Shows no exclusive CPUs from a start until the first admission."""

    def __init__(self) -> None:
        super().__init__()
        self._last = ""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        answer = super().call(operation, args)
        if operation != "state":
            self._last = operation
        if isinstance(answer, messages.State) and self._last == "start":
            pods = {
                uid: {
                    name: msgspec.structs.replace(one, cpus=answer.shared, exclusive=CPUSet())
                    for name, one in containers.items()
                }
                for uid, containers in answer.pods.items()
            }
            return msgspec.structs.replace(answer, pods=pods)
        return answer


def test_a_restart_shows_at_once_what_pods_have(laptop: ProfileMachine) -> None:
    case = msgspec.structs.replace(ADMITTED, steps=(*ADMITTED.steps, open_step(start=StartStep())))
    outcomes = [
        one.outcome
        for played in (InProcess(Reference), InProcess(Forgetful))
        for one in check_events(target_of(played, level="invariants"), [case], laptop)
        if isinstance(one, events.CaseFinished)
    ]
    assert outcomes == ["pass", "fail"]


def test_the_reproducing_command_has_all_relevant_options(
    laptop: ProfileMachine,
) -> None:
    with closing(InProcess(Reference)) as implementation:
        target = target_of(
            implementation,
            kubernetes="1.34",
            level="placement",
            command=("./my driver", "--x"),
            baseline="documented",
        )
        given = ProfileMachine(laptop.profile, laptop.folder, requested_name="dir/my.yaml")
        own = msgspec.structs.replace(GOOD, machine=laptop.info)
        commands = [
            event.reproduce
            for event in (*check_events(target, [GOOD], given), *check_events(target, [own]))
            if isinstance(event, events.CaseFinished)
        ]
    options = "--kubernetes 1.34 --level placement --baseline documented --implementation"
    *words, program = shlex.split(commands[0])
    assert shlex.join(words) == f"numaproof replay good-case --machine dir/my.yaml {options}"
    assert program == "'./my driver' --x"
    assert shlex.join(shlex.split(commands[1])[:-1]) == f"numaproof replay good-case {options}"


def test_an_exception_is_a_fault_and_the_next_call_gets_a_new_object() -> None:
    made = []

    class Raising:
        def __init__(self) -> None:
            made.append(self)

        def call(self, *_: object) -> Any:
            raise RuntimeError("boom")

    with closing(InProcess(Raising)) as implementation:
        answer = implementation.call("state", messages.NoArgs())
        assert isinstance(answer, messages.Fault)
        assert answer.message == "RuntimeError: boom"
        assert "Traceback" in answer.trace
        assert len(made) == 2
        with pytest.raises(Crashed, match="hello ended in a fault"):
            handshake(implementation, "tests")


class Lingering(ProcessBacked, InProcess):
    """Leaves a process behind when it ends."""

    def close(self) -> None:
        self.leftover_processes += ("12 sleep 999",)


def test_a_run_stops_its_target_and_reports_leftovers(laptop: ProfileMachine) -> None:
    *_, ended = check_events(target_of(Lingering(Reference)), [GOOD], laptop)
    assert isinstance(ended, events.RunEnded)
    assert ended.outcomes == {"pass": 1}
    assert ended.leftover_processes == ("12 sleep 999",)
