"""What is wrong with a checkpoint file is named, and old formats are not called damaged."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.inputs.documents import DocumentError
from numaproof.reference.checkpoints import cpu, memory
from numaproof.simulation import checkpoint_damage, checkpoints, device_checkpoint, state_files

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = {
    "PodUID": "u1",
    "ContainerName": "main",
    "ResourceName": "v.e/nic",
    "DeviceIDs": {"0": ["a", "b"], "-1": ["z"]},
    "AllocResp": "AQL/",
}
OTHER = {**ENTRY, "PodUID": "u2", "ContainerName": "m", "DeviceIDs": None, "AllocResp": None}
DATA: dict[str, Any] = {
    "PodDeviceEntries": [ENTRY, OTHER],
    "RegisteredDevices": {"v.e/gpu": None, "v.e/nic": ["a", "b"]},
}


def devices(data: Any, checksum: int) -> bytes:
    return json.dumps({"Data": data, "Checksum": checksum}).encode()


# These checksums are from Go's spew and FNV, with the kubelet's structures.
WRITTEN = devices(DATA, 4009819389)
EMPTY = devices({"PodDeviceEntries": [], "RegisteredDevices": {}}, 2932075448)
NIL = devices({"PodDeviceEntries": None, "RegisteredDevices": None}, 1944006890)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty (0 bytes)"),
        (b" \n", "empty (2 bytes)"),
        (b"\0\0", "only zeros (2 bytes)"),
        (b'{"policyName":"static","defaultCpuSet":"0-23","entr', "truncated at byte 51"),
        (b'{"a":tr', "truncated at byte 7"),
        (b'{"a":', "truncated at byte 5"),
        (b'{"a":1}x', "not JSON at byte 7"),
        (b"[" * 100_000, "not JSON"),
        (b"{}", ""),
    ],
)
def test_damage_is_named(content: bytes, message: str) -> None:
    found = checkpoint_damage.syntax_damage(content)
    assert message in found if message else not found


CONTENT: dict[str, Any] = {"policyName": "static", "defaultCpuSet": "0-7", "entries": {}}


@pytest.mark.parametrize(
    ("content", "kind", "writer"),
    [
        (cpu.version_1().write(CONTENT), cpu.FILE_NAME, "1.17 or earlier"),
        (cpu.version_2("state.CPUManagerCheckpoint").write(CONTENT), cpu.FILE_NAME, "1.18 to 1.36"),
        (cpu.version_1().write(CONTENT).replace(b"0-7", b"0-6"), cpu.FILE_NAME, ""),
        (b'{"policyName":"none"}', cpu.FILE_NAME, ""),
        (
            memory.version_1("state.MemoryManagerCheckpoint", takes_no_checksum=False).write(
                {"policyName": "Static", "machineState": {}, "entries": {}}
            ),
            memory.FILE_NAME,
            "1.21 to 1.36",
        ),
    ],
)
def test_the_releases_that_wrote_a_file_are_known(content: bytes, kind: str, writer: str) -> None:
    assert checkpoint_damage.writer(content, kind) == writer


TWO_PARTS = cpu.version_4().write({**CONTENT, "podEntries": {}, "baselines": {}})


@pytest.mark.parametrize(
    ("content", "release"),
    [
        (TWO_PARTS.replace(b'"dataChecksum":', b'"dataChecksum":1'), "1.37"),
        (TWO_PARTS.replace(b'"checksum":', b'"checksum":1'), "1.35"),
    ],
)
def test_a_damaged_file_with_two_parts_is_not_of_another_release(
    content: bytes, release: str
) -> None:
    assert checkpoint_damage.writer(TWO_PARTS, cpu.FILE_NAME) == "1.37 or later"
    assert content != TWO_PARTS
    refusal = "checkpoint is corrupted"
    if release == "1.37":
        refusal = f"could not load v4 checkpoint: {refusal}"
    (found,) = checkpoint_damage.damage(content, cpu.FILE_NAME, release, refusal)
    part = "`data`" if release == "1.37" else "the part for earlier releases"
    assert found == f"checksum mismatch in {part}: the file is damaged, or was changed"


STATE = json.dumps({**CONTENT, "checksum": 1}).encode()
CONFIGURATION = b"kind: KubeletConfiguration\ncpuManagerPolicy: static\n"


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (CONFIGURATION, "k.yaml", "not a checkpoint; expected"),
        (CONFIGURATION, "memory.yaml", "not a checkpoint; expected"),
        (b"", "k.yaml", "not a checkpoint; expected"),
        (b"[1]", "list.json", "not a checkpoint; expected"),
        (b'{"kind": "Pod"}', "pod.json", "not a checkpoint; expected"),
        (
            gzip.compress(STATE, mtime=0),
            "cpu_manager_state",
            "it is compressed; copy the file unchanged",
        ),
        (b"\xef\xbb\xbf" + STATE, "cpu_manager_state", "it begins with a byte order mark"),
        (STATE.decode().encode("utf-16"), "cpu_manager_state", "UTF-16 text; copy the file"),
        (STATE.decode().encode("utf-16-be"), "cpu_manager_state", "UTF-16 text; copy the file"),
    ],
)
def test_a_file_that_is_not_a_checkpoint_is_refused(
    content: bytes, name: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(checkpoints.UnknownFileError, match=message):
        checkpoints.read(content, name)
    if name == "cpu_manager_state":
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DocumentError, match=message):
            state_files.read_files(tmp_path)


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (STATE[:-9], "worker3.json", "cpu_manager_state"),
        (WRITTEN[:-9], "worker3.json", "kubelet_internal_checkpoint"),
        (b'{"policyName":"Static","machineState":{"0', "x", "memory_manager_state"),
        (b"", "memory_manager_state.bak", "memory_manager_state"),
        (b"\0\0", "w3-cpu_manager_state", "cpu_manager_state"),
        (b"garbage", "cpu_manager_state", "cpu_manager_state"),
        (b'{"PolicyName":"none"}', "cpu_manager_state", "cpu_manager_state"),
        (b'{"PolicyName":"none","DefaultCPUSet":""}', "worker3.json", "cpu_manager_state"),
        (b"null", "memory_manager_state", "memory_manager_state"),
    ],
)
def test_a_damaged_checkpoint_is_recognized(content: bytes, name: str, kind: str) -> None:
    assert checkpoints.read(content, name).kind == kind


@pytest.mark.parametrize("content", [EMPTY, NIL])
def test_a_file_of_a_kubelet_is_sound(content: bytes) -> None:
    assert list(device_checkpoint.findings(content, "1.37")) == []
    assert device_checkpoint.summary(content) == "no container holds devices"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (WRITTEN, "z is held by pod u1, container main, but was not healthy or registered"),
        (WRITTEN.replace(b'"b"', b'"c"'), "checksum mismatch"),
        (WRITTEN.replace(b"AQL/", b"!"), "checksum mismatch"),
        (b'{"PodDeviceEntries": []}', "not the file of a kubelet"),
        (b'{"Data": {', "truncated at byte 10: its JSON isn't complete; the kubelet starts, but"),
    ],
)
def test_what_is_wrong_with_the_devices_is_named(content: bytes, message: str) -> None:
    assert any(message in one for one in device_checkpoint.findings(content, "1.37"))


def test_a_device_with_two_owners_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = {**OTHER, "DeviceIDs": {"0": ["a"]}}
    content = devices({**DATA, "PodDeviceEntries": [ENTRY, twice]}, 0)
    monkeypatch.setattr(device_checkpoint, "checksum", lambda _: 0)
    found = list(device_checkpoint.findings(content, "1.37"))
    assert "v.e/nic: a is held by pod u1, container main and by pod u2, container m" in found
    assert device_checkpoint.summary(content) == "devices are held by 2 pods: v.e/nic"


def test_the_format_of_1_19_is_read_by_1_30_only(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {**ENTRY, "DeviceIDs": ["a"]}
    content = devices({**DATA, "PodDeviceEntries": [entry]}, 7)
    monkeypatch.setattr(device_checkpoint, "checksum", lambda dump: 7 if "[a]" in dump else 0)
    assert list(device_checkpoint.findings(content, "1.30")) == []
    (finding,) = device_checkpoint.findings(content, "1.31")
    assert "written by Kubernetes 1.19 or earlier" in finding
    assert device_checkpoint.summary(b"{}") == ""
