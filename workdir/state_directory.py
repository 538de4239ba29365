"""State directories: the harness creates them, programs fill them, and the harness edits the files.

Files are read, written and removed relative to a descriptor of the directory and without following
links, so that nothing outside it is affected. Only regular files of limited size are accepted; for
anything else, an error names the file and its type.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from numaproof.workdir.scratch import make_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LARGEST = 64 << 20
"""Maximum size of a file in bytes."""

MAX_ENTRIES = 10_000
"""Maximum number of entries in the directory."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class StateError(Exception):
    """A state directory has unexpected contents; the message names the file and its type.

    Attributes:
        what: the message, excluding the operating system's text.
    """

    def __init__(self, what: str, why: str | None = None) -> None:
        super().__init__(f"{what}: {why}" if why else what)
        self.what = what


class StateDirectory:
    """A state directory.

    Attributes:
        path: the path to give to programs.
    """

    def __init__(self, path: Path) -> None:
        """Uses an existing directory."""
        self.path = path
        self._above = _identity(os.stat(path.parent))

    @classmethod
    def create(cls, path: Path) -> StateDirectory:
        """Creates an empty state directory and its parents."""
        make_folder(path)
        return cls(path)

    def read(self, name: str) -> bytes | None:
        """Returns the contents of a file; None if it does not exist.

        Raises:
            StateError: it is not a regular file, or is too large.
        """
        with self._open_directory() as directory:
            return _read(directory, name)

    def write(self, name: str, content: bytes) -> None:
        """Writes a file, replacing any existing file.

        The old file is not modified, because a hard link outside may share it.

        Raises:
            StateError: the existing entry is not a regular file, or the file cannot be written.
        """
        with self._open_directory() as directory:
            _check(directory, name)
            beside = f".{name}.{secrets.token_hex(4)}"
            try:
                file = os.open(
                    beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o666, dir_fd=directory
                )
                with open(file, "wb") as stream:
                    stream.write(content)
                os.replace(beside, name, src_dir_fd=directory, dst_dir_fd=directory)
            except OSError as error:
                with suppress(OSError):
                    os.unlink(beside, dir_fd=directory)
                raise _cannot("write", name, error) from None

    def remove(self, name: str) -> None:
        """Removes a file.

        Raises:
            StateError: the file does not exist, or is not a regular file.
        """
        with self._open_directory() as directory:
            _check(directory, name)
            try:
                os.unlink(name, dir_fd=directory)
            except OSError as error:
                raise _cannot("remove", name, error) from None

    def _check_place(self) -> None:
        """Checks that the parent folder is still the same.

        Raises:
            StateError: it was removed or replaced.
        """
        try:
            above = _identity(os.stat(self.path.parent))
        except OSError:
            above = None
        if above != self._above:
            raise StateError("the folder above the state directory was removed or replaced")

    def check(self, names: Iterable[str] = ()) -> None:
        """Checks that the directory exists, is readable and has few enough entries.

        Entries with one of the `names` must be regular files of limited size.

        Raises:
            StateError: a check failed.
        """
        with self._open_directory() as directory, os.scandir(directory) as entries:
            for name in names:
                _check(directory, name)
            for number, entry in enumerate(entries):
                if number == MAX_ENTRIES:
                    raise StateError(f"the state directory has more than {MAX_ENTRIES} entries")
                if not entry.name.isprintable():
                    shown = os.fsencode(entry.name)[:80]
                    raise StateError(f"the state directory has a file named {shown!r}")

    @contextmanager
    def _open_directory(self) -> Iterator[int]:
        self._check_place()
        try:
            directory = os.open(self.path, _DIRECTORY)
        except OSError as error:
            raise _instead(self.path, error) from None
        try:
            yield directory
        finally:
            os.close(directory)


def _read(directory: int, name: str) -> bytes | None:
    _check(directory, name)
    try:
        file = os.open(name, os.O_RDONLY | _FILE, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _cannot("read", name, error) from None
    try:
        found = os.fstat(file)
        _require_file(name, found)  # it may have changed since the check
        content = b""
        while more := os.read(file, found.st_size - len(content)):
            content += more
        return content
    finally:
        os.close(file)


def _check(directory: int, name: str) -> None:
    """Checks that an entry, if it exists, is a regular file of limited size, without opening it."""
    try:
        _require_file(name, os.lstat(name, dir_fd=directory))
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot("read", name, error) from None


def _require_file(name: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise StateError(f"{name} in the state directory is {_kind(status.st_mode)}, not a file")
    if status.st_size > LARGEST:
        raise StateError(f"{name} in the state directory is larger than {LARGEST >> 20} MiB")


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFREG: "a file",
    }
    return kinds.get(stat.S_IFMT(mode), "something unknown")


def _instead(path: Path, error: OSError) -> StateError:
    if error.errno == errno.ENOENT:
        return StateError("the state directory was removed")
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        if not stat.S_ISDIR(mode):
            return StateError(f"the state directory was replaced by {_kind(mode)}")
    return StateError("the state directory can't be read", error.strerror)


def _cannot(do: str, name: str, error: OSError) -> StateError:
    return StateError(f"can't {do} {name} in the state directory", error.strerror)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
