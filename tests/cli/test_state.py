"""`numaproof state check`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu import checkpoint
from numaproof.reference.cpu.state import CPUState

Command = Callable[..., Any]

CONFIG = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
"""


def written(shared: str, exclusive: dict[str, dict[str, str]]) -> bytes:
    masks = {
        uid: {name: CPUSet.parse(cpus).mask for name, cpus in containers.items()}
        for uid, containers in exclusive.items()
    }
    return checkpoint.dump(CPUState(CPUSet.parse(shared).mask, masks), "static")


@pytest.fixture
def judge(command: Command) -> Command:
    def run(content: bytes, *more: str) -> Any:
        Path("state").write_bytes(content)
        Path("kubelet.yaml").write_text(CONFIG)
        return command("state", "check", "state", "--machine", "laptop-4c8t", *more)

    return run


def test_a_file_that_fits_the_machine_is_0(judge: Command) -> None:
    ended = judge(written("0-1,4-7", {"a": {"c": "2-3"}}), "--config", "kubelet.yaml")
    assert (ended.code, ended.out) == (0, "The kubelet starts with this file.\n")


def test_a_configuration_is_assumed_from_the_file(judge: Command) -> None:
    assert judge(written("0-7", {})).code == 0


def test_a_damaged_file_is_1_with_the_kubelets_words_and_its_own_path(judge: Command) -> None:
    ended = judge(written("0-7", {}).replace(b"0-7", b"0-6"), "--config", "kubelet.yaml")
    assert ended.code == 1
    assert "checkpoint is corrupted" in ended.out
    assert '"/var/lib/kubelet/cpu_manager_state"' in ended.out
    assert "drain the node" in ended.out


def test_cpus_that_the_machine_does_not_have_are_1(judge: Command) -> None:
    ended = judge(written("0-9", {}), "--json")
    assert ended.code == 1
    assert ended.json()["refusal"]["stage"] == "cpu"


def test_two_pods_on_the_same_cpus_are_found(judge: Command) -> None:
    ended = judge(written("0-1,4-7", {"a": {"c": "2-3"}, "b": {"c": "3"}}))
    assert ended.code == 1
    assert "pods a and b both hold CPUs 3" in ended.out


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no json", "give --config"),
        (b'{"policyName":"static","machineState":{}}', "give --config"),
        (b'{"policyName":"none","machineState":{}}', "not a cpu_manager_state file"),
    ],
)
def test_what_cannot_be_judged_is_2(judge: Command, content: bytes, told: str) -> None:
    ended = judge(content)
    assert ended.code == 2
    assert told in ended.err
