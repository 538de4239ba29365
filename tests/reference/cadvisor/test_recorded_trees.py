"""Discovery of real machines agrees with recordings of the kubelet's cAdvisor."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest

from builders.checkout import SHARED
from numaproof.protocol import codec
from numaproof.reference.cadvisor.discovery import discover

MACHINES = SHARED / "machines"
RECORDED = MACHINES / "discovered-1.35.json.gz"

# Thousands of small files, deleted after each test.
MEMORY = Path("/dev/shm")  # noqa: S108 - a fresh folder is made in it

NEEDED = re.compile(
    "/(core_id|physical_package_id|meminfo|distance|nr_hugepages|cpuinfo|cpu/online"
    "|index[0-9]+/(id|size|level|type|shared_cpu_map))$"
)

pytestmark = pytest.mark.skipif(
    not RECORDED.is_file(), reason=f"needs the recorded machines of {MACHINES} (NUMAPROOF_SHARED)"
)


def _recordings() -> dict[str, dict[str, Any]]:
    if not RECORDED.is_file():
        return {}
    with gzip.open(RECORDED) as file:
        recordings: dict[str, dict[str, Any]] = json.load(file)
    return recordings


RECORDINGS = _recordings()


def _filter_member(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """Omits files that are never read, for speed, and refuses unsafe ones."""
    if member.isfile() and not NEEDED.search(member.name):
        return None
    return tarfile.data_filter(member, folder)


def test_every_tree_has_its_recording() -> None:
    archives = {path.name.removesuffix(".tar.xz") for path in (MACHINES / "trees").glob("*.tar.xz")}
    assert archives == set(RECORDINGS)
    assert len(archives) == 65


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_a_real_machine_is_discovered_as_recorded(name: str) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        with tarfile.open(MACHINES / "trees" / f"{name}.tar.xz") as archive:
            archive.extractall(folder, filter=_filter_member)  # noqa: S202 - the filter vets each member
        machine = json.loads(codec.encode(discover(Path(folder))))
    recorded = RECORDINGS[name]["discovered"]["ok"]
    # The recordings list nodes by id, cAdvisor by name.
    if machine["topology"]:
        machine["topology"].sort(key=lambda node: node["node_id"])
    assert machine == {field: recorded[field] for field in machine}
