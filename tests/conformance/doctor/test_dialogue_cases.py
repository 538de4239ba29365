"""The cases of the dialogue match a program's claims, and the reference passes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from numaproof.conformance.doctor.dialogue import claimed_cases
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

    from numaproof.conformance.doctor.dialogue import DialogueCase

HELLO = Reference().hello(hello_args("tests"))


def cases(hello: messages.Hello = HELLO, release: str = NEWEST) -> dict[str, DialogueCase]:
    return {one.id: one for one in claimed_cases(Capabilities(hello, release))}


def answer(case: DialogueCase, folder: Path) -> messages.Answer | None:
    """Returns the reference's answer to the first step."""
    machine = case.machine or MachineInfo()
    run = Run(reference_target(NEWEST, DOCUMENTED), case, machine, None, folder / case.id)
    run.player.step(case.steps[0])
    calls = run.player.session.calls
    return next(one.answer for one in reversed(calls) if one.operation != "state")


@pytest.mark.parametrize(
    "policies",
    [
        messages.Policies(cpu=("static",)),
        messages.Policies(cpu=("none", "static"), memory=("None", "Static")),
        messages.Policies(memory=("Static",)),
        messages.Policies(cpu=("static",), topology=("restricted",), scope=("pod",)),
        messages.Policies(),
    ],
)
def test_the_first_nodes_only_use_claimed_policies(
    policies: messages.Policies, tmp_path: Path
) -> None:
    asked = cases(msgspec.structs.replace(HELLO, policies=policies))
    node, refused = asked["node"], asked["refused"]
    assert isinstance(answer(node, tmp_path), messages.Started)
    for key, claimed, off in (
        ("cpuManagerPolicy", policies.cpu, "none"),
        ("memoryManagerPolicy", policies.memory, "None"),
        ("topologyManagerPolicy", policies.topology, "none"),
        ("topologyManagerScope", policies.scope, "container"),
    ):
        assert node.config.get(key, off) in (claimed or (off,))
    pins = bool({"static", "Static"} & {*policies.cpu, *policies.memory})
    assert any("are left" in step.about for step in node.steps[:8]) is pins
    assert len(refused.steps) == pins
    for step in refused.steps:
        stage = answer(refused, tmp_path)
        assert isinstance(stage, messages.StartRefused)
        assert step.about.endswith(f"at stage {stage.stage}")


@pytest.mark.parametrize("release", RELEASES)
def test_only_the_releases_options_and_gates_are_used(release: str) -> None:
    found = cases(release=release)
    assert ("option-strict-cpu-reservation" in found) is (release >= "1.32")
    assert ("topology-option-max-allowable-numa-nodes" in found) is (release >= "1.31")
    assert ("pod-level" in found) is (release >= "1.32")
    assert ("pod-level-managers" in found) is (release >= "1.36")
