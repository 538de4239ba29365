"""Writes a tree to pyfakefs, a directory or a tar file."""

import gzip
import io
import lzma
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from numaproof.fakesys.entries import Directory, Symlink
from numaproof.fakesys.tree import Tree
from numaproof.workdir.output_files import naming, resolve_target, write_file

if TYPE_CHECKING:
    from pyfakefs.fake_filesystem import FakeFilesystem


class WriteError(ValueError):
    """The target cannot be written; the message says why and how to fix it."""


def write_fake(tree: Tree, fs: "FakeFilesystem", root: str = "/") -> None:
    """Mounts a tree in a pyfakefs file system; files are created on first access.

    Args:
        tree: the tree.
        fs: the fake file system (pytest's ``fs`` fixture).
        root: the directory of the fake file system to use as ``/``.

    Raises:
        OSError: a file of the same name exists.
    """
    from numaproof.fakesys.lazy import mount  # noqa: PLC0415 - pyfakefs is slow to load

    mount(tree, fs, root)


def write_directory(tree: Tree, path: str | os.PathLike[str]) -> None:
    """Writes a tree to a new or empty directory, completely or not at all.

    Raises:
        WriteError: the path is not a directory, is not empty, or cannot be created.
    """
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise WriteError(f"{target} is not a directory; use a new one")
    if target.is_dir() and any(target.iterdir()):
        raise WriteError(f"{target} is not empty; use a new or an empty directory")
    try:
        final = resolve_target(target)
        final.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.parent))
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror}") from None
    try:
        with naming(beside):
            _fill(tree, str(beside))
        beside.chmod(0o755)
        # Replaces an empty directory atomically, or fails if it is no longer empty.
        beside.rename(final)
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _fill(tree: Tree, base: str) -> None:
    """Writes files directory by directory (the tree is sorted), with relative paths, for speed."""
    made = {""}
    current, handle = "", os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for path, entry in tree.items():
            parent, _, name = path.rpartition("/")
            if parent != current:
                _make(base, parent, made)
                # Closed only once, even if interrupted, because another file could get its number.
                left, handle = handle, os.open(f"{base}/{parent}", os.O_RDONLY)
                current = parent
                os.close(left)
            if isinstance(entry, Symlink):
                os.symlink(entry.target, name, dir_fd=handle)
            elif isinstance(entry, Directory):
                _make(base, path, made)
            else:
                file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=handle)
                try:
                    _write_all(file, entry)
                finally:
                    os.close(file)
    finally:
        os.close(handle)


def _write_all(file: int, content: bytes) -> None:
    """Writes everything; on a full disk, a call may write only part of it without an error."""
    while content:
        content = content[os.write(file, content) :]


def _make(base: str, directory: str, made_directories: set[str]) -> None:
    if directory not in made_directories:
        _make(base, directory.rpartition("/")[0], made_directories)
        os.mkdir(f"{base}/{directory}")  # noqa: PTH102 - Path objects would double the time
        made_directories.add(directory)


def write_tar(tree: Tree, path: str | os.PathLike[str]) -> None:
    """Writes a tree to a ``.tar``, ``.tar.gz``, ``.tgz`` or ``.tar.xz`` file, reproducibly.

    Raises:
        WriteError: the suffix is unknown, or the file exists or cannot be written.
    """
    target = Path(path)
    compress = next((c for suffix, c in _SUFFIXES.items() if target.name.endswith(suffix)), None)
    if compress is None:
        raise WriteError(f"{target} must end in {', '.join(_SUFFIXES)}")
    if target.exists():
        raise WriteError(f"{target} exists; use a new file")
    try:
        write_file(target, compress(_tar(tree)), new=True)
    except FileExistsError:
        raise WriteError(f"{target} exists; use a new file") from None
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror}") from None


def _gzip(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=buffer, mode="wb", mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


_SUFFIXES: dict[str, Callable[[bytes], bytes]] = {
    ".tar": lambda data: data,
    ".tar.gz": _gzip,
    ".tgz": _gzip,
    ".tar.xz": lzma.compress,
}


def _tar(tree: Tree) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        made = {""}
        for path, entry in tree.items():
            folders = [path[:i] for i, one in enumerate(path) if one == "/"]
            for folder in (*folders, path) if isinstance(entry, Directory) else folders:
                if folder not in made:
                    archive.addfile(_header(folder, tarfile.DIRTYPE, 0o755))
                    made.add(folder)
            if isinstance(entry, bytes):
                header = _header(path, tarfile.REGTYPE, 0o644)
                header.size = len(entry)
                archive.addfile(header, io.BytesIO(entry))
            elif isinstance(entry, Symlink):
                header = _header(path, tarfile.SYMTYPE, 0o777)
                header.linkname = entry.target
                archive.addfile(header)
    return buffer.getvalue()


def _header(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    """Creates a header for a member owned by root and dated 1970, whichever machine writes it."""
    header = tarfile.TarInfo(path)
    header.type = kind
    header.mode = mode
    header.mtime = 0
    return header
