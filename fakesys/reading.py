"""Reads a tree in pyfakefs without patching anything.

It walks from directory to entry and caches what it finds. Opening a thousand files by their full
paths with pyfakefs's own `open` takes half a second.
"""

from __future__ import annotations

import errno
import os
from posixpath import normpath
from stat import S_ISDIR, S_ISLNK
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyfakefs.fake_file import FakeDirectory, FakeFile
    from pyfakefs.fake_filesystem import FakeFilesystem

    from numaproof.fakesys.tree import Tree

_MAX_LINKS = 40
_NOT_NAMES = frozenset(("", ".", ".."))


class _Resolver:
    """Resolves paths in a fake file system and caches the entries."""

    def __init__(self, fs: FakeFilesystem) -> None:
        self._fs = fs
        self._entries: dict[str, FakeFile] = {}

    def directory(self, path: str) -> FakeDirectory:
        found = self.entry(path)
        if not S_ISDIR(found.stat_result.st_mode):
            raise _failure(errno.ENOTDIR, path)
        return cast("FakeDirectory", found)

    def entry(self, path: str, links: int = 0) -> FakeFile:
        """Returns the entry at a path, following links; `links` counts those already followed."""
        found = self._entries.get(path)
        if found is None:
            found = self._entries[path] = self._walk(path, links)
        return found

    def _walk(self, path: str, links: int) -> FakeFile:
        parent, _, name = path.rpartition("/")
        if name in _NOT_NAMES:
            return self._fs.resolve(path or "/")
        directory = self.directory(parent)
        try:
            found = directory.get_entry(name)
        except KeyError:
            raise _failure(errno.ENOENT, path) from None
        if not S_ISLNK(found.stat_result.st_mode):
            return found
        if links == _MAX_LINKS:
            raise _failure(errno.ELOOP, path)
        folder = str(directory.path)
        return self.entry(normpath(f"{folder}/{found.contents}"), links + 1)


def _failure(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)


class TreePath:
    """A path in a pyfakefs tree, with the parts of pathlib's interface needed for reading.

    The tree must not change while it is in use. `TreePath.root` creates the first path.
    """

    __slots__ = ("__weakref__", "_resolver", "path")

    def __init__(self, path: str, resolver: _Resolver) -> None:
        self.path = path
        self._resolver = resolver

    @classmethod
    def root(cls, tree: Tree) -> TreePath:
        """Puts a tree into its own fake file system and returns the root."""
        from numaproof.fakesys.lazy import new_filesystem  # noqa: PLC0415 - pyfakefs is slow to load

        return cls("", _Resolver(new_filesystem(tree)))

    def __str__(self) -> str:
        return self.path or "/"

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def __truediv__(self, key: str) -> TreePath:
        return TreePath(f"{self.path}/{key}", self._resolver)

    def read_bytes(self) -> bytes:
        """Returns the contents of a file.

        Raises:
            OSError: as in a real file system.
        """
        file = self._resolver.entry(self.path)
        content = file.byte_contents
        if content is None or S_ISDIR(file.stat_result.st_mode):
            raise _failure(errno.EISDIR, self.path)
        return content

    def iterdir(self) -> Iterator[TreePath]:
        """Yields the entries of a directory.

        Raises:
            OSError: as in a real file system.
        """
        for name in self._resolver.directory(self.path).entries:
            yield self / name
