import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from numaproof.fakesys import TreeError, archive, open_tree


def member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"x"
) -> Callable[[tarfile.TarFile], None]:
    def add(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.type = kind
        info.linkname = link
        if kind == tarfile.REGTYPE:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        else:
            tar.addfile(info)

    return add


def pack(path: Path, *adders: Callable[[tarfile.TarFile], None]) -> Path:
    mode = {"gz": "w:gz", "xz": "w:xz", "bz2": "w:bz2"}.get(path.suffix[1:], "w")
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for add in adders:
            add(tar)
    return path


def open_root(path: Path) -> Path:
    with open_tree(path) as root:
        return root


SYM, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE
DIR = tarfile.DIRTYPE


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tar.xz", ".tar.bz2"])
def test_an_archive_is_unpacked_while_open(tmp_path: Path, suffix: str) -> None:
    path = pack(
        tmp_path / f"a{suffix}",
        member("./", DIR),
        member("./sys/cpu0", DIR),
        member("./sys/cpu0", DIR),
        member("./sys/file", data=b"hello"),
        member("sys/links/file", SYM, "../file"),
        member("sys/links/dangling", SYM, "../nowhere/./x"),
        member("sys/links/again", HARD, "sys/file"),
    )
    with open_tree(path) as root:
        assert (root / "sys/links/file").read_text() == "hello"
        assert (root / "sys/links/again").read_text() == "hello"
        assert (root / "sys/links/dangling").is_symlink()
        assert (root / "sys/cpu0").is_dir()
    assert not root.exists()


def test_a_directory_is_used_as_the_root(tmp_path: Path) -> None:
    assert open_root(tmp_path) == tmp_path


def test_a_single_folder_around_the_tree_is_entered(tmp_path: Path) -> None:
    with open_tree(pack(tmp_path / "a.tar", member("machine/sys/x"))) as root:
        assert (root / "sys/x").read_bytes() == b"x"
    with open_tree(pack(tmp_path / "b.tar", member("proc/x"), member("etc/y"))) as root:
        assert (root / "proc/x").exists()


@pytest.mark.parametrize(
    ("adders", "complaint"),
    [
        ([member("../evil")], r"\.\./evil: (outside|out of) the archive's root"),
        ([member("sys/../../evil")], "(outside|out of) the archive's root"),
        ([member("/etc/evil")], "(outside|out of) the archive's root"),
        ([member("a", SYM, "/etc/passwd")], "absolute path /etc/passwd"),
        ([member("a", SYM, "../x")], "(outside|out of) the archive's root"),
        ([member("d/a", SYM, "../../x")], "(outside|out of) the archive's root"),
        # Each link alone stays inside; followed one after the other, they leave.
        (
            [member("d/e", DIR), member("d/up", SYM, ".."), member("d/e/out", SYM, "../up/../x")],
            "(outside|out of) the archive's root",
        ),
        ([member("a", SYM, "b"), member("b", SYM, "a")], "circular link"),
        ([member("a", SYM, "."), member("a/x")], "a is not a directory"),
        ([member("f"), member("f/x")], "f is not a directory"),
        ([member("a", HARD, "../../etc/passwd")], "(outside|out of) the archive's root"),
        ([member("a", HARD, "none")], "hard link to something other than a file"),
        (
            [member("s", SYM, "x"), member("a", HARD, "s")],
            "hard link to something other than a file",
        ),
        ([member("a", tarfile.CHRTYPE)], "special file"),
        ([member("a", tarfile.FIFOTYPE)], "special file"),
        ([member("a"), member("./a")], "duplicate member"),
        ([member(".", SYM, "x")], "duplicate member"),
        ([member("a", data=b"x" * (archive.MAX_FILE + 1))], "larger than"),
    ],
)
def test_a_hostile_archive_is_refused_before_anything_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    adders: list[Callable[[tarfile.TarFile], None]],
    complaint: str,
) -> None:
    path = pack(tmp_path / "evil.tar", member("sys/first"), *adders)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    wrote: list[Path] = []
    monkeypatch.setattr(Path, "write_bytes", lambda self, _: wrote.append(self))
    with pytest.raises(TreeError, match=complaint) as caught, open_tree(path):
        pass
    assert str(caught.value).startswith(str(path))
    assert not wrote
    assert not list(scratch.iterdir())


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    path = pack(tmp_path / "a.tar", *(member(f"sys/{i}") for i in range(4)))
    with pytest.raises(TreeError, match="more than 3 members"):
        open_root(path)


def test_too_large_a_total_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_TOTAL", 3)
    path = pack(tmp_path / "a.tar", *(member(f"sys/{i}") for i in range(4)))
    with pytest.raises(TreeError, match="more than 3 bytes in total"):
        open_root(path)


def test_an_endless_name_is_refused(tmp_path: Path) -> None:
    deep = pack(tmp_path / "deep.tar", member("sys/" + "a/" * 600))
    with pytest.raises(TreeError, match=r"\.\.\.: the name is longer than 1024 characters"):
        open_root(deep)


def test_a_header_of_gigabytes_is_refused_unread(tmp_path: Path) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 100_000
    with (tmp_path / "a.tar").open("wb") as file:
        file.write(header.tobuf(tarfile.USTAR_FORMAT) + bytes(200_000))
    with pytest.raises(TreeError, match="a member has fields longer than 65536 bytes"):
        open_root(tmp_path / "a.tar")


def test_links_that_take_long_to_follow_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_LINKS", 10)
    path = pack(tmp_path / "a.tar", *(_link(f"sys/{i}") for i in range(2)))
    with pytest.raises(TreeError, match="more than 10 characters in link targets"):
        open_root(path)


def test_an_archive_that_is_a_fifo_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.tar")
    with pytest.raises(TreeError, match=r"a\.tar: is a FIFO, not a regular file"):
        open_root(tmp_path / "a.tar")


def test_a_compression_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_ARCHIVE", 100_000)
    path = pack(tmp_path / "a.tar.xz", member("sys/zeros", data=bytes(200_000)))
    with pytest.raises(TreeError, match="unpacks to more than 100000 bytes"):
        open_root(path)


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.xz", "a.tar.bz2"])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"not an archive at all" * 100)
    with pytest.raises(TreeError, match="cannot unpack"):
        open_root(tmp_path / name)


def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.tar.gz", member("sys/x", data=bytes(range(256)) * 90))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TreeError, match="cannot unpack"):
        open_root(path)


def test_other_files_and_missing_ones_are_distinguished(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK")
    with pytest.raises(TreeError, match=r"expected a directory or a file ending in \.tar"):
        open_root(tmp_path / "a.zip")
    with pytest.raises(TreeError, match="no such file or directory"):
        open_root(tmp_path / "none.tar")


def _link(name: str) -> Callable[[tarfile.TarFile], None]:
    def add(archive: tarfile.TarFile) -> None:
        header = tarfile.TarInfo(name)
        header.type, header.linkname = tarfile.SYMTYPE, "target"
        archive.addfile(header)

    return add
