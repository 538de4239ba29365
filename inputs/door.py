"""Opens files that users name: only regular files, up to a maximum size, without blocking.

A name can refer to a FIFO without a writer, an endless device, a sparse file of terabytes, or an
archive that expands to terabytes. All of these cause an immediate error.
"""

from __future__ import annotations

import codecs
import io
import lzma
import os
import stat
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self

from numaproof.inputs.errors import DocumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of a file in bytes, before and after unpacking."""

DOCUMENT_BYTES = 8 * 1024 * 1024
"""Maximum size of a YAML or JSON file in bytes; parsing it takes a hundred times as much memory."""

_MAX_MEMORY = 256 * 1024 * 1024
"""Memory in bytes for unpacking, in addition to the result; `xz -9` needs 65 MiB."""

_CHUNK = 1 << 20

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

StrPath = str | os.PathLike[str]


@contextmanager
def open_regular(
    path: StrPath, *, name: str | None = None, most: int = MAX_BYTES
) -> Iterator[BinaryIO]:
    """Opens a regular file for reading bytes.

    Args:
        path: the file.
        name: the name to use in messages instead of the path.
        most: the maximum size in bytes.

    Raises:
        DocumentError: the file cannot be read, is not a regular file, or is too large.
    """
    name = name or os.fspath(path)
    with os.fdopen(descriptor(path, os.O_RDONLY, name=name), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise _too_large(name, most)
        yield file


def descriptor(path: StrPath, flags: int, *, name: str | None = None) -> int:
    """Opens a regular file without blocking, and returns its file descriptor.

    Args:
        path: the file.
        flags: as for ``os.open``.
        name: the name to use in messages instead of the path.

    Raises:
        DocumentError: the file cannot be opened, or is not a regular file.
    """
    name = name or os.fspath(path)
    try:
        if not flags & os.O_CREAT or os.path.exists(path):  # noqa: PTH110 - no Path needed
            # Opening a device can have side effects, so check its kind first.
            _require_regular(name, os.stat(path))  # noqa: PTH116 - no Path needed
        number = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise DocumentError(name, 0, "", f"cannot read: {error.strerror}") from None
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(name, 0, "", f"cannot read: {error}") from None
    try:
        _require_regular(name, os.fstat(number))
    except BaseException:
        os.close(number)
        raise
    return number


def read(path: StrPath, *, name: str | None = None, most: int = MAX_BYTES) -> bytes:
    """Reads the bytes of a regular file.

    Raises:
        DocumentError: as for `open_regular`.
    """
    name = name or os.fspath(path)
    with open_regular(path, name=name, most=most) as file:
        return read_bounded(file, name, most=most)


def read_text(path: StrPath, *, name: str | None = None, most: int = MAX_BYTES) -> str:
    """Reads the text of a regular file.

    Raises:
        DocumentError: as for `open_regular`, or the file is not UTF-8.
    """
    name = name or os.fspath(path)
    return text(read(path, name=name, most=most), name)


class Readable(Protocol):
    """A source of bytes: a file, standard input or a decompressor."""

    def read(self, size: int, /) -> bytes:
        """Returns up to `size` bytes; none at the end."""


def read_bounded(stream: Readable, name: str, *, most: int = MAX_BYTES) -> bytes:
    """Reads the rest of a stream of unknown size.

    Raises:
        DocumentError: the stream has more than `most` bytes, or cannot be read.
    """
    found = bytearray()
    try:
        while chunk := stream.read(min(_CHUNK, most + 1 - len(found))):
            found += chunk
            if len(found) > most:
                raise _too_large(name, most)
    except OSError as error:
        raise DocumentError(name, 0, "", f"cannot read: {error.strerror}") from None
    return bytes(found)


def lines(stream: BinaryIO, name: str, *, longest: int = MAX_BYTES) -> Iterator[bytes]:
    """Yields the lines of a file of any size, each with its line break.

    Raises:
        DocumentError: a line is longer than any that numaproof writes.
    """
    number = 0
    while line := stream.readline(longest + 1):
        number += 1
        if len(line) > longest:
            raise DocumentError(name, number, "", f"a line is longer than {longest:,} bytes")
        yield line


def without_utf16(content: bytes) -> bytes:
    """Returns text in UTF-16, which Windows writes with a byte order mark, as UTF-8."""
    if not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content
    try:
        return content.decode("utf-16").encode()
    except UnicodeError:
        return content


def text(content: bytes, name: str) -> str:
    """Decodes a file's bytes as UTF-8, or as UTF-16 if they begin with its byte order mark.

    Raises:
        DocumentError: the bytes are not UTF-8; the message locates the first invalid one.
    """
    content = without_utf16(content).removeprefix(codecs.BOM_UTF8)
    if content[1::2].count(0) * 2 > len(content[1::2]) > 1:
        raise DocumentError(name, 0, "", "UTF-16 without a byte order mark", "save it as UTF-8")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode()) + 1
        bad = f"byte 0x{content[error.start]:02x} in column {column}"
        raise DocumentError(
            name, line, "", f"not UTF-8 text: {bad} ({error.reason})", "save it as UTF-8"
        ) from None


def unpack_xz(content: bytes, name: str, *, most: int = MAX_BYTES) -> bytes:
    """Unpacks xz-compressed bytes, with limited memory.

    Raises:
        DocumentError: the bytes are not an xz file, or unpack to more than `most` bytes.
    """
    found = bytearray()
    with Unpacking(io.BytesIO(content)) as stream:
        try:
            while chunk := stream.read(min(_CHUNK, most + 1 - len(found))):
                found += chunk
                if len(found) > most:
                    raise DocumentError(name, 0, "", f"unpacks to more than {most:,} bytes")
        except (lzma.LZMAError, EOFError) as error:
            raise DocumentError(name, 0, "", f"not an xz file: {error}") from None
    if not found:
        raise DocumentError(name, 0, "", "is empty")
    return bytes(found)


GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file."""


def unpack_gzip(content: bytes, name: str, *, most: int = MAX_BYTES) -> bytes:
    """Unpacks gzip-compressed bytes, with limited memory.

    Raises:
        DocumentError: the bytes are not a gzip file, or unpack to more than `most` bytes.
    """
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        found = stream.decompress(content, most + 1)
    except zlib.error as error:
        raise DocumentError(name, 0, "", f"not a gzip file: {error}") from None
    if len(found) > most:
        raise DocumentError(name, 0, "", f"unpacks to more than {most:,} bytes")
    if not stream.eof:
        raise DocumentError(name, 0, "", "not a gzip file: it ends too early")
    return found


class Unpacking:
    """Unpacks an xz stream piece by piece in bounded memory, unlike `lzma.LZMAFile`."""

    def __init__(self, source: Readable) -> None:
        """Unpacks the given stream."""
        self._source = source
        self._stream = _decompressor()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing."""

    def read(self, size: int, /) -> bytes:
        """Returns up to `size` bytes; none at the end.

        Raises:
            lzma.LZMAError: the stream is damaged, or needs too much memory.
            EOFError: the stream ends too early.
        """
        while True:
            if self._stream.eof:
                # Another stream may follow, after zeros.
                rest = self._stream.unused_data.lstrip(b"\0") or self._source.read(_CHUNK)
                if not rest.strip(b"\0"):
                    return b""
                self._stream = _decompressor()
            elif self._stream.needs_input:
                rest = self._source.read(_CHUNK)
                if not rest:
                    raise EOFError("it ends too early")
            else:
                rest = b""
            if chunk := self._stream.decompress(rest, size):
                return chunk


def _decompressor() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_MEMORY)


def _require_regular(name: str, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((kind for test, kind in _KINDS if test(status.st_mode)), "no file")
    raise DocumentError(
        name, 0, "", f"is {kind}, not a regular file", "save its contents to a regular file first"
    )


def _too_large(name: str, most: int) -> DocumentError:
    return DocumentError(name, 0, "", f"larger than {most:,} bytes", "split it, or use another one")
