"""Directories in pyfakefs that create their entries on first access.

A machine with 256 CPUs has 20,000 files, and pyfakefs takes a third of a millisecond to create a
file by path. Discovery reads only a few thousand of them.
"""

from __future__ import annotations

import errno
from stat import S_IFLNK, S_IFREG
from threading import RLock
from typing import TYPE_CHECKING, cast
from weakref import ref

from pyfakefs.fake_file import FakeDirectory, FakeFile
from pyfakefs.fake_filesystem import FakeFilesystem

from numaproof.fakesys.entries import Directory, Symlink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.fakesys.tree import Tree

Folder = dict[str, "bytes | Symlink | Folder"]
"""The content of a directory, by name."""


_MAKING = RLock()
"""Held while entries are created, because several threads can read the same tree."""


class LazyDirectory(FakeDirectory):
    """A directory that creates each entry when it is first looked up.

    Listing the directory creates all of its entries, but not what is below them.
    """

    def __init__(self, name: str, filesystem: FakeFilesystem, pending: Folder) -> None:
        super().__init__(name, 0o755, filesystem=filesystem)
        self._pending = pending

    @property
    def entries(self) -> dict[str, FakeFile]:
        if self._pending:
            with _MAKING:
                for name in tuple(self._pending):
                    self._make(name)
        return self._entries

    def get_entry(self, pathname_name: str) -> FakeFile:
        """Returns the entry with a name.

        Raises:
            KeyError: there is no such entry.
        """
        if pathname_name in self._pending:
            self._make(pathname_name)
        found = self._entries.get(pathname_name)
        return super().get_entry(pathname_name) if found is None else found

    def _make(self, name: str) -> None:
        """Adds an entry as `add_entry` would, but without first creating all entries."""
        with _MAKING:
            if name not in self._pending:
                return
            made = _make_entry(name, self._pending[name], self.filesystem)
            made.parent_dir = ref(self)
            self.filesystem.last_ino += 1
            stat = made.stat_result
            stat.st_ino = self.filesystem.last_ino
            stat.st_dev = self.stat_result.st_dev
            stat.st_nlink += 1
            self.stat_result.st_nlink += 1
            self._entries[name] = made
            del self._pending[name]


def mount(tree: Tree, fs: FakeFilesystem, root: str) -> None:
    """Mounts a tree in a fake file system, in the directory `root`, which may already exist.

    Raises:
        OSError: `root` is not a directory, or an entry of the tree already exists.
    """
    if not fs.exists(root):
        fs.create_dir(root)
    _merge(fs.resolve(root), _folders(tree), fs)


def new_filesystem(tree: Tree) -> FakeFilesystem:
    fs = FakeFilesystem()
    mount(tree, fs, "/")
    return fs


def _merge(directory: FakeFile, folder: Folder, fs: FakeFilesystem) -> None:
    if not isinstance(directory, FakeDirectory):
        fs.raise_os_error(errno.ENOTDIR, directory.path)
    for name, content in folder.items():
        if isinstance(content, dict) and name in directory.entries:
            _merge(directory.get_entry(name), content, fs)
        else:
            directory.add_entry(_make_entry(name, content, fs))


def _make_entry(name: str, content: bytes | Symlink | Folder, fs: FakeFilesystem) -> FakeFile:
    match content:
        case bytes():
            return FakeFile(name, S_IFREG | 0o644, cast("str", content), fs)
        case Symlink():
            return FakeFile(name, S_IFLNK | 0o777, content.target, fs, encoding="utf-8")
        case _:
            return LazyDirectory(name, fs, content)


def _folders(tree: Mapping[str, bytes | Symlink | Directory]) -> Folder:
    folders: dict[str, Folder] = {"": {}}

    def folder(path: str) -> Folder:
        if path not in folders:
            parent, _, name = path.rpartition("/")
            folders[path] = {}
            folder(parent)[name] = folders[path]
        return folders[path]

    for path, entry in tree.items():
        parent, _, name = path.rpartition("/")
        if isinstance(entry, Directory):
            folder(path)
        else:
            folder(parent)[name] = entry
    return folders[""]
