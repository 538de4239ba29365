"""Temporary folders for state directories and trees, removed at the latest by the next run.

Each is locked for as long as its process lives. What a killed run has left is locked by nobody, and
is removed by the next one; a folder that is in use is never touched.

A temporary folder without room is a problem of the machine. Programs, configurations and cases look
wrong because of it, so everybody who would blame them asks `require_room` first.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from numaproof.workdir.removal import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "numaproof-run-"
"""What the names of temporary folders begin with, once they are locked."""

_NEW = "numaproof-new-"
_IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of our own is made in it
_LOG = logging.getLogger("numaproof")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
"""Errors of a file system that say nothing about who writes to it."""

_ROOM = 1 << 20
"""Bytes that a state directory and the files of a short run fit in."""

_cleared_places: set[str] = set()
_scratch_folders: set[Path] = set()


class ScratchError(Exception):
    """A temporary folder cannot be written to; the message names it and says what to do."""


def require_scratch() -> None:
    """Checks that there is room for temporary folders, before a command changes anything.

    Raises:
        ScratchError: they cannot be written, or there is no room.
    """
    require_room(Path(_place()))


def require_room(folder: Path) -> None:
    """Checks that a temporary folder has room; a folder that no longer exists passes.

    Raises:
        ScratchError: it has none.
    """
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, _ROOM)
    except OSError as error:
        if error.errno in _FULL:
            raise _unusable(folder, error) from None


@contextmanager
def needing_room(folder: Path) -> Iterator[None]:
    """Blames a full disk for whatever goes wrong in a block that works in a temporary folder.

    Raises:
        ScratchError: something went wrong, and the folder has no room.
    """
    try:
        yield
    except ScratchError:
        raise
    except Exception as error:
        if full := _full(error, folder):
            raise _unusable(folder, full) from None
        require_room(folder)
        raise


def _full(error: BaseException | None, folder: Path) -> OSError | None:
    """The error of a full disk below a folder that led to another error; None if there is none."""
    while error:
        if isinstance(error, OSError) and error.errno in _FULL:
            file = os.fsdecode(error.filename or "")
            if Path(file).is_relative_to(folder):
                return error
        error = error.__cause__ or error.__context__
    return None


def _unusable(folder: Path | str, error: OSError) -> ScratchError:
    fix = "set TMPDIR to another folder"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        fix = f"temporary files need at least {_ROOM >> 20} MiB: free some space, or {fix}"
    elif error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        fix = "temporary files cannot be written there: set TMPDIR to a folder where they can"
    return ScratchError(f"{folder}: {error.strerror or error}; {fix}")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder, in memory if the system allows it.

    A run writes tens of thousands of small files, which on a disk can take most of its time.
    ``TMPDIR`` overrides the place.

    Raises:
        ScratchError: it cannot be created, or has no room: at once, or when something goes wrong.
    """
    place = _place()
    _clear(place)
    require_scratch()
    # It gets its name with the lock on it: another run would remove it in between.
    try:
        fresh = Path(tempfile.mkdtemp(prefix=_NEW, dir=place))
    except OSError as error:
        raise _unusable(place, error) from None
    folder = fresh.with_name(PREFIX + fresh.name.removeprefix(_NEW))
    lock = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # not every file system has locks; then nobody clears it either
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fresh.rename(folder)
        _scratch_folders.add(folder)
        with needing_room(folder):
            yield folder
    finally:
        os.close(lock)
        for path in (fresh, folder):
            if why := remove_tree(path):
                _LOG.warning("can't remove the temporary folder %s: %s", path, why)
            _scratch_folders.discard(path)


def _place() -> str:
    wanted = os.environ.get("TMPDIR")
    if wanted is None and os.access(_IN_MEMORY, os.W_OK | os.X_OK):
        return _IN_MEMORY
    # Python would quietly take another place where this one is full.
    return wanted if wanted and Path(wanted).is_dir() else tempfile.gettempdir()


def _clear(place: str) -> None:
    """Removes what killed runs of this user have left; once for each process."""
    if place in _cleared_places:
        return
    _cleared_places.add(place)
    with os.scandir(place) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(PREFIX)]
    for name in names:
        with suppress(OSError):
            _clear_folder(Path(place, name))


def _clear_folder(folder: Path) -> None:
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
    depth = next((number for number, one in enumerate(above) if one in _scratch_folders), None)
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
