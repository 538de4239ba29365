"""A report's machine is read from its best source, whether the report is packed or not."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from numaproof import fakesys
from numaproof.formats.machines import reports
from numaproof.formats.machines.reading import read
from numaproof.inputs.errors import DocumentError
from numaproof.reference.cadvisor.discovery import NO_CPU, discover

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.formats.machines.description import MachineText

NODE = "kind: Node\nmetadata: {name: NAME}\nstatus: {capacity: {cpu: 8, memory: 16Gi}}\n"
NUMACTL = "available: 1 nodes (0)\nnode 0 cpus: 0 1\nnode 0 size: 100 MB\n"


def read_report(path: Path) -> MachineText | None:
    return reports.read_report(
        str(path), lambda text, file, node: read(text, file, node=node), NO_CPU
    )


@pytest.fixture
def machine_tree() -> fakesys.Tree:
    return fakesys.build_tree(fakesys.load_profile("memoryless-node"))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def pack(folder: Path, suffix: str) -> Path:
    file = folder.with_name(f"{folder.name}{suffix}")
    subprocess.run(["tar", "-caf", file, folder.name], check=True, cwd=folder.parent)
    return file


@pytest.mark.commands
@pytest.mark.parametrize("suffix", ["", ".tar", ".tgz", ".tar.xz"])
def test_a_tree_in_a_sosreport_is_best(
    suffix: str, tmp_path: Path, machine_tree: fakesys.Tree
) -> None:
    report = tmp_path / "sos" / "sosreport-node7"
    fakesys.write_directory(machine_tree, report)
    write(report / "sos_commands/numa/numactl_--hardware", NUMACTL)
    (report / "evil").symlink_to("/etc/passwd")
    found = read_report(pack(report.parent, suffix) if suffix else report)
    assert found is not None
    assert found.machine == discover(fakesys.TreePath.root(machine_tree))
    assert found.notes[0].startswith("the machine is that of")


LSCPU = "Architecture: x86_64\nCPU(s): 2\nOn-line CPU(s) list: 0,1\nThread(s) per core: 2\n"
TABLE = "CPU NODE SOCKET CORE ONLINE\n0 0 0 0 yes\n1 0 0 0 yes\n"


@pytest.mark.parametrize("table", ["", TABLE])
def test_the_outputs_of_tools_complete_each_other(table: str, tmp_path: Path) -> None:
    write(tmp_path / "sos_commands/numa/numactl_--hardware", NUMACTL)
    write(tmp_path / "sos_commands/processor/lscpu", LSCPU)
    if table:
        write(tmp_path / "sos_commands/processor/lscpu_-ae", table)
    found = read_report(tmp_path)
    assert found is not None
    (node,) = found.machine.topology
    assert node.memory == 100 << 20
    assert [core.thread_ids for core in node.cores or ()] == [(0, 1)]
    assert not any("left out" in note for note in found.notes)


def test_without_a_tree_the_tool_that_says_most_is_best(tmp_path: Path) -> None:
    write(tmp_path / "sos_commands/numa/numactl_--hardware", NUMACTL)
    write(tmp_path / "sos_commands/processor/lscpu", "Architecture: x86_64\nCPU(s): 4\n")
    write(tmp_path / "sos_commands/processor/lscpu_-ae", "broken")
    write(tmp_path / "proc/cpuinfo", "processor : 0\n")
    write(tmp_path / "sys/devices/system/cpu/online", "0-1\n")
    found = read_report(tmp_path)
    assert found is not None
    assert (found.format, found.machine.num_cores) == ("numactl --hardware", 2)
    broken, different = found.notes[1:]
    assert broken == (
        "left out sos_commands/processor/lscpu_-ae: not the output of lscpu or numactl"
    )
    assert different == (
        "left out sos_commands/processor/lscpu: "
        "numactl --hardware and lscpu show different CPUs: 0-1 and 0-3"
    )


@pytest.mark.commands
def test_a_must_gather_has_archives_and_nodes(tmp_path: Path, machine_tree: fakesys.Tree) -> None:
    fakesys.write_directory(machine_tree, tmp_path / "tree")
    gathered = tmp_path / "must-gather"
    write(gathered / "x/cluster-scoped-resources/core/nodes/w1.yaml", NODE)
    assert read_report(gathered) is not None
    archive = pack(tmp_path / "tree", ".tgz")
    (gathered / "x/nodes/w1").mkdir(parents=True)
    archive.rename(gathered / "x/nodes/w1/sysinfo.tgz")
    found = read_report(gathered)
    assert found is not None
    assert found.machine == discover(fakesys.TreePath.root(machine_tree))
    write(gathered / "x/cluster-scoped-resources/core/nodes/w2.yaml", NODE)
    with pytest.raises(DocumentError, match="2 machines: w1, w2"):
        read_report(gathered)
    assert read_report(gathered / "x/nodes/w1") is not None


def test_a_report_without_a_machine_has_none(tmp_path: Path) -> None:
    assert read_report(tmp_path) is None
    write(tmp_path / "lscpu", "Architektur: x86_64\nCPU(s): 8\n")
    with pytest.raises(DocumentError, match="English"):
        read_report(tmp_path)


def test_reports_of_any_size_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "_MAX_FILES", 1)
    write(tmp_path / "a", "")
    write(tmp_path / "b", "")
    with pytest.raises(DocumentError, match="more than 1 file"):
        read_report(tmp_path)


@pytest.mark.commands
def test_archives_with_too_much_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "r/lscpu", "x" * 100)
    write(tmp_path / "r/notes", "x" * 100)
    archive = pack(tmp_path / "r", ".tar.gz")
    fakesys.unpack_some(archive, tmp_path / "out", lambda name: name.endswith("lscpu"))
    assert [one.name for one in (tmp_path / "out/r").iterdir()] == ["lscpu"]
    monkeypatch.setattr("numaproof.fakesys.archive.MAX_TOTAL", 99)
    with pytest.raises(fakesys.TreeError, match="more than 99 bytes"):
        fakesys.unpack_some(archive, tmp_path / "out", lambda _: True)
    monkeypatch.setattr("numaproof.fakesys.archive.MAX_REPORT_TOTAL", 99)
    with pytest.raises(fakesys.TreeError, match="larger than any report"):
        fakesys.unpack_some(archive, tmp_path / "out", lambda _: True)


def test_two_sosreports_are_not_mixed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name / "sos_commands/numa/numactl_--hardware", NUMACTL)
    with pytest.raises(DocumentError, match="2 sosreports: a, b"):
        read_report(tmp_path)


def test_the_node_supplies_memory_and_contradicts(tmp_path: Path) -> None:
    write(tmp_path / "nodes/w1.yaml", NODE.replace("NAME", "w1"))
    write(tmp_path / "nodes/w1/lscpu_-e", "CPU NODE SOCKET CORE\n0 0 0 0\n1 0 0 1\n")
    found = read_report(tmp_path)
    assert found is not None
    assert found.machine.memory_capacity == 16 << 30
    assert not [gap for gap in found.missing if gap.subject == "memory"]
    assert found.notes[-1] == ("contradiction: the source has 2 CPUs, but the Node's capacity is 8")


def test_a_damaged_tree_in_a_report_is_named(tmp_path: Path, machine_tree: fakesys.Tree) -> None:
    fakesys.write_directory(machine_tree, tmp_path / "w1")
    (tmp_path / "w1/sys/devices/system/cpu/online").write_text("0-x", "ascii")
    with pytest.raises(DocumentError, match=r"^[^:]*: w1: sys/devices/system/cpu/online: expected"):
        read_report(tmp_path)
