"""Where kubelets choose CPUs otherwise than documented."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from numaproof.protocol.releases import between
from numaproof.reference.cpu.assignment import (
    Assignment,
    caches_by_node,
    cores_in_order,
    sockets_in_order,
)
from numaproof.reference.cpu.topology import touching, union
from numaproof.reference.departures.departure import ALL, ISSUES, Change, Defect

if TYPE_CHECKING:
    from numaproof.reference.cpu.assignment import PartialAssignment

_FULL_CORES = (
    "If the full-pcpus-only policy option is specified, the static policy will always allocate "
    "full physical cores."
)


class FreeCoreByAverage(Assignment):
    """Counts a core, or a socket, as free by the average of the machine."""

    departure = Defect(
        "free-core-by-average",
        ALL,
        "The amount of exclusively allocatable CPUs is equal to the total number of CPUs in the "
        "node minus any CPU reservations set by the kubelet configuration.",
        f"{ISSUES}140495",
        "A core counts as free when as many of its CPUs are free as a core has on average, "
        "rounded down, and is then taken with all its CPUs. On machines with half-offline or "
        "hybrid cores a reserved or used CPU is handed out, and one CPU can be exclusive and in "
        "the shared pool at once.",
    )

    def free_cores(self, free: int) -> list[int]:
        """The cores with as many free CPUs as a core has on average."""
        topology, cores = self.topology, self.topology.cores
        size = topology.cpu_count // topology.core_count
        order = cores_in_order(topology, free)
        return [cores[core] for core in order if (cores[core] & free).bit_count() == size]

    def free_sockets(self, free: int) -> list[int]:
        """The sockets with as many free CPUs as a socket has on average."""
        topology, sockets = self.topology, self.topology.sockets
        if not topology.socket_count:
            return []
        size = topology.cpu_count // topology.socket_count
        order = sockets_in_order(topology, free)
        return [sockets[number] for number in order if (sockets[number] & free).bit_count() == size]


class BrokenCoreTaken(Assignment):
    """Hands out parts of cores where whole ones were asked for."""

    departure = Defect(
        "full-pcpus-only-takes-broken-core",
        ALL,
        _FULL_CORES,
        "",
        "On hybrid machines single threads of cores are handed out; with "
        "distribute-cpus-across-numa also the sibling of a reserved CPU.",
    )

    @property
    def only_whole_cores(self) -> bool:
        """Not there: any CPU will do once the number of CPUs is right."""
        return super().only_whole_cores and _is_plain(self)

    @property
    def cpus_per_core(self) -> int:
        """The average of the machine, rounded down."""
        return self.topology.cpus_per_core


class CoreSplitAtAffinity(Assignment):
    """Fills the affinity up before it takes whole cores."""

    departure = Defect(
        "full-pcpus-only-splits-cores-at-affinity",
        ALL,
        _FULL_CORES,
        "",
        "Where the NUMA nodes of the affinity have too few whole cores for a container, parts of "
        "theirs are taken, siblings of reserved CPUs among them, and what is still missing "
        "elsewhere: cores are split on both sides.",
    )

    @property
    def only_whole_cores(self) -> bool:
        """Not where cores are alike: there the number of CPUs says whether they are whole."""
        return super().only_whole_cores and not _is_plain(self)


def _is_plain(assignment: Assignment) -> bool:
    """Whether all cores are alike, and CPUs are packed."""
    return assignment.topology.has_even_cores and not assignment.options.across_numa


class SpreadByCPUNumber(Assignment):
    """Spreads CPUs over cores by their numbers alone."""

    departure = Defect(
        "distribute-across-cores-by-cpu-number",
        ALL,
        "If the distribute-cpus-across-cores policy option is specified, the static policy will "
        "attempt to allocate virtual cores (hardware threads) across different physical cores.",
        "",
        "CPUs are taken in the order of their numbers, so that on machines that number the "
        "threads of a core one after the other whole cores are filled.",
    )

    def threads_of_other_cores(self, progress: PartialAssignment) -> PartialAssignment:
        """Takes CPUs in ascending order, socket by socket."""
        topology, free = self.topology, progress.free
        for socket in sockets_in_order(topology, free):
            progress = progress.take_threads(topology.sockets[socket] & free)
        return progress


class HalfUsedCores(Assignment):
    """Counts a half-used core of an uncore cache as a whole one."""

    departure: ClassVar[Defect | Change] = Defect(
        "uncore-skips-half-used-cores",
        between("1.32"),
        "If the prefer-align-cpus-by-uncorecache policy option is specified, the static policy "
        "will allocate CPU resources for individual containers such that all CPUs assigned to a "
        "container share the same uncore cache block.",
        f"{ISSUES}137315",
        "An uncore cache with a half-used core is passed over for a request that fits in it.",
    )

    def part_of_cache(self, progress: PartialAssignment, cache: int) -> int:
        """The request out of the first cores, of which the last may be split."""
        size, wanted = self.topology.cpus_per_core, progress.wanted
        cpus = self._first_cores(progress, cache, -(-wanted // size))
        if wanted % 2 and size > 1 and cpus.bit_count() > wanted:
            cpus ^= 1 << (cpus.bit_length() - 1)
        return cpus

    def _first_cores(self, progress: PartialAssignment, cache: int, count: int) -> int:
        """The free CPUs of the first `count` cores that have free CPUs in a cache."""
        cores = touching(self.topology.cores, cache & progress.free)[:count]
        return union(self.topology.cores[core] for core in cores) & progress.free


class OddRequestsPassedOver(HalfUsedCores):
    """Meets no odd request out of a part of an uncore cache."""

    departure = Change(
        between("1.32", "1.33"),
        "A request that is no multiple of a core's threads is never met within a part of an "
        "uncore cache.",
    )

    def part_of_cache(self, progress: PartialAssignment, cache: int) -> int:
        """The request out of the first cores, of which none is split."""
        return self._first_cores(progress, cache, progress.wanted // self.topology.cpus_per_core)


class CacheCountedTwice(Assignment):
    """Counts an uncore cache once for each NUMA node that it lies in."""

    departure = Defect(
        "uncore-across-nodes-counted-twice",
        between("1.32"),
        "The static policy allows containers in Guaranteed pods with integer CPU requests access "
        "to exclusive CPUs on the node.",
        "",
        "An uncore cache that lies in two NUMA nodes is taken once and counted once for each: the "
        "container gets fewer CPUs than it asked for.",
    )

    def caches_in_order(self, free: int) -> list[int]:
        """The uncore caches with free CPUs, node by node."""
        return caches_by_node(self.topology, free)


DIVISION_PANIC = Defect(
    "cpus-per-core-zero-panic",
    ALL,
    _FULL_CORES,
    "",
    "A machine with fewer CPUs than cores, by its totals, ends in a division by zero.",
    answers=False,
)

DEPARTURES = (
    FreeCoreByAverage,
    BrokenCoreTaken,
    CoreSplitAtAffinity,
    SpreadByCPUNumber,
    HalfUsedCores,
    OddRequestsPassedOver,
    CacheCountedTwice,
)

NO_ANSWER = (DIVISION_PANIC,)
"""Defects that end in no answer."""
