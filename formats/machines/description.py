"""What a text says about a machine, and what it leaves open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from numaproof.protocol.machine import MachineInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

Subject = Literal[
    "numbers",
    "threads",
    "siblings",
    "sockets",
    "nodes",
    "memory",
    "hugepages",
    "distances",
    "caches",
    "sharing",
]
"""Something that a kubelet discovers.

`numbers` is the numbering of the CPUs, `threads` is their number per core, `siblings` is which CPUs
share a core, and `sharing` is which CPUs share a cache.
"""


class DescriptionError(ValueError):
    """A text does not describe a machine, or contradicts itself.

    `fix` says what to do, and `line` where.
    """

    def __init__(self, message: str, fix: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.fix = fix
        self.line = line


class CPU(msgspec.Struct, frozen=True, kw_only=True):
    """A logical CPU and where it is; None where the text doesn't say.

    `core` is unique within a socket at least.
    """

    number: int
    node: int | None = None
    socket: int | None = None
    core: int | None = None
    online: bool = True


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A NUMA node.

    Attributes:
        number: its id.
        cpus: how many CPUs it has, if the text doesn't number them.
        memory: in bytes; None if the text doesn't say.
        hugepages: the number of pages by page size in KiB; None if the text doesn't say.
    """

    number: int
    cpus: int | None = None
    memory: int | None = None
    hugepages: dict[int, int] | None = None


class Cache(msgspec.Struct, frozen=True, kw_only=True):
    """A cache and the CPUs that share it; `size` is in bytes, 0 if the text doesn't say."""

    level: int
    cpus: tuple[int, ...]
    type: str = "Unified"
    size: int = 0


class ListedDevices(msgspec.Struct, frozen=True, kw_only=True):
    """The devices of a resource, as `--devices` takes them.

    Attributes:
        resource: its name.
        count: how many there are.
        groups: their numbers with their NUMA nodes, such as ``2@0,1@1``.
    """

    resource: str
    count: int
    groups: str


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """What a text says about a machine.

    Attributes:
        format: what the text is, such as ``lscpu --extended``.
        architecture: as ``uname -m`` prints it; empty if the text doesn't say.
        cpus: the CPUs, if the text numbers them.
        cpu_count: how many CPUs the machine has, if the text doesn't number them.
        threads_per_core: hardware threads per core.
        likely_threads: the same where the text only makes it likely.
        sockets: number of sockets.
        nodes: the NUMA nodes; empty if the kernel has none; None if the text doesn't say.
        likely_nodes: how many there are where the text only makes it likely.
        distances: a row for each node in ascending order.
        caches: the caches.
        l3_count: the number of L3 caches, if the text doesn't say what they belong to.
        memory: the machine's, in bytes.
        hugepages: the machine's, by page size in KiB.
        reserved_cpus: how many CPUs its kubelet reserves; None if the text doesn't say.
        kubelet: the version of its kubelet, such as ``v1.33.4``; empty if the text doesn't say.
        settings: fields of its kubelet's configuration that the text shows.
        devices: what its device plugins offer, which isn't part of the machine.
        notes: remarks about what the text says, a clause each.
    """

    format: str
    architecture: str = ""
    cpus: tuple[CPU, ...] = ()
    cpu_count: int | None = None
    threads_per_core: int | None = None
    likely_threads: int = 1
    sockets: int | None = None
    nodes: tuple[Node, ...] | None = None
    likely_nodes: int = 1
    distances: tuple[tuple[int, ...], ...] | None = None
    caches: tuple[Cache, ...] | None = None
    l3_count: int | None = None
    memory: int | None = None
    hugepages: dict[int, int] | None = None
    reserved_cpus: float | None = None
    kubelet: str = ""
    settings: dict[str, str] = {}
    devices: tuple[ListedDevices, ...] = ()
    notes: tuple[str, ...] = ()


class Gap(msgspec.Struct, frozen=True):
    """Something that a text doesn't say: what is assumed, and the option that supplies it."""

    subject: Subject
    what: str
    assumption: str
    remedy: str = ""


class MachineText(msgspec.Struct, frozen=True, kw_only=True):
    """A machine as far as a text describes it.

    Attributes:
        file: the name of the file.
        format: what it is; empty if it describes the machine completely.
        machine: the machine.
        missing: what the text doesn't say.
        reserved_cpus: how many CPUs its kubelet reserves; None if the text doesn't say.
        kubelet: the version of its kubelet; empty if the text doesn't say.
        settings: fields of its kubelet's configuration that the text shows.
        devices: what its device plugins offer, unless it is known otherwise.
        notes: remarks about what it says, a clause each.
        title: a line that describes it; empty if it has none.
    """

    file: str
    title: str = ""
    format: str = ""
    machine: MachineInfo
    missing: tuple[Gap, ...] = ()
    reserved_cpus: float | None = None
    kubelet: str = ""
    settings: dict[str, str] = {}
    devices: tuple[ListedDevices, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def unknown_memory(self) -> str:
        """What is unknown about the total amount of memory; empty if it is known."""
        return next(
            (gap.what for gap in self.missing if gap.subject == "memory" and gap.remedy), ""
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """A sentence for each gap and each remark."""
        gaps = (
            f"{self.file}: {self.format} doesn't show {gap.what}; assuming {gap.assumption}"
            + (f" ({gap.remedy})" if gap.remedy else "")
            for gap in self.missing
        )
        devices = (
            f"lists {one.count} {one.resource}: add --devices {one.resource}={one.groups}"
            for one in self.devices
        )
        return (*gaps, *(f"{self.file}: {note}" for note in (*self.notes, *devices)))

    def with_known_devices(self, counts: Mapping[str, int]) -> MachineText:
        """Returns the text without devices that are known, with a note if their numbers differ.

        `counts` are the numbers of known devices by resource.
        """
        unknown = tuple(one for one in self.devices if one.resource not in counts)
        differing = (
            f"lists {one.count} {one.resource}, but this answer is for {counts[one.resource]}"
            for one in self.devices
            if one.count != counts.get(one.resource, one.count)
        )
        return msgspec.structs.replace(self, devices=unknown, notes=(*self.notes, *differing))
