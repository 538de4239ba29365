"""A machine's `/sys` and `/proc` as values: files and their contents."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, cast

from numaproof.fakesys.entries import CPU, SYSTEM, Directory, Entry
from numaproof.fakesys.layout import lay_out
from numaproof.fakesys.machine import ProfileError
from numaproof.fakesys.meminfo import machine_meminfo
from numaproof.fakesys.proc_files import cpuinfo, machine_stat
from numaproof.fakesys.profile import Profile
from numaproof.fakesys.ranges import parse_list
from numaproof.fakesys.sys_files import cpu_files, machine_hugepage_files, node_files

_MAX_FILES = 20_000
_LIMIT = 2**20 + 1  # huge pages of 1048576 kB
_MAX_NUMBERS = 8192
_MAX_STARS = 2
_TOP = ("sys/devices/system/cpu", "sys/devices/system/node", "sys/kernel/mm", "proc")


class PatternError(ValueError):
    """A pattern is invalid or points outside the tree."""


class Pattern:
    """A pattern that matches files by their path or by a directory above them.

    Patterns such as ``cpu/cpu{0-3}/topology/core_id`` or ``node/node*/distance`` are relative to
    ``sys/devices/system``, or start with ``sys/`` or ``proc/``. ``{0-3,8}`` matches any of these
    numbers, and ``*`` matches any text within one part of the path. The ``*`` in a part and the
    numbers in a pattern are limited in number, so that matching takes no longer than reading.
    """

    __slots__ = ("_choices", "_literal", "_regex", "_text")

    def __init__(self, text: str) -> None:
        path = text if text.startswith(("sys/", "proc/")) else f"{SYSTEM}/{text}"
        if not any(path == top or path.startswith(f"{top}/") for top in _TOP):
            raise PatternError(f"{text!r} is outside the tree; start with cpu/ or node/")
        parts = re.split(r"(\{[^{}]*\}|\*)", path)
        if any(part in ("", ".", "..") for part in path.split("/")) or re.search(
            r"[{}\0\\]", "".join(parts[::2])
        ):
            raise PatternError(f"invalid pattern {text!r}; use one such as cpu/cpu{{0-3}}/topology")
        for part in path.split("/"):
            if part.count("*") > _MAX_STARS:
                raise PatternError(f"{text!r}: more than {_MAX_STARS} * in {part!r}")
        self._text = text
        self._literal: list[str] = parts[::2]
        self._choices: list[tuple[int, ...] | None] = []
        count = 0
        for part in parts[1::2]:
            try:
                choice = None if part == "*" else parse_list(part[1:-1], _LIMIT)
            except ValueError as error:
                raise PatternError(f"{text!r}: {error}") from None
            self._choices.append(choice)
            count += len(choice or ())
            if count > _MAX_NUMBERS:
                raise PatternError(f"{text!r} has {count:,} numbers; the limit is {_MAX_NUMBERS:,}")
        self._regex = re.compile(f"{self._expression()}(?:/.*)?", re.DOTALL)

    def _expression(self) -> str:
        """Builds the regular expression, which never backtracks into a part that has matched."""
        whole = re.escape(self._literal[0])
        for choice, literal in zip(self._choices, self._literal[1:], strict=True):
            whole += "[^/]*" if choice is None else f"(?:{'|'.join(map(str, choice))})"
            whole += re.escape(literal)
        return "/".join(f"(?>{part}(?=/|\\Z))" for part in re.split(r"(?<!\^)/", whole))

    def covers(self, path: str) -> bool:
        return self._regex.fullmatch(path) is not None

    def expand(self) -> list[str]:
        """Lists the paths that a pattern without ``*`` matches.

        Raises:
            PatternError: the pattern has a ``*`` or matches too many files.
        """
        choices: list[tuple[int, ...]] = []
        total = 1
        for choice in self._choices:
            if choice is None:
                raise PatternError(f"{self._text!r}: use numbers such as {{0-3}} instead of *")
            choices.append(choice)
            total *= len(choice)
        if total > _MAX_FILES:
            raise PatternError(f"{self._text!r} matches {total} files; the limit is {_MAX_FILES}")
        return [
            self._literal[0]
            + "".join(
                f"{number}{literal}"
                for number, literal in zip(numbers, self._literal[1:], strict=True)
            )
            for numbers in itertools.product(*choices)
        ]


Detail = Literal["full", "discovery"]

# The last parts of files that cAdvisor reads; of all others, it needs only the directories.
_DISCOVERY = frozenset(
    (
        *("core_id", "physical_package_id", "book_id", "drawer_id"),
        *("id", "size", "level", "type", "shared_cpu_map"),
        *("nr_hugepages", "meminfo", "cpuinfo", "distance"),
    )
)


_MAX_WORK = 20_000_000
"""The maximum number of comparisons between files and patterns."""

_MAX_ADDED = 16 * 1024 * 1024
"""The maximum size in bytes of the files that a profile adds."""


@dataclass(frozen=True, slots=True)
class Tree(Mapping[str, Entry]):
    """Entries by relative path (``sys/devices/system/cpu/online``), with implied directories.

    An entry is the bytes of a file, a symbolic link, or an empty directory.
    """

    name: str
    _entries: Mapping[str, Entry]

    def __getitem__(self, path: str) -> Entry:
        return self._entries[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def build_tree(profile: Profile, *, detail: Detail = "full") -> Tree:
    """Builds the tree of a machine.

    Args:
        profile: the machine.
        detail: ``full`` includes the files that lscpu, hwloc and cAdvisor read; ``discovery``
            includes only the third of them that cAdvisor reads.

    Raises:
        ProfileError: the profile contradicts itself or refers to something that does not exist.
    """
    machine = lay_out(profile)
    entries: dict[str, Entry] = {}
    entries.update(cpu_files(machine, profile.architecture, profile.sysfs))
    entries.update(node_files(machine, profile.sysfs))
    entries.update(machine_hugepage_files(machine))
    entries["proc/cpuinfo"] = cpuinfo(profile, machine)
    entries["proc/meminfo"] = machine_meminfo(machine, profile.sysfs)
    entries["proc/stat"] = machine_stat(machine)
    for path in _matching_paths("lacks", entries, profile.lacks):
        del entries[path]
    _patch(entries, profile.files)
    for path in _matching_paths("trailing_nul", entries, profile.trailing_nul, bytes):
        entries[path] = cast("bytes", entries[path]) + b"\0"
    if detail == "discovery":
        entries = {path: entry for path, entry in entries.items() if _is_read(path, entry)}
    _keep_directories(entries, (cpu.number for cpu in machine.cpus))
    return Tree(profile.name, MappingProxyType(dict(sorted(entries.items()))))


def _keep_directories(entries: dict[str, Entry], cpus: Iterable[int]) -> None:
    """Keeps the directories of CPUs without files, so that these CPUs still exist."""
    directories = {path.split("/")[4] for path in entries if path.startswith(f"{CPU}/cpu")}
    for cpu in cpus:
        if f"cpu{cpu}" not in directories:
            entries[f"{CPU}/cpu{cpu}"] = Directory()


def _is_read(path: str, entry: Entry) -> bool:
    directory, _, name = path.rpartition("/")
    if not isinstance(entry, bytes):
        return not (path.startswith(CPU) and name.startswith("node"))
    return name in _DISCOVERY or (name == "online" and directory == CPU)


def _matching_paths(
    field: str, entries: Mapping[str, Entry], patterns: tuple[str, ...], kind: type = object
) -> Iterator[str]:
    """Yields the paths of entries of type `kind` that match the patterns, pattern by pattern."""
    if len(patterns) * len(entries) > _MAX_WORK:
        most = _MAX_WORK // len(entries)
        message = f"{len(patterns):,} patterns are too many for {len(entries):,} files"
        raise ProfileError((field,), message, f"use {most:,} or fewer")
    for i, text in enumerate(patterns):
        try:
            pattern = Pattern(text)
        except PatternError as error:
            raise ProfileError((field, i), str(error)) from None
        paths = [
            path for path, one in entries.items() if isinstance(one, kind) and pattern.covers(path)
        ]
        if not paths:
            what, fix = _UNMATCHED[field]
            raise ProfileError((field, i), f"{what} matches {text!r}", fix)
        yield from paths


_UNMATCHED = {
    "lacks": ("no file of this machine", "remove the line"),
    "trailing_nul": ("no file", ""),
}
"""The error and the fix for a pattern that matches nothing, by field."""


def _patch(entries: dict[str, Entry], files: Mapping[str, str]) -> None:
    if not files:
        return
    folders = {path[:i] for path in entries for i, one in enumerate(path) if one == "/"}
    added = 0
    for key, text in files.items():
        content = (text if text.endswith("\n") else f"{text}\n").encode()
        try:
            paths = Pattern(key).expand()
        except PatternError as error:
            raise ProfileError(("files", key), str(error)) from None
        added += len(paths) * len(content)
        if added > _MAX_ADDED:
            raise ProfileError(("files", key), f"more than {_MAX_ADDED:,} bytes of files")
        for path in paths:
            if isinstance(entries.get(path), bytes) or _has_room(entries, folders, path):
                entries[path] = content
                folders.update(path[:i] for i, one in enumerate(path) if one == "/")
            else:
                raise ProfileError(("files", key), f"{path} is a directory or a link")


def _has_room(entries: Mapping[str, Entry], folders: AbstractSet[str], path: str) -> bool:
    """Whether a file can be created at a path: the path is not in use, and no file is above it."""
    if path in entries or path in folders:
        return False
    parents = path.split("/")
    return not any("/".join(parents[:i]) in entries for i in range(1, len(parents)))
