"""Deviations in the choice of CPUs."""

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
from numaproof.reference.deviations.deviation import ALL, ISSUES, Defect, UndocumentedBehaviour

if TYPE_CHECKING:
    from numaproof.reference.cpu.assignment import PartialAssignment, Step

_FULL_CORES = (
    "If the full-pcpus-only policy option is specified, the static policy will always allocate "
    "full physical cores."
)


class FreeCoreByAverage(Assignment):
    """Uses the machine's average sizes to decide whether a core or a socket is free.

    A core counts as free if it has as many free CPUs as the average core has CPUs, rounded down,
    and all of its CPUs are then assigned. On hybrid machines and on machines with half-offline
    cores, CPUs that are reserved or in use are therefore assigned, and a CPU can be both exclusive
    and in the shared pool.
    """

    deviation = Defect(
        "free-core-by-average",
        ALL,
        "The amount of exclusively allocatable CPUs is equal to the total number of CPUs in the "
        "node minus any CPU reservations set by the kubelet configuration.",
        f"{ISSUES}140495",
    )

    def free_cores(self, free: int) -> list[int]:
        topology, cores = self.topology, self.topology.cores
        size = topology.cpu_count // topology.core_count
        order = cores_in_order(topology, free)
        return [cores[core] for core in order if (cores[core] & free).bit_count() == size]

    def free_sockets(self, free: int) -> list[int]:
        topology, sockets = self.topology, self.topology.sockets
        if not topology.socket_count:
            return []
        size = topology.cpu_count // topology.socket_count
        order = sockets_in_order(topology, free)
        return [sockets[number] for number in order if (sockets[number] & free).bit_count() == size]


class ReservedByBestFit(Assignment):
    """Reserves the CPUs that a container would get.

    CPUs are reserved as if for a container, smallest units first: on machines with unequal cores,
    NUMA nodes or sockets, the ones with the fewest CPUs are reserved, regardless of their IDs.
    """

    deviation = Defect(
        "reservation-by-best-fit",
        ALL,
        "CPUs reserved by these options are taken, in integer quantity, from the initial shared "
        "pool in ascending order by physical core ID.",
    )

    def reserve(self, count: int) -> int:
        return self.take(self.topology.cpus, count)


class BrokenCoreTaken(Assignment):
    """Assigns parts of cores although whole cores are required.

    On hybrid machines, single threads of cores are assigned; with distribute-cpus-across-numa,
    siblings of reserved CPUs are also assigned.
    """

    deviation = Defect("full-pcpus-only-takes-broken-core", ALL, _FULL_CORES)

    @property
    def only_whole_cores(self) -> bool:
        """False unless cores are alike and CPUs are packed; then only CPU counts are checked."""
        return super().only_whole_cores and _is_plain(self)

    @property
    def cpus_per_core(self) -> int:
        return self.topology.cpus_per_core


class CoreSplitAtAffinity(Assignment):
    """Uses up the affinity's nodes before it takes whole cores.

    If the affinity's NUMA nodes have too few whole cores for a container, parts of cores are used
    there, even siblings of reserved CPUs, and the remaining CPUs come from other nodes. As a
    result, cores are split both on the affinity's nodes and elsewhere.
    """

    deviation = Defect("full-pcpus-only-splits-cores-at-affinity", ALL, _FULL_CORES)

    @property
    def only_whole_cores(self) -> bool:
        """False if cores are alike and CPUs are packed; then only CPU counts are checked."""
        return super().only_whole_cores and not _is_plain(self)


def _is_plain(assignment: Assignment) -> bool:
    return assignment.topology.has_even_cores and not assignment.options.across_numa


class FullestSocketSpillsOver(Assignment):
    """Starts in the fullest socket, even if it does not have enough CPUs.

    CPUs come from the socket with the fewest free CPUs and, if it has too few, also from the next
    one, even if another socket has enough for the whole request.
    """

    deviation = Defect(
        "full-pcpus-only-splits-sockets",
        ALL,
        "Just like the behaviour in case of static policy, takeByTopology will try to first "
        "allocate CPUs from the same socket and only in case the request cannot be satisfied on a "
        "single socket, CPU allocation is done for a workload to occupy all CPUs on a physical "
        "core.",
    )

    def restrict_to_socket(self, free: int, count: int) -> int:
        return free


class SpreadByCPUNumber(Assignment):
    """Distributes CPUs across cores by CPU number only.

    CPUs are taken in numeric order, which fills whole cores on machines that number the threads of
    a core consecutively.
    """

    deviation = Defect(
        "distribute-across-cores-by-cpu-number",
        ALL,
        "If the distribute-cpus-across-cores policy option is specified, the static policy will "
        "attempt to allocate virtual cores (hardware threads) across different physical cores.",
    )

    def thread_rank(self, before: int, place: int) -> tuple[int, ...]:
        """Ranks every CPU like the first CPU of a core on the first socket."""
        return super().thread_rank(0, 0)


class SocketsFilled(Assignment):
    """Distributes CPUs across the cores of one socket after another.

    Free NUMA nodes and sockets are taken with all the threads of their cores, and one socket's
    cores are filled before the next socket is used.
    """

    deviation = Defect(
        "distribute-across-cores-fills-sockets",
        between("1.31"),
        "By enabling the distribute-cpus-across-cores policy, the static policy ensures that CPUs "
        "are distributed across as many physical cores as possible.",
    )

    def spreading_steps(self) -> list[Step]:
        return [*self.large_units(), *super().spreading_steps()]

    def thread_rank(self, before: int, place: int) -> tuple[int, ...]:
        return place, *super().thread_rank(before, place)


class FullestSocketFirst(Assignment):
    """Takes single CPUs from the fullest socket, even if the whole cores are on another one.

    CPUs beyond whole cores come from the socket with the fewest free CPUs, even if the whole cores
    are on another socket that also has partly used cores.
    """

    deviation = Defect(
        "single-cpus-from-fullest-socket",
        ALL,
        "Acquire single threads, preferring to fill partially-allocated cores on the same sockets "
        "as the whole cores we have already taken in this allocation.",
    )

    def cores_to_break(self, progress: PartialAssignment) -> list[int]:
        return cores_in_order(self.topology, progress.free)


class IdleCachesAlone(Assignment):
    """Takes whole uncore caches only if they are entirely free.

    If no uncore cache is entirely free, a request larger than one cache is packed in the default
    way and gets CPUs of more caches than necessary.
    """

    deviation = Defect(
        "uncore-caches-not-the-fewest",
        between("1.32"),
        "If the container's CPU requirement exceeds the CPU capacity of a single uncore cache, the "
        "CPUManager minimizes the number of uncore caches used in order to maintain optimal uncore "
        "cache alignment.",
    )

    def all_of_caches(self, progress: PartialAssignment, order: list[int]) -> PartialAssignment:
        """Takes entirely free caches while the request is at least as large as an average cache."""
        uncores = self.topology.uncores
        if progress.remaining_count < self.topology.cpus_per_uncore:
            return progress
        return progress.take_units(
            uncores[uncore] for uncore in order if not uncores[uncore] & ~progress.free
        )


class HalfUsedCores(Assignment):
    """Counts a half-used core of an uncore cache as whole.

    An uncore cache with a half-used core is skipped, even if the request fits.
    """

    deviation: ClassVar[Defect | UndocumentedBehaviour] = Defect(
        "uncore-skips-half-used-cores",
        between("1.32"),
        "If the prefer-align-cpus-by-uncorecache policy option is specified, the static policy "
        "will allocate CPU resources for individual containers such that all CPUs assigned to a "
        "container share the same uncore cache block.",
        f"{ISSUES}137315",
    )

    def part_of_cache(self, progress: PartialAssignment, cache: int) -> int:
        """The CPUs of the first cores, splitting the last core if necessary."""
        size, wanted = self.topology.cpus_per_core, progress.remaining_count
        cpus = self._first_cores(progress, cache, -(-wanted // size))
        if wanted % 2 and size > 1 and cpus.bit_count() > wanted:
            cpus ^= 1 << (cpus.bit_length() - 1)
        return cpus

    def _first_cores(self, progress: PartialAssignment, cache: int, count: int) -> int:
        cores = touching(self.topology.cores, cache & progress.free)[:count]
        return union(self.topology.cores[core] for core in cores) & progress.free


class OddRequestsPassedOver(HalfUsedCores):
    """Never meets an odd request from part of an uncore cache.

    A request that is not a multiple of the number of threads per core never gets part of an uncore
    cache.
    """

    deviation = UndocumentedBehaviour("", between("1.32", "1.33"))

    def part_of_cache(self, progress: PartialAssignment, cache: int) -> int:
        return self._first_cores(
            progress, cache, progress.remaining_count // self.topology.cpus_per_core
        )


class CacheCountedTwice(Assignment):
    """Counts an uncore cache once for each of its NUMA nodes.

    An uncore cache that spans two NUMA nodes is assigned once but counted for each node, so the
    container gets fewer CPUs than it requested.
    """

    deviation = Defect(
        "uncore-across-nodes-counted-twice",
        between("1.32"),
        "The static policy allows containers in Guaranteed pods with integer CPU requests access "
        "to exclusive CPUs on the node.",
    )

    def caches_in_order(self, free: int) -> list[int]:
        return caches_by_node(self.topology, free)


DIVISION_PANIC = Defect(
    "cpus-per-core-zero-panic",
    ALL,
    _FULL_CORES,
    what="A machine whose totals report fewer CPUs than cores causes a division by zero.",
    answers=False,
)
