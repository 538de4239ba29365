"""A snapshot of an existing tree: the files that profiles can describe, and their meaning."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from numaproof.fakesys.archive import TreeError
from numaproof.fakesys.entries import ACCESS_FILES, CACHE_FILES, CPU, ID_FILES, KERNEL, NODE
from numaproof.fakesys.machine import MAX_CPUS
from numaproof.fakesys.ranges import parse_list
from numaproof.fakesys.reading import TreePath
from numaproof.workdir.trees import FolderTree, UnfitFileError

_HUGEPAGES = re.compile(r"(.+)/hugepages/hugepages-(\d+)kB/nr_hugepages")

Root = Path | TreePath | FolderTree

_SIBLINGS = (
    "thread_siblings",
    "core_cpus",
    "core_siblings",
    "package_cpus",
    "die_cpus",
    "cluster_cpus",
    "book_siblings",
    "drawer_siblings",
)
_CPU = (
    *("possible", "present", "online", "offline", "kernel_max", "isolated", "nohz_full"),
    "smt/control",
)
_TOPOLOGY = (*ID_FILES.values(), *_SIBLINGS, *(f"{name}_list" for name in _SIBLINGS))
_CACHE = ("id", "size", "shared_cpu_map", "shared_cpu_list", *CACHE_FILES.values())
_ACCESS = (0, 1)
_NODES = ("possible", "online", "has_cpu", "has_memory", "has_normal_memory")
_LISTS = frozenset((*_CPU, *_NODES, "cpulist")) - {"online", "kernel_max"}
_MASKS = frozenset({"shared_cpu_map", "cpumap", *_SIBLINGS})


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor in `/proc/cpuinfo`; a value is None if its line is missing."""

    number: int | None
    core_id: int | None
    physical_id: int | None


@dataclass(frozen=True)
class Snapshot:
    """The files found below a root.

    Attributes:
        files: the contents of each known file, by path.
        cpus: the numbers of the `cpuN` directories.
        members: the CPUs in each node directory that also have a `cpuN` directory.
        initiators: the nodes linked from each `nodeN/accessM/initiators`, by N and M.
    """

    files: Mapping[str, bytes]
    cpus: tuple[int, ...]
    members: Mapping[int, tuple[int, ...]]
    initiators: Mapping[tuple[int, int], tuple[int, ...]]

    def text(self, path: str) -> str | None:
        """Returns a file's text without trailing white space and NULs, or None if it is missing."""
        content = self.files.get(path)
        return None if content is None else _text(content)

    def number(self, path: str) -> int | None:
        """Returns a file's number, or None if the file is missing or has no number."""
        text = self.text(path)
        return int(text) if text is not None and re.fullmatch(r"-?\d{1,18}", text) else None

    def cpu_set(self, path: str) -> tuple[int, ...] | None:
        """Returns the CPUs of a list or mask, or None if the file is missing or malformed."""
        content = self.files.get(path)
        value = None if content is None else meaning(path, content)
        return value if isinstance(value, tuple) else None

    def hugepages(self, base: str) -> dict[int, int]:
        """Returns the number of huge pages by size in KiB, for a node's folder or the machine's."""
        return dict(sorted(self._hugepages.get(base, {}).items()))

    @cached_property
    def _hugepages(self) -> Mapping[str, dict[int, int]]:
        found: dict[str, dict[int, int]] = {}
        for path in self.files:
            match = _HUGEPAGES.fullmatch(path)
            if match:
                found.setdefault(match[1], {})[int(match[2])] = self.number(path) or 0
        return found

    @cached_property
    def processors(self) -> tuple[Processor, ...]:
        return parse_cpuinfo(self.text("proc/cpuinfo") or "")


def read_snapshot(root: Root) -> Snapshot:
    """Reads the files that profiles can describe; unreadable files count as missing.

    Raises:
        TreeError: there are no CPU directories below the root, or a CPU number is too large.
    """
    cpu_base, node_base = root / CPU, root / NODE
    cpus = tuple(sorted(_entry_numbers(cpu_base, "cpu")))
    nodes = sorted(_entry_numbers(node_base, "node"))
    if not cpus:
        raise TreeError(
            f"{root}: no CPUs found in {CPU}; a tree must contain the folders sys and proc"
        )
    if cpus[-1] >= MAX_CPUS:
        raise TreeError(f"{root}: CPU {cpus[-1]} exceeds Linux's limit of {MAX_CPUS} CPUs")
    files: dict[str, bytes] = {}
    for path in _paths(root, cpus, nodes):
        content = _content(root / path)
        if content is not None:
            files[path] = content
    members = {
        node: tuple(
            sorted(set(cpus).intersection(_entry_numbers(node_base / f"node{node}", "cpu")))
        )
        for node in nodes
    }
    initiators = {
        (node, access): tuple(sorted(found))
        for node in nodes
        for access in _ACCESS
        if (found := _entry_numbers(_initiators(node_base / f"node{node}", access), "node"))
    }
    return Snapshot(files, cpus, members, initiators)


def _initiators(node: Root, access: int) -> Root:
    return node / f"access{access}" / "initiators"


def _paths(root: Root, cpus: tuple[int, ...], nodes: list[int]) -> Iterator[str]:
    yield from (f"{CPU}/{name}" for name in _CPU)
    for cpu in cpus:
        base = f"{CPU}/cpu{cpu}"
        yield f"{base}/online"
        yield f"{base}/cpu_capacity"
        yield from (f"{base}/topology/{name}" for name in _TOPOLOGY)
        for index in sorted(_entry_numbers(root / base / "cache", "index")):
            yield from (f"{base}/cache/index{index}/{name}" for name in _CACHE)
    yield from (f"{NODE}/{name}" for name in _NODES)
    for node in nodes:
        base = f"{NODE}/node{node}"
        yield from (f"{base}/{name}" for name in ("cpulist", "cpumap", "distance", "meminfo"))
        for access in _ACCESS:
            yield from (f"{base}/access{access}/initiators/{name}" for name in ACCESS_FILES)
        yield from _hugepages(root, f"{base}/hugepages")
    yield from _hugepages(root, f"{KERNEL}/mm/hugepages")
    yield from ("proc/cpuinfo", "proc/meminfo")


def _hugepages(root: Root, base: str) -> Iterator[str]:
    for name in sorted(_names(root / base)):
        if re.fullmatch(r"hugepages-\d+kB", name):
            yield f"{base}/{name}/nr_hugepages"


def _entry_numbers(directory: Root, prefix: str) -> set[int]:
    found = (re.fullmatch(rf"{prefix}(\d{{1,9}})", name) for name in _names(directory))
    return {int(match[1]) for match in found if match}


def _names(directory: Root) -> list[str]:
    try:
        return [entry.name for entry in directory.iterdir()]
    except UnfitFileError as error:
        raise TreeError(f"{directory}: {error.strerror}") from None
    except OSError:
        return []


def _content(path: Root) -> bytes | None:
    try:
        return path.read_bytes()
    except UnfitFileError as error:
        raise TreeError(f"{path}: {error.strerror}") from None
    except OSError:
        return None


def meaning(path: str, content: bytes) -> object:
    """Returns a file's contents in a neutral form: sets as sorted tuples, text stripped."""
    name = path.rpartition("/")[2]
    text = _text(content)
    if name == "meminfo":
        return mem_total(text)
    if name == "cpuinfo":
        return parse_cpuinfo(text)
    is_list = name in _LISTS or name.endswith("_list")
    if is_list or (name == "online" and not re.search(r"/cpu\d+/online$", path)):
        try:
            return tuple(sorted(parse_list(text, 1 << 16)))
        except ValueError:
            return text
    if name in _MASKS and re.fullmatch(r"[0-9a-fA-F,]{1,20000}", text):
        value = int(text.replace(",", "") or "0", 16)
        return tuple(i for i in range(value.bit_length()) if value >> i & 1)
    return " ".join(text.split())


def mem_total(text: str) -> int | None:
    match = re.search(r"MemTotal:\s*(\d{1,18}) kB", text)
    return int(match[1]) if match else None


def parse_cpuinfo(text: str) -> tuple[Processor, ...]:
    """Returns the processors in order, with their `core id` and `physical id`."""
    processors = []
    for block in re.split(r"\n[ \t]*\n", text):
        number = re.search(r"(?m)^(?:processor|cpu number)\s*:\s*(\d{1,9})\s*$", block)
        core = re.search(r"(?m)^core id\s*:\s*(\d{1,9})\s*$", block)
        physical = re.search(r"(?m)^physical id\s*:\s*(\d{1,9})\s*$", block)
        if number or core or physical:
            processors.append(
                Processor(*(int(m[1]) if m else None for m in (number, core, physical)))
            )
    if not processors:
        # Before Linux 4.9, the s390x format has one line per processor and no ids.
        numbers = re.findall(r"(?m)^processor (\d{1,9}):", text)
        processors = [Processor(int(number), None, None) for number in numbers]
    return tuple(processors)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace").rstrip("\0\n\r\t ")
