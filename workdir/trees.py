"""Reads a tree of files that somebody else has made: what is not below its root is not read.

A ``/sys`` is full of symbolic links, and they are followed as long as they stay in the tree. Only
regular files are opened, none of them waits for anybody, and what they hold is bounded.

A tree need not be in a folder: one that this process holds itself is found at a path, too.
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
"""Bytes of one file; ``/proc/cpuinfo`` of 8,192 CPUs has 12 MiB."""

MAX_IN_ALL = 256 << 20
"""Bytes of all files that are read of a tree."""

MAX_NAMES = 100_000
"""Entries of one folder."""


class UnfitFileError(OSError):
    """There is something at a path that is not read; the message says what, without the path."""


class Root(Protocol):
    """A path in a tree: `FolderTree`, `pathlib.Path`, and one in a fake file system."""

    @property
    def name(self) -> str:
        """The last part of the path."""

    def __truediv__(self, key: str, /) -> Self:
        """The place below this one."""

    def read_bytes(self) -> bytes:
        """The content of a file, or an OSError."""

    def iterdir(self) -> Iterable[Self]:
        """What is in a folder, or an OSError."""


_HELD: WeakValueDictionary[str, Root] = WeakValueDictionary()
_NUMBERS = count()


def hold(root: Root) -> str:
    """The path at which `opened` finds a tree that is in no folder.

    It does so in this process alone, and for as long as somebody keeps `root`.
    """
    path = f"/proc/self/numaproof/trees/{next(_NUMBERS)}"
    _HELD[path] = root
    return path


def held_root(path: str) -> Root | None:
    """The root of a tree that this process holds at a path, and that never changes; else None."""
    return _HELD.get(path)


def open_root(path: str) -> Root:
    """The root of the tree at a path: one that this process holds, or that of a folder."""
    return held_root(path) or FolderTree.root(Path(path))


@dataclass
class _Tree:
    """A tree's root, with its links resolved, and the bytes that may still be read of it.

    A path that begins with `given_path` is shown with `name` in its place: an archive is unpacked
    to a folder that means nothing to whoever named the archive.
    """

    root: str
    given_path: str
    name: str
    remaining_bytes: int = MAX_IN_ALL


@dataclass(frozen=True)
class FolderTree:
    """A path in a tree, with the part of pathlib's interface that reading needs."""

    path: str
    _tree: _Tree

    @classmethod
    def root(cls, folder: Path, name: str = "") -> FolderTree:
        """The root of the tree in a folder, which messages call `name`."""
        given = os.fspath(folder)
        return cls(given, _Tree(os.path.realpath(folder), given, name or given))

    def __str__(self) -> str:
        """The path as people know it."""
        return self._tree.name + self.path.removeprefix(self._tree.given_path)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    def __truediv__(self, key: str) -> FolderTree:
        """The path `key`, relative to this one."""
        return FolderTree(os.path.join(self.path, key), self._tree)

    def read_bytes(self) -> bytes:
        """The content of a file.

        Raises:
            UnfitFileError: it is no regular file, outside the tree, or too large.
            OSError: it can't be read.
        """
        # Found but not yet opened: to open a device may have an effect.
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
        """The entries of a directory.

        Raises:
            UnfitFileError: it is outside the tree, or has too many.
            OSError: it can't be read.
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
            raise _unfit(errno.EXDEV, "leads out of the tree")

    def _read(self, file: int) -> bytes:
        """All of a file; what the kernel makes up has no size beforehand."""
        most = min(MAX_BYTES, self._tree.remaining_bytes)
        content = bytearray()
        while more := os.read(file, min(1 << 20, most + 1 - len(content))):
            content += more
            if len(content) > most:
                raise _unfit(errno.EFBIG, f"is larger than {most:,} bytes, which are left to read")
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
