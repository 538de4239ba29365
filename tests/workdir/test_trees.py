"""Reading a tree stays within it, never hangs and doesn't exhaust memory."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from numaproof import fakesys
from numaproof.protocol import messages
from numaproof.reference.cadvisor.discovery import discover
from numaproof.reference.implementation import Reference
from numaproof.workdir import trees
from numaproof.workdir.trees import FolderTree, UnfitFileError

if TYPE_CHECKING:
    from collections.abc import Callable

CPUINFO = "proc/cpuinfo"


@pytest.fixture(scope="module")
def profile() -> fakesys.Profile:
    return fakesys.load_profile("laptop-4c8t")


@pytest.fixture
def tree(tmp_path: Path, profile: fakesys.Profile) -> Path:
    made = tmp_path / "tree"
    fakesys.write_directory(fakesys.build_tree(profile), made)
    return made


def test_a_tree_reads_like_pathlib(tree: Path) -> None:
    assert discover(FolderTree.root(tree)) == discover(tree)


def test_the_host_is_a_tree_like_any_other() -> None:
    root = FolderTree.root(Path("/"))
    assert str(root / "proc") == "/proc"
    assert (root / "proc/self/status").read_bytes().startswith(b"Name:")


def test_links_are_followed_within_the_tree(tree: Path) -> None:
    (tree / CPUINFO).rename(tree / "elsewhere")
    (tree / CPUINFO).symlink_to("../elsewhere")
    root = FolderTree.root(tree)
    assert (root / CPUINFO).read_bytes() == (tree / "elsewhere").read_bytes()
    linked = tree.with_name("linked")
    linked.symlink_to(tree)
    assert (FolderTree.root(linked) / CPUINFO).read_bytes()


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 << 30)


SPOILT: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "a pipe": (os.mkfifo, errno.ENXIO, "not a file"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), errno.EXDEV, "outside the"),
    "a link out": (lambda path: path.symlink_to("/etc/passwd"), errno.EXDEV, "outside the tree"),
    "a file without end": (sparse, errno.EFBIG, "larger than 67,108,864 bytes"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_unreadable_entries_fail_immediately(tree: Path, what: str) -> None:
    spoil, code, words = SPOILT[what]
    (tree / CPUINFO).unlink()
    spoil(tree / CPUINFO)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UnfitFileError, match=words) as caught:
        (FolderTree.root(tree) / CPUINFO).read_bytes()
    assert caught.value.errno == code
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10
    with pytest.raises(fakesys.TreeError, match=f"{CPUINFO}: .*{words}"):
        fakesys.capture(FolderTree.root(tree), "spoilt")


def test_the_reference_refuses_a_pipe_instead_of_hanging(tree: Path) -> None:
    (tree / CPUINFO).unlink()
    os.mkfifo(tree / CPUINFO)
    answer = Reference().call("discover", messages.DiscoverArgs(str(tree)))
    assert isinstance(answer, messages.StartRefused)
    assert answer.message == "open /proc/cpuinfo: no such device or address"


def test_a_folder_outside_is_not_listed(tree: Path) -> None:
    (tree / "sys/out").symlink_to("/etc")
    with pytest.raises(UnfitFileError, match="leads outside the tree"):
        list((FolderTree.root(tree) / "sys/out").iterdir())


def test_folders_and_missing_files_have_the_usual_errors(tree: Path) -> None:
    root = FolderTree.root(tree)
    with pytest.raises(IsADirectoryError):
        (root / "proc").read_bytes()
    with pytest.raises(FileNotFoundError):
        (root / "nothing").read_bytes()
    with pytest.raises(NotADirectoryError):
        list((root / CPUINFO).iterdir())


def test_a_folder_with_too_many_entries_is_not_listed(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "MAX_NAMES", 1)
    with pytest.raises(UnfitFileError, match="more than 1 entries"):
        list((FolderTree.root(tree) / "sys/devices/system/cpu").iterdir())
    with pytest.raises(fakesys.TreeError, match="sys/devices/system/cpu: has more than"):
        fakesys.capture(FolderTree.root(tree), "full")


def test_the_total_size_of_files_is_limited(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = FolderTree.root(tree)
    size = len((root / CPUINFO).read_bytes())
    monkeypatch.setattr(root._tree, "remaining_bytes", size)
    (root / CPUINFO).read_bytes()
    with pytest.raises(UnfitFileError, match="larger than 0 bytes"):
        (root / CPUINFO).read_bytes()
