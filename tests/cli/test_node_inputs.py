"""What operators bring about a node: incomplete, misnamed and contradictory files are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.node_states import listed_pod, listing
from numaproof.conformance.cases import checkpoints

if TYPE_CHECKING:
    from conftest import Command

KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
"""
NODE = ("--machine", "laptop-4c8t", "--config", "kubelet.yaml")
STATE = ("--state", "state")
UPGRADE = ("upgrade", "--from", "1.33", "--to", "1.36", "--machine", "laptop-4c8t")


@pytest.fixture
def run(command: Command) -> Command:
    """Runs the command next to a configuration, a state, its pod and an arriving pod."""
    pod = listed_pod("old", {"cpu": 2, "memory": "1Gi"})
    Path("kubelet.yaml").write_text(KUBELET)
    Path("on-node.json").write_text(listing([pod]))
    Path("new.json").write_text(json.dumps(listed_pod("new", {"cpu": 1, "memory": "1Gi"})))
    Path("state").mkdir()
    fields = {"policyName": "static", "defaultCpuSet": "0-3,6-7"}
    text = checkpoints.text({**fields, "entries": {"uid-old": {"main": "4-5"}}})
    Path("state/cpu_manager_state").write_text(text)
    return command


def test_a_checkpoint_is_judged_by_its_name(run: Command) -> None:
    Path("state/cpu_manager_state").rename("state/memory_manager_state")
    for name in "state/memory_manager_state", "state":
        ended = run("state", "check", name, *NODE)
        assert ended.code == 1
        assert "The kubelet does not start (memory)" in ended.out
        assert (
            "- its content is that of cpu_manager_state: copied under the wrong name?" in ended.out
        )


def test_a_file_instead_of_the_state_directory_is_named(run: Command) -> None:
    ended = run(*UPGRADE, "--state", "state/cpu_manager_state")
    assert ended.code == 2
    assert "'state/cpu_manager_state' is a file; expected the directory that it is in" in ended.err
