"""What a profile's tree still gets wrong: files to omit, to add, or to end with a NUL."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from numaproof.fakesys.entries import SYSTEM
from numaproof.fakesys.ranges import format_list
from numaproof.fakesys.snapshot import Snapshot, meaning
from numaproof.fakesys.tree import Tree

_NUMBERED = re.compile(r"(?<=/)(cpu|index|node)(\d+)(?=/)")
# Files that a tree has in addition to those of a snapshot.
_UNKNOWN = re.compile(r"^proc/stat$|/(?:free|surplus|resv|nr_overcommit)_hugepages$")


@dataclass(frozen=True, slots=True)
class Residue:
    """`lacks`, `files` and `trailing_nul` of a profile."""

    lacks: tuple[str, ...]
    files: Mapping[str, str]
    trailing_nul: tuple[str, ...]


def find_residue(snapshot: Snapshot, tree: Tree) -> Residue:
    """What a profile must add to its tree so that it means the same as the snapshot."""
    known = {
        path: entry
        for path, entry in tree.items()
        if isinstance(entry, bytes) and not _UNKNOWN.search(path)
    }
    missing = known.keys() - snapshot.files.keys()
    odd = {
        path: content.rstrip(b"\0").decode("utf-8", "replace").removesuffix("\n")
        for path, content in snapshot.files.items()
        if path not in known or meaning(path, content) != meaning(path, known[path])
    }
    ending = [path for path, content in snapshot.files.items() if content.endswith(b"\0")]
    return Residue(
        tuple(_compress(missing, known)),
        _compress_files(odd),
        tuple(_compress(ending, snapshot.files)),
    )


def _compress(paths: Iterable[str], among: Iterable[str]) -> list[str]:
    """Patterns that match these paths and no others in `among`."""
    chosen, everything = _by_form(paths), _by_form(among)
    patterns = []
    for form, numbers in sorted(chosen.items()):
        if numbers == everything[form]:
            patterns.append(_spell(form, ["*"] * form.count("#")))
            continue
        for rest in sorted({number[1:] for number in numbers}):
            firsts = {number[0] for number in numbers if number[1:] == rest}
            every = {number[0] for number in everything[form] if number[1:] == rest}
            first = "*" if firsts == every else f"{{{format_list(firsts)}}}"
            patterns.append(_spell(form, [first, *map(str, rest)]))
    return patterns


def _compress_files(contents: Mapping[str, str]) -> dict[str, str]:
    groups: dict[tuple[str, tuple[int, ...], str], set[int]] = {}
    whole: dict[str, str] = {}
    for path, content in contents.items():
        form, numbers = _split(path)
        if numbers:
            groups.setdefault((form, numbers[1:], content), set()).add(numbers[0])
        else:
            whole[_spell(form, [])] = content
    for (form, rest, content), firsts in sorted(groups.items(), key=lambda item: min(item[1])):
        first = format_list(firsts)
        text = first if len(firsts) == 1 else f"{{{first}}}"
        whole[_spell(form, [text, *map(str, rest)])] = content
    return whole


def _by_form(paths: Iterable[str]) -> dict[str, set[tuple[int, ...]]]:
    forms: dict[str, set[tuple[int, ...]]] = {}
    for path in paths:
        form, numbers = _split(path)
        forms.setdefault(form, set()).add(numbers)
    return forms


def _split(path: str) -> tuple[str, tuple[int, ...]]:
    """The path with ``#`` for numbers (``cpu/cpu#/topology/core_id``), and the numbers."""
    numbers = tuple(int(match[2]) for match in _NUMBERED.finditer(path))
    return _NUMBERED.sub(r"\1#", path).removeprefix(f"{SYSTEM}/"), numbers


def _spell(form: str, parts: list[str]) -> str:
    pieces = form.split("#")
    return "".join(piece + part for piece, part in zip(pieces, [*parts, ""], strict=True))
