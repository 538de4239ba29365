"""Damaged machines and archives are errors that name the damaged file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from numaproof import fakesys

if TYPE_CHECKING:
    from conftest import Command

KUBELET = """\
kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v1beta1
cpuManagerPolicy: static
reservedSystemCPUs: "0,24"
"""


@pytest.mark.parametrize(
    "words",
    [("config", "check", "k.yaml", "--machine"), ("profile", "show"), ("profile", "capture")],
)
def test_a_damaged_tree_is_blamed(command: Command, words: tuple[str, ...]) -> None:
    tree = fakesys.build_tree(fakesys.load_profile("epyc-7402p-nps2"))
    fakesys.write_directory(tree, Path("t1"))
    Path("k.yaml").write_text(KUBELET, "utf-8")
    meminfo = "sys/devices/system/node/node1/meminfo"
    Path("t1", meminfo).write_text("", "ascii")
    ended = command(*words, "t1")
    assert (ended.code, ended.out) == (2, "")
    assert f"t1: {meminfo} has no MemTotal; copy the tree again" in ended.err


def test_an_archive_without_a_machine_is_not_read_as_one(command: Command) -> None:
    Path("a4").mkdir()
    Path("a4/collected.yaml").write_text("version: 1\nnode: w\n", "utf-8")
    ended = command("discover", "--node", "a4")
    assert ended.code == 2
    assert "read the" not in ended.err
    assert "a4 has no machine; add" in ended.err


def test_files_beside_drop_ins_are_mentioned(command: Command) -> None:
    Path("d").mkdir()
    for name in ("10.conf", "20.yaml"):
        Path("d", name).write_text(KUBELET, "utf-8")
    ended = command("config", "check", "d", "--machine", "epyc-7402p-nps2")
    assert (ended.code, "d: left out 20.yaml\n" in ended.err) == (0, True)
