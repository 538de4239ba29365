"""A machine's `/sys` and `/proc` as values: the files and their content."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from numaproof.fakesys.cpu_files import cpu_files
from numaproof.fakesys.cpu_times import machine_stat
from numaproof.fakesys.entries import CPU, KERNEL, Directory, Entry
from numaproof.fakesys.layout import lay_out
from numaproof.fakesys.machine import ProfileError
from numaproof.fakesys.meminfo import machine_meminfo
from numaproof.fakesys.node_files import hugepage_files, node_files
from numaproof.fakesys.patterns import Pattern, PatternError
from numaproof.fakesys.proc_files import cpuinfo
from numaproof.fakesys.profile import Profile

Detail = Literal["full", "discovery"]

# What cAdvisor reads, by the last part of the path; of other files it needs only directories.
_DISCOVERY = frozenset(
    {
        "core_id",
        "physical_package_id",
        "book_id",
        "drawer_id",
        "id",
        "size",
        "level",
        "type",
        "shared_cpu_map",
        "nr_hugepages",
        "meminfo",
        "cpuinfo",
        "distance",
    }
)


# What the machine's huge pages of a size have besides their number.
_POOL = ("nr_overcommit_hugepages", "resv_hugepages", "surplus_hugepages")

_MAX_WORK = 20_000_000
"""Comparisons of a file with a pattern."""

_MAX_ADDED = 16 * 1024 * 1024
"""Bytes of the files that a profile adds."""


@dataclass(frozen=True, slots=True)
class Tree(Mapping[str, Entry]):
    """Entries by relative path (``sys/devices/system/cpu/online``); directories are implied.

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
    """The tree of a machine.

    Args:
        profile: the machine.
        detail: ``full`` has what lscpu, hwloc and cAdvisor read; ``discovery`` only what
            cAdvisor reads, a third of the files.

    Raises:
        ProfileError: the profile contradicts itself or refers to something that does not exist.
    """
    machine = lay_out(profile)
    entries: dict[str, Entry] = {}
    entries.update(cpu_files(machine, profile.architecture, profile.sysfs))
    entries.update(node_files(machine, profile.sysfs))
    entries.update(hugepage_files(f"{KERNEL}/mm/hugepages", machine.hugepages, _POOL))
    entries["proc/cpuinfo"] = cpuinfo(profile, machine)
    entries["proc/meminfo"] = machine_meminfo(machine, profile.sysfs)
    entries["proc/stat"] = machine_stat(machine)
    entries = _without(entries, profile.lacks)
    _patch(entries, profile.files)
    _end_with_nul(entries, profile.trailing_nul)
    if detail == "discovery":
        entries = {path: entry for path, entry in entries.items() if _is_read(path, entry)}
    _keep_directories(entries, (cpu.number for cpu in machine.cpus))
    return Tree(profile.name, MappingProxyType(dict(sorted(entries.items()))))


def _keep_directories(entries: dict[str, Entry], cpus: Iterable[int]) -> None:
    """A CPU without any files keeps its directory, so that it still exists."""
    directories = {path.split("/")[4] for path in entries if path.startswith(f"{CPU}/cpu")}
    for cpu in cpus:
        if f"cpu{cpu}" not in directories:
            entries[f"{CPU}/cpu{cpu}"] = Directory()


def _is_read(path: str, entry: Entry) -> bool:
    directory, _, name = path.rpartition("/")
    if not isinstance(entry, bytes):
        return not (path.startswith(CPU) and name.startswith("node"))
    if name in _DISCOVERY:
        return True
    return name == "online" and directory == CPU


def _pattern(field: str, key: int | str, text: str) -> Pattern:
    try:
        return Pattern(text)
    except PatternError as error:
        raise ProfileError((field, key), str(error)) from None


def _check_work(field: str, entries: Mapping[str, Entry], patterns: tuple[str, ...]) -> None:
    if len(patterns) * len(entries) > _MAX_WORK:
        most = _MAX_WORK // len(entries)
        message = f"{len(patterns):,} patterns are too many for {len(entries):,} files"
        raise ProfileError((field,), message, f"use {most:,} or fewer")


def _without(entries: dict[str, Entry], lacks: tuple[str, ...]) -> dict[str, Entry]:
    _check_work("lacks", entries, lacks)
    for i, text in enumerate(lacks):
        pattern = _pattern("lacks", i, text)
        kept = {path: entry for path, entry in entries.items() if not pattern.covers(path)}
        if len(kept) == len(entries):
            raise ProfileError(
                ("lacks", i), f"no file of this machine matches {text!r}", "remove the line"
            )
        entries = kept
    return entries


def _patch(entries: dict[str, Entry], files: Mapping[str, str]) -> None:
    if not files:
        return
    folders = {path[:i] for path in entries for i, one in enumerate(path) if one == "/"}
    added = 0
    for key, text in files.items():
        content = (text if text.endswith("\n") else f"{text}\n").encode()
        pattern = _pattern("files", key, key)
        try:
            paths = pattern.expand()
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
    """Whether a file can be created at a path: nothing is there or below, and no file above."""
    if path in entries or path in folders:
        return False
    parents = path.split("/")
    return not any("/".join(parents[:i]) in entries for i in range(1, len(parents)))


def _end_with_nul(entries: dict[str, Entry], patterns: tuple[str, ...]) -> None:
    _check_work("trailing_nul", entries, patterns)
    for i, text in enumerate(patterns):
        pattern = _pattern("trailing_nul", i, text)
        found = False
        for path, entry in entries.items():
            if isinstance(entry, bytes) and pattern.covers(path):
                entries[path] = entry + b"\0"
                found = True
        if not found:
            raise ProfileError(("trailing_nul", i), f"no file matches {text!r}")
