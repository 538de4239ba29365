import os
import stat
import tarfile
from pathlib import Path

import pytest
from pyfakefs.fake_filesystem import FakeFilesystem

from numaproof.fakesys import (
    Directory,
    Symlink,
    Tree,
    WriteError,
    build_tree,
    load_profile,
    open_tree,
    write_directory,
    write_fake,
    write_tar,
)


@pytest.fixture(scope="module")
def tree() -> Tree:
    return build_tree(load_profile("arm64-no-core-ids"))


@pytest.fixture(scope="module")
def odd_tree() -> Tree:
    """A machine with nodes (links) and a CPU without files (an empty directory)."""
    return build_tree(load_profile("offline-node"), detail="discovery")


def read_entries(root: Path) -> dict[str, object]:
    entries: dict[str, object] = {}
    for directory, folders, files in os.walk(root):
        for name in files + folders:
            path = Path(directory) / name
            key = str(path.relative_to(root))
            if path.is_symlink():
                entries[key] = Symlink(str(path.readlink()))
            elif path.is_file():
                entries[key] = path.read_bytes()
            elif not any(path.iterdir()):
                entries[key] = Directory()
    return entries


@pytest.mark.parametrize("which", ["tree", "odd_tree"])
def test_directories_and_archives_contain_the_tree(
    which: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    tree: Tree = request.getfixturevalue(which)
    write_directory(tree, tmp_path / "new/directory")
    assert read_entries(tmp_path / "new/directory") == dict(tree)
    for suffix in (".tar", ".tar.gz", ".tar.xz"):
        write_tar(tree, tmp_path / f"x{suffix}")
        with open_tree(tmp_path / f"x{suffix}") as root:
            assert read_entries(root) == dict(tree)


def test_pyfakefs_contains_the_tree(odd_tree: Tree) -> None:
    fs = FakeFilesystem()
    write_fake(odd_tree, fs, "/machine")
    for path, entry in odd_tree.items():
        name = f"/machine/{path}"
        if isinstance(entry, bytes):
            assert fs.get_object(name).byte_contents == entry
        elif isinstance(entry, Symlink):
            assert fs.readlink(name) == entry.target
        else:
            assert fs.listdir(name) == []


def test_pyfakefs_adds_the_tree_without_replacing_files(odd_tree: Tree) -> None:
    fs = FakeFilesystem()
    fs.create_file("/sys/class/mine", contents="mine")
    write_fake(odd_tree, fs)
    assert sorted(fs.listdir("/sys")) == ["class", "devices", "kernel"]
    assert fs.get_object("/sys/class/mine").contents == "mine"
    for fresh, there in (("/a", "/a/sys/devices"), ("/b", "/b/proc/cpuinfo"), ("/c", "/c")):
        fs.create_file(there)
        with pytest.raises(OSError, match=f"Not a directory|File exists.*{fresh}"):
            write_fake(odd_tree, fs, fresh)


def test_an_empty_directory_is_filled(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_directory(tree, tmp_path / "empty")
    assert read_entries(tmp_path / "empty") == dict(tree)
    assert stat.S_IMODE((tmp_path / "empty").stat().st_mode) == 0o755
    assert os.listdir(tmp_path) == ["empty"]  # noqa: PTH208 - hidden leftovers count too


def test_a_directory_with_files_is_not_touched(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(WriteError, match="is not empty; use a new"):
        write_directory(tree, tmp_path)
    assert read_entries(tmp_path) == {"mine": b"mine"}
    with pytest.raises(WriteError, match="is not a directory"):
        write_directory(tree, tmp_path / "mine")
    with pytest.raises(WriteError, match="cannot write"):
        write_directory(tree, tmp_path / "mine/below")


def test_a_failed_write_leaves_nothing_behind(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int, __: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(WriteError, match=r"cannot write .*: No space left on device"):
            write_directory(tree, tmp_path / "new")
    monkeypatch.setattr(os, "link", lambda *_: full(0, b""))
    with pytest.raises(WriteError, match=r"cannot write .*: No space left on device"):
        write_tar(tree, tmp_path / "new.tar")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "pattern"),
    [(OSError(28, "No space left on device"), "No space left"), (KeyboardInterrupt("now"), "now")],
)
def test_a_failed_write_is_reported_and_closes_handles_once(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, pattern: str
) -> None:
    made = os.mkdir
    calls = 0

    def failing(path: str, mode: int = 0o777) -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise error
        made(path, mode)

    monkeypatch.setattr(os, "mkdir", failing)
    with pytest.raises(WriteError if isinstance(error, OSError) else type(error), match=pattern):
        write_directory(tree, tmp_path / "tree")
    assert [*tmp_path.iterdir()] == []


def test_a_partial_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = os.write
    monkeypatch.setattr(os, "write", lambda file, content: written(file, content[:3]))
    write_directory(Tree("mine", {"sys/file": b"more than three"}), tmp_path / "tree")
    assert (tmp_path / "tree/sys/file").read_bytes() == b"more than three"


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tar.xz"])
def test_equal_trees_have_equal_archives(tree: Tree, tmp_path: Path, suffix: str) -> None:
    write_tar(tree, tmp_path / f"a{suffix}")
    write_tar(tree, tmp_path / f"another-name{suffix}")
    first = (tmp_path / f"a{suffix}").read_bytes()
    assert first == (tmp_path / f"another-name{suffix}").read_bytes()


def test_an_archive_has_no_data_about_its_writer(tree: Tree, tmp_path: Path) -> None:
    write_tar(tree, tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as archive:
        members = archive.getmembers()
    names = [member.name for member in members]
    assert {(m.uid, m.gid, m.mtime, m.uname) for m in members} == {(0, 0, 0, "")}
    assert all(names.index(n.rpartition("/")[0]) < i for i, n in enumerate(names) if "/" in n)


def test_archives_of_other_kinds_and_existing_ones_are_refused(tree: Tree, tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"must end in \.tar, \.tar\.gz, \.tgz, \.tar\.xz"):
        write_tar(tree, tmp_path / "a.zip")
    (tmp_path / "a.tar").write_text("mine")
    with pytest.raises(WriteError, match="exists; use a new file"):
        write_tar(tree, tmp_path / "a.tar")
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="cannot write"):
        write_tar(tree, tmp_path / "file/a.tar")
