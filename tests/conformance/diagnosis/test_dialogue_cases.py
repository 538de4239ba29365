"""The cases of the dialogue fit what a program claims, and the reference answers them as said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from numaproof.conformance.diagnosis.dialogue import claimed_cases
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import hello_args
from numaproof.conformance.execution.run import Run, reference_target
from numaproof.conformance.judging.baselines import DOCUMENTED
from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.releases import NEWEST, RELEASES
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.diagnosis.dialogue import DialogueCase

POLICIES = [
    messages.Policies(cpu=("static",)),
    messages.Policies(cpu=("none", "static"), memory=("None", "Static")),
    messages.Policies(memory=("Static",)),
    messages.Policies(cpu=("static",), topology=("restricted",), scope=("pod",)),
    messages.Policies(),
]


def cases(
    policies: messages.Policies | None = None, release: str = NEWEST
) -> dict[str, DialogueCase]:
    hello = Reference().hello(hello_args("tests"))
    if policies:
        hello = msgspec.structs.replace(hello, policies=policies)
    return {one.id: one for one in claimed_cases(Capabilities(hello, release))}


def answer(case: DialogueCase, folder: Path, number: int) -> messages.Answer | None:
    """The reference's answer to a step, from 0, after those before it."""
    run = Run(
        reference_target(NEWEST, DOCUMENTED), case, case.machine or MachineInfo(), None, folder
    )
    for step in case.steps[: number + 1]:
        run.player.step(step)
    return next(
        one.answer for one in reversed(run.player.session.calls) if one.operation != "state"
    )


@pytest.mark.parametrize("policies", POLICIES)
def test_the_first_node_starts_with_policies_that_are_claimed(
    policies: messages.Policies, tmp_path: Path
) -> None:
    node = cases(policies)["node"]
    assert isinstance(answer(node, tmp_path, 0), messages.Started)
    config = node.config
    assert config.get("cpuManagerPolicy", "none") in (policies.cpu or ("none",))
    assert config.get("memoryManagerPolicy", "None") in (policies.memory or ("None",))
    assert config.get("topologyManagerPolicy", "none") in (policies.topology or ("none",))
    assert config.get("topologyManagerScope", "container") in (policies.scope or ("container",))


@pytest.mark.parametrize("policies", POLICIES)
def test_the_start_that_must_be_refused_is(policies: messages.Policies, tmp_path: Path) -> None:
    pins = {"static", "Static"} & {*policies.cpu, *policies.memory}
    case = cases(policies)["refused"]
    assert len(case.steps) == bool(pins)
    for step in case.steps:
        refused = answer(case, tmp_path, 0)
        assert isinstance(refused, messages.StartRefused)
        assert step.about.endswith(f"at stage {refused.stage}")


@pytest.mark.parametrize("policies", POLICIES)
def test_a_pod_that_must_be_refused_is_asked_about_if_a_policy_pins(
    policies: messages.Policies,
) -> None:
    asked = [step.about for step in cases(policies)["node"].steps]
    pins = {"static", "Static"} & {*policies.cpu, *policies.memory}
    assert any("are left" in one for one in asked[:8]) is bool(pins)


@pytest.mark.parametrize("release", RELEASES)
def test_only_options_and_gates_of_the_release_are_asked_for(release: str) -> None:
    found = cases(release=release)
    assert ("option-strict-cpu-reservation" in found) is (release >= "1.32")
    assert ("topology-option-max-allowable-numa-nodes" in found) is (release >= "1.31")
    assert ("pod-level" in found) is (release >= "1.32")
    assert ("pod-level-managers" in found) is (release >= "1.36")
