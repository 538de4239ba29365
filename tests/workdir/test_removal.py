"""Any folder can be removed, and nothing outside it is."""

from __future__ import annotations

import os
import resource
import socket
from typing import TYPE_CHECKING

import pytest

from numaproof.workdir import removal
from numaproof.workdir.removal import remove_tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with a file that must stay."""
    made = tmp_path / "outside"
    made.mkdir()
    (made / "kept").write_text("kept")
    return made


def nest(folder: Path, depth: int) -> None:
    """Creates nested folders, deeper than a path may be long."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("a-name-of-some-length", dir_fd=here)
        below = os.open("a-name-of-some-length", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def test_a_folder_is_removed_with_every_kind_of_entry(folder: Path) -> None:
    (folder / "below" / "deeper").mkdir(parents=True)
    (folder / "below" / "file").write_text("x")
    os.mkfifo(folder / "below" / "pipe")
    (folder / os.fsdecode(b"no \xff UTF-8")).write_text("x")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))
    assert remove_tree(folder) == ""
    assert not folder.exists()


def test_links_are_removed_but_not_their_targets(folder: Path, outside: Path) -> None:
    (folder / "to-folder").symlink_to(outside)
    (folder / "to-file").symlink_to(outside / "kept")
    (folder / "loop").symlink_to(folder)
    (folder / "dangling").symlink_to("/nonexistent")
    os.link(outside / "kept", folder / "hard")
    assert remove_tree(folder) == ""
    assert (outside / "kept").read_text() == "kept"


def test_a_link_instead_of_the_folder_is_not_followed(folder: Path, outside: Path) -> None:
    folder.rmdir()
    folder.symlink_to(outside)
    assert remove_tree(folder) == ""
    assert not folder.is_symlink()
    assert (outside / "kept").exists()


def test_thousands_of_nested_folders_can_be_removed(folder: Path) -> None:
    nest(folder, 3000)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208 - numbers, not paths
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 32, hard))
    try:
        assert remove_tree(folder) == ""
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not folder.exists()


def test_many_files_in_a_folder_can_be_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "_AT_ONCE", 7)
    for number in range(50):
        (folder / str(number)).mkdir()
        (folder / str(number) / "below").mkdir()
        for other in range(10):
            (folder / str(number) / "below" / str(other)).touch()
    assert remove_tree(folder) == ""


def test_folders_without_permissions_can_be_removed(folder: Path) -> None:
    (folder / "closed" / "below").mkdir(parents=True)
    (folder / "closed" / "below" / "file").touch()
    (folder / "closed" / "below").chmod(0)
    (folder / "closed").chmod(0)
    folder.chmod(0)
    assert remove_tree(folder) == ""


def test_a_missing_folder_needs_no_removal(folder: Path) -> None:
    assert remove_tree(folder / "missing") == ""
    assert remove_tree(folder / "missing" / "below") == ""
    (folder / "file").touch()
    assert remove_tree(folder / "file" / "below") == "Not a directory"


def test_entries_that_cannot_be_removed_are_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "below").mkdir()
    (folder / "below" / "stubborn").touch()
    unlink = os.unlink

    def refuse(name: str, *, dir_fd: int) -> None:
        if name == "stubborn":
            raise PermissionError(1, "Operation not permitted")
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)
    assert remove_tree(folder) == "b'below': Operation not permitted"


def test_a_folder_that_keeps_filling_is_given_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "_MAX_ROUNDS", 3)
    (folder / "0").touch()
    unlink = os.unlink

    def unlink_and_refill(name: str, *, dir_fd: int) -> None:
        unlink(name, dir_fd=dir_fd)
        os.close(os.open(str(int(name) + 1), os.O_CREAT | os.O_WRONLY, dir_fd=dir_fd))

    monkeypatch.setattr(os, "unlink", unlink_and_refill)
    assert remove_tree(folder) == "another process keeps adding files to it"
