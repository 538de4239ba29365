"""Pods that have CPUs and memory as a whole (Kubernetes 1.36, gate PodLevelResourceManagers)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from builders.pods import Sidecar, guaranteed, numbered
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.checkpoints import memory as memory_checkpoint
from numaproof.reference.checkpoints.files import CheckpointError
from numaproof.reference.deviations import releases

if TYPE_CHECKING:
    from tests.reference.conftest import Player

GATED = {"PodLevelResourceManagers": True}
BUDGET = releases.release("1.36").under(GATED)
CONFIG: dict[str, Any] = {
    "release": "1.36",
    "featureGates": GATED,
    "topologyManagerPolicy": "best-effort",
    "topologyManagerScope": "pod",
}
MEMORY = {
    "memoryManagerPolicy": "Static",
    "kubeReserved": {"cpu": "1", "memory": "28Mi"},
    "evictionHard": {"memory.available": "100Mi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "128Mi"}}],
}


def of(cpu: str, memory: str = "64Mi", **more: str) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory, **more}
    return guaranteed(amounts)


def pod(
    own: dict[str, Any], *apps: dict[str, Any], init: tuple[dict[str, Any], ...] = ()
) -> dict[str, Any]:
    """A pod with resources of its own."""
    return numbered("u", apps, init, resources=own)


def refusal(node: Player, manifest: dict[str, Any]) -> tuple[str, str]:
    refused = node.ask("admit", pod=manifest)["refused"]
    return refused["reason"], refused["message"]


def entries(node: Player, file: str = "cpu_manager_state") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(node.ask("state")["ok"]["files"][file])
    return found


@pytest.mark.parametrize(
    ("own", "apps", "init", "why"),
    [
        (of("2", "1Gi"), (of("2"), {}), (), "cpu requests equals pod budget, leaving no cpus"),
        (
            of("2", "64Mi"),
            (of("1"), {}),
            (),
            "memory requests equals pod budget, leaving no memory",
        ),
        (of("2", "1Gi"), (of("1"),), (Sidecar(of("2")), {}), "but no cpus available"),
        (
            of("3", "64Mi"),
            (of("1"),),
            (Sidecar(of("2")), {}),
            "but no memory available",
        ),
    ],
)
def test_a_pod_that_leaves_nothing_to_share_is_refused(
    node: Player,
    own: dict[str, Any],
    apps: tuple[dict[str, Any], ...],
    init: tuple[dict[str, Any], ...],
    why: str,
) -> None:
    node.start(**CONFIG, **MEMORY)
    manifest = pod(own, *apps, init=init)
    reason, message = refusal(node, manifest)
    assert reason == "EmptyPodSharedPoolError"
    assert why in message
    kind = "memory" if "memory" in why else "cpu"
    assert node.ask("hints", pod=manifest, container=None)["ok"][kind] == {kind: []}


@pytest.mark.parametrize("scope", ["pod", "container"])
def test_a_refused_affinity_says_whose_it_was(node: Player, scope: str) -> None:
    node.start(
        **{**CONFIG, "topologyManagerPolicy": "single-numa-node", "topologyManagerScope": scope},
    )
    reason, message = refusal(node, pod(of("9"), of("9")))
    assert reason == "TopologyAffinityError"
    asked = "under pod-scope" if scope == "pod" else "with a container-level"
    assert message == (
        f"Pod Scope pod with pod-level resources failed admission {asked} topology manager"
    )


@pytest.mark.parametrize(
    ("who", "cpus", "assignments"), [("node", "2,6", 2), ("documented", "1,5", 1)]
)
def test_a_pod_keeps_what_it_has_over_a_restart_only_as_documented(
    request: pytest.FixtureRequest, who: str, cpus: str, assignments: int
) -> None:
    player: Player = request.getfixturevalue(who)
    manifest = pod(of("2", "256Mi"), of("2", "256Mi"))
    player.start(**CONFIG, **MEMORY)
    assert player.admit(manifest) == {"app0": "1,5"}
    player.start(pods=[manifest], **CONFIG, **MEMORY)
    assert player.admit(manifest) == {"app0": cpus}
    nodes = entries(player, "memory_manager_state")["machineState"]
    assert nodes["0"]["numberOfAssignments"] == assignments


# Files

CPU_FILE = (
    b'{"policyName":"static","defaultCpuSet":"0,3,8-11",'
    b'"entries":{"uid-a":{"app":"1","log":"2"}},'
    b'"podEntries":{"uid-a":{"cpuSet":"1-2"}},"checksum":1396850731}'
)


def read(content: bytes, release: releases.Release = BUDGET) -> dict[str, int]:
    return dict(cpu_checkpoint.restore(content, "static", {}, release.cpu_files).pods)


def test_a_cpu_file_says_what_pods_have_as_a_whole() -> None:
    assert read(CPU_FILE) == {"uid-a": 0b110}
    state = cpu_checkpoint.restore(CPU_FILE, "static", {}, BUDGET.cpu_files)
    assert cpu_checkpoint.dump(state, "static", BUDGET.cpu_files) == CPU_FILE


def test_without_the_gate_such_a_file_is_damaged() -> None:
    with pytest.raises(CheckpointError, match=r"struct field CPUManagerCheckpointV1\.entries"):
        read(CPU_FILE, releases.release("1.36"))


def test_a_file_of_the_earlier_format_keeps_what_its_pods_have() -> None:
    assert read(CPU_FILE.replace(b'"checksum":1396850731', b'"checksum":0')) == {"uid-a": 0b110}


@pytest.mark.parametrize("entry", [b'{"cpuSet":"x"}', b'{"cpuSet":1}', b"1"])
def test_a_pod_entry_that_is_no_set_of_cpus_counts_for_nothing(entry: bytes) -> None:
    bad = CPU_FILE.replace(b'{"cpuSet":"1-2"}', entry)
    with pytest.raises(CheckpointError):
        read(bad)
    assert read(bad.replace(b"1396850731", b"0")) == {}


def test_a_memory_file_without_its_checksum_is_read_as_the_earlier_format(node: Player) -> None:
    node.start(**CONFIG, **MEMORY)
    node.admit(pod(of("2", "256Mi"), of("1"), {}))
    text = json.dumps(entries(node, "memory_manager_state") | {"checksum": 0})
    state = memory_checkpoint.restore(text.encode(), "Static", BUDGET.memory_files)
    assert state.pods["u"][0].size == 256 << 20
    strict = releases.release("1.35").memory_files
    with pytest.raises(CheckpointError, match="corrupted"):
        memory_checkpoint.restore(text.encode(), "Static", strict)


def test_a_memory_file_whose_pods_cannot_be_read_is_told_by_the_earlier_format() -> None:
    text = b'{"policyName":"Static","machineState":{},"podEntries":1,"checksum":0}'
    assert memory_checkpoint.restore(text, "Static", BUDGET.memory_files).pods == {}
    with pytest.raises(CheckpointError, match=r"MemoryManagerCheckpointV1\.policyName"):
        memory_checkpoint.restore(b'{"policyName":1}', "Static", BUDGET.memory_files)
