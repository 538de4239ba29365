"""Opens a tree: ``/``, a directory, or a tar file that may be hostile."""

import bz2
import contextlib
import gzip
import lzma
import os
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Protocol

from numaproof.fakesys.members import BoundedHeader, TreeError, checked_members, plain_name
from numaproof.folders.output_files import naming
from numaproof.folders.scratch import scratch_folder
from numaproof.inputs import door
from numaproof.inputs.errors import DocumentError

MAX_ARCHIVE = 512 * 1024 * 1024

_SUFFIXES = {
    ".tar": "",
    ".tar.gz": "gz",
    ".tgz": "gz",
    ".tar.xz": "xz",
    ".txz": "xz",
    ".tar.bz2": "bz2",
    ".tbz2": "bz2",
}


@contextmanager
def open_tree(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A directory with the tree's ``sys`` and ``proc``, valid within the context.

    Args:
        path: ``/``, a directory, or a ``.tar``, ``.tar.gz``, ``.tar.xz`` or ``.tar.bz2`` file. An
            archive is checked completely and then unpacked into a temporary directory; if it
            contains only one directory, with ``sys`` below, that directory is the root.

    Raises:
        TreeError: there is no such file, it is not an archive, or the archive has ``..``, absolute
            names, links that leave it, devices, or excessive sizes.
    """
    source = Path(path)
    if source.is_dir():
        yield source
        return
    if not source.exists():
        raise TreeError(f"{source}: no such file or directory")
    kind = next((s for s in sorted(_SUFFIXES, key=len) if source.name.endswith(s)), None)
    if kind is None:
        raise TreeError(
            f"{source}: expected a directory or a file ending in {', '.join(_SUFFIXES)}"
        )
    with scratch_folder() as root:
        try:
            with _opened(source, _SUFFIXES[kind]) as raw, _decompressed(raw, kind, root) as stream:
                _unpack(stream, root)
        except TreeError as error:
            raise TreeError(f"{source}: {error}") from None
        except DocumentError as error:
            raise TreeError(str(error)) from None
        except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
            raise TreeError(f"{source}: cannot unpack: {error}") from None
        yield _root(root)


def _root(directory: Path) -> Path:
    if not (directory / "sys").exists():
        below = list(directory.iterdir())
        if len(below) == 1 and (below[0] / "sys").is_dir():
            return below[0]
    return directory


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Bounded:
    """A stream that fails after too many bytes, so that no archive bomb fills the disk."""

    def __init__(self, stream: _Readable) -> None:
        self._stream = stream
        self._left = MAX_ARCHIVE

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise TreeError(f"unpacks to more than {MAX_ARCHIVE} bytes")
        return data


def _opened(source: Path, packing: str) -> AbstractContextManager[IO[bytes]]:
    """The archive; one that is not compressed may be as large as the others when unpacked."""
    return door.opened(source, most=door.MOST_BYTES if packing else MAX_ARCHIVE)


_OPENERS: dict[str, Callable[[IO[bytes]], AbstractContextManager[_Readable]]] = {
    "": contextlib.nullcontext,
    "gz": lambda raw: gzip.GzipFile(fileobj=raw),
    "xz": door.Unpacking,
    "bz2": bz2.BZ2File,
}


@contextmanager
def _decompressed(raw: IO[bytes], kind: str, root: Path) -> Iterator[IO[bytes]]:
    open_stream = _OPENERS[_SUFFIXES[kind]]
    with open_stream(raw) as stream, tempfile.TemporaryFile(dir=root) as whole:
        # The archive is read twice (to check, then to write), so it is decompressed to a file once.
        bounded = _Bounded(stream)
        while chunk := bounded.read(1 << 20):
            with naming(root):
                whole.write(chunk)
        whole.seek(0)
        yield whole


def _unpack(stream: IO[bytes], root: Path) -> None:
    with tarfile.open(fileobj=stream, mode="r:", tarinfo=BoundedHeader) as archive:
        members = checked_members(archive)
        for name, member in members.items():
            target = root / name
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
            elif member.isfile():
                content = archive.extractfile(member)
                assert content is not None
                target.parent.mkdir(parents=True, exist_ok=True)
                with naming(target):
                    target.write_bytes(content.read())
        # Links come last, so that nothing is ever written through one.
        for name, member in members.items():
            target = root / name
            if member.issym():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(member.linkname)
            elif member.islnk():
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(root / plain_name(member.linkname), target, follow_symlinks=False)
