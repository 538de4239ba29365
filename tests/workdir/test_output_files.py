"""Files are written completely or not at all, and errors name them."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from numaproof.workdir.output_files import (
    clear_partials,
    partials,
    require_writable,
    require_writable_folder,
    update_file,
    write_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SMALL_DISK = 4 * 1024 * 1024
"""The size of the file system in `small_disk`, in bytes."""


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Makes writes fail beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def test_a_file_gets_its_content_and_usual_permissions(tmp_path: Path) -> None:
    write_file(tmp_path / "a", "één\n")
    write_file(tmp_path / "b", b"\xff", new=True)
    (tmp_path / "usual").touch()
    assert (tmp_path / "a").read_bytes() == "één\n".encode()
    assert (tmp_path / "b").read_bytes() == b"\xff"
    assert {one.stat().st_mode for one in tmp_path.iterdir()} == {
        (tmp_path / "usual").stat().st_mode
    }


def test_a_replaced_file_keeps_permissions_and_links(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    write_file(tmp_path / "link", "new")
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path) == {"file", "link"}


@pytest.mark.parametrize("old", ["old", None])
def test_a_failed_write_keeps_the_old_file_and_names_it(tmp_path: Path, old: str | None) -> None:
    file = tmp_path / "file"
    if old is not None:
        file.write_text(old)
    with files_of_at_most(1000), pytest.raises(OSError, match="File too large") as error:
        write_file(file, b"x" * 2000)
    assert error.value.filename == str(file)
    assert names(tmp_path) == ({"file"} if old else set())
    assert not old or file.read_text() == old


def test_an_interrupt_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "file", "new")
    assert names(tmp_path) == set()


def test_a_new_file_never_replaces_another(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError) as error:
            write_file(tmp_path / name, "new", new=True)
        assert error.value.filename == str(tmp_path / name)
    assert (tmp_path / "file").read_text() == "old"
    assert names(tmp_path) == {"file", "link"}


def test_missing_folders_are_created(tmp_path: Path) -> None:
    write_file(tmp_path / "new" / "folder" / "file", "")
    assert (tmp_path / "new" / "folder" / "file").is_file()


def test_the_longest_and_invalid_utf_8_names_are_written(tmp_path: Path) -> None:
    for name in ("n" * 255, os.fsdecode(b"\xff\xfe")):
        write_file(tmp_path / name, f"{name}\n")
    assert (tmp_path / os.fsdecode(b"\xff\xfe")).read_text() == "\\udcff\\udcfe\n"


def unfit(folder: Path) -> dict[str, Path]:
    """Unwritable targets by their error."""
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "fifo")
    (folder / "file").touch()
    return {
        "Too many levels of symbolic links": folder / "loop",
        "is a FIFO, not a regular file; name another file": folder / "fifo",
        "is a device, not a regular file; name another file": Path(os.devnull),
        "Is a directory": folder,
        "Not a directory": folder / "file" / "x",
        "File name too long": folder / ("n" * 256),
    }


def test_irregular_files_are_refused_before_the_work(tmp_path: Path) -> None:
    before = names(tmp_path)
    for said, path in unfit(tmp_path).items():
        for refused in (require_writable, lambda target: write_file(target, "")):
            with pytest.raises(OSError, match=said) as error:
                refused(path)
            assert error.value.filename in {str(path), str(path.parent)}
    assert names(tmp_path) == before | {"loop", "fifo", "file"}


def test_a_folder_that_can_be_created_is_accepted(tmp_path: Path) -> None:
    require_writable(tmp_path / "new" / "folder" / "file")
    require_writable_folder(tmp_path / "new" / "folder")
    assert names(tmp_path) == set()


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_folder_without_permission_is_refused_before_the_work(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError) as error:
        require_writable(tmp_path / "new" / "file")
    assert error.value.filename == str(tmp_path)


def test_a_read_only_file_system_is_refused_before_the_work(small_disk: Path) -> None:
    require_writable(small_disk / "new" / "file")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(OSError, match="Read-only file system") as error:
        require_writable(small_disk / "new" / "file")
    assert error.value.filename == str(small_disk)


def test_a_full_disk_is_reported_with_the_file(small_disk: Path) -> None:
    write_file(small_disk / "file", "old")
    with pytest.raises(OSError, match="No space left on device") as error:
        write_file(small_disk / "file", b"x" * SMALL_DISK)
    assert error.value.filename == str(small_disk / "file")
    assert (small_disk / "file").read_text() == "old"
    assert names(small_disk) == {"file"}


def test_files_left_by_a_kill_are_found(tmp_path: Path) -> None:
    (tmp_path / "mine.part").touch()
    (tmp_path / ".numaproof-0123.part").touch()
    assert [one.name for one in partials(tmp_path)] == [".numaproof-0123.part"]
    clear_partials(tmp_path)
    assert names(tmp_path) == {"mine.part"}


@pytest.mark.parametrize("there", [True, False])
def test_concurrent_updates_lose_no_line(tmp_path: Path, *, there: bool) -> None:
    file = tmp_path / "file"
    if there:
        file.touch()
    threads = 8
    together = threading.Barrier(threads)

    def add(line: str) -> None:
        together.wait()
        for _ in range(10):
            update_file(file, lambda: (file.read_text() if file.exists() else "") + line)

    adding = [threading.Thread(target=add, args=(f"{one}\n",)) for one in range(threads)]
    for one in adding:
        one.start()
    for one in adding:
        one.join()
    assert sorted(file.read_text().splitlines()) == sorted(map(str, [*range(threads)] * 10))


def test_a_dangling_link_is_refused_by_its_name(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("nowhere/at/all")
    said = "broken symbolic link; remove it or name another path"
    writers: list[Callable[[Path], object]] = [
        require_writable,
        require_writable_folder,
        lambda path: write_file(path, ""),
        lambda path: write_file(path, "", new=True),
        lambda path: update_file(path, lambda: "text"),
    ]
    for write in writers:
        for path in (link, link / "file"):
            with pytest.raises(OSError, match=said) as error:
                write(path)
            assert error.value.filename == str(path)
    assert names(tmp_path) == {"link"}


def test_an_update_follows_a_link_and_names_it_in_errors(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    update_file(tmp_path / "link", lambda: "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "to fifo").symlink_to("fifo")
    with pytest.raises(OSError, match="is a FIFO") as error:
        update_file(tmp_path / "to fifo", lambda: "new")
    assert error.value.filename == str(tmp_path / "to fifo")
