"""Runs of cases on machines, as events."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.targets import target_of
from numaproof.conformance.cases import loading
from numaproof.conformance.cases.schema import Case
from numaproof.conformance.check import check
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.harness_run import FailedHandshake, HarnessRun
from numaproof.conformance.execution.implementation import (
    BrokeProtocol,
    Crashed,
    InProcess,
    TimedOut,
    handshake,
)
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Target
from numaproof.conformance.requirements import load_registry
from numaproof.protocol import events, messages
from numaproof.reference.implementation import Reference
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo

MakeCase = Callable[[str], Case]
MakeTarget = Callable[..., Target]

STATIC = 'config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}\n'
GOOD = STATIC + "steps: [{state: {}}]"
BAD = STATIC + "steps: [{state: {}, expect: {shared: 3}}]"


@pytest.fixture
def cases(make_case: MakeCase) -> list[Case]:
    good = msgspec.structs.replace(make_case(GOOD), id="good-case", aliases=("old-name",))
    bad = msgspec.structs.replace(make_case(BAD), id="bad-case")
    return [good, bad]


def harness_run(target: Target) -> HarnessRun:
    return HarnessRun(target, load_registry(), "numaproof check", "0.1")


def played(target: Target, cases: list[Case], *catalogue: ProfileMachine) -> list[events.AnyEvent]:
    runs = runner.select(cases, catalogue, target)
    return list(check(runs, harness_run(target)))


def untimed(stream: list[events.AnyEvent]) -> list[events.AnyEvent]:
    return [
        msgspec.structs.replace(
            event, at=0.0, **({"seconds": 0.0} if isinstance(event, events.CaseFinished) else {})
        )
        for event in stream
    ]


def test_a_run_begins_finishes_every_case_and_ends(
    reference: Target, cases: list[Case], laptop: ProfileMachine
) -> None:
    started, good, bad, ended = played(reference, cases, laptop)
    assert isinstance(started, events.RunStarted)
    assert started.total == 2
    assert list(started.machines) == ["laptop-4c8t"]
    assert isinstance(good, events.CaseFinished)
    assert good.outcome == "pass"
    assert good.steps == ()
    assert isinstance(bad, events.CaseFinished)
    assert bad.outcome == "fail"
    assert bad.message == "the shared pool\nexpected: 3 CPUs\ngot: 8 CPUs (0-7)"
    assert [step.operation for step in bad.steps] == ["start", "state", "state", "state"]
    assert [picture.title for picture in bad.pictures] == ["before", "after"]
    assert isinstance(ended, events.RunEnded)
    assert ended.complete
    assert ended.outcomes == {"fail": 1, "pass": 1}
    assert summarize([started, good, bad, ended]).verdict == "failed"


def test_two_runs_give_the_same_events_times_aside(
    reference: Target, cases: list[Case], laptop: ProfileMachine
) -> None:
    one, two = (untimed(played(reference, cases, laptop)) for _ in range(2))
    assert one == two


def test_cases_beyond_the_level_or_for_other_releases_are_left_out(
    make_target: MakeTarget, cases: list[Case], laptop: ProfileMachine
) -> None:
    target = make_target(InProcess(Reference), level="invariants")
    assert runner.select(cases, [laptop], target) == []
    target = make_target(InProcess(Reference))
    old = [msgspec.structs.replace(case, kubernetes="< 1.34") for case in cases]
    assert runner.select(old, [laptop], target) == []


def test_a_case_with_a_machine_of_its_own_runs_on_that(
    reference: Target, cases: list[Case], info: MachineInfo
) -> None:
    own = [msgspec.structs.replace(case, machine=info) for case in cases]
    _, good, bad, _ = played(reference, own)
    assert isinstance(good, events.CaseFinished)
    assert isinstance(bad, events.CaseFinished)
    assert (good.outcome, bad.outcome) == ("pass", "fail")
    assert bad.machine == "its own machine"
    assert bad.reproduce == "numaproof replay bad-case --kubernetes 1.35"


def test_the_command_that_reproduces_a_case_names_all_that_matters(
    cases: list[Case], laptop: ProfileMachine
) -> None:
    with closing(InProcess(Reference)) as implementation:
        target = target_of(
            implementation,
            kubernetes="1.34",
            level="placement",
            command=("./my driver", "--x"),
            judged_as="documented",
        )
        given = ProfileMachine(laptop.profile, laptop.folder, given="dir/my.yaml")
        _, finished, _, _ = played(target, cases, given)
    assert isinstance(finished, events.CaseFinished)
    words = shlex.split(finished.reproduce)
    assert shlex.join(words[:-1]) == (
        "numaproof replay good-case --machine dir/my.yaml --kubernetes 1.34"
        " --level placement --as documented --implementation"
    )
    assert words[-1] == "'./my driver' --x"


def test_a_machine_that_cannot_be_discovered_serves_cases_about_discovery(
    reference: Target, make_case: MakeCase, laptop: ProfileMachine, tmp_path: Path
) -> None:
    profile = msgspec.structs.replace(laptop.profile, lacks=("proc/meminfo",))
    case = make_case("steps: [{discover: {}, expect: {refused: discovery}}]")
    case = msgspec.structs.replace(case, machines=loading.Machines(names=("laptop-*",)))
    started, finished, _ = played(reference, [case], ProfileMachine(profile, tmp_path))
    assert isinstance(started, events.RunStarted)
    assert started.machines == {}
    assert isinstance(finished, events.CaseFinished)
    assert finished.outcome == "pass"


# The greeting


def test_an_exception_of_an_object_is_a_fault_and_the_next_call_reaches_a_fresh_one() -> None:
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


@pytest.mark.parametrize("kind", [Crashed, TimedOut, BrokeProtocol])
def test_a_failed_greeting_is_a_complete_and_failed_run(kind: Any) -> None:
    failed = FailedHandshake(
        failure=kind("it is gone", "last words"),
        registry=load_registry(),
        command="numaproof fuzz",
        reproduce="numaproof doctor ./mine",
        version="0.1",
        kubernetes="1.35",
        level="kubelet",
        seconds=2.0,
    )
    summary = summarize(failed.events())
    assert summary.verdict == "failed"
    assert summary.gaps == ()
    (failure,) = summary.failures
    assert failure.outcome == kind.outcome
    assert failure.message == "it is gone"
    assert failure.stderr == "last words"
    assert failure.steps[0].operation == "hello"


class Lingering(InProcess):
    """Leaves a process behind when it ends."""

    left: tuple[str, ...] = ()

    def begin(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def log(self) -> str:
        return ""

    def close(self) -> None:
        self.left += ("12 sleep 999",)


def test_a_run_ends_its_target_and_names_what_is_left_of_it(
    make_target: MakeTarget, cases: list[Case], laptop: ProfileMachine
) -> None:
    *_, ended = played(make_target(Lingering(Reference)), cases[:1], laptop)
    assert isinstance(ended, events.RunEnded)
    assert ended.outcomes == {"pass": 1}
    assert ended.left == ("12 sleep 999",)
