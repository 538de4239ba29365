"""A tree in pyfakefs equals the tree in a directory."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from pyfakefs.fake_file import FakeDirectory
from pyfakefs.fake_filesystem import FakeFilesystem
from pyfakefs.fake_open import FakeFileOpen
from pyfakefs.fake_os import FakeOsModule

from numaproof import fakesys
from numaproof.fakesys import Directory, Symlink, Tree, TreePath
from numaproof.reference.cadvisor.discovery import DiscoveryError, discover
from numaproof.workdir.trees import FolderTree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ENTRIES: Mapping[str, fakesys.Entry] = {
    "sys/cpu/cpu0/online": b"1\n",
    "sys/cpu/cpu1": Directory(),
    "sys/node/node0/cpu0": Symlink("../../cpu/cpu0"),
    "sys/node/node0/again": Symlink("cpu0"),
    "sys/node/node0/nowhere": Symlink("../../cpu/cpu9"),
    "sys/node/node0/circle": Symlink("circle"),
}


@pytest.fixture(params=["in pyfakefs", "in a directory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path | TreePath:
    """The same small tree as `TreePath` and as real files."""
    tree = Tree("small", ENTRIES)
    if request.param == "in pyfakefs":
        return TreePath.root(tree)
    fakesys.write_directory(tree, tmp_path / "tree")
    return tmp_path / "tree"


def test_a_file_is_read_through_links(root: Path | TreePath) -> None:
    assert (root / "sys/cpu/cpu0/online").read_bytes() == b"1\n"
    assert (root / "sys/node/node0/cpu0/online").read_bytes() == b"1\n"
    assert (root / "sys" / "node/node0/again" / "online").read_bytes() == b"1\n"


def test_a_folder_lists_its_entries(root: Path | TreePath) -> None:
    def names(path: str) -> list[str]:
        return sorted(entry.name for entry in (root / path).iterdir())

    assert names("sys") == ["cpu", "node"]
    assert names("sys/cpu") == ["cpu0", "cpu1"]
    assert names("sys/cpu/cpu1") == []
    assert names("sys/node/node0/cpu0") == ["online"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("sys/cpu/cpu9", errno.ENOENT),
        ("sys/cpu/cpu0", errno.EISDIR),
        ("sys/cpu/cpu0/online/more", errno.ENOTDIR),
        ("sys/node/node0/nowhere", errno.ENOENT),
        ("sys/node/node0/circle", errno.ELOOP),
    ],
)
def test_unreadable_paths_fail_like_a_file_system(
    root: Path | TreePath, path: str, code: int
) -> None:
    with pytest.raises(OSError, match=os.strerror(code)):
        (root / path).read_bytes()


def test_a_file_cannot_be_listed(root: Path | TreePath) -> None:
    with pytest.raises(NotADirectoryError):
        list((root / "sys/cpu/cpu0/online").iterdir())


@pytest.mark.parametrize("name", fakesys.bundled_profiles())
def test_discovery_agrees_between_pyfakefs_and_a_directory(name: str, tmp_path: Path) -> None:
    tree = fakesys.build_tree(fakesys.load_profile(name), detail="discovery")
    fakesys.write_directory(tree, tmp_path / "machine")
    logs: tuple[list[str], list[str]] = [], []
    held = _discovery_outcome(TreePath.root(tree), logs[0])
    assert held == _discovery_outcome(FolderTree.root(tmp_path / "machine"), logs[1])
    assert logs[0] == logs[1]


def _discovery_outcome(root: TreePath | FolderTree, log: list[str]) -> object:
    try:
        return discover(root, log=log.append)
    except DiscoveryError as error:
        return str(error)


def test_files_are_created_when_accessed() -> None:
    tree = fakesys.build_tree(fakesys.load_profile("laptop-4c8t"))
    fs = FakeFilesystem()
    empty = fs.last_ino
    fakesys.write_fake(tree, fs)
    assert fs.last_ino == empty + 2
    cpu0 = fs.resolve("/sys/devices/system/cpu/cpu0")
    below = fs.last_ino
    assert isinstance(cpu0, FakeDirectory)
    assert fs.last_ino < empty + 30 < len(tree)
    topology = cpu0.get_entry("topology")
    assert isinstance(topology, FakeDirectory)
    assert topology.get_entry("core_id").contents == "0\n"
    assert fs.last_ino == below + 2
    with pytest.raises(KeyError):
        topology.get_entry("core_ids")
    assert len(topology.entries) > 10
    assert fs.last_ino == below + 1 + len(topology.entries)


def test_a_program_with_pyfakefs_reads_the_tree() -> None:
    tree = fakesys.build_tree(fakesys.load_profile("offline-node"))
    fs = FakeFilesystem()
    fakesys.write_fake(tree, fs)
    fake_os, fake_open = FakeOsModule(fs), FakeFileOpen(fs)
    found: dict[str, fakesys.Entry] = {}
    for folder, folders, files in fake_os.walk("/sys"):
        for name in (*folders, *files):
            path = f"{folder}/{name}"
            if fake_os.path.islink(path):
                found[path[1:]] = Symlink(fake_os.readlink(path))
            elif name in files:
                with fake_open(path, "rb") as file:
                    found[path[1:]] = file.read()
            elif not fake_os.listdir(path):
                found[path[1:]] = Directory()
    assert found == {path: entry for path, entry in tree.items() if path.startswith("sys/")}
