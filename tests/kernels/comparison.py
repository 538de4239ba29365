"""Compares a tree that a kernel wrote with the tree that fakesys makes of its capture."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
import yaml

from numaproof.fakesys.archive import open_tree
from numaproof.fakesys.capture import capture
from numaproof.fakesys.entries import Directory, Entry, Symlink
from numaproof.fakesys.tree import build_tree

_HERE = Path(__file__).parent


class Exemption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files that needn't be equal, and the reason.

    Attributes:
        files: patterns of paths, as in the shell; `*` also matches `/`.
        why: the reason.
        lines: a regular expression for what must be equal all the same, at the start of a line.
    """

    files: tuple[str, ...]
    why: str
    lines: str = ""

    def covers(self, path: str) -> bool:
        return any(fnmatchcase(path, pattern) for pattern in self.files)

    def excuses(self, kernel: Entry, ours: Entry) -> bool:
        """Whether two files differ only in lines that may differ."""
        if not self.lines:
            return True
        return _lines(kernel, self.lines) == _lines(ours, self.lines)


class Exemptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `exemptions.yaml` lists.

    Attributes:
        different: files whose contents differ.
        absent: files of the kernel that fakesys doesn't generate.
    """

    different: tuple[Exemption, ...]
    absent: tuple[Exemption, ...]


class LiteralError(Exception):
    """A profile describes a kernel's tree only as a list of literal files."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel's files by how they compare with fakesys's; the values are paths.

    Attributes:
        equal: equal byte by byte.
        different: different, as an exemption says.
        absent: not generated, as an exemption says.
        unexplained: different, not generated, or generated without the kernel having it; each path
            with what is wrong.
    """

    equal: tuple[str, ...]
    different: tuple[str, ...]
    absent: tuple[str, ...]
    unexplained: Mapping[str, str]


def exemptions() -> Exemptions:
    text = (_HERE / "exemptions.yaml").read_text(encoding="utf-8")
    return msgspec.convert(yaml.safe_load(text), Exemptions)


def read_entries(archive: Path) -> dict[str, Entry]:
    """Returns the files and links of a tar file, by path."""
    entries: dict[str, Entry] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            path = member.name.removeprefix("./")
            if member.issym():
                entries[path] = Symlink(member.linkname)
            elif (file := tar.extractfile(member)) is not None:
                entries[path] = file.read()
    return entries


def rebuild(archive: Path) -> Mapping[str, Entry]:
    """Returns the tree that fakesys makes of what `capture` sees in an archive.

    Raises:
        LiteralError: the captured profile repeats the text of files instead of describing them.
    """
    with open_tree(archive) as root:
        profile = capture(root, "captured")
    literal = (*profile.files, *profile.trailing_nul)
    if literal:
        raise LiteralError(f"no field of a profile describes {', '.join(literal)}")
    return build_tree(profile)


def compare(
    kernel: Mapping[str, Entry], ours: Mapping[str, Entry], exempt: Exemptions
) -> Comparison:
    equal, different, absent = [], [], []
    unexplained = {}
    for path, entry in kernel.items():
        if path not in ours:
            if any(exemption.covers(path) for exemption in exempt.absent):
                absent.append(path)
            else:
                unexplained[path] = f"not generated; the kernel has {_show(entry)}"
        elif ours[path] == entry:
            equal.append(path)
        elif any(one.covers(path) and one.excuses(entry, ours[path]) for one in exempt.different):
            different.append(path)
        else:
            unexplained[path] = f"the kernel has {_show(entry)}, fakesys {_show(ours[path])}"
    for path, entry in ours.items():
        if path not in kernel and not isinstance(entry, Directory):
            unexplained[path] = f"the kernel has no such file; fakesys has {_show(entry)}"
    return Comparison(
        equal=tuple(equal),
        different=tuple(different),
        absent=tuple(absent),
        unexplained=unexplained,
    )


def _lines(entry: Entry, start: str) -> list[str]:
    text = entry.decode() if isinstance(entry, bytes) else repr(entry)
    return [found[0] for line in text.splitlines() if (found := re.match(start, line))]


def _show(entry: Entry) -> str:
    match entry:
        case Symlink():
            return f"a link to {entry.target}"
        case bytes():
            return repr(entry.decode(errors="replace")[:60])
        case _:
            return "a directory"
