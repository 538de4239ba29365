"""Opens a tree: ``/``, a directory, or an untrusted tar file."""

import bz2
import contextlib
import gzip
import lzma
import os
import posixpath
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, Self

from numaproof.inputs import door
from numaproof.inputs.errors import DocumentError
from numaproof.workdir.output_files import naming
from numaproof.workdir.scratch import scratch_folder

MAX_MEMBERS = 100_000
MAX_FILE = 4 * 1024 * 1024
MAX_TOTAL = 512 * 1024 * 1024
MAX_REPORT = 1 << 30
MAX_REPORT_MEMBERS = 1_000_000
MAX_REPORT_TOTAL = 16 << 30
"""The limits of reports, only a few of whose members are unpacked."""

MAX_HEADER = 64 * 1024
"""The maximum size in bytes of an extended header, such as one with a long name."""

MAX_NAME = 1024
"""The maximum number of characters in a name; names in /sys have fewer than a hundred."""

MAX_LINKS = 4 * 1024 * 1024
"""The maximum number of characters in all links; two links per CPU need a tenth of that."""

_MAX_LINK_STEPS = 40


class TreeError(ValueError):
    """A tree cannot be read, or an archive is not safe to unpack; the message says why."""


_EXTENDED = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)


class BoundedHeader(tarfile.TarInfo):
    """A member's header; `tarfile` itself would read extended headers of any size."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Parses a header from a block.

        Raises:
            TreeError: an extended header is larger than any file in /sys needs, or the archive ends
                without the blocks of zeros that end every archive.
        """
        if not buf:
            raise TreeError("truncated: copy the archive again")
        found = super().frombuf(buf, encoding, errors)
        if found.type in _EXTENDED and found.size > MAX_HEADER:
            raise TreeError(f"a member has fields longer than {MAX_HEADER} bytes")
        return found


def checked_members(archive: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    """Returns all members by normalized name.

    Checks everything before anything is written.

    Raises:
        TreeError: a member is not safe to unpack.
    """
    members: dict[str, tarfile.TarInfo] = {}
    total = 0
    for count, member in enumerate(archive, 1):
        if count > MAX_MEMBERS:
            raise TreeError(f"more than {MAX_MEMBERS} members")
        name = plain_name(member.name)
        _check_kind(member)
        total += member.size
        if total > MAX_TOTAL:
            raise TreeError(f"more than {MAX_TOTAL} bytes in total")
        if name == "." and member.isdir():
            continue
        old = members.get(name)
        if name == "." or (old is not None and not (old.isdir() and member.isdir())):
            raise TreeError(f"{member.name}: duplicate member")
        members[name] = member
    if sum(len(member.linkname) for member in members.values()) > MAX_LINKS:
        raise TreeError(f"more than {MAX_LINKS} characters in link targets")
    _check_tree(members)
    return members


def _check_tree(members: dict[str, tarfile.TarInfo]) -> None:
    """Rejects members below anything but a directory, and links that lead out of the archive."""
    for name, member in members.items():
        _check_parents(name, members)
        if member.issym():
            _check_symlink(name, members)
        elif member.islnk():
            linked = members.get(plain_name(member.linkname))
            if linked is None or not linked.isfile():
                message = f"{member.name}: hard link to something other than a file in the archive"
                raise TreeError(message)


def _check_kind(member: tarfile.TarInfo) -> None:
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        raise TreeError(f"{member.name}: device, pipe or other special file")
    if member.sparse is not None or member.size > MAX_FILE:
        raise TreeError(f"{member.name}: larger than {MAX_FILE} bytes")


def plain_name(name: str) -> str:
    """Normalizes a member's name, which must stay below the root.

    Raises:
        TreeError: the name leaves the root or is too long.
    """
    if len(name) > MAX_NAME:
        raise TreeError(f"{name[:60]}...: the name is longer than {MAX_NAME} characters")
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise TreeError(f"{name}: outside the archive's root")
    return posixpath.normpath(name)


def _check_parents(name: str, members: dict[str, tarfile.TarInfo]) -> None:
    parent = posixpath.dirname(name)
    while parent:
        above = members.get(parent)
        if above is not None and not above.isdir():
            raise TreeError(f"{name}: {parent} is not a directory")
        parent = posixpath.dirname(parent)


def _check_symlink(name: str, members: dict[str, tarfile.TarInfo]) -> None:
    """Follows a link as the kernel would; it may dangle, but must not lead out of the root."""
    steps = 0
    place: list[str] = name.split("/")[:-1]
    todo = [members[name].linkname]
    if len(todo[0]) > MAX_NAME:
        raise TreeError(f"{name}: link to a name longer than {MAX_NAME} characters")
    while todo:
        text = todo.pop()
        if text.startswith("/"):
            raise TreeError(f"{name}: link to the absolute path {text}")
        parts = text.split("/")
        for i, part in enumerate(parts):
            if part in ("", "."):
                continue
            if part == "..":
                if not place:
                    raise TreeError(f"{name}: link that leads out of the archive's root")
                place.pop()
                continue
            place.append(part)
            below = members.get("/".join(place))
            if below is not None and below.issym():
                steps += 1
                if steps > _MAX_LINK_STEPS:
                    raise TreeError(f"{name}: circular link")
                place.pop()
                todo.append("/".join(parts[i + 1 :]))
                todo.append(below.linkname)
                break


MAX_ARCHIVE = 512 * 1024 * 1024

_OPENERS: dict[str, Callable[[IO[bytes]], AbstractContextManager[Any]]] = {
    ".tar": contextlib.nullcontext,
    **dict.fromkeys((".tar.gz", ".tgz"), lambda raw: gzip.GzipFile(fileobj=raw)),
    **dict.fromkeys((".tar.xz", ".txz"), door.Unpacking),
    **dict.fromkeys((".tar.bz2", ".tbz2"), bz2.BZ2File),
}
"""How to open an archive, by the suffix of its name."""


def unpack_some(path: str | os.PathLike[str], root: Path, selects: Callable[[str], bool]) -> None:
    """Unpacks the files of an archive that `read_some` yields to a directory.

    Raises:
        TreeError: the file is not an archive, or is too large.
    """
    for name, content in read_some(path, selects):
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with naming(target):
            target.write_bytes(content)


def read_some(
    path: str | os.PathLike[str], selects: Callable[[str], bool]
) -> Iterator[tuple[str, bytes]]:
    """Yields the regular files of an archive that a predicate `selects` by name.

    Names that leave the root, links and special files are skipped.

    Raises:
        TreeError: the file is not an archive, or is too large.
    """
    source = Path(path)
    kind = _kind(source)
    with (
        _locating(source),
        door.open_regular(source, most=MAX_REPORT) as raw,
        _OPENERS[kind](raw) as stream,
        tarfile.open(fileobj=stream, mode="r|", tarinfo=BoundedHeader) as archive,
    ):
        size = selection = 0
        for count, member in enumerate(archive, 1):
            size += member.size
            if count > MAX_REPORT_MEMBERS or size > MAX_REPORT_TOTAL:
                raise TreeError(f"larger than any report: {size} bytes in {count} members")
            if not member.isfile() or member.sparse is not None or not selects(member.name):
                continue
            selection += member.size
            if selection > MAX_TOTAL:
                raise TreeError(f"more than {MAX_TOTAL} bytes of files about machines")
            with contextlib.suppress(TreeError):
                name = plain_name(member.name)
                content = archive.extractfile(member)
                assert content is not None
                yield name, content.read()


def is_tree(path: str | os.PathLike[str]) -> bool:
    """Returns whether a directory or archive looks like a tree, rather than a report with one."""
    source = Path(path)
    if source.is_dir():
        root = _root(source)
        return (root / "sys").exists() and not (root / "sos_commands").exists()
    try:
        with open_tree(source) as root:
            return is_tree(root)
    except TreeError:
        return False


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Returns whether a file's name is that of an archive."""
    return Path(path).name.endswith(tuple(_OPENERS))


@contextmanager
def open_tree(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a directory with the tree's ``sys`` and ``proc``, valid within the context.

    Args:
        path: ``/``, a directory, or a ``.tar``, ``.tar.gz``, ``.tar.xz`` or ``.tar.bz2`` file. An
            archive is checked completely, then unpacked to a temporary directory. ``sys`` may be
            inside one of the top-level directories.

    Raises:
        TreeError: the file does not exist or is not an archive, or the archive contains ``..``,
            absolute names, links that lead out of it, devices, or excessive sizes.
    """
    source = Path(path)
    if source.is_dir():
        yield _root(source)
        return
    if not source.exists():
        raise TreeError(f"{source}: no such file or directory")
    kind = _kind(source)
    # An uncompressed archive may be as large as compressed ones when unpacked.
    most = MAX_ARCHIVE if kind == ".tar" else door.MAX_BYTES
    with scratch_folder() as root:
        with (
            _locating(source),
            door.open_regular(source, most=most) as raw,
            _decompress(raw, kind, root) as stream,
        ):
            _unpack(stream, root)
        yield _root(root)


def _kind(source: Path) -> str:
    """Returns the suffix of an archive's name.

    Raises:
        TreeError: it is not that of an archive.
    """
    kind = next((s for s in sorted(_OPENERS, key=len) if source.name.endswith(s)), None)
    if kind is None:
        message = f"{source}: expected a directory or a file ending in {', '.join(_OPENERS)}"
        raise TreeError(message)
    return kind


@contextmanager
def _locating(source: Path) -> Iterator[None]:
    """Makes all errors about an archive a `TreeError` that names it."""
    try:
        yield
    except TreeError as error:
        raise TreeError(f"{source}: {error}") from None
    except DocumentError as error:
        raise TreeError(str(error)) from None
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise TreeError(f"{source}: cannot unpack: {error}") from None


def _root(directory: Path) -> Path:
    if (directory / "sys").exists():
        return directory
    below = [folder for folder in directory.iterdir() if (folder / "sys").is_dir()]
    return below[0] if len(below) == 1 else directory


@contextmanager
def _decompress(raw: IO[bytes], kind: str, root: Path) -> Iterator[IO[bytes]]:
    with _OPENERS[kind](raw) as stream, tempfile.TemporaryFile(dir=root) as whole:
        # The archive is read twice (to check, then to write), so it is decompressed to a file once.
        left = MAX_ARCHIVE
        while chunk := stream.read(1 << 20):
            left -= len(chunk)
            if left < 0:  # an archive bomb must not fill the disk
                raise TreeError(f"unpacks to more than {MAX_ARCHIVE} bytes")
            with naming(root):
                whole.write(chunk)
        whole.seek(0)
        yield whole


def _unpack(stream: IO[bytes], root: Path) -> None:
    with tarfile.open(fileobj=stream, mode="r:", tarinfo=BoundedHeader) as archive:
        members = checked_members(archive).items()
        # Links come last, so that nothing is ever written through one.
        for name, member in sorted(members, key=lambda item: item[1].issym() or item[1].islnk()):
            target = root / name
            (target if member.isdir() else target.parent).mkdir(parents=True, exist_ok=True)
            if member.isfile():
                content = archive.extractfile(member)
                assert content is not None
                with naming(target):
                    target.write_bytes(content.read())
            elif member.issym():
                target.symlink_to(member.linkname)
            elif member.islnk():
                os.link(root / plain_name(member.linkname), target, follow_symlinks=False)
