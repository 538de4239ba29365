"""Files that a program leaves outside its state directory are found and named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.doctor.program import Leftovers

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with some configuration."""
    home = tmp_path / "home"
    (home / ".config" / "editor").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a log and a folder."""
    here = tmp_path / "work"
    (here / "data").mkdir(parents=True)
    (here / "driver.log").write_text("before\n")
    monkeypatch.chdir(here)
    return here


def test_new_and_changed_files_of_the_working_directory_are_found(
    here: Path, tmp_path: Path
) -> None:
    leftovers = Leftovers(tmp_path / "temporary")
    assert leftovers.here() == []
    (here / "driver.log").write_text("before\nand more\n")
    (here / "data" / "pods.json").write_text("{}")
    (here / "new").mkdir()
    (here / "new" / "one").touch()
    (here / "__pycache__").mkdir()
    assert leftovers.here() == ["data/pods.json", "driver.log", "new"]


@pytest.mark.usefixtures("here")
def test_new_files_at_home_are_found_except_for_caches(home: Path, tmp_path: Path) -> None:
    leftovers = Leftovers(tmp_path / "temporary")
    (home / ".driver-state").touch()
    (home / ".config" / "driver").mkdir()
    (home / ".cache" / "driver").mkdir(parents=True)
    assert leftovers.at_home() == ["~/.config/driver", "~/.driver-state"]


def test_a_working_directory_at_home_is_named_once(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = home / ".local" / "share"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    leftovers = Leftovers(tmp_path / "temporary")
    (below / "state").touch()
    assert leftovers.here() == ["state"]
    assert leftovers.at_home() == []
    monkeypatch.chdir(home)
    leftovers = Leftovers(tmp_path / "temporary")
    (home / "state").touch()
    assert leftovers.here() == []
    assert leftovers.at_home() == ["~/state"]


def test_changes_in_a_shared_working_directory_are_ignored(here: Path, tmp_path: Path) -> None:
    here.chmod(0o1777)
    leftovers = Leftovers(tmp_path / "temporary")
    (here / "of-another-user").mkdir()
    assert leftovers.here() == []
