"""A tree read in memory is the tree that stands in a directory."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from numaproof import fakesys
from numaproof.fakesys import Directory, Symlink, Tree, TreePath

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


@pytest.fixture(params=["in memory", "in a directory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path | TreePath:
    """The same small tree, once as `TreePath` and once as the real thing."""
    tree = Tree("small", ENTRIES)
    if request.param == "in memory":
        return TreePath.root(tree)
    fakesys.write_directory(tree, tmp_path / "tree")
    return tmp_path / "tree"


def test_a_file_is_read_through_its_links(root: Path | TreePath) -> None:
    assert (root / "sys/cpu/cpu0/online").read_bytes() == b"1\n"
    assert (root / "sys/node/node0/cpu0/online").read_bytes() == b"1\n"
    assert (root / "sys" / "node/node0/again" / "online").read_bytes() == b"1\n"


def test_a_folder_lists_what_is_in_it(root: Path | TreePath) -> None:
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
def test_what_can_not_be_read_fails_as_a_file_system_says_it(
    root: Path | TreePath, path: str, code: int
) -> None:
    with pytest.raises(OSError, match=os.strerror(code)):
        (root / path).read_bytes()


def test_a_file_has_nothing_in_it_to_list(root: Path | TreePath) -> None:
    with pytest.raises(NotADirectoryError):
        list((root / "sys/cpu/cpu0/online").iterdir())
