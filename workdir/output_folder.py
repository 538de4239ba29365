"""The output folder of a command, locked for one command at a time."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from numaproof.workdir.output_files import naming, resolve_target

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCKS = Path("/proc/locks")
_LOCK = re.compile(r"FLOCK\s+\S+\s+WRITE\s+(\d+)\s+([0-9a-f]+):([0-9a-f]+):(\d+)\s")


class FolderInUseError(Exception):
    """Another command is writing to the folder; the message names it and suggests a fix."""


@contextmanager
def held_folder(path: Path) -> Iterator[None]:
    """Creates a folder if necessary, and locks it until the end of the block.

    If the folder was created and is still empty, it is removed at the end.

    Raises:
        FolderInUseError: another command is writing to it.
        OSError: it cannot be created; the error names the folder.
    """
    resolve_target(path)
    with naming(path):
        made = _missing(path)
        lock = _lock(path)
    try:
        yield
    finally:
        # Remove it while locked, so that no other command can have started to use it.
        with suppress(OSError):
            for one in made:
                one.rmdir()
        os.close(lock)


def _missing(path: Path) -> list[Path]:
    missing = []
    for one in (path, *path.parents):
        if one.exists():
            break
        missing.append(one)
    return missing


def _lock(path: Path) -> int:
    while True:
        path.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # another command has just removed it
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if _is_taken(lock, path):
                return lock


def _is_taken(lock: int, path: Path) -> bool:
    """Locks an open folder; closes it if it was moved or is already locked."""
    taken = False
    try:
        with suppress(OSError):  # not every file system has locks
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _in_use(lock, path) from None
        taken = os.path.samestat(os.fstat(lock), path.stat())
        return taken
    finally:
        if not taken:
            os.close(lock)


def _in_use(lock: int, path: Path) -> FolderInUseError:
    who = _holder(lock)
    process = f" (process {who})" if who else ""
    return FolderInUseError(
        f"{path}: another run is writing to it{process}; wait until it ends, or use another --out"
    )


def _holder(lock: int) -> int:
    """Returns the process that holds the lock on a folder; 0 if unknown."""
    found = os.fstat(lock)
    with suppress(OSError):
        for process, major, minor, inode in _LOCK.findall(_LOCKS.read_text(encoding="ascii")):
            device = os.makedev(int(major, 16), int(minor, 16))
            if (device, int(inode)) == (found.st_dev, found.st_ino):
                return int(process)
    return 0
