"""Assigning CPUs: a request is packed onto the fewest NUMA nodes, sockets, caches and cores.

A request takes the largest units first: whole NUMA nodes and sockets, then uncore caches (if an
option asks for this), whole cores and finally single threads. Among units of the same kind, those
with the fewest free CPUs come first, to keep large free units whole; ties go to the lower id.
(Kubernetes documentation, "Static policy": a "topology-aware best-fit allocation".)

CPU sets are bit masks in this module.
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
    """A request exceeds the available CPUs.

    Requirements: CPU-ERROR-004.
    """

    def __init__(self, count: int, available: int) -> None:
        super().__init__(
            "not enough cpus available to satisfy request: "
            f"requested={count}, available={available}"
        )


class PartialAssignment(NamedTuple):
    """An assignment in progress: the free CPUs, the CPUs taken and the number still needed."""

    free: int
    taken_cpus: int
    remaining_count: int

    def take(self, cpus: int) -> PartialAssignment:
        return PartialAssignment(
            self.free & ~cpus, self.taken_cpus | cpus, self.remaining_count - cpus.bit_count()
        )

    def take_units(self, units: Iterable[int]) -> PartialAssignment:
        """Takes each of `units` that does not exceed the number of CPUs still needed."""
        progress = self
        for cpus in units:
            if cpus.bit_count() <= progress.remaining_count:
                progress = progress.take(cpus)
        return progress

    def take_threads(self, cpus: int) -> PartialAssignment:
        """Takes CPUs out of `cpus`, lowest ids first, until no more are needed."""
        progress = self
        while cpus and progress.remaining_count > 0:
            lowest = cpus & -cpus
            progress = progress.take(lowest)
            cpus ^= lowest
        return progress


Step = Callable[[PartialAssignment], PartialAssignment]
"""A step of an assignment, which takes CPUs in units of one kind."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Chooses CPUs on a machine according to the static policy's options."""

    topology: CPUTopology
    options: StaticOptions

    @property
    def only_whole_cores(self) -> bool:
        """Whether only whole cores are assigned (the ``full-pcpus-only`` option).

        Requirements: CPU-OPT-FULLPCPUS-002.
        """
        return self.options.full_cores

    @property
    def cpus_per_core(self) -> int:
        """With ``full-pcpus-only``, each request must be for a multiple of this number of CPUs.

        Requirements: CPU-OPT-FULLPCPUS-008.
        """
        return self.topology.most_cpus_per_core

    def reserve(self, count: int) -> int:
        """Chooses `count` CPUs to reserve for the system, in ascending order of cores.

        Core ids repeat, so the order restarts in each socket or NUMA node, whichever is smaller.
        Options that control the placement of CPUs also apply to reserved CPUs.

        Raises:
            NotEnoughCPUsError: the machine has fewer than `count` CPUs.

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
        """Chooses `count` CPUs out of `available` according to the options.

        `held_cpus` are CPUs that the same container already has. Distributed CPUs are spread over
        at least `min_nodes` NUMA nodes if possible.

        Raises:
            NotEnoughCPUsError: `available` has fewer than `count` CPUs.
        """
        del min_nodes
        return self.pack(available, count, held_cpus)

    def pack(self, available: int, count: int, held_cpus: int = 0) -> int:
        """Chooses `count` CPUs on as few units as possible; see `take` for arguments and errors.

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
        """Returns the part of `free` to choose from: a single socket if whole cores are required.

        Returns all of `free` if no socket has `count` free CPUs, or if CPUs are chosen by uncore
        cache, because caches are smaller than sockets.

        Requirements: CPU-OPT-FULLPCPUS-012, CPU-STATIC-029.
        """
        if self.options.full_cores and not self.options.by_uncore:
            for socket in sockets_in_order(self.topology, free):
                inside = self.topology.sockets[socket] & free
                if inside.bit_count() >= count:
                    return inside
        return free

    def steps(self) -> list[Step]:
        """The steps that are taken in turn until no more CPUs are needed."""
        if self.options.across_cores:
            return self.spreading_steps()
        steps = self.large_units()
        if self.options.by_uncore:
            steps.append(self.uncore_caches)
        return [*steps, self.whole_cores, self.threads_by_core]

    def spreading_steps(self) -> list[Step]:
        """The steps if CPUs are distributed across cores."""
        return [self.threads_of_other_cores]

    def large_units(self) -> list[Step]:
        """The steps for units larger than cores and caches, largest first."""
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
        return _entirely_free(self.topology.sockets, sockets_in_order(self.topology, free), free)

    def uncore_caches(self, progress: PartialAssignment) -> PartialAssignment:
        """Takes all free CPUs of some uncore caches, then the rest from a single cache.

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
        """Takes all free CPUs of the emptiest uncore caches until a single cache fits the rest.

        Requests that fit in the largest cache of an idle machine are not split this way.

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
        """The uncore caches with free CPUs, each once, in the order in which they are used."""
        return list(dict.fromkeys(caches_by_node(self.topology, free)))

    def part_of_cache(self, progress: PartialAssignment, cache: int) -> int:
        """The CPUs of a cache for the rest of the request, whole cores first; there may be too few.

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
        """The cores in the order in which single CPUs are taken from them.

        Cores on sockets where the container already has CPUs come first.

        Requirements: CPU-STATIC-010.
        """
        sockets = self.topology.sockets
        near = union(sockets[socket] for socket in touching(sockets, progress.taken_cpus))
        cores = self.topology.cores
        order = cores_in_order(self.topology, progress.free)
        return sorted(order, key=lambda core: not cores[core] & near)

    def threads_of_other_cores(self, progress: PartialAssignment) -> PartialAssignment:
        """Takes one CPU of every core before it takes a second CPU of any core.

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
        """The sort key of a CPU that shares its core with `before` CPUs of the same container.

        `place` is the position of the CPU's socket in the order of sockets. Lower keys are taken
        first.
        """
        return before, place


def _entirely_free(groups: Groups, order: list[int], free: int) -> list[int]:
    return [groups[number] for number in order if not groups[number] & ~free]


# The order of units


def _fullest_first(groups: Groups, free: int, within: int) -> list[int]:
    """The groups with free CPUs in `within`, by number of free CPUs and then by id."""
    found = [
        ((mask & free).bit_count(), number)
        for number, mask in groups.items()
        if mask & within & free
    ]
    found.sort()
    return [number for _, number in found]


def nodes_in_order(topology: CPUTopology, free: int) -> list[int]:
    """The NUMA nodes with free CPUs, in the order in which they are used.

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
    nodes, sockets = topology.nodes, topology.sockets
    if not topology.sockets_within_nodes:
        return _fullest_first(sockets, free, free)
    return [
        socket
        for node in _fullest_first(nodes, free, free)
        for socket in _fullest_first(sockets, free, nodes[node])
    ]


def caches_by_node(topology: CPUTopology, free: int) -> list[int]:
    """The uncore caches with free CPUs, grouped by node; a cache can occur more than once."""
    return [
        uncore
        for node in nodes_in_order(topology, free)
        for uncore in _fullest_first(topology.uncores, free, topology.nodes[node])
    ]


def cores_in_order(topology: CPUTopology, free: int) -> list[int]:
    within = topology.sockets_within_nodes
    order = sockets_in_order(topology, free) if within else nodes_in_order(topology, free)
    units, cores = _units_of_cores(topology)
    return [core for unit in order for core in _fullest_first(cores[unit], free, units[unit])]


def _units_of_cores(topology: CPUTopology) -> tuple[Groups, Mapping[int, Groups]]:
    """The masks of the smaller units (sockets or NUMA nodes), and the cores in each unit."""
    if topology.sockets_within_nodes:
        return topology.sockets, topology.cores_by_socket
    return topology.nodes, topology.cores_by_node
