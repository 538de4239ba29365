"""Temporary folders for state directories and trees, removed at the latest by the next run.

Each is locked for as long as its process lives. What a killed run has left is locked by nobody, and
is removed by the next one; a folder that is in use is never touched.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from numaproof.folders.removal import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "numaproof-run-"
"""What the names of temporary folders begin with, once they are locked."""

_NEW = "numaproof-new-"
_IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of our own is made in it
_LOG = logging.getLogger("numaproof")
_cleared: set[str] = set()
_made: set[Path] = set()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder, in memory if the system allows it.

    A run writes tens of thousands of small files, which on a disk can take most of its time.
    ``TMPDIR`` overrides the place.
    """
    place = _place()
    _clear(place)
    # It gets its name with the lock on it: another run would remove it in between.
    fresh = Path(tempfile.mkdtemp(prefix=_NEW, dir=place))
    folder = fresh.with_name(PREFIX + fresh.name.removeprefix(_NEW))
    lock = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # not every file system has locks; then nobody clears it either
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fresh.rename(folder)
        _made.add(folder)
        yield folder
    finally:
        os.close(lock)
        for path in (fresh, folder):
            if why := remove_tree(path):
                _LOG.warning("can't remove the temporary folder %s: %s", path, why)
            _made.discard(path)


def _place() -> str:
    in_memory = "TMPDIR" not in os.environ and os.access(_IN_MEMORY, os.W_OK | os.X_OK)
    return _IN_MEMORY if in_memory else tempfile.gettempdir()


def _clear(place: str) -> None:
    """Removes what killed runs of this user have left; once for each process."""
    if place in _cleared:
        return
    _cleared.add(place)
    with os.scandir(place) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(PREFIX)]
    for name in names:
        with suppress(OSError):
            _clear_one(Path(place, name))


def _clear_one(folder: Path) -> None:
    """Removes a folder that is this user's and locked by nobody.

    Raises:
        OSError: it is locked, or can't be.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(folder)
    finally:
        os.close(lock)


def make_folder(path: Path) -> None:
    """Makes a folder in a temporary one, with those above it.

    A program that was told of another folder in it may have put a link or a file in the place of
    one above, or removed it: then that one is made anew.

    Raises:
        FileExistsError: there is such a folder already.
    """
    above = path.parents
    depth = next((number for number, one in enumerate(above) if one in _made), None)
    if depth is None:
        path.mkdir(parents=True)
        return
    for folder in reversed(above[: depth + 1]):
        kind = _kind(folder)
        if kind == stat.S_IFDIR:
            continue
        if kind is not None:
            remove_tree(folder)
        folder.mkdir(mode=0o700)
    path.mkdir()


def _kind(path: Path) -> int | None:
    """What there is at a path itself, as `stat.S_IFMT` has it; None for nothing."""
    try:
        # pathlib asks twice for what one call tells, at every run of a case.
        return stat.S_IFMT(os.lstat(path).st_mode)
    except FileNotFoundError:
        return None
