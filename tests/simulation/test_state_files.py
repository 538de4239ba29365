"""A node's checkpoint files: where they are, and what they record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from builders import machines
from builders.node_states import listed_pod, listing, sealed, write_state
from numaproof.simulation import device_checkpoint, devices, pods, state_files
from numaproof.simulation.admission import Question
from numaproof.simulation.upgrades import UpgradeQuestion, upgrade

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol import messages

NIC = "vendor.example/nic"
ENTRY = {
    "PodUID": "uid-a",
    "ContainerName": "main",
    "ResourceName": NIC,
    "DeviceIDs": {"0": ["x"], "1": ["x"], "-1": ["y"]},
    "AllocResp": None,
}
DATA = {"PodDeviceEntries": [ENTRY], "RegisteredDevices": {NIC: ["x", "z"]}}


@pytest.mark.parametrize(
    "place", ["device-plugins", "var/lib/kubelet/device-plugins", "."], ids=str
)
def test_checkpoints_are_found_wherever_they_are_copied(tmp_path: Path, place: str) -> None:
    folder = tmp_path / place
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kubelet_internal_checkpoint").write_bytes(b"{}")
    assert state_files.read_files(tmp_path) == {state_files.DEVICES: b"{}"}


def test_holders_of_any_file_are_listed() -> None:
    cpus = json.dumps({"entries": {"uid-b": {"main": "2"}}}).encode()
    inner = json.dumps({"entries": {"uid-c": {"main": []}}})
    memory = json.dumps({"data": inner, "entries": {"uid-old": {}}}).encode()
    files = {"cpu_manager_state": cpus, "memory_manager_state": memory}
    assert state_files.holders(files) == ("uid-b", "uid-c")
    assert state_files.holders({state_files.DEVICES: sealed(DATA)}) == ("uid-a",)
    assert state_files.holders({"cpu_manager_state": b"[]", state_files.DEVICES: b"{"}) == ()


def test_devices_are_read_with_their_numa_nodes() -> None:
    found = device_checkpoint.recorded_devices(sealed(DATA), "1.36")
    assert found is not None
    assert found.allocations == {"uid-a": {"main": {NIC: frozenset("xy")}}}
    assert found.healthy == {NIC: frozenset("xz")}
    near = found.nodes[NIC, "x"]
    assert near is not None
    assert list(near) == [0, 1]
    assert found.nodes[NIC, "y"] is None


def test_a_changed_device_checkpoint_is_not_read() -> None:
    changed = sealed(DATA).replace(b'"x"', b'"w"')
    assert device_checkpoint.recorded_devices(changed, "1.36") is None
    assert state_files.for_reference({state_files.DEVICES: changed}, "1.36") == {}


def test_an_upgrade_keeps_the_recorded_devices(tmp_path: Path) -> None:
    machine = machines.discover_profile("laptop-4c8t")
    config: messages.KubeletConfiguration = {
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0",
    }
    plugins = devices.read([f"{NIC}=4@0"], machine)
    first, second = (
        listed_pod(name, {"cpu": 1, "memory": "1Gi", NIC: 1}, age=age)
        for name, age in (("first", 5), ("second", 4))
    )
    # The second pod holds the second device; without the record, it would get the first one.
    write_state(
        tmp_path / "state", Question(machine, config, "1.35", devices=plugins), [first, second]
    )
    read = pods.read([("pods.json", listing([second]))], pods.PodOptions(running=True))
    files = state_files.load_files(tmp_path / "state")
    question = UpgradeQuestion(machine, config, "1.35", "1.36", plugins, files)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = upgrade(question, read.pods, scratch)
    assert found.unknown == ("uid-first",)
    (kept,) = found.staying.pods
    assert kept.effect == "stays"
    assert kept.before["main"].devices == {NIC: ("nic-1",)}
