"""Reads a tree in memory, without writing it to disk."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from numaproof.fakesys.entries import Directory, Entry, Symlink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.fakesys.tree import Tree

_MOST_LINKS = 40


class _Folders:
    """The tree's directories and their entries; follows symbolic links."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._resolved: dict[str, str] = {}

    @cached_property
    def _children(self) -> dict[str, dict[str, Entry | None]]:
        folders: dict[str, dict[str, Entry | None]] = {"": {}}
        for path, entry in self._tree.items():
            parent, _, name = path.rpartition("/")
            self._make(folders, parent)[name] = entry
            if isinstance(entry, Directory):
                folders.setdefault(path, {})
        return folders

    def _make(
        self, folders: dict[str, dict[str, Entry | None]], path: str
    ) -> dict[str, Entry | None]:
        if path not in folders:
            folders[path] = {}
            parent, _, name = path.rpartition("/")
            self._make(folders, parent).setdefault(name, None)
        return folders[path]

    def names(self, path: str) -> list[str]:
        folder, entry = self._resolve(path)
        if isinstance(entry, bytes):
            raise _failure(errno.ENOTDIR, path)
        return list(self._children[folder])

    def content(self, path: str) -> bytes:
        _, entry = self._resolve(path)
        if not isinstance(entry, bytes):
            raise _failure(errno.EISDIR, path)
        return entry

    def _resolve(self, path: str) -> tuple[str, Entry | None]:
        """The path with links resolved, and its entry: None for a directory."""
        if path in self._children:
            return path, None
        parent, _, name = path.rpartition("/")
        folder = self._folder(parent)
        entry = self._children.get(folder, {}).get(name)
        if isinstance(entry, bytes):
            return f"{folder}/{name}", entry
        return self._walk(path)

    def _folder(self, path: str) -> str:
        """The path of a directory with links resolved, once for all the files in it."""
        if path not in self._resolved:
            try:
                self._resolved[path] = self._walk(path)[0]
            except OSError:
                return path
        return self._resolved[path]

    def _walk(self, path: str) -> tuple[str, Entry | None]:
        """The same, one part of the path after the other."""
        found: list[str] = []
        rest = path.split("/")[::-1]
        entry: Entry | None = None
        links = 0
        while rest:
            part = rest.pop()
            if part == "..":
                found.pop()
                continue
            folder = "/".join(found)
            if folder not in self._children:
                raise _failure(errno.ENOTDIR, path)
            if part not in self._children[folder]:
                raise _failure(errno.ENOENT, path)
            entry = self._children[folder][part]
            if isinstance(entry, Symlink):
                links += 1
                if links > _MOST_LINKS:
                    raise _failure(errno.ELOOP, path)
                rest += entry.target.split("/")[::-1]
            else:
                found.append(part)
        return "/".join(found), entry


def _failure(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)


@dataclass(frozen=True)
class TreePath:
    """A path in a tree, with the part of pathlib's interface that reading needs.

    Discovery reads it when a machine is needed but its files are not: writing a tree of 256 CPUs
    to a slow disk takes seconds. `TreePath.root` creates the first one.
    """

    path: str
    _folders: _Folders = field(repr=False)

    @classmethod
    def root(cls, tree: Tree) -> TreePath:
        """The root of a tree."""
        return cls("", _Folders(tree))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    def __truediv__(self, key: str) -> TreePath:
        """The path `key`, relative to this one."""
        return TreePath(f"{self.path}/{key}" if self.path else key, self._folders)

    def read_bytes(self) -> bytes:
        """The content of a file.

        Raises:
            OSError: as a file system would.
        """
        return self._folders.content(self.path)

    def iterdir(self) -> Iterator[TreePath]:
        """The entries of a directory.

        Raises:
            OSError: as a file system would.
        """
        for name in self._folders.names(self.path):
            yield self / name
