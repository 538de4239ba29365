"""What tools print about a bundled machine describes the machine that a kubelet discovers.

`lscpu` and `lstopo` read the machine's tree; `numactl`, which can't, is imitated.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import pytest

from numaproof import fakesys
from numaproof.formats.machines.reading import read
from numaproof.inputs.errors import DocumentError
from numaproof.protocol.sets import CPUSet
from numaproof.reference.cadvisor.discovery import discover

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.formats.machines.description import MachineText
    from numaproof.protocol.machine import MachineInfo, Node

UNDISCOVERED = {"vm-no-cpuinfo", "vm-no-meminfo"}
NAMES = [name for name in fakesys.bundled_profiles() if name not in UNDISCOVERED]


@cache
def discovered(name: str, *, by_siblings: bool = False) -> MachineInfo:
    tree = fakesys.build_tree(fakesys.load_profile(name))
    return discover(fakesys.TreePath.root(tree), by_siblings=by_siblings)


def described(content: str, name: str = "text") -> MachineText:
    found = read(content.encode(), name)
    assert found is not None
    return found


def by_node(machine: MachineInfo) -> dict[int, CPUSet]:
    return {node.node_id: cpus(node) for node in machine.topology or () if node.cores}


def cpus(node: Node) -> CPUSet:
    return CPUSet(cpu for core in node.cores or () for cpu in core.thread_ids or ())


def cores(machine: MachineInfo) -> set[tuple[int, ...]]:
    return {
        tuple(sorted(core.thread_ids or ()))
        for node in machine.topology or ()
        for core in node.cores or ()
    }


def sockets(machine: MachineInfo) -> set[CPUSet]:
    found: dict[int, list[int]] = {}
    for node in machine.topology or ():
        for core in node.cores or ():
            found.setdefault(core.socket_id, []).extend(core.thread_ids or ())
    return {CPUSet(members) for members in found.values()}


def uncore(machine: MachineInfo) -> set[CPUSet]:
    """The CPUs of each uncore cache."""
    found: dict[tuple[int, int], list[int]] = {}
    for node in machine.topology or ():
        for core in node.cores or ():
            for one in core.uncore_caches or ():
                found.setdefault((one.level, one.id), []).extend(core.thread_ids or ())
    return {CPUSet(members) for members in found.values()}


def numactl(machine: MachineInfo) -> str:
    nodes = sorted(machine.topology or (), key=lambda node: node.node_id)
    ids = [node.node_id for node in nodes]
    lines = [f"available: {len(nodes)} nodes ({','.join(map(str, ids))})"]
    for node in nodes:
        lines += [
            f"node {node.node_id} cpus:" + "".join(f" {cpu}" for cpu in cpus(node)),
            f"node {node.node_id} size: {node.memory >> 20} MB",
            f"node {node.node_id} free: 1 MB",
        ]
    if all(node.distances for node in nodes):
        lines += ["node distances:", "node " + "".join(f"{number:>4} " for number in ids)]
        lines += [
            f"{node.node_id:>3}: " + "".join(f"{one:>4} " for one in node.distances or ())
            for node in nodes
        ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", NAMES)
def test_numactl_describes_the_nodes(name: str) -> None:
    machine = discovered(name)
    if not any(node.memory for node in machine.topology or ()) or not by_node(machine):
        pytest.skip("has no NUMA nodes")
    found = described(numactl(machine)).machine
    assert by_node(found) == by_node(machine)
    told = {node.node_id: node for node in found.topology or ()}
    for node in machine.topology or ():
        assert told[node.node_id].memory >> 20 == node.memory >> 20
        if node.distances and len(machine.topology or ()) > 1:
            assert told[node.node_id].distances == node.distances


@pytest.mark.parametrize("name", NAMES)
def test_json_of_discover_describes_the_same_machine(name: str) -> None:
    machine = discovered(name)
    if not by_node(machine):
        pytest.skip("has no CPUs")
    found = described(msgspec.json.encode(machine).decode())
    assert (found.machine, found.missing) == (machine, ())


@pytest.fixture
def tree(name: str, tmp_path: Path) -> Path:
    fakesys.write_directory(fakesys.build_tree(fakesys.load_profile(name)), tmp_path / "tree")
    return tmp_path / "tree"


def run(*command: str) -> str:
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin"}
    )
    return done.stdout


def facts(name: str, machine: MachineInfo) -> tuple[object, ...]:
    caches = set() if name in WITHOUT_CACHE_IDS else uncore(machine)
    return by_node(machine), cores(machine), sockets(machine), caches


WITHOUT_CACHE_IDS = {"dgx-spark-gb10", "power7-8-nodes", "power8-s822lc", "power9-ac922"}
"""Machines whose caches have no ids: cAdvisor ignores such caches, but tools show them."""

ODD = {
    "core-i7-5775c-gaps": "lacks files of some CPUs, which tools make up",
    "vm-package-minus-1": "tools show package -1 as socket 0",
    "x86-fake-nodes": "tools read the lists of nodes, which differ from their links",
    "z14-drawers": "sockets of different books have the same id",
}
"""Machines that cAdvisor doesn't see as tools do."""

SEEN_BY_TOOLS = [name for name in NAMES if name not in ODD]


@pytest.mark.commands
@pytest.mark.skipif(not shutil.which("lscpu"), reason="needs lscpu")
@pytest.mark.parametrize("name", SEEN_BY_TOOLS)
def test_lscpu_describes_the_cores(name: str, tree: Path) -> None:
    machine = discovered(name, by_siblings=True)  # it prints cores, but not their ids
    if not by_node(machine):
        pytest.skip("has no CPUs")
    for options in (("-e",), ("-p",), ("-e", "-J")):
        found = described(run("lscpu", "-s", str(tree), *options)).machine
        assert facts(name, found) == facts(name, machine), options
    for options in ((), ("-J",)):
        try:
            found = described(run("lscpu", "-s", str(tree), *options)).machine
        except DocumentError as error:
            assert "the cores differ" in str(error) or "can't form cores" in str(error)  # noqa: PT017
        else:
            assert by_node(found) == by_node(machine)


@pytest.mark.commands
@pytest.mark.skipif(not shutil.which("lstopo"), reason="needs lstopo")
@pytest.mark.parametrize("name", [one for one in SEEN_BY_TOOLS if not one.startswith("opteron")])
def test_lstopo_describes_everything(name: str, tree: Path) -> None:
    machine = discovered(name)
    if not by_node(machine):
        pytest.skip("has no CPUs")
    has_nodes = any(node.distances for node in machine.topology or ())
    for options in ((), ("--export-xml-flags", "v1")):
        text = run("lstopo", "--input", str(tree), "--if", "fsroot", *options, "--of", "xml")
        found = described(text).machine
        assert facts(name, found) == facts(name, machine), options
        if not has_nodes:
            continue  # lstopo makes up a node
        told = {node.node_id: (node.memory, node.distances) for node in found.topology or ()}
        assert told == {
            node.node_id: (node.memory, node.distances) for node in machine.topology or ()
        }
