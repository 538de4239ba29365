"""A state directory belongs to the program, so its content is handled with care."""

from __future__ import annotations

import os
import resource
import socket
from typing import TYPE_CHECKING

import pytest

from numaproof.workdir import state_directory
from numaproof.workdir.state_directory import LARGEST, StateDirectory, StateError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = "cpu_manager_state"


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory.create(tmp_path / "run" / "state")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that nobody may touch."""
    made = tmp_path / "outside"
    made.mkdir()
    (made / NAME).write_text("kept")
    return made / NAME


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 << 30)


KINDS: dict[str, Callable[[Path, Path], object]] = {
    "a symbolic link": lambda file, outside: file.symlink_to(outside),
    "a named pipe": lambda file, _: os.mkfifo(file),
    "a directory": lambda file, _: file.mkdir(),
    "a socket": lambda file, _: bind(file),
    "larger than 64 MiB": lambda file, _: sparse(file),
}

ACTIONS: dict[str, Callable[[StateDirectory], object]] = {
    "read": lambda state: state.read(NAME),
    "write": lambda state: state.write(NAME, b"new"),
    "remove": lambda state: state.remove(NAME),
    "check": lambda state: state.check(["other", NAME]),
}


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)
@pytest.mark.parametrize("kind", [one for one in KINDS if not one.startswith("larger")])
def test_irregular_entries_are_named_and_left_alone(
    state: StateDirectory, outside: Path, kind: str, action: Callable[[StateDirectory], object]
) -> None:
    KINDS[kind](state.path / NAME, outside)
    with pytest.raises(StateError, match=f"{NAME} in the state directory is {kind}, not a file"):
        action(state)
    assert outside.read_text() == "kept"
    assert os.path.lexists(state.path / NAME)


def test_a_device_is_never_opened(state: StateDirectory) -> None:
    (state.path / NAME).symlink_to("/dev/zero")
    with pytest.raises(StateError, match="is a symbolic link"):
        state.read(NAME)


def test_a_huge_sparse_file_costs_nothing(state: StateDirectory, outside: Path) -> None:
    KINDS["larger than 64 MiB"](state.path / NAME, outside)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for action in ACTIONS.values():
        with pytest.raises(StateError, match=f"{NAME} .* is larger than 64 MiB"):
            action(state)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < LARGEST >> 12


def test_a_file_is_read_replaced_and_removed(state: StateDirectory) -> None:
    assert state.read(NAME) is None
    state.write(NAME, b"first")
    state.write(NAME, b"second")
    assert state.read(NAME) == b"second"
    state.remove(NAME)
    state.check()
    assert not any(state.path.iterdir())


def test_a_file_with_outside_links_is_replaced(state: StateDirectory, outside: Path) -> None:
    os.link(outside, state.path / NAME)
    state.write(NAME, b"new")
    assert outside.read_text() == "kept"
    assert state.read(NAME) == b"new"


@pytest.mark.parametrize("action", [*ACTIONS.values(), StateDirectory.check])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path, _: path.rmdir(), "the state directory was removed"),
        (
            lambda path, outside: (path.rmdir(), path.symlink_to(outside.parent)),
            "the state directory was replaced by a symbolic link",
        ),
        (
            lambda path, _: (path.rmdir(), os.mkfifo(path)),
            "the state directory was replaced by a named pipe",
        ),
        (
            lambda path, _: path.parent.rename(path.parent.with_name("away")),
            "the folder above the state directory was removed or replaced",
        ),
        (
            lambda path, outside: (
                path.parent.rename(path.parent.with_name("away")),
                path.parent.symlink_to(outside.parent),
            ),
            "the folder above the state directory was removed or replaced",
        ),
    ],
)
def test_a_replaced_directory_is_named(
    state: StateDirectory,
    outside: Path,
    spoil: Callable[[Path, Path], object],
    words: str,
    action: Callable[[StateDirectory], object],
) -> None:
    spoil(state.path, outside)
    with pytest.raises(StateError, match=words):
        action(state)
    assert outside.read_text() == "kept"


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_directory_is_named(state: StateDirectory) -> None:
    state.path.chmod(0)
    with pytest.raises(StateError, match="can't be read: Permission denied"):
        state.check()


def test_too_many_entries_are_a_failure(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_directory, "MAX_ENTRIES", 3)
    for number in range(3):
        (state.path / str(number)).touch()
    state.check()
    (state.path / "3").touch()
    with pytest.raises(StateError, match="more than 3 entries"):
        state.check()


@pytest.mark.parametrize("name", [b"\xff\xfe", b"new\nline", b"\x1b[31m"])
def test_an_undisplayable_name_is_a_failure(state: StateDirectory, name: bytes) -> None:
    (state.path / os.fsdecode(name)).touch()
    with pytest.raises(StateError) as caught:
        state.check()
    assert repr(name) in str(caught.value)


def test_a_failed_write_leaves_no_temporary_file(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StateError, match=f"can't write {NAME} .*: No space left on device"):
        state.write(NAME, b"new")
    assert not any(state.path.iterdir())
