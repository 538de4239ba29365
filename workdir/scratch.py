"""Temporary folders for state directories and trees, removed by the next run at the latest.

Each folder is locked while the process using it is running. A killed run leaves an unlocked folder,
which the next run removes; folders in use are never touched.

A full disk makes programs, configurations and cases look faulty. Callers therefore use
`require_room` before they report a failure.
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
"""Prefix of the names of locked temporary folders."""

_NEW = "numaproof-new-"
_IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of our own is made in it
_LOG = logging.getLogger("numaproof")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
"""File system errors that are not the fault of the writing program."""

_ROOM = 1 << 20
"""Bytes that a state directory and the files of a short run need."""

_cleared_places: set[str] = set()
_scratch_folders: set[Path] = set()


class ScratchError(Exception):
    """A temporary folder cannot be written; the message names it and suggests a fix."""


def require_scratch() -> None:
    """Checks that there is room for temporary folders, before a command changes anything.

    Raises:
        ScratchError: they cannot be written, or there is not enough room.
    """
    require_room(Path(scratch_place()))


def require_room(folder: Path) -> None:
    """Checks that a temporary folder has room; a missing folder passes.

    Raises:
        ScratchError: there is not enough room.
    """
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, _ROOM)
    except OSError as error:
        if error.errno in _FULL:
            raise _unusable(folder, error) from None


@contextmanager
def needing_room(folder: Path) -> Iterator[None]:
    """Attributes failures in a block to a full disk if the temporary folder has no room.

    Raises:
        ScratchError: the block failed, and the folder has no room.
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
    """Finds a full-disk error below the folder among the causes of an error, if any."""
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
    """Creates a temporary folder, in memory if possible, and removes it after the block.

    A run writes tens of thousands of small files, which can take most of its time on a disk.
    ``TMPDIR`` overrides the location.

    Raises:
        ScratchError: the folder cannot be created or has no room, now or after a failure.
    """
    place = scratch_place()
    _clear(place)
    require_scratch()
    # Lock it before renaming, because another run would remove an unlocked folder.
    try:
        fresh = Path(tempfile.mkdtemp(prefix=_NEW, dir=place))
    except OSError as error:
        raise _unusable(place, error) from None
    folder = fresh.with_name(PREFIX + fresh.name.removeprefix(_NEW))
    lock = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # without lock support, no other run removes the folder either
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fresh.rename(folder)
        _scratch_folders.add(folder)
        with needing_room(folder):
            yield folder
    finally:
        # Another run would start to remove an unlocked folder as well.
        for path in (fresh, folder):
            if why := remove_tree(path):
                _LOG.warning("can't remove the temporary folder %s: %s", path, why)
            _scratch_folders.discard(path)
        os.close(lock)


def scratch_place() -> str:
    """Returns the folder of all temporary folders."""
    wanted = os.environ.get("TMPDIR")
    if wanted is None and os.access(_IN_MEMORY, os.W_OK | os.X_OK):
        return _IN_MEMORY
    # Python would silently use another location if this one is full.
    return wanted if wanted and Path(wanted).is_dir() else tempfile.gettempdir()


def _clear(place: str) -> None:
    """Removes folders left by this user's killed runs, once per process."""
    if place in _cleared_places:
        return
    _cleared_places.add(place)
    with os.scandir(place) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(PREFIX)]
    for name in names:
        with suppress(OSError):
            _clear_folder(Path(place, name))


def _clear_folder(folder: Path) -> None:
    """Removes a folder that belongs to this user and is not locked.

    Raises:
        OSError: the folder is locked, or cannot be locked.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(folder)
    finally:
        os.close(lock)


def make_folder(path: Path) -> None:
    """Creates a folder below a temporary folder, including its parents.

    A program that knows another folder there may have removed a parent or replaced it with a link
    or file. Such parents are created again.

    Raises:
        FileExistsError: the folder already exists.
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
    """Returns the file type at a path, as in `stat.S_IFMT`; None if nothing exists."""
    try:
        # pathlib would make two calls for this, in every run of a case.
        return stat.S_IFMT(os.lstat(path).st_mode)
    except FileNotFoundError:
        return None
