"""Damaged trees are refused, and the first file that shows it is named."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from numaproof import fakesys
from numaproof.workdir.trees import FolderTree

if TYPE_CHECKING:
    from pathlib import Path

SYSTEM = "sys/devices/system"
NODE = f"{SYSTEM}/node/node1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    profile = fakesys.load_profile("epyc-7402p-nps2")
    fakesys.write_directory(fakesys.build_tree(profile), tmp_path / "t1")
    return tmp_path / "t1"


@pytest.mark.parametrize(
    ("place", "text", "message"),
    [
        (f"{SYSTEM}/cpu/online", "0-47x\n", "cpu/online: expected a list such as 0-3, got '0-47x'"),
        (f"{SYSTEM}/cpu/online", "", "cpu/online: expected a list such as 0-3, got ''"),
        (f"{SYSTEM}/cpu/online", "0-48\n", f"lists 0-48, but {SYSTEM}/cpu/cpu48 is missing"),
        (f"{SYSTEM}/node/online", "0-2\n", f"lists 0-2, but {SYSTEM}/node/node2 is missing"),
        (f"{NODE}/cpulist", "0-23\n", f"lists 0-23, but {NODE}/cpu0 is missing"),
        (f"{NODE}/meminfo", "", "node1/meminfo has no MemTotal"),
        (f"{NODE}/distance", "abc\n", "node1/distance: expected numbers, got 'abc'"),
        ("proc/meminfo", "x\n", "proc/meminfo has no MemTotal"),
        ("proc/cpuinfo", None, "proc/cpuinfo is missing"),
    ],
)
def test_damage_is_named(root: Path, place: str, text: str | None, message: str) -> None:
    if text is None:
        (root / place).unlink()
    else:
        (root / place).write_text(text, "ascii")
    with pytest.raises(fakesys.TreeError, match=re.escape(message)):
        fakesys.require_intact(FolderTree.root(root, "t1"))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("node/node1/cpu*", "CPU 12 is online, but no folder of sys/devices/system/node has it"),
        ("node/node1/meminfo", "node1/meminfo is missing"),
        ("cpu/cpu5/topology", "CPU 5 is online, but sys/devices/system/cpu/cpu5/topology is"),
    ],
)
def test_lost_files_are_named(root: Path, pattern: str, message: str) -> None:
    for place in (root / SYSTEM).glob(pattern):
        shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
    with pytest.raises(fakesys.TreeError, match=re.escape(message)):
        fakesys.require_intact(FolderTree.root(root, "t1"))


@pytest.mark.parametrize("name", ["epyc-7402p-nps2", "memoryless-node"])
def test_an_intact_tree_is_accepted(name: str) -> None:
    tree = fakesys.build_tree(fakesys.load_profile(name))
    fakesys.require_intact(fakesys.TreePath.root(tree))
