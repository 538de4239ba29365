"""A machine's CPUs, which of them are online, and how they form cores.

A *CPU* is an entry ``cpuN`` of ``/sys/devices/system/cpu`` or of a NUMA node's folder. It counts if
it is online and has a core id and a package (socket) id. CPUs without ``topology/`` are silently
skipped, because x86 kernels remove that folder when a CPU goes offline (google/cadvisor#2566,
kubernetes#89859). A *core* consists of the CPUs of a node that the kernel lists as siblings.
cAdvisor takes those with the same core and package ids instead. At best, core ids are unique within
a package (google/cadvisor#2799).

Source: the sysinfo and sysfs packages of cAdvisor v0.49.0 to v0.60.5 (Kubernetes 1.30 to 1.37),
built for amd64, which ignores the s390x levels above packages (books and drawers).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from numaproof.reference.cadvisor.sysfs import CPUS, DiscoveryError, SysTree, UnreadablePathError
from numaproof.reference.golang.numbers import NumeralError, parse_signed, parse_unsigned

if TYPE_CHECKING:
    from collections.abc import Iterable

_NUMBER = re.compile("cpu([0-9]+)")
_ID_BITS = 16
"""Only this many low bits of a CPU number are compared with the list of online CPUs."""


class CoreThreads(NamedTuple):
    """A core: its id, its package's id, and its CPUs in the byte order of their names."""

    core_id: int
    package_id: int
    cpus: tuple[int, ...]


class CoreIdentity:
    """What makes CPUs of a node one core: the kernel lists them as thread siblings.

    Requirements: DISCOVERY-027.
    """

    by_siblings = True


class OnlineCPUs:
    """The CPUs listed in ``/sys/devices/system/cpu/online``.

    If the file is missing, the kernel does not support CPU hotplug, and every CPU is online. If it
    is unreadable or empty, no CPU is online. An entry that is neither a number nor a range ends the
    list.

    Requirements: DISCOVERY-005, DISCOVERY-006.
    """

    def __init__(self, tree: SysTree) -> None:
        self._ranges: tuple[range, ...] = (range(1 << _ID_BITS),)
        try:
            self._ranges = tuple(_ranges(tree.read_trimmed(f"{CPUS}/online")))
        except UnreadablePathError as error:
            if not error.missing:
                self._ranges = ()

    def __contains__(self, cpu: int) -> bool:
        number = cpu % (1 << _ID_BITS)
        return any(number in members for members in self._ranges)


def _ranges(text: str) -> Iterable[range]:
    for entry in text.split(","):
        try:
            ends = [parse_unsigned(end) for end in entry.split("-")]
        except NumeralError:
            return
        first, last = ends[0], ends[-1]
        if len(ends) > 2 or first > last or last >= 1 << _ID_BITS:  # noqa: PLR2004 - a range's ends
            return
        yield range(first, last + 1)


def number_in(name: str) -> int | None:
    """Returns the CPU number in a name such as ``cpu12``, or None."""
    match = _NUMBER.search(name)
    try:
        return parse_signed(match[1]) if match else None
    except NumeralError:
        return None


def cores_of(
    tree: SysTree, paths: Iterable[str], online: OnlineCPUs, *, by_siblings: bool = False
) -> list[CoreThreads]:
    """Groups the CPUs at `paths` into cores, in the order of their first CPUs.

    Cores have the ids of their first CPUs. Without `by_siblings`, or if the kernel lists no
    siblings, CPUs with equal ids form a core.

    Raises:
        DiscoveryError: a name has no CPU number, or an id is unreadable.
        NumeralError: an id is not a number.

    Requirements: DISCOVERY-002, DISCOVERY-003, DISCOVERY-007, DISCOVERY-027.
    """
    cores: dict[object, tuple[int, int, list[int]]] = {}
    for path in paths:
        name = path.rpartition("/")[2]
        cpu = number_in(name) if _NUMBER.match(name) else None
        if cpu is None:
            raise DiscoveryError(
                "unexpected format of CPU directory, "
                rf"cpuDirRegExp /cpu(\d+), cpuDir: {path}"
            )
        if cpu not in online:
            continue
        core_id = topology_id(tree, path, "core_id")
        if core_id is None:
            continue
        package_id = topology_id(tree, path, "physical_package_id")
        if package_id is not None:
            siblings = _siblings(tree, path) if by_siblings else None
            ids = core_id, package_id
            cores.setdefault(siblings or ids, (*ids, []))[2].append(cpu)
    return [
        CoreThreads(core_id, package_id, tuple(cpus))
        for core_id, package_id, cpus in cores.values()
    ]


def _siblings(tree: SysTree, path: str) -> str | None:
    """Returns the text that the thread siblings of the CPU at `path` have in common, if any."""
    for name in ("thread_siblings_list", "thread_siblings"):
        try:
            return tree.read_trimmed(f"{path}/topology/{name}")
        except UnreadablePathError:
            continue
    return None


def topology_id(tree: SysTree, path: str, name: str) -> int | None:
    """Returns an id from the ``topology`` folder of the CPU at `path`, or None if it is missing.

    Ids can be negative: virtual machines and old kernels report package -1.

    Raises:
        DiscoveryError: the file is unreadable.
        NumeralError: the file does not contain a number.
    """
    try:
        return parse_signed(tree.read_trimmed(f"{path}/topology/{name}"))
    except UnreadablePathError as error:
        if error.missing:
            return None
        raise
