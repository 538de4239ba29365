"""After `unsupported` the harness, the implementation and the oracle agree on what is there."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run, RunResult, Target
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference

Play = Callable[..., tuple[RunResult, Run]]
MakeTarget = Callable[..., Target]

STATIC = "config: {cpuManagerPolicy: static, reservedSystemCPUs: '0'}\n"
DEVICES = "devices: {v.example/nic: [[0], null]}\n"
START = "steps:\n- start: {}\n  expect: anything\n"
NIC = "{cpu: 2, memory: 64Mi, v.example/nic: 1}"


def admit(name: str, limits: str = "{cpu: 2, memory: 64Mi}") -> str:
    """A step that admits a pod, whatever comes of it."""
    return (
        f"- admit: {{pod: {name}, containers: {{app: {{limits: {limits}}}}}}}\n  expect: anything\n"
    )


class Picky(Reference):
    """Supports no pod `a` after `starts` starts, no `remove` and no new `devices`."""

    def __init__(self, starts: int = 1, wrong: str = "") -> None:
        super().__init__()
        self._left = starts
        self._wrong = wrong

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The reference's answer, or that it is not supported."""
        self._left -= operation == "start"
        pod = args.pod["metadata"]["uid"] if isinstance(args, messages.AdmitArgs) else ""
        if operation in ("remove", "devices") or (pod == "uid-a" and self._left <= 0):
            return messages.Unsupported(f"{operation} {pod}".strip())
        answer = super().call(operation, args)
        if isinstance(answer, messages.Admitted) and pod == self._wrong:
            app = answer.containers["app"]
            preferred = msgspec.structs.replace(app.affinity, preferred=not app.affinity.preferred)
            app = msgspec.structs.replace(app, affinity=preferred)
            return messages.Admitted({"app": app})
        return answer


@pytest.mark.parametrize("judged_as", ["kubelet", "documented", "either"])
def test_a_pod_that_is_not_supported_is_on_the_node_for_nobody(
    play: Play, make_target: MakeTarget, judged_as: str
) -> None:
    text = STATIC + START + admit("a") + admit("b") + "- start: {}\n  expect: anything\n"
    target = make_target(InProcess(Picky), oracle=True, level="placement", judged_as=judged_as)
    result, run = play(target, text + "- state: {}\n  expect: anything\n")
    assert result == RunResult("unsupported", "the implementation does not have admit uid-a")
    assert list(run.player.session.pods) == ["uid-b"]
    assert run.player.session.calls[-1].operation == "state"


def test_a_pod_whose_removal_is_not_supported_is_still_there(
    play: Play, make_target: MakeTarget
) -> None:
    text = STATIC + START + admit("b") + "- remove: b\n  expect: anything\n" + admit("c")
    result, run = play(make_target(InProcess(Picky), oracle=True), text)
    assert result.outcome == "unsupported"
    assert list(run.player.session.pods) == ["uid-b", "uid-c"]
    ended = "- remove: {pod: b, container: app}\n  expect: anything\n"
    result, run = play(
        make_target(InProcess(Picky), oracle=True), STATIC + START + admit("b") + ended
    )
    assert result.outcome == "unsupported"
    assert not run.player.session.ended


def test_devices_that_are_not_supported_are_not_there(play: Play, make_target: MakeTarget) -> None:
    fewer = "- devices: {v.example/nic: []}\n  expect: anything\n"
    text = DEVICES + STATIC + START + fewer + admit("b", NIC)
    result, run = play(make_target(InProcess(Picky), oracle=True), text)
    assert result.outcome == "unsupported"
    assert len(run.player.session.devices[0].ids) == 2
    assert list(run.player.session.pods) == ["uid-b"]


def test_a_scenario_ends_where_a_running_pod_is_not_supported_any_more(
    play: Play, make_target: MakeTarget
) -> None:
    again = "- start: {}\n  expect: anything\n" + admit("c")
    text = STATIC + START + admit("a") + admit("b") + again
    target = make_target(InProcess(lambda: Picky(starts=2)), oracle=True)
    result, run = play(target, text)
    assert result == RunResult("unsupported", "the implementation does not have admit uid-a")
    assert run.player.lost
    assert "uid-c" not in run.player.session.pods


def test_a_case_that_expects_something_ends_where_a_step_is_not_supported(
    play: Play, make_target: MakeTarget
) -> None:
    text = STATIC + START + admit("a") + admit("b") + "- state: {}\n  expect: {shared: 99}\n"
    result, run = play(make_target(InProcess(Picky), oracle=True), text)
    assert result.outcome == "unsupported"
    assert not run.player.session.pods


def test_a_failure_after_a_pod_that_is_not_supported_shows_when_it_is_replayed(
    play: Play, make_target: MakeTarget
) -> None:
    target = make_target(InProcess(lambda: Picky(wrong="uid-b")), oracle=True)
    result, _ = play(target, STATIC + START + admit("a") + admit("b"))
    assert result.outcome == "fail"
    assert result.message.startswith("uid-b/app was given affinity")
