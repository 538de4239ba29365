"""Attacks on the module that opens users' files: anything unusual is refused by name."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import socket
from typing import TYPE_CHECKING

import pytest

from numaproof.inputs import door
from numaproof.inputs.errors import DocumentError, shorten

if TYPE_CHECKING:
    from pathlib import Path


def test_a_regular_file_is_read_completely(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(b"one\ntwo\n")
    assert door.read(tmp_path / "good") == b"one\ntwo\n"
    assert door.read_text(str(tmp_path / "good")) == "one\ntwo\n"


def test_a_link_to_a_regular_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(b"one")
    (tmp_path / "link").symlink_to("good")
    assert door.read(tmp_path / "link") == b"one"


def test_a_fifo_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DocumentError, match=r"^\S+pipe: is a FIFO, not a regular file"):
        door.read(tmp_path / "pipe")


def test_a_device_a_socket_and_a_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"^/dev/zero: is a device, not a regular file"):
        door.read("/dev/zero")
    with pytest.raises(DocumentError, match="is a directory, not a regular file"):
        door.read(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "sock"))
        with pytest.raises(DocumentError, match="sock: is a socket, not a regular file"):
            door.read(tmp_path / "sock")


def test_missing_files_and_impossible_names_are_reported(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="none: cannot read: No such file or directory"):
        door.read(tmp_path / "none")
    with pytest.raises(DocumentError, match="cannot read"):
        door.read("a\0b")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(DocumentError, match="cannot read: Too many levels"):
        door.read(tmp_path / "loop")


def test_a_sparse_file_of_terabytes_is_refused_by_its_size(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(DocumentError, match=r"sparse: larger than 67,108,864 bytes \(split it"):
        door.read(tmp_path / "sparse")


def test_a_file_of_unknown_size_is_read() -> None:
    # Files in /proc have content although their size is 0.
    assert b"Name:" in door.read("/proc/self/status")
    with pytest.raises(DocumentError, match="larger than 10 bytes"):
        door.read("/proc/self/status", most=10)


def test_a_file_is_named_as_the_user_named_it(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"^theirs: cannot read") as caught:
        door.read_text(tmp_path / "none", name="theirs")
    assert (caught.value.file, caught.value.line) == ("theirs", 0)


@pytest.mark.parametrize(
    ("content", "line", "place"),
    [
        (b"a: 1\nb: caf\xe9\n", 2, "byte 0xe9 in column 7"),
        ("ä\nöö".encode() + b"\xc3", 2, "byte 0xc3 in column 3"),
    ],
)
def test_invalid_utf_8_is_refused_with_the_first_bad_byte(
    content: bytes, line: int, place: str
) -> None:
    with pytest.raises(DocumentError, match=f"not UTF-8 text: {place}") as caught:
        door.text(content, "x")
    assert caught.value.line == line


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_text_with_a_byte_order_mark_is_decoded(encoding: str) -> None:
    assert door.text("größe: 1\n".encode(encoding), "file") == "größe: 1\n"


def test_utf_16_without_a_byte_order_mark_is_named() -> None:
    with pytest.raises(DocumentError, match=r"UTF-16 without a byte order mark \(save it as UTF-8"):
        door.text("size: 1\n".encode("utf-16-le"), "file")


def test_an_endless_stream_is_read_up_to_the_limit() -> None:
    with pytest.raises(DocumentError, match="<stdin>: larger than 1,000 bytes"):
        door.read_bounded(_Endless(), "<stdin>", most=1000)
    assert door.read_bounded(io.BytesIO(b"x" * 1000), "<stdin>", most=1000) == b"x" * 1000


class _Endless:
    def read(self, size: int, /) -> bytes:
        return b"\0" * size


def test_lines_are_read_one_by_one_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"one\ntwo\n" + b"3" * 100)
    with door.open_regular(tmp_path / "x") as file:
        assert list(door.lines(file, "x", longest=100)) == [b"one\n", b"two\n", b"3" * 100]
    with (
        door.open_regular(tmp_path / "x") as file,
        pytest.raises(DocumentError, match="x:3: a line is longer than 99 bytes"),
    ):
        list(door.lines(file, "x", longest=99))


def test_a_new_file_can_be_created_but_a_fifo_is_refused(
    tmp_path: Path,
) -> None:
    flags = os.O_RDWR | os.O_CREAT
    os.close(door.descriptor(tmp_path / "new", flags))
    os.close(door.descriptor(tmp_path / "new", flags))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DocumentError, match="is a FIFO"):
        door.descriptor(tmp_path / "pipe", flags)


def test_a_stream_that_fails_is_named() -> None:
    class Broken:
        def read(self, size: int, /) -> bytes:
            raise OSError(5, f"no {size} bytes")

    with pytest.raises(DocumentError, match="<stdin>: cannot read: no"):
        door.read_bounded(Broken(), "<stdin>")


def test_compressed_bytes_are_decompressed() -> None:
    packed = lzma.compress(b"one") + lzma.compress(b"two") + b"\0\0\0\0"
    assert door.unpack_xz(packed, "x") == b"onetwo"


def test_gzip_files_are_unpacked_up_to_a_limit() -> None:
    packed = gzip.compress(b"one")
    assert packed.startswith(door.GZIP)
    assert door.unpack_gzip(packed, "x") == b"one"
    with pytest.raises(DocumentError, match="x: unpacks to more than 1,000,000 bytes"):
        door.unpack_gzip(gzip.compress(b"\0" * (1 << 24)), "x", most=1_000_000)


@pytest.mark.parametrize(
    "content", [door.GZIP, gzip.compress(b"one", mtime=0)[:-1], b"\x1f\x8bone"]
)
def test_damaged_gzip_files_are_named(content: bytes) -> None:
    with pytest.raises(DocumentError, match="x: not a gzip file"):
        door.unpack_gzip(content, "x")


def test_a_compression_bomb_stops_at_the_limit() -> None:
    bomb = lzma.compress(b"\0" * (1 << 24))
    assert len(bomb) < 1 << 13
    with pytest.raises(DocumentError, match="x: unpacks to more than 1,000,000 bytes"):
        door.unpack_xz(bomb, "x", most=1_000_000)


def test_formats_that_need_gigabytes_of_memory_are_refused() -> None:
    hungry = lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}])
    with pytest.raises(DocumentError, match="x: not an xz file: Memory usage limit exceeded"):
        door.unpack_xz(lzma.compress(b"one") + hungry, "x")


@pytest.mark.parametrize("content", [b"", b"{}", lzma.compress(b"one")[:-9], lzma.compress(b"")])
def test_uncompressed_files_are_refused(content: bytes) -> None:
    with pytest.raises(DocumentError, match=r"x: (not an xz file|is empty)"):
        door.unpack_xz(content, "x")


def test_an_error_truncates_a_long_text() -> None:
    told = str(DocumentError("x", 3, "k" * 1_000_000, "m" * 1_000_000, "f" * 1_000_000))
    assert len(told) < 4000
    assert "... and 999,000 more characters" in told
    assert shorten("short") == "short"
