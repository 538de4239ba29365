"""A builder of small ``/sys`` and ``/proc`` trees, which says only what a test is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.reference.cadvisor.discovery import discover
from numaproof.reference.deviations.releases import TABLE

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.machine import Core, MachineInfo, Node

CPUS = "sys/devices/system/cpu"
NODES = "sys/devices/system/node"


class MachineTree:
    """A tree under `root`; it begins with empty ``cpuinfo`` and 1 MiB of memory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/cpuinfo", "")
        self.write("proc/meminfo", "MemTotal:        1024 kB\n")

    def write(self, path: str, content: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    def cpu(self, number: int, core: int | str = 0, package: int | str = 0) -> None:
        self.write(f"{CPUS}/cpu{number}/topology/core_id", f"{core}\n")
        self.write(f"{CPUS}/cpu{number}/topology/physical_package_id", f"{package}\n")

    def cache(self, cpu: int, level: int, sharers: str, **attributes: str) -> None:
        """A cache with index `level`; `sharers` is its CPU map."""
        files = {"id": "0", "size": "32K", "level": str(level), "type": "Unified"}
        files |= {"shared_cpu_map": sharers} | attributes
        for name, text in files.items():
            self.write(f"{CPUS}/cpu{cpu}/cache/index{level}/{name}", f"{text}\n")

    def node(self, number: int, *cpus: int) -> None:
        folder = self.root / f"{NODES}/node{number}"
        folder.mkdir(parents=True)
        for cpu in cpus:
            (folder / f"cpu{cpu}").symlink_to(f"../../cpu/cpu{cpu}")

    def discover(self, release: str = "1.35") -> MachineInfo:
        """The machine; anything logged about its topology fails the test."""
        logged: list[str] = []
        machine = discover(self.root, TABLE[release].no_cpu, logged.append)
        assert logged == []
        return machine

    def complaint(self, release: str = "1.35") -> str:
        """What is logged about a topology that costs the machine its CPUs."""
        logged: list[str] = []
        machine = discover(self.root, TABLE[release].no_cpu, logged.append)
        assert (machine.num_cores, machine.topology) == (0, None)
        (message,) = logged
        return message

    def nodes(self) -> tuple[Node, ...]:
        topology = self.discover().topology
        assert topology is not None
        return topology

    def cores(self) -> list[Core]:
        return [core for node in self.nodes() for core in node.cores or ()]


@pytest.fixture
def tree(tmp_path: Path) -> MachineTree:
    return MachineTree(tmp_path)
