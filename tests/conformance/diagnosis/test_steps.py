"""The steps of the dialogue fit what a program claims, and the reference answers them as said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from numaproof.conformance.diagnosis import dialogue
from numaproof.conformance.execution.implementation import hello_args
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

POLICIES = [
    messages.Policies(cpu=("static",)),
    messages.Policies(cpu=("none", "static"), memory=("None", "Static")),
    messages.Policies(memory=("Static",)),
    messages.Policies(cpu=("static",), topology=("restricted",), scope=("pod",)),
    messages.Policies(),
]


def chosen(policies: messages.Policies) -> dialogue.Chosen:
    hello = Reference().hello(hello_args("tests"))
    return dialogue.Chosen.of(msgspec.structs.replace(hello, policies=policies))


def start(config: messages.KubeletConfiguration, state_dir: Path) -> messages.Answer:
    args = messages.StartArgs(config, str(state_dir), machine=dialogue.MACHINE)
    return Reference().call("start", args)


@pytest.mark.parametrize("policies", POLICIES)
def test_the_configuration_starts_and_its_policies_are_claimed(
    policies: messages.Policies, tmp_path: Path
) -> None:
    config = chosen(policies).config()
    assert isinstance(start(config, tmp_path), messages.Started)
    assert config["cpuManagerPolicy"] in (policies.cpu or ("none",))
    assert config.get("memoryManagerPolicy", "None") in (policies.memory or ("None",))
    assert config.get("topologyManagerPolicy", "none") in (policies.topology or ("none",))
    assert config.get("topologyManagerScope", "container") in (policies.scope or ("container",))


@pytest.mark.parametrize("policies", POLICIES)
def test_the_start_that_must_be_refused_is(policies: messages.Policies, tmp_path: Path) -> None:
    lines = dialogue.refused(chosen(policies))
    assert bool(lines) is ({"static", "Static"} & {*policies.cpu, *policies.memory} != set())
    for line in lines:
        assert line.step.start is not None
        config = {**chosen(policies).config(), **line.step.start.config}
        refused = start(config, tmp_path)
        assert isinstance(refused, messages.StartRefused)
        assert line.about.endswith(f"at stage {refused.stage}")


@pytest.mark.parametrize("policies", POLICIES)
def test_a_pod_that_must_be_refused_is_asked_about_if_a_policy_pins(
    policies: messages.Policies,
) -> None:
    asked = [line.about for line in dialogue.arrivals(chosen(policies))]
    pins = {"static", "Static"} & {*policies.cpu, *policies.memory}
    assert any("are left" in one for one in asked) is bool(pins)
