"""A node's script prints all that discovery reads, in a shell with the usual programs."""

from __future__ import annotations

import base64
import gzip
import subprocess
from typing import TYPE_CHECKING

import pytest

from builders.clusters import STATE, node_files
from numaproof import fakesys
from numaproof.collection.node_script import (
    NodeOutput,
    OutputError,
    known_flags,
    parse,
    script,
)
from numaproof.reference.cadvisor.discovery import discover

if TYPE_CHECKING:
    from pathlib import Path


def run_script(folder: Path) -> NodeOutput:
    places = (str(folder / name) for name in ("sys", "proc", "kubelet"))
    return parse(
        subprocess.run(["sh", "-c", script(*places)], capture_output=True, check=True).stdout
    )


def pack(text: str) -> bytes:
    return base64.encodebytes(gzip.compress(text.encode(), mtime=0))


@pytest.mark.parametrize(
    "name",
    ["epyc-7402p-nps2", "memoryless-node", "offline-node", "vm-no-numa", "z14-drawers"],
)
def test_the_same_machine_is_discovered(name: str, tmp_path: Path) -> None:
    tree = fakesys.build_tree(fakesys.load_profile(name))
    fakesys.write_directory(tree, tmp_path / "node")
    found = run_script(tmp_path / "node").tree
    assert found is not None
    captured = fakesys.TreePath.root(fakesys.Tree("captured", found))
    assert discover(captured) == discover(fakesys.TreePath.root(tree))


def test_state_files_and_the_command_line_keep_every_byte(tmp_path: Path) -> None:
    found = run_script(node_files(tmp_path / "node"))
    assert found.state == {"cpu_manager_state": STATE}
    assert found.command_line[:3] == (
        "--config=/etc/kubelet.yaml",
        "--cpu-manager-policy",
        "static",
    )


def test_nothing_is_found_in_empty_folders(tmp_path: Path) -> None:
    assert run_script(tmp_path) == NodeOutput(None, {}, ())


def test_serial_numbers_and_changing_numbers_are_dropped() -> None:
    cpuinfo = "processor\t: 0\nSerial\t\t: 42\ncpu MHz : 3100\n\nHardware : board\n"
    s390 = "processor 0: version = FF,  identification = 0123AB,  machine = 8561\n"
    meminfo = "MemTotal: 8 kB\nMemFree: 4 kB\n"
    lines = [
        "sys/devices/system/cpu/cpu0:",
        "sys/devices/system/cpu/online:0",
        *(f"proc/cpuinfo:{line}" for line in (cpuinfo + s390).splitlines()),
        *(f"proc/meminfo:{line}" for line in meminfo.splitlines()),
        "sys/devices/system/cpu/unknown:secret",
        "etc/shadow:secret",
        "@end:",
    ]
    found = parse(pack("\n".join(lines))).tree
    assert found is not None
    assert found["proc/cpuinfo"] == b"processor\t: 0\n\nprocessor 0:\n"
    assert found["proc/meminfo"] == b"MemTotal: 8 kB\n"
    assert b"secret" not in b"".join(one for one in found.values() if isinstance(one, bytes))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (b"", "its image needs sh, grep"),
        (b"not base64!", "incomplete"),
        (pack("@end:")[:-9], "incomplete"),
        (pack("proc/meminfo:x"), "ends too early"),
        (pack("@state/cpu_manager_state:%%\n@end:"), "damaged"),
    ],
)
def test_damaged_output_is_an_error(output: bytes, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        parse(output)


def test_only_flags_of_kubelets_are_kept_and_values_only_where_they_matter() -> None:
    line = (
        "--reserved_cpus=0",
        "--kubeconfig",
        "/secret",
        "--token=secret",
        "--cpu-cfs-quota",
        "x",
    )
    assert known_flags((*line, "--config=/etc/kubelet.yaml")) == (
        (
            "--reserved-cpus=0",
            "--kubeconfig=",
            "--cpu-cfs-quota=true",
            "--config=/etc/kubelet.yaml",
        ),
        {"--token", "positional arguments"},
    )
