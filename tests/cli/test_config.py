"""`numaproof config check`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@pytest.fixture
def judge(command: Command) -> Command:
    def run(text: str, *more: str) -> Any:
        Path("kubelet.yaml").write_text(HEAD + text)
        return command("config", "check", "kubelet.yaml", "--machine", "laptop-4c8t", *more)

    return run


def test_a_sound_configuration_has_no_findings(judge: Command) -> None:
    ended = judge('cpuManagerPolicy: static\nreservedSystemCPUs: "0"\n')
    assert (ended.code, ended.out) == (0, "")


def test_every_error_is_told_with_its_line(judge: Command) -> None:
    ended = judge('cpuManagerPolicy: odd\nreservedSystemCPUs: "99"\n')
    assert ended.code == 1
    assert "kubelet.yaml:4: error: reservedSystemCPUs" in ended.out
    assert "kubelet.yaml:3: error: cpuManagerPolicy" in ended.out


def test_what_has_no_effect_is_a_warning(judge: Command) -> None:
    ended = judge(
        'reservedSystemCPUs: "0"\nkubeReserved: {cpu: 500m}\ntopologyManagerScope: pod\n', "--json"
    )
    assert ended.code == 0
    assert [one["field"] for one in ended.json()] == ["kubeReserved", "topologyManagerScope"]


def test_reserved_memory_without_the_static_policy_is_a_warning(judge: Command) -> None:
    ended = judge("reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n")
    assert "kubelet.yaml:3: warning: reservedMemory: has no effect" in ended.out


def test_what_is_not_simulated_is_2(judge: Command) -> None:
    assert judge("featureGates: {PodLevelResourceManagers: true}\n").code == 2
