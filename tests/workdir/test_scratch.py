"""Temporary folders are removed after a run, or by the next one."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from numaproof import fakesys
from numaproof.workdir import removal, scratch
from numaproof.workdir.output_files import write_file
from numaproof.workdir.scratch import PREFIX, ScratchError, make_folder, scratch_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new location for temporary folders."""
    made = tmp_path / "place"
    made.mkdir()
    monkeypatch.setattr(scratch, "scratch_place", lambda: str(made))
    monkeypatch.setattr(scratch, "_cleared_places", set())
    return made


HARNESS = """
import sys
from numaproof.workdir.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


def running(place: Path) -> subprocess.Popen[bytes]:
    """A harness in another process with a temporary folder."""
    other = subprocess.Popen(
        [sys.executable, "-c", HARNESS],
        env={**os.environ, "TMPDIR": str(place)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout
    assert other.stdout.readline().startswith(bytes(place / PREFIX))
    return other


def test_a_folder_is_created_and_removed(place: Path) -> None:
    with scratch_folder() as folder:
        assert folder.parent == place
        (folder / "below").mkdir()
    assert not any(place.iterdir())


def test_the_next_run_removes_what_a_killed_one_left(place: Path) -> None:
    with running(place) as other:
        other.kill()
    assert len(list(place.iterdir())) == 1
    with scratch_folder() as folder:
        assert list(place.iterdir()) == [folder]


def test_the_folder_of_an_active_run_is_not_touched(place: Path) -> None:
    with running(place) as other:
        theirs = next(place.iterdir())
        with scratch_folder():
            assert (theirs / "file").exists()
        other.kill()


def test_a_folder_is_locked_until_it_is_removed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove_unless_unlocked(path: Path) -> str:
        if path.exists():
            with pytest.raises(BlockingIOError):
                scratch._clear_folder(path)
        return removal.remove_tree(path)

    monkeypatch.setattr(scratch, "remove_tree", remove_unless_unlocked)
    with scratch_folder():
        pass
    assert not any(place.iterdir())


def test_other_users_folders_and_names_are_not_touched(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / f"{PREFIX}theirs").mkdir()
    (place / "numaproof-old").mkdir()
    (place / "outside").mkdir()
    (place / f"{PREFIX}link").symlink_to("outside")
    monkeypatch.setattr(os, "geteuid", lambda: 1 << 20)
    with scratch_folder():
        pass
    assert len(list(place.iterdir())) == 4


def test_a_folder_that_cannot_be_removed_is_reported(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with scratch_folder() as folder:
        (folder / "below").mkdir()
        monkeypatch.setattr(removal, "_empty", lambda _: "Device or resource busy")
    assert folder.parent == place
    assert f"can't remove the temporary folder {folder}: Device or resource busy" in caplog.text


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("what", ["a link", "nothing", "a file"])
def test_whatever_replaced_a_folder_is_removed(
    place: Path, tmp_path: Path, depth: int, what: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    with scratch_folder() as folder:
        make_folder(folder / "a" / "b" / "first")
        spoilt = (folder, folder / "a", folder / "a" / "b")[depth]
        spoilt.rename(place / "away")
        if what == "a link":
            spoilt.symlink_to(outside)
        elif what == "a file":
            spoilt.touch()
        make_folder(folder / "a" / "b" / "second")
        assert (folder / "a" / "b" / "second").is_dir()
        assert not folder.is_symlink()
    assert not any(outside.iterdir())
    assert not folder.exists()


def fill(disk: Path, room: int) -> None:
    """Leaves room for a number of bytes."""
    place = os.statvfs(disk)
    (disk / "ballast").write_bytes(bytes(place.f_bavail * place.f_frsize - room))


def test_a_full_location_is_refused(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(small_disk))
    with scratch_folder() as folder:
        assert folder.parent == small_disk
    fill(small_disk, 1 << 19)
    with pytest.raises(ScratchError, match=f"^{small_disk}: No space left"), scratch_folder():
        pass
    assert [one.name for one in small_disk.iterdir()] == ["ballast"]


def test_an_unwritable_location_is_not_called_full(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(small_disk))
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    fix = "temporary files cannot be written there: set TMPDIR to a folder where they can"
    with (
        pytest.raises(ScratchError, match=f"^{small_disk}: Read-only file system; {fix}$"),
        scratch_folder(),
    ):
        pass


def test_errors_on_a_full_disk_are_reported_as_such(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(small_disk))

    def blame() -> None:
        with scratch_folder():
            fill(small_disk, room)
            raise ValueError("the configuration is wrong")

    room = 0
    with pytest.raises(ScratchError, match="No space left"):
        blame()
    (small_disk / "ballast").unlink()
    room = 2 << 20
    with pytest.raises(ValueError, match="the configuration is wrong"):
        blame()


def test_a_tree_that_does_not_fit_is_a_disk_error(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partial tree has been removed by then, so there is room again."""
    monkeypatch.setenv("TMPDIR", str(small_disk))
    fill(small_disk, 2 << 20)
    tree = fakesys.Tree("large", {"sys/file": bytes(3 << 20)})
    with pytest.raises(ScratchError, match="No space left"), scratch_folder() as folder:
        fakesys.write_directory(tree, folder / "tree")


def test_a_users_file_that_does_not_fit_is_no_scratch_error(small_disk: Path) -> None:
    fill(small_disk, 0)
    with pytest.raises(OSError, match="No space left") as error, scratch_folder():
        write_file(small_disk / "file", "x")
    assert error.value.filename == str(small_disk / "file")
