"""Writes the output files of commands, completely or not at all.

A file is written under a temporary name next to its target and then renamed. If anything fails, the
temporary file is removed and the previous file is unchanged. Every error names the target.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PARTIAL, _SUFFIX = ".numaproof-", ".part"
"""Prefix and suffix of temporary names; a killed command can leave such a file behind."""

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
"""Errors raised by file systems that lack hard links."""

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def write_file(path: Path, content: str | bytes, *, new: bool = False) -> None:
    """Writes a file atomically; a symbolic link is kept, and its target is replaced.

    Missing folders are created, and an existing file keeps its permissions. Characters that UTF-8
    cannot encode, as in some file names, are escaped.

    Args:
        path: the target.
        content: what to write; text is encoded as UTF-8.
        new: whether an existing file is an error instead of being replaced.

    Raises:
        FileExistsError: the file exists, and `new` is set.
        OSError: the file cannot be written; the error names the target.
    """
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    with naming(path):
        target = resolve_target(path)
        found = _require_regular(target)
        if new and (found or path.is_symlink()):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{_PARTIAL}{secrets.token_hex(6)}{_SUFFIX}")
        number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(data)
                file.flush()
                if found:
                    os.fchmod(number, stat.S_IMODE(found.st_mode))
                # A full disk may be detected only now.
                os.fsync(number)
            (_link if new else os.replace)(partial, target)
        except BaseException:
            with suppress(OSError):
                partial.unlink()
            raise


def update_file(path: Path, make: Callable[[], str]) -> None:
    """Replaces a file with text derived from its contents, while other processes wait.

    Args:
        path: the file; it need not exist.
        make: reads the file, if it exists, and returns the new text. It is called again if another
            process replaces or creates the file first.

    Raises:
        OSError: the file cannot be written; the error names the target.
    """
    while True:
        with suppress(_Outpaced), _lock_file(path) as there:
            text = make()
            try:
                write_file(path, text, new=not there)
            except FileExistsError:
                raise _Outpaced from None
            return


class _Outpaced(Exception):  # noqa: N818 - it never leaves this module
    """Another process replaced or created the file first."""


@contextmanager
def _lock_file(path: Path) -> Iterator[bool]:
    with naming(path):
        try:
            _require_regular(resolve_target(path))
            lock = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            lock = -1
    if lock < 0:
        yield False
        return
    try:
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        with naming(path):
            try:
                if not os.path.samestat(os.fstat(lock), path.stat()):
                    raise _Outpaced
            except FileNotFoundError:
                raise _Outpaced from None
        yield True
    finally:
        os.close(lock)


def require_writable(path: Path) -> None:
    """Checks before a long computation that a file can be written; does not write it.

    Missing parent folders are allowed. Problems that only writing reveals, such as a full disk, are
    not detected.

    Raises:
        OSError: the file cannot be written; the error names it.
    """
    with naming(path):
        target = resolve_target(path)
        _require_regular(target)
    require_writable_folder(target.parent)


def require_writable_folder(path: Path) -> None:
    """Checks that files can be created in a folder, or that the folder can be created.

    Raises:
        OSError: they cannot be created; the error names the folder or its nearest existing parent.
    """
    resolve_target(path)
    with naming(path):
        there = path
        while not _exists(there):
            there = there.parent
    with naming(there):
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(there, os.W_OK | os.X_OK):
            read_only = os.statvfs(there).f_flag & os.ST_RDONLY
            code = errno.EROFS if read_only else errno.EACCES
            raise OSError(code, os.strerror(code))


def clear_partials(folder: Path) -> None:
    """Removes temporary files that a killed command left in a folder.

    Raises:
        OSError: a file cannot be removed.
    """
    for file in partials(folder):
        file.unlink(missing_ok=True)


def partials(folder: Path) -> Iterator[Path]:
    """Returns the temporary files that a killed command left in a folder."""
    return folder.glob(f"{_PARTIAL}*{_SUFFIX}")


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Adds a file's name to errors raised in a block.

    Raises:
        OSError: an error raised in the block, with the same class and the name added.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def resolve_target(path: Path) -> Path:
    """Resolves the path that output is written to.

    Raises:
        OSError: the path, or a folder above it, is a symbolic link to nothing or to itself; the
            error names the path.
    """
    target = Path(os.path.realpath(path))  # `Path.resolve` raises a RuntimeError for a loop
    with naming(path):
        if target.is_symlink():
            target.stat()
        for one in (path, *path.parents):
            if one.is_symlink() and not _exists(one, follow_links=True):
                link = "" if one == path else f"{one} "
                fix = "remove it or name another path"
                raise OSError(errno.EINVAL, f"{link}is a broken symbolic link; {fix}")
    return target


def _exists(path: Path, *, follow_links: bool = False) -> bool:
    """Whether a path exists; unlike `Path.exists`, raises an error if this is unknown.

    With `follow_links`, the target of a link must exist; a link to itself is an error.
    """
    try:
        path.stat(follow_symlinks=follow_links)
    except FileNotFoundError:
        return False
    return True


def _require_regular(target: Path) -> os.stat_result | None:
    """Returns the status of a target, which must be a regular file or missing.

    Raises:
        OSError: it is something else, or its status is unknown.
    """
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if kind != stat.S_IFREG:
        said = f"is {_KINDS.get(kind, 'something else')}, not a regular file; name another file"
        raise OSError(errno.EINVAL, said)
    return found


def _link(partial: Path, target: Path) -> None:
    """Renames a file, unless the target exists."""
    try:
        os.link(partial, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        partial.rename(target)
    else:
        partial.unlink()
