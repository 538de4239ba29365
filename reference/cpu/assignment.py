"""Which CPUs a request gets: packed onto the fewest NUMA nodes, sockets, caches and cores.

The request is met from the largest unit down to the smallest: whole NUMA nodes and whole
sockets, then (when asked for) uncore caches, whole cores, and at last single threads. Among units
of a kind those with the fewest free CPUs come first, so that large free ones stay whole; ties go
to the lower id. (Kubernetes documentation, "Static policy": a "topology-aware best-fit
allocation".)

Sets of CPUs are bit masks in this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu.topology import touching, union
from numaproof.reference.errors import AllocationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.reference.cpu.options import StaticOptions
    from numaproof.reference.cpu.topology import CPUTopology, Groups


class NotEnoughCPUsError(AllocationError):
    """Fewer CPUs are available than requested.

    Requirements: CPU-ERROR-004.
    """

    def __init__(self, count: int, available: int) -> None:
        """Takes both counts."""
        super().__init__(
            "not enough cpus available to satisfy request: "
            f"requested={count}, available={available}"
        )


class PartialAssignment(NamedTuple):
    """An assignment under way: CPUs still free, CPUs taken, and how many are wanted still."""

    free: int
    taken_cpus: int
    remaining_count: int

    def take(self, cpus: int) -> PartialAssignment:
        """The assignment after taking `cpus`."""
        return PartialAssignment(
            self.free & ~cpus, self.taken_cpus | cpus, self.remaining_count - cpus.bit_count()
        )

    def take_units(self, units: Iterable[int]) -> PartialAssignment:
        """The assignment after taking each of `units` that is no larger than what is wanted."""
        progress = self
        for cpus in units:
            if cpus.bit_count() <= progress.remaining_count:
                progress = progress.take(cpus)
        return progress

    def take_threads(self, cpus: int) -> PartialAssignment:
        """The assignment after taking as many of `cpus` as are wanted, the lowest first."""
        progress = self
        while cpus and progress.remaining_count > 0:
            lowest = cpus & -cpus
            progress = progress.take(lowest)
            cpus ^= lowest
        return progress


Step = Callable[[PartialAssignment], PartialAssignment]
"""What takes CPUs of one kind of unit."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The choice of CPUs on a machine, as the options of the static policy ask for it."""

    topology: CPUTopology
    options: StaticOptions

    @property
    def only_whole_cores(self) -> bool:
        """Whether nothing but whole cores is handed out (option ``full-pcpus-only``).

        Requirements: CPU-OPT-FULLPCPUS-002.
        """
        return self.options.full_cores

    @property
    def cpus_per_core(self) -> int:
        """The CPUs that a request must be a multiple of with ``full-pcpus-only``.

        Requirements: CPU-OPT-FULLPCPUS-008.
        """
        return self.topology.most_cpus_per_core

    def reserve(self, count: int) -> int:
        """`count` CPUs for the system, in ascending order of cores.

        Core ids repeat: the order begins anew in each socket or NUMA node, whichever is smaller.
        Options that say which CPUs containers get say so of these, too.

        Raises:
            NotEnoughCPUsError: the machine has fewer.

        Requirements: CPU-RESERVE-005, CPU-RESERVE-012.
        """
        topology = self.topology
        if self.options.place_cpus or count > topology.cpus.bit_count():
            return self.take(topology.cpus, count)
        progress = PartialAssignment(topology.cpus, 0, count)
        units, cores = _units_of_cores(topology)
        for unit, cpus in units.items():
            for core in cores[unit].values():
                progress = progress.take_threads(core & cpus)
        return progress.taken_cpus

    def take(self, available: int, count: int, held_cpus: int = 0, min_nodes: int = 0) -> int:
        """`count` CPUs out of `available`, laid out as the options ask.

        `held_cpus` are CPUs that the same container has already; CPUs that are distributed go to
        `min_nodes` NUMA nodes or more, where that many can share them.

        Raises:
            NotEnoughCPUsError: `available` has fewer.
        """
        del min_nodes
        return self.pack(available, count, held_cpus)

    def pack(self, available: int, count: int, held_cpus: int = 0) -> int:
        """`count` CPUs out of `available` on as few units as possible; else as `take`.

        Requirements: CPU-STATIC-012, CPU-STATIC-015, CPU-STATIC-022, CPU-STATIC-030,
        CPU-STATIC-032.
        """
        free = available & self.topology.cpus
        if count > free.bit_count():
            raise NotEnoughCPUsError(count, available.bit_count())
        free = self.restrict_to_socket(free, count)
        progress = PartialAssignment(free, held_cpus, count)
        for step in self.steps():
            if progress.remaining_count < 1:
                break
            progress = step(progress)
        return progress.taken_cpus & ~held_cpus

    def restrict_to_socket(self, free: int, count: int) -> int:
        """The CPUs of `free` to take `count` from: of whole cores, those of one socket if it can.

        Uncore caches, where they matter, are smaller than sockets and say more.

        Requirements: CPU-OPT-FULLPCPUS-012, CPU-STATIC-029.
        """
        if self.options.full_cores and not self.options.by_uncore:
            for socket in sockets_in_order(self.topology, free):
                inside = self.topology.sockets[socket] & free
                if inside.bit_count() >= count:
                    return inside
        return free

    def steps(self) -> list[Step]:
        """What is looked at, one after the other, until there are CPUs enough."""
        if self.options.across_cores:
            return self.spreading_steps()
        steps = self.large_units()
        if self.options.by_uncore:
            steps.append(self.uncore_caches)
        return [*steps, self.whole_cores, self.threads_by_core]

    def spreading_steps(self) -> list[Step]:
        """The same where CPUs are spread over cores."""
        return [self.threads_of_other_cores]

    def large_units(self) -> list[Step]:
        """The units that are larger than cores and caches, the largest first."""
        steps: list[Step] = [self.whole_nodes, self.whole_sockets]
        return steps if self.topology.sockets_within_nodes else steps[::-1]

    def whole_nodes(self, progress: PartialAssignment) -> PartialAssignment:
        """Takes NUMA nodes that are entirely free.

        Requirements: CPU-STATIC-012.
        """
        order = nodes_in_order(self.topology, progress.free)
        return progress.take_units(_entirely_free(self.topology.nodes, order, progress.free))

    def whole_sockets(self, progress: PartialAssignment) -> PartialAssignment:
        """Takes sockets that are entirely free.

        Requirements: CPU-STATIC-008.
        """
        return progress.take_units(self.free_sockets(progress.free))

    def free_sockets(self, free: int) -> list[int]:
        """The sockets whose CPUs are all free, in the order in which they are taken."""
        return _entirely_free(self.topology.sockets, sockets_in_order(self.topology, free), free)

    def uncore_caches(self, progress: PartialAssignment) -> PartialAssignment:
        """Takes all of several uncore caches, and the rest of the request out of a part of one.

        Requirements: CPU-OPT-UNCORE-002, CPU-OPT-UNCORE-004.
        """
        order = self.caches_in_order(progress.free)
        progress = self.all_of_caches(progress, order)
        for uncore in order:
            cpus = self.part_of_cache(progress, self.topology.uncores[uncore])
            if cpus.bit_count() == progress.remaining_count:
                return progress.take(cpus)
        return progress

    def all_of_caches(self, progress: PartialAssignment, order: list[int]) -> PartialAssignment:
        """Takes what is free of uncore caches, most first, until one has room for the rest.

        A request that an idle cache can hold is not divided so.

        Requirements: CPU-OPT-UNCORE-003, CPU-OPT-UNCORE-004.
        """
        uncores = self.topology.uncores
        largest = max(map(int.bit_count, uncores.values()))
        if progress.taken_cpus.bit_count() + progress.remaining_count <= largest:
            return progress
        parts = [uncores[uncore] & progress.free for uncore in order]
        for part in sorted(parts, key=int.bit_count, reverse=True):
            if part.bit_count() >= progress.remaining_count:
                break
            progress = progress.take(part)
        return progress

    def caches_in_order(self, free: int) -> list[int]:
        """The uncore caches with free CPUs, each once, in the order in which they are used up."""
        return list(dict.fromkeys(caches_by_node(self.topology, free)))

    def part_of_cache(self, progress: PartialAssignment, cache: int) -> int:
        """The rest of the request out of a cache, whole cores first; less where it has no room.

        Requirements: CPU-OPT-UNCORE-005, CPU-OPT-UNCORE-006.
        """
        inside = PartialAssignment(progress.free & cache, 0, progress.remaining_count)
        return self.threads_by_core(self.whole_cores(inside)).taken_cpus

    def whole_cores(self, progress: PartialAssignment) -> PartialAssignment:
        """Takes cores that are entirely free.

        Requirements: CPU-STATIC-009, CPU-STATIC-031.
        """
        return progress.take_units(self.free_cores(progress.free))

    def free_cores(self, free: int) -> list[int]:
        """The cores whose CPUs are all free, in the order in which they are taken.

        Requirements: CPU-POOL-006, CPU-RESERVE-013, CPU-STATIC-023.
        """
        return _entirely_free(self.topology.cores, cores_in_order(self.topology, free), free)

    def threads_by_core(self, progress: PartialAssignment) -> PartialAssignment:
        """Takes single CPUs, core by core.

        Requirements: CPU-STATIC-010, CPU-STATIC-013.
        """
        free = progress.free
        for core in self.cores_to_break(progress):
            progress = progress.take_threads(self.topology.cores[core] & free)
        return progress

    def cores_to_break(self, progress: PartialAssignment) -> list[int]:
        """The cores in the order in which single CPUs are taken.

        Those on the sockets of what is taken already come first.

        Requirements: CPU-STATIC-010.
        """
        sockets = self.topology.sockets
        near = union(sockets[socket] for socket in touching(sockets, progress.taken_cpus))
        cores = self.topology.cores
        order = cores_in_order(self.topology, progress.free)
        return sorted(order, key=lambda core: not cores[core] & near)

    def threads_of_other_cores(self, progress: PartialAssignment) -> PartialAssignment:
        """Takes a CPU of every core before it takes a second one of any.

        Requirements: CPU-OPT-DISTCORES-002, CPU-OPT-DISTCORES-003.
        """
        topology, free = self.topology, progress.free
        turns: dict[tuple[int, ...], int] = {}
        for place, socket in enumerate(sockets_in_order(topology, free)):
            for core in topology.cores_by_socket[socket].values():
                cpus = CPUSet.from_mask(core & free & topology.sockets[socket])
                for before, cpu in enumerate(cpus, (core & progress.taken_cpus).bit_count()):
                    turn = self.thread_rank(before, place)
                    turns[turn] = turns.get(turn, 0) | 1 << cpu
        for _, together in sorted(turns.items()):
            progress = progress.take_threads(together)
        return progress

    def thread_rank(self, before: int, place: int) -> tuple[int, ...]:
        """When a CPU is taken that shares its core with `before` others of the container.

        `place` is that of its socket among those in order. What is less comes first.
        """
        return before, place


def _entirely_free(groups: Groups, order: list[int], free: int) -> list[int]:
    return [groups[number] for number in order if not groups[number] & ~free]


# The order in which units are looked at


def _fullest_first(groups: Groups, free: int, within: int) -> list[int]:
    """The groups with free CPUs in `within`: fewest free CPUs first, then the lower id."""
    found = [
        ((mask & free).bit_count(), number)
        for number, mask in groups.items()
        if mask & within & free
    ]
    found.sort()
    return [number for _, number in found]


def nodes_in_order(topology: CPUTopology, free: int) -> list[int]:
    """The NUMA nodes with free CPUs in the order in which they are used up.

    Requirements: CPU-STATIC-011, CPU-STATIC-029.
    """
    nodes, sockets = topology.nodes, topology.sockets
    if topology.sockets_within_nodes:
        return _fullest_first(nodes, free, free)
    return [
        node
        for socket in _fullest_first(sockets, free, free)
        for node in _fullest_first(nodes, free, sockets[socket])
    ]


def sockets_in_order(topology: CPUTopology, free: int) -> list[int]:
    """The sockets with free CPUs in the order in which they are used up."""
    nodes, sockets = topology.nodes, topology.sockets
    if not topology.sockets_within_nodes:
        return _fullest_first(sockets, free, free)
    return [
        socket
        for node in _fullest_first(nodes, free, free)
        for socket in _fullest_first(sockets, free, nodes[node])
    ]


def caches_by_node(topology: CPUTopology, free: int) -> list[int]:
    """The uncore caches with free CPUs, node by node."""
    return [
        uncore
        for node in nodes_in_order(topology, free)
        for uncore in _fullest_first(topology.uncores, free, topology.nodes[node])
    ]


def cores_in_order(topology: CPUTopology, free: int) -> list[int]:
    """The cores with free CPUs in the order in which they are used up."""
    within = topology.sockets_within_nodes
    order = sockets_in_order(topology, free) if within else nodes_in_order(topology, free)
    units, cores = _units_of_cores(topology)
    return [core for unit in order for core in _fullest_first(cores[unit], free, units[unit])]


def _units_of_cores(topology: CPUTopology) -> tuple[Groups, Mapping[int, Groups]]:
    """Sockets or NUMA nodes, whichever are smaller, and the cores of each."""
    if topology.sockets_within_nodes:
        return topology.sockets, topology.cores_by_socket
    return topology.nodes, topology.cores_by_node
