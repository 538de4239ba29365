"""The managers' files: `files.yaml` has kubelets' reactions and the files they write instead.

Texts, checksums and refusals come from kubelets. If they panic, the machine is changed.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from builders.checkout import SHARED
from builders.machines import of_memory
from builders.tables import Table, alike
from numaproof.reference.checkpoints import cpu, files, memory
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.deviations.releases import TABLE
from numaproof.reference.memory import policy

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.reference.deviations.releases import Release

FILES = Table(__file__, "files.yaml")

PODS = {"PodLevelResourceManagers": True}
FORMATS = {
    "1.35": TABLE["1.35"],
    "1.36": TABLE["1.36"],
    "1.36 pods": TABLE["1.36"].under(PODS),
    "1.37": TABLE["1.37"],
    "1.37 pods": TABLE["1.37"].under(PODS),
    "1.37 baselines": TABLE["1.37"].under({"InPlacePodVerticalScalingExclusiveCPUs": True}),
}
"""Releases and gates with different formats."""

STATIC = policy.make_static(
    of_memory(8 << 30, 8 << 30),
    {0: {"memory": 1124 << 20}},
    TABLE["1.35"].rule(policy.StaticMemoryPolicy),
)


@FILES
def test_a_file_is_restored_and_saved(row: dict[str, Any]) -> None:
    said: dict[str, Any] = {}
    for name, release in FORMATS.items():
        try:
            said[name] = _again(row, release)
        except (files.CheckpointError, policy.RestoreError) as error:
            said[name] = {"refused": str(error)}
    FILES.check(row, alike(said))


def _again(row: dict[str, Any], release: Release) -> str:
    content, name = row["file"].encode(), row["policy"]
    if row["manager"] == "cpu":
        containers = {one: tuple(one.split("/")) for one in row.get("containers", ())}
        state = cpu.restore(content, name, containers, release.cpu_files)
        written = cpu.dump(state, name, release.cpu_files)
    else:
        kept = memory.restore(content, name, release.memory_files)
        if name == "Static" and row.get("fits", True):
            STATIC.restore(kept)
        written = memory.dump(kept, name, release.memory_files)
    return "the same" if written == content else written.decode()


@pytest.mark.parametrize("release", ["1.30", "1.31", "1.32", "1.33", "1.34"])
def test_formats_before_1_36_equal_those_of_1_35(release: str) -> None:
    newer, older = TABLE["1.35"], TABLE[release]
    assert (older.cpu_files, older.memory_files) == (newer.cpu_files, newer.memory_files)


def _recorded_files(release: str) -> set[str]:
    found = set()
    with gzip.open(SHARED / "kubelet" / f"scenarios-{release}.jsonl.gz", "rt") as lines:
        for line in lines:
            for answer in json.loads(line)["expect"]:
                written = ((answer or {}).get("ok") or {}).get("files") or {}
                text = written.get(memory.FILE_NAME, "")
                if text.startswith('{"policyName":"Static","machineState":{"'):
                    found.add(text)
    return found


@pytest.mark.skipif(not (SHARED / "kubelet").is_dir(), reason="recordings of kubelets are missing")
@pytest.mark.parametrize("release", ["1.33", "1.34", "1.35", "1.36"])
def test_every_recorded_file_round_trips(release: str) -> None:
    texts = _recorded_files(release)
    formats = TABLE[release].memory_files
    assert texts
    for text in texts:
        state = memory.restore(text.encode(), "Static", formats)
        assert memory.dump(state, "Static", formats).decode() == text


def test_baselines_keep_the_first_cpus_until_removal() -> None:
    state = CPUState(0b111111, baselines={}).assign("u", "app", 0b10).share("u", "app", 0b100)
    assert state.baselines == {"u": {"app": 0b10}}
    assert state.assign("u", "log", 0b1000).release("u", "app").baselines == {"u": {"log": 0b1000}}
    assert state.release("u", "app").baselines == {}
    assert state.assign_pod("v", 0b10000).baselines == state.baselines


def test_a_failed_write_leaves_only_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "state"
    target.mkdir()
    with pytest.raises(IsADirectoryError):
        files.write(target, b"new")
    assert list(tmp_path.iterdir()) == [target]
