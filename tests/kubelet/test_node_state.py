"""What containers have is read from checkpoint files of every release."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from builders.devices import NIC
from builders.machines import regular
from builders.pods import container, guaranteed_resources, pod
from numaproof.kubelet import node_state, pods
from numaproof.kubelet.node_state import NodeState, hint
from numaproof.kubelet.pod_resources import PodResources, Resources
from numaproof.protocol import messages
from numaproof.protocol.messages import MemoryBlock
from numaproof.protocol.releases import RELEASES
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "memoryManagerPolicy": "Static",
    "topologyManagerPolicy": "best-effort",
    "kubeReserved": {"memory": "100Mi"},
    "evictionHard": {"memory.available": "100Mi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "200Mi"}}],
}
TWO = guaranteed_resources({"cpu": "2", "memory": "64Mi"})
HALF = {"requests": {"cpu": "500m"}}


@pytest.mark.parametrize("release", RELEASES)
def test_the_files_of_a_release_say_what_it_answers(release: str, tmp_path: Path) -> None:
    """The reference writes the same files as the kubelet, and answers from its memory."""
    reference = Reference()
    start = messages.StartArgs(CONFIG, str(tmp_path), release, machine=regular(2))
    assert isinstance(reference.call("start", start), messages.Started)
    state = NodeState(tmp_path)
    assert state.uids() == set()
    manifests = [
        pod("uid-a", [container("app", TWO), container("side", TWO)]),
        pod("uid-b", [container("app", HALF)]),
        pod("uid-c", [container("app", TWO)], [container("prepare", TWO)]),
    ]
    affinity = {}
    for one in manifests:
        answer = reference.call("admit", messages.AdmitArgs(one))
        assert isinstance(answer, messages.Admitted)
        found = answer.containers
        affinity[one["metadata"]["uid"]] = {name: has.affinity for name, has in found.items()}
    answer = reference.call("state", messages.NoArgs())
    assert isinstance(answer, messages.State)
    assert state.policy() == "static"
    assert state.shared() == answer.shared
    assert state.files() == answer.files
    assert state.uids() == {"uid-a", "uid-c"}
    for number, one in enumerate(manifests):
        uid = one["metadata"]["uid"]
        found = state.containers(
            pods.bind(one, number), affinity[uid], has_devices=False, quotas=None
        )
        assert found == answer.pods[uid]


def write(folder: Path, name: str, content: Any) -> None:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "content",
    [
        {"policyName": "static", "checksum": 1},
        {"data": '{"policyName":"static"}', "checksum": 1},
        {"Data": {"policyName": "static"}, "Checksum": 1},
        {"DATA": '{"POLICYNAME":"static"}', "checksum": 1},
        {"policyName": "static", "data": "", "dataChecksum": 0},
        {"policyName": "static", "data": "x", "dataChecksum": 0},
        {"policyName": "static", "data": 7},
    ],
)
def test_a_checkpoint_is_read_in_every_format(content: Any, tmp_path: Path) -> None:
    write(tmp_path, node_state.CPU, content)
    assert NodeState(tmp_path).policy() == "static"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"data": "[]"}', '{"data": "x"}', "\xff"])
def test_a_file_that_a_running_kubelet_ignores_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / node_state.MEMORY).write_text(text, encoding="latin-1")
    assert not NodeState(tmp_path).uids()


def test_a_folder_without_checkpoints_says_nothing(tmp_path: Path) -> None:
    state = NodeState(tmp_path)
    assert state.uids() == set()
    assert state.policy() == ""
    assert state.shared() == CPUSet()
    assert state.files() == {}
    assert not state.has_checkpoint(node_state.DEVICES)
    assert state.plugin_socket == tmp_path / "device-plugins/kubelet.sock"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (node_state.CPU, {"entries": {"uid-a": {"app": "1"}}}),
        (node_state.CPU, {"podEntries": {"uid-a": {"cpuSet": "1"}}, "entries": None}),
        (node_state.MEMORY, {"entries": {"uid-a": {"app": []}}}),
        (node_state.MEMORY, {"podEntries": {"uid-a": []}}),
        (node_state.DEVICES, {"Data": {"PodDeviceEntries": [{"PodUID": "uid-a"}]}, "Checksum": 1}),
    ],
)
def test_every_file_may_name_a_pod(name: str, content: Any, tmp_path: Path) -> None:
    write(tmp_path, name, content)
    assert NodeState(tmp_path).uids() == {"uid-a"}


def entry(uid: str, name: str, resource: str, **by_node: list[str]) -> dict[str, Any]:
    return {
        "PodUID": uid,
        "ContainerName": name,
        "ResourceName": resource,
        "DeviceIDs": by_node,
        "AllocResp": "",
    }


def test_a_container_has_devices_and_quotas_if_they_are_wanted(tmp_path: Path) -> None:
    entries = [
        entry("uid-a", "app", "vendor.example/nic", n0=["b"], n1=["a", "c"]),
        entry("uid-a", "app", "vendor.example/gpu", n0=["x"]),
        entry("uid-a", "side", "vendor.example/nic", n0=["d"]),
        entry("uid-b", "app", "vendor.example/nic", n0=["e"]),
    ]
    write(tmp_path, node_state.DEVICES, {"Data": {"PodDeviceEntries": entries}, "Checksum": 1})
    write(tmp_path, node_state.CPU, {"defaultCpuSet": "0-3", "entries": {"uid-a": {"side": "4"}}})
    state = NodeState(tmp_path)
    one = pod("uid-a", [container("app", {}), container("side", {}), container("none", {})])
    quotas = {"app": True, "side": False, "none": True}
    found = state.containers(one, {}, has_devices=True, quotas=quotas)
    assert {name: has.devices for name, has in found.items()} == {
        "app": {"vendor.example/nic": ("a", "b", "c"), "vendor.example/gpu": ("x",)},
        "side": {"vendor.example/nic": ("d",)},
        "none": {},
    }
    assert {name: has.quota for name, has in found.items()} == quotas
    assert [str(has.cpus) for has in found.values()] == ["0-3", "4", "0-3"]
    assert [str(has.exclusive) for has in found.values()] == ["", "4", ""]
    plain = state.containers(one, {}, has_devices=False, quotas=None)
    assert [(has.devices, has.quota) for has in plain.values()] == [(None, None)] * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"NUMANodeAffinity":null,"Preferred":false}', messages.Hint(None, preferred=False)),
        ('{"NUMANodeAffinity":5,"Preferred":true}', messages.Hint(NUMASet([0, 2]), preferred=True)),
        (
            f'{{"NUMANodeAffinity":{1 << 63},"Preferred":true}}',
            messages.Hint(NUMASet([63]), preferred=True),
        ),
    ],
)
def test_a_hint_is_read_as_it_is_logged(text: str, expected: messages.Hint) -> None:
    assert hint(text) == expected


WHOLE = {
    "resources": {
        "requests": {"cpu": "3", "memory": "1Gi"},
        "limits": {"cpu": "3", "memory": "1Gi"},
    },
    "initContainers": [
        {"name": "load"},
        {"name": "side", "restartPolicy": "Always", "resources": TWO},
    ],
    "containers": [
        {"name": "app", "resources": guaranteed_resources({"cpu": "1500m", "memory": "64Mi"})},
        {"name": "log"},
    ],
}
MEMORY_OF = {"numaAffinity": [0], "type": "memory", "size": 4096}


@pytest.mark.parametrize(
    ("release", "has_whole"), [((1, 36), True), ((1, 37), False), ((1, 37), True)]
)
def test_podresources_must_report_shares_until_1_37(
    release: tuple[int, int], *, has_whole: bool, tmp_path: Path
) -> None:
    names = ("load", "side", "app", "log")
    cpus = {
        "entries": {"uid-a": dict.fromkeys(names, "1-2")},
        "podEntries": {"uid-a": {"cpuSet": "1-3"}},
    }
    memory = {
        "entries": {"uid-a": {name: [MEMORY_OF] for name in names}},
        "podEntries": {"uid-a": {"memoryBlocks": [MEMORY_OF]}},
    }
    write(tmp_path, node_state.CPU, cpus)
    write(tmp_path, node_state.MEMORY, memory)
    devices = {"PodDeviceEntries": [entry("uid-a", "log", NIC, **{"0": ["a"], "-1": ["b"]})]}
    write(tmp_path, node_state.DEVICES, {"Data": devices, "Checksum": 1})
    bound = pods.bind({"metadata": {"name": "a", "uid": "uid-a"}, "spec": WHOLE}, 0)
    found = NodeState(tmp_path).pod_resources(bound, release, has_whole=has_whole)
    own, blocks = CPUSet.parse("1-2"), frozenset({MemoryBlock(NUMASet([0]), "memory", 4096)})
    nics = frozenset({(NIC, "a", 0), (NIC, "b", None)})
    if release == (1, 36):
        assert found == PodResources(
            {
                "side": Resources(own, blocks),
                "app": Resources(own, blocks),
                "log": Resources(own, blocks, nics),
            }
        )
    else:
        assert found == PodResources(
            {
                "side": Resources(own, blocks),
                "app": Resources(memory=blocks),
                "log": Resources(devices=nics),
            },
            Resources(CPUSet.parse("1-3"), blocks) if has_whole else Resources(),
        )


def test_allocated_resources_are_read_from_their_checkpoint(tmp_path: Path) -> None:
    state = NodeState(tmp_path)
    assert state.allocated("uid-a") == {}
    pods_info = {"uid-a": {"ContainerResources": {"app": TWO}}}
    content = {"data": json.dumps({"entries": pods_info}), "checksum": 1}
    (tmp_path / node_state.ALLOCATED).write_text(json.dumps(content))
    assert state.allocated("uid-a") == {"app": pods.amounts_of(TWO)}
    assert state.allocated("uid-b") == {}


def test_an_unusable_pod_folder_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "pods" / "uid-a"
    (folder / "volumes").mkdir(parents=True)
    with NodeState(tmp_path).unusable_pod_folder("uid-a"):
        assert folder.is_file()
    assert (folder / "volumes").is_dir()
    assert [one.name for one in tmp_path.iterdir()] == ["pods"]


def test_the_files_that_name_a_pod_are_known(tmp_path: Path) -> None:
    write(tmp_path, node_state.CPU, {"policyName": "static", "entries": {"uid-a": {"app": "1"}}})
    write(tmp_path, node_state.MEMORY, {"policyName": "Static", "podEntries": {"uid-a": []}})
    state = NodeState(tmp_path)
    assert state.files_naming("uid-a") == {node_state.CPU, node_state.MEMORY}
    assert state.files_naming("uid-b") == set()
    assert state.cpu_owners() == {"uid-a"}


def test_it_is_known_whether_somebody_has_devices_of_a_resource(tmp_path: Path) -> None:
    entries = [entry("uid-a", "app", "vendor.example/nic", n0=["b"])]
    write(tmp_path, node_state.DEVICES, {"Data": {"PodDeviceEntries": entries}, "Checksum": 1})
    state = NodeState(tmp_path)
    assert [state.holds(f"vendor.example/{one}") for one in ("nic", "gpu")] == [True, False]
    assert state.plugin_registry == tmp_path / "plugins_registry"
