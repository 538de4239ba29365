"""The highest level at which nothing differs is known at any level, at no extra call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run, RunResult, Target
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

Play = Callable[[Target, str], tuple[RunResult, Run]]
MakeTarget = Callable[..., Target]

STEPS = """
config: {cpuManagerPolicy: static, reservedSystemCPUs: "0"}
steps:
- admit: {pod: a, containers: {app: {limits: {cpu: 2, memory: 1Gi}}}}
  expect: anything
"""


def moved(answer: messages.Answer) -> messages.Answer:
    """Other CPUs than the reference's."""
    assert isinstance(answer, messages.Admitted)
    held = {
        name: msgspec.structs.replace(one, exclusive=CPUSet([2, 5]), cpus=CPUSet([2, 5]))
        for name, one in answer.containers.items()
    }
    return messages.Admitted(held)


def reworded(_: messages.Answer) -> messages.Answer:
    return messages.AdmissionRefused("SMTAlignmentError", "no")


@pytest.mark.parametrize("level", ["invariants", "admission"])
def test_an_implementation_like_the_reference_agrees_at_every_level(
    level: str, play: Play, make_target: MakeTarget
) -> None:
    target = make_target(InProcess(Reference), level=level, oracle=True)
    assert play(target, STEPS)[1].player.session.agreed == "kubelet"


@pytest.mark.parametrize(("change", "agreed"), [(moved, "admission"), (reworded, "invariants")])
def test_a_difference_lowers_it_as_far_as_it_shows(
    change: Any, agreed: str, play: Play, make_target: MakeTarget, changed: Any
) -> None:
    operations = ("start", "admit")
    target = make_target(
        InProcess(lambda: changed(admit=change)),
        level="invariants",
        oracle=True,
        operations=operations,
    )
    assert play(target, STEPS)[1].player.session.agreed == agreed
