"""Reads trees of files from untrusted sources, without leaving their root.

A ``/sys`` has many symbolic links, which are followed as long as they stay in the tree. Only
regular files are opened, without blocking, and up to a maximum size.

A tree can also be held in memory, under a path that is valid only in this process.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_BYTES = 64 << 20
"""Maximum size of a file in bytes; ``/proc/cpuinfo`` of 8,192 CPUs has 12 MiB."""

MAX_IN_ALL = 256 << 20
"""Maximum number of bytes to read from a tree."""

MAX_NAMES = 100_000
"""Maximum number of entries of a folder."""


class UnfitFileError(OSError):
    """An entry that is never read; the message describes it, without its path."""


class Root(Protocol):
    """A path in a tree: `FolderTree`, `pathlib.Path`, or a path in a fake file system."""

    @property
    def name(self) -> str:
        """The last part of the path."""

    def __truediv__(self, key: str, /) -> Self:
        """Returns the path below this one."""

    def read_bytes(self) -> bytes:
        """Returns the contents of a file, or raises an OSError."""

    def iterdir(self) -> Iterable[Self]:
        """Yields the entries of a folder, or raises an OSError."""


_HELD: WeakValueDictionary[str, Root] = WeakValueDictionary()
_NUMBERS = count()


def hold(root: Root) -> str:
    """Returns a path at which `open_root` finds an in-memory tree.

    The path is valid only in this process and only while a reference to `root` exists.
    """
    path = f"/proc/self/numaproof/trees/{next(_NUMBERS)}"
    _HELD[path] = root
    return path


def held_root(path: str) -> Root | None:
    """Returns the in-memory tree at a path, if any; such trees never change."""
    return _HELD.get(path)


def open_root(path: str) -> Root:
    """Returns the root of the tree at a path: a tree held by this process, or a folder."""
    return held_root(path) or FolderTree.root(Path(path))


@dataclass
class _Tree:
    """A tree's root, with its links resolved, and the number of bytes that may still be read.

    In messages, `name` replaces `given_path` at the start of a path, because the folder of an
    unpacked archive means nothing to users.
    """

    root: str
    given_path: str
    name: str
    remaining_bytes: int = MAX_IN_ALL


@dataclass(frozen=True)
class FolderTree:
    """A path in a tree, with the parts of pathlib's interface needed for reading."""

    path: str
    _tree: _Tree

    @classmethod
    def root(cls, folder: Path, name: str = "") -> FolderTree:
        """Returns the root of the tree in a folder; messages call it `name`."""
        given = os.fspath(folder)
        return cls(given, _Tree(os.path.realpath(folder), given, name or given))

    def __str__(self) -> str:
        """The path as users know it."""
        return self._tree.name + self.path.removeprefix(self._tree.given_path)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    def __truediv__(self, key: str) -> FolderTree:
        """Returns the path `key` relative to this one."""
        return FolderTree(os.path.join(self.path, key), self._tree)

    def read_bytes(self) -> bytes:
        """Reads the contents of a file.

        Raises:
            UnfitFileError: it is not a regular file, is outside the tree, or is too large.
            OSError: it cannot be read.
        """
        # Do not open it yet: opening a device can have side effects.
        with _open_descriptor(self.path, os.O_PATH) as found:
            self._require_inside(found)
            mode = os.fstat(found).st_mode
            if stat.S_ISDIR(mode):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), self.path)
            if not stat.S_ISREG(mode):
                raise _unfit(errno.ENXIO, "is a pipe, a socket or a device, not a file")
            with _open_descriptor(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_NONBLOCK) as file:
                return self._read(file)

    def iterdir(self) -> Iterator[FolderTree]:
        """Yields the entries of a directory.

        Raises:
            UnfitFileError: it is outside the tree, or has too many entries.
            OSError: it cannot be read.
        """
        with _open_descriptor(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK) as folder:
            self._require_inside(folder)
            with os.scandir(folder) as entries:
                names = [entry.name for entry in islice(entries, MAX_NAMES + 1)]
        if len(names) > MAX_NAMES:
            raise _unfit(errno.EFBIG, f"has more than {MAX_NAMES:,} entries")
        for name in names:
            yield self / name

    def _require_inside(self, descriptor: int) -> None:
        place = os.readlink(f"/proc/self/fd/{descriptor}")
        root = self._tree.root
        if place != root and not place.startswith(root.rstrip("/") + "/"):
            raise _unfit(errno.EXDEV, "leads outside the tree")

    def _read(self, file: int) -> bytes:
        """Reads a whole file, whose size is unknown if the kernel generates it."""
        most = min(MAX_BYTES, self._tree.remaining_bytes)
        content = bytearray()
        while more := os.read(file, min(1 << 20, most + 1 - len(content))):
            content += more
            if len(content) > most:
                raise _unfit(errno.EFBIG, f"is larger than {most:,} bytes, the remaining limit")
        self._tree.remaining_bytes -= len(content)
        return bytes(content)


def _unfit(code: int, what: str) -> UnfitFileError:
    return UnfitFileError(code, what)


@contextmanager
def _open_descriptor(path: str, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
