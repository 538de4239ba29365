"""The reference beside an implementation: what it is led to do, and what it disagrees about."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run, RunResult, Target
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Mapping

Play = Callable[..., tuple[RunResult, Run]]
MakeTarget = Callable[..., Target]

DEVICES = "devices: {v.example/nic: [[0], [0], [0], null]}\n"
WEB = "{pod: %s, containers: {app: {limits: {cpu: 1, memory: 64Mi, v.example/nic: %d}}}}"
CASE = (
    DEVICES
    + "steps:\n- start: {}\n"
    + f"- admit: {WEB % ('a', 2)}\n- admit: {WEB % ('b', 1)}\n- remove: a\n"
    + f"- admit: {WEB % ('c', 3)}\n"
)


class Last(Reference):
    """Takes the last devices wherever any would do."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The reference's answer, led to the other end of the list."""
        if isinstance(args, messages.AdmitArgs):
            self.favour({"app": {"v.example/nic": ("d1", "d2", "d3")}})
        return super().call(operation, args)


def test_an_implementation_may_take_any_devices_that_would_do(
    play: Play, make_target: MakeTarget
) -> None:
    result, run = play(make_target(InProcess(Last), oracle=True), CASE)
    assert result == RunResult("pass")
    answers = [call.answer for call in run.player.session.calls]
    first = next(one for one in answers if isinstance(one, messages.Admitted))
    assert first.containers["app"].devices == {"v.example/nic": ("d1", "d2")}


def test_devices_that_others_hold_would_not_do(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    def stolen(answer: messages.Answer) -> messages.Answer:
        if not isinstance(answer, messages.Admitted):
            return answer
        first = {"v.example/nic": ("d0",)}
        app = msgspec.structs.replace(answer.containers["app"], devices=first)
        return messages.Admitted({"app": app})

    one = WEB % ("a", 1)
    other = WEB % ("b", 1)
    text = DEVICES + f"steps:\n- start: {{}}\n- admit: {one}\n- admit: {other}\n"
    target = make_target(InProcess(lambda: changed(admit=stolen)), oracle=True)
    result, _ = play(target, text)
    assert result.outcome == "fail"
    assert "was given devices d0 of v.example/nic" in result.message


def test_of_several_resources_any_may_be_the_one_that_is_missing(
    play: Play, make_target: MakeTarget, changed: Callable[..., Any]
) -> None:
    def named(resource: str) -> Callable[[messages.Answer], messages.Answer]:
        def change(answer: messages.Answer) -> messages.Answer:
            if not isinstance(answer, messages.AdmissionRefused):
                return answer
            message = answer.message.replace("v.example/gpu", resource)
            return msgspec.structs.replace(answer, message=message)

        return change

    def outcome(limits: Mapping[str, int]) -> str:
        target = make_target(InProcess(lambda: changed(admit=named("v.example/nic"))), oracle=True)
        asked = ", ".join(f"{name}: {count}" for name, count in limits.items())
        text = (
            "devices: {v.example/nic: [[0]], v.example/gpu: [[0]]}\nsteps:\n- start: {}\n"
            f"- admit: {{pod: a, containers: {{app: {{limits: {{{asked}}}}}}}}}\n"
            "  expect: {refused: UnexpectedAdmissionError}\n"
        )
        return play(target, text)[0].outcome

    assert outcome({"v.example/nic": 2, "v.example/gpu": 2}) == "pass"
    assert outcome({"v.example/gpu": 2}) == "fail"
