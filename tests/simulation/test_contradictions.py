"""Why a restarted kubelet refuses a pod that was on the node."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

from builders import machines
from builders.node_states import listed_pod, listing, write_state
from numaproof.simulation import devices, pods, state_files
from numaproof.simulation.admission import Question
from numaproof.simulation.node_state import NodeState, running_pods
from numaproof.simulation.what_ifs import NodeSimulation, simulate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NIC = "vendor.example/nic"
CONFIG = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0,24",
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
    "topologyManagerPolicy": "single-numa-node",
}
PACKETS = listed_pod("packets", {"cpu": "6", "memory": "4Gi", NIC: "1"})


def restarted(
    folder: Path, amounts: Mapping[str, str], plugins: str = f"{NIC}=3@1"
) -> NodeSimulation:
    """A node that recorded `PACKETS`, restarted with other amounts and other plugins."""
    machine = machines.discover_profile("epyc-7402p-nps2")
    asked = Question(machine, CONFIG, "1.35", devices=devices.read([f"{NIC}=3@1"], machine))
    write_state(folder / "state", asked, [PACKETS])
    pod = copy.deepcopy(PACKETS)
    for kind in "limits", "requests":
        pod["spec"]["containers"][0]["resources"][kind] |= amounts
    read = pods.read([("on-node.json", listing([pod]))], pods.PodOptions(running=True))
    state = NodeState(state_files.load_files(folder / "state"), running_pods(read), "state")
    (folder / "scratch").mkdir()
    now = devices.read([plugins], machine)
    changed = Question(machine, CONFIG, "1.35", devices=now, state=state)
    return simulate(changed, (), folder / "scratch")


@pytest.mark.parametrize(
    ("amounts", "said"),
    [
        ({"cpu": "8"}, "cpu_manager_state has CPUs 12-14,36-38 for container main, which requests"),
        (
            {NIC: "2"},
            f"device-plugins/kubelet_internal_checkpoint has {NIC} nic-0 for container main, which",
        ),
    ],
)
def test_the_resource_that_does_not_fit_the_pod_is_named(
    tmp_path: Path, amounts: dict[str, str], said: str
) -> None:
    (result,) = restarted(tmp_path, amounts).readmissions
    assert result.refusal is not None
    assert result.explanation is not None
    assert result.explanation.summary.startswith(said)
    assert "collect both again" in result.explanation.advice[0]


def test_resources_that_are_apart_are_named(tmp_path: Path) -> None:
    (result,) = restarted(tmp_path, {}, f"{NIC}=3@0").readmissions
    assert result.explanation is not None
    held = "CPUs 12-14,36-38 on node 1, 4 GiB of memory on node 1"
    assert f"apart: {held}, {NIC} nic-0 on node 0" in result.explanation.summary
    assert result.explanation.advice == ("drain the node before its kubelet restarts",)
