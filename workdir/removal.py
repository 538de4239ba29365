"""Removes a folder, whatever it contains, and nothing outside it."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_ONCE = 10_000
"""Maximum number of names to list at once."""

_MAX_ROUNDS = 100_000
"""Maximum number of listings; beyond that, some process must still be writing."""

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: Path) -> str:
    """Removes a folder or file; returns why something is left, or an empty string.

    Does not follow links. Needs neither recursion nor a descriptor for each level, because nested
    folders are first moved to the top. Adds missing permissions to folders. A missing folder is not
    an error.
    """
    try:
        above = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return _remove(path.name, above)
        finally:
            os.close(above)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or str(error)


def _remove(name: str, above: int) -> str:
    if _remove_entry(name, above):
        return ""
    with _open_folder(name, above) as top:
        why = _empty(top)
    if not why:
        os.rmdir(name, dir_fd=above)
    return why


def _empty(top: int) -> str:
    """Empties a folder; returns the last reason why something could not be removed."""
    why = ""
    token = secrets.token_hex(4)
    moved = 0
    for _ in range(_MAX_ROUNDS):
        names = _names(top)
        removed = 0
        for name in names:
            try:
                if not _remove_entry(name, top):
                    with _open_folder(name, top) as folder:
                        moved = _flatten(folder, top, token, moved)
                    os.rmdir(name, dir_fd=top)
                removed += 1
            except OSError as error:
                why = f"{os.fsencode(name)!r}: {error.strerror}"
        if not removed:
            return why if names else ""
    return "another process keeps adding files to it"


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in islice(entries, _AT_ONCE)]


def _flatten(folder: int, top: int, token: str, moved_count: int) -> int:
    """Removes the files in a folder and moves its folders to the top; returns how many it moved."""
    while names := _names(folder):
        for name in names:
            if not _remove_entry(name, folder):
                with suppress(OSError), _open_folder(name, folder):
                    pass  # only writable folders can be moved
                os.rename(name, f".{token}-{moved_count}", src_dir_fd=folder, dst_dir_fd=top)
                moved_count += 1
    return moved_count


def _remove_entry(name: str, folder: int) -> bool:
    if not stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
        os.unlink(name, dir_fd=folder)
        return True
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError:
        return False
    return True


@contextmanager
def _open_folder(name: str, above: int) -> Iterator[int]:
    """Opens a folder, making it accessible if necessary."""
    try:
        folder = os.open(name, _OPEN, dir_fd=above)
    except PermissionError:
        handle = os.open(name, _OPEN | os.O_PATH, dir_fd=above)
        try:
            Path(f"/proc/self/fd/{handle}").chmod(0o700)
        finally:
            os.close(handle)
        folder = os.open(name, _OPEN, dir_fd=above)
    try:
        with suppress(OSError):
            os.fchmod(folder, 0o700)
        yield folder
    finally:
        os.close(folder)
