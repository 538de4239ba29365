"""Reads a tree that pyfakefs holds, without patching anything.

It goes from directory to entry and keeps what it has found. To open a thousand files through
pyfakefs's own `open`, each by its whole path, takes half a second.
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
    """A fake file system, with what was found in it by the paths asked for."""

    def __init__(self, fs: FakeFilesystem) -> None:
        self._fs = fs
        self._entries: dict[str, FakeFile] = {}

    def directory(self, path: str) -> FakeDirectory:
        found = self.entry(path)
        if not S_ISDIR(found.stat_result.st_mode):
            raise _failure(errno.ENOTDIR, path)
        return cast("FakeDirectory", found)

    def entry(self, path: str, links: int = 0) -> FakeFile:
        """What is at a path, or where the link there leads; `links` have led to it already."""
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
    """A path in a tree that pyfakefs holds, with the part of pathlib's interface to read it.

    What it reads must not change meanwhile. `TreePath.root` makes the first one.
    """

    __slots__ = ("__weakref__", "_resolver", "path")

    def __init__(self, path: str, resolver: _Resolver) -> None:
        """Is the path of an absolute name; the root's is empty."""
        self.path = path
        self._resolver = resolver

    @classmethod
    def root(cls, tree: Tree) -> TreePath:
        """The root of a tree, in a fake file system of its own."""
        from numaproof.fakesys.lazy import new_filesystem  # noqa: PLC0415 - pyfakefs is slow to load

        return cls("", _Resolver(new_filesystem(tree)))

    def __str__(self) -> str:
        """The path as the fake file system has it."""
        return self.path or "/"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    def __truediv__(self, key: str) -> TreePath:
        """The path `key`, relative to this one."""
        return TreePath(f"{self.path}/{key}", self._resolver)

    def read_bytes(self) -> bytes:
        """The content of a file.

        Raises:
            OSError: as a file system would.
        """
        file = self._resolver.entry(self.path)
        content = file.byte_contents
        if content is None or S_ISDIR(file.stat_result.st_mode):
            raise _failure(errno.EISDIR, self.path)
        return content

    def iterdir(self) -> Iterator[TreePath]:
        """The entries of a directory.

        Raises:
            OSError: as a file system would.
        """
        for name in self._resolver.directory(self.path).entries:
            yield self / name
