"""The machine that a profile describes: all CPUs, nodes and caches as plain values.

`layout` computes them from a profile, and `tree` turns them into files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from numaproof.inputs.documents import PathTuple, dotted_path

# Linux's limits (the largest NR_CPUS and MAX_NUMNODES of any architecture).
MAX_CPUS = 8192
MAX_NODES = 1024

Sysfs = Literal["full", "lists", "masks"]
"""The kernel's set of files; see `Profile.sysfs`."""


class ProfileError(ValueError):
    """A profile contradicts itself or refers to something that does not exist.

    Attributes:
        path: the steps from the profile to the field.
        message: the problem.
        fix: how to fix it, or ``""``.
    """

    def __init__(self, path: PathTuple, message: str, fix: str = "") -> None:
        super().__init__(f"{dotted_path(path)}: {message}" + (f" ({fix})" if fix else ""))
        self.path = path
        self.message = message
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Cpu:
    """A logical CPU; an id is None if its file does not exist.

    `topology` and `cache` say whether these directories exist. `thread_group` and `package_group`
    are set if the CPU's siblings do not follow from the ids.
    """

    number: int
    socket: int | None = 0
    die: int | None = None
    cluster: int | None = None
    core_id: int | None = None
    book: int | None = None
    drawer: int | None = None
    thread_group: int | None = None
    package_group: int | None = None
    capacity: int | None = None
    online: bool = True
    topology: bool = True
    cache: bool = True

    @property
    def core(self) -> tuple[int, ...]:
        """A key that the CPUs with the ids of a physical core share; keys sort in core order.

        On arm64, core ids are unique only within a cluster.
        """
        part = (_rank(self.socket), _rank(self.die), _rank(self.cluster))
        return (*part, 2**31, self.number) if self.core_id is None else (*part, self.core_id)

    @property
    def threads(self) -> object:
        """A key that the thread siblings share, according to the kernel."""
        return self.core if self.thread_group is None else self.thread_group


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """The nodes that reach a node's memory best, and the numbers in files by name."""

    initiators: tuple[int, ...]
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NUMANode:
    """A NUMA node.

    Attributes:
        cpus: CPU numbers in ascending order.
        memory: `MemTotal` in KiB; None if the node has no `meminfo`.
        hugepages: the number of pages by page size in KiB.
        distance: the text of `distance` without the newline.
        cpulist: the CPUs in `cpulist`; None for the online CPUs.
        access: one value for each `accessN` directory.
    """

    number: int
    cpus: tuple[int, ...]
    memory: int | None
    hugepages: Mapping[int, int]
    distance: str
    cpulist: tuple[int, ...] | None = None
    access: tuple[MemoryAccess, ...] = ()


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """A cache: the CPUs that share it, and the id that each of them reports."""

    cpus: tuple[int, ...]
    ids: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class CacheKind:
    """Caches that differ only in their CPUs and ids; `size` is in KiB, and `line` in bytes."""

    level: int
    type: str
    size: int | None
    line: int | None
    ways: int | None
    sets: int | None
    index: int | None
    groups: tuple[CacheGroup, ...]


@dataclass(frozen=True)
class Machine:
    """A whole machine.

    Attributes:
        cpus: all CPUs that are present.
        possible: the CPU numbers that could appear.
        surplus: the CPUs that the kernel doesn't use.
        isolated: the CPUs that are isolated from the scheduler.
        nohz_full: the CPUs without a periodic tick.
        smt: the text of `smt/control`; None if it follows from the CPUs.
        possible_nodes: the node numbers that could appear.
        kernel_max: the largest CPU number that the kernel supports.
        memory: `MemTotal` in KiB.
        hugepages: the number of pages by page size in KiB.
    """

    cpus: tuple[Cpu, ...]
    nodes: tuple[NUMANode, ...]
    caches: tuple[CacheKind, ...]
    possible: tuple[int, ...]
    surplus: tuple[int, ...]
    isolated: tuple[int, ...]
    nohz_full: tuple[int, ...]
    smt: str | None
    possible_nodes: tuple[int, ...]
    kernel_max: int
    memory: int
    hugepages: Mapping[int, int]

    @cached_property
    def by_number(self) -> Mapping[int, Cpu]:
        return {cpu.number: cpu for cpu in self.cpus}


def _rank(value: int | None) -> int:
    return -(2**31) if value is None else value
