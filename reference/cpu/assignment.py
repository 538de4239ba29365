"""Which CPUs a request gets: packed onto the fewest NUMA nodes, sockets, caches and cores.

The request is met from the largest unit down to the smallest: whole NUMA nodes and whole
sockets, then (when asked for) uncore caches, whole cores, and at last single threads. Among units
of a kind those with the fewest free CPUs come first, so that large free ones stay whole; ties go
to the lower id. (Kubernetes documentation, "Static policy": a "topology-aware best-fit
allocation".)

Sets of CPUs are bit masks in this module.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu.topology import touching, union

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.cpu.topology import CPUTopology, Groups


class NotEnoughCPUsError(Exception):
    """Fewer CPUs are available than requested."""

    def __init__(self, requested: int, available: int) -> None:
        """Takes both counts."""
        super().__init__(
            "not enough cpus available to satisfy request: "
            f"requested={requested}, available={available}"
        )


class Progress(NamedTuple):
    """An assignment under way: CPUs still free, CPUs taken, and how many are wanted still."""

    free: int
    taken: int
    wanted: int

    def take(self, cpus: int) -> Progress:
        """The assignment after taking `cpus`."""
        return Progress(self.free & ~cpus, self.taken | cpus, self.wanted - cpus.bit_count())


class Style(NamedTuple):
    """How single requests are laid out.

    Attributes:
        spread: the step that spreads a request over cores; None packs it.
        uncore: what a request takes of a part of an uncore cache; None looks at no caches.
        counts_twice: the defect `CACHE_COUNTED_TWICE`.
        overwrites: the defect `COMBINATION_OVERWRITTEN`.
        least_nodes: to how many NUMA nodes a distributed request goes, if they can share it.
    """

    spread: Callable[[CPUTopology, Progress], Progress] | None
    uncore: Callable[[CPUTopology, Progress, int], int] | None
    counts_twice: bool
    overwrites: bool
    least_nodes: int = 0


def packed(topology: CPUTopology, available: int, count: int, style: Style, beside: int = 0) -> int:
    """The mask of `count` CPUs out of `available`, on as few units as possible.

    `beside` are CPUs that the same container has already.

    Raises:
        NotEnoughCPUsError: `available` has fewer.
    """
    free = available & topology.cpus
    if count > free.bit_count():
        raise NotEnoughCPUsError(count, available.bit_count())
    progress = Progress(free, beside, count)
    for step in _steps(topology, style):
        if progress.wanted < 1:
            break
        progress = step(topology, progress)
    return progress.taken & ~beside


def _steps(topology: CPUTopology, style: Style) -> list[Callable[..., Progress]]:
    larger = [_whole_nodes, _whole_sockets]
    steps: list[Callable[..., Progress]] = (
        [*larger] if topology.nodes_within_sockets else larger[::-1]
    )
    if style.uncore:
        steps.append(partial(_by_uncore, part=style.uncore, twice=style.counts_twice))
    if style.spread:
        steps.append(style.spread)
    else:
        steps += [_whole_cores, _threads_by_core]
    return steps


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
    """The NUMA nodes with free CPUs in the order in which they are used up."""
    nodes, sockets = topology.nodes, topology.sockets
    if topology.nodes_within_sockets:
        return _fullest_first(nodes, free, free)
    return [
        node
        for socket in _fullest_first(sockets, free, free)
        for node in _fullest_first(nodes, free, sockets[socket])
    ]


def sockets_in_order(topology: CPUTopology, free: int) -> list[int]:
    """The sockets with free CPUs in the order in which they are used up."""
    nodes, sockets = topology.nodes, topology.sockets
    if not topology.nodes_within_sockets:
        return _fullest_first(sockets, free, free)
    return [
        socket
        for node in _fullest_first(nodes, free, free)
        for socket in _fullest_first(sockets, free, nodes[node])
    ]


def _uncores_in_order(topology: CPUTopology, free: int) -> list[int]:
    return [
        uncore
        for node in nodes_in_order(topology, free)
        for uncore in _fullest_first(topology.uncores, free, topology.nodes[node])
    ]


def _cores_in_order(topology: CPUTopology, free: int) -> list[int]:
    if topology.nodes_within_sockets:
        units, cores = sockets_in_order(topology, free), topology.cores_by_socket
        masks = topology.sockets
    else:
        units, cores = nodes_in_order(topology, free), topology.cores_by_node
        masks = topology.nodes
    return [core for unit in units for core in _fullest_first(cores[unit], free, masks[unit])]


# The steps, from the largest unit to the smallest


def _take_whole(progress: Progress, units: list[int]) -> Progress:
    for cpus in units:
        if cpus.bit_count() <= progress.wanted:
            progress = progress.take(cpus)
    return progress


def _whole_nodes(topology: CPUTopology, progress: Progress) -> Progress:
    nodes = (topology.nodes[node] for node in nodes_in_order(topology, progress.free))
    return _take_whole(progress, [cpus for cpus in nodes if not cpus & ~progress.free])


def _whole_sockets(topology: CPUTopology, progress: Progress) -> Progress:
    free = progress.free
    return _take_whole(
        progress,
        [
            topology.sockets[socket]
            for socket in sockets_in_order(topology, free)
            if (topology.sockets[socket] & free).bit_count() == topology.whole_socket[socket]
        ],
    )


def _whole_cores(topology: CPUTopology, progress: Progress) -> Progress:
    free = progress.free
    return _take_whole(
        progress,
        [
            topology.cores[core]
            for core in _cores_in_order(topology, free)
            if (topology.cores[core] & free).bit_count() == topology.whole_core[core]
        ],
    )


def _take_threads(progress: Progress, cpus: int) -> Progress:
    while cpus and progress.wanted > 0:
        lowest = cpus & -cpus
        progress = progress.take(lowest)
        cpus ^= lowest
    return progress


def _threads_by_core(topology: CPUTopology, progress: Progress) -> Progress:
    free = progress.free
    for core in _cores_in_order(topology, free):
        progress = _take_threads(progress, topology.cores[core] & free)
    return progress


def threads_by_number(topology: CPUTopology, progress: Progress) -> Progress:
    """Takes CPUs in ascending order, socket by socket.

    That spreads them over cores where siblings are numbered apart, and only there (defect
    `SPREAD_BY_CPU_NUMBER`).
    """
    free = progress.free
    for socket in sockets_in_order(topology, free):
        progress = _take_threads(progress, topology.sockets[socket] & free)
    return progress


def threads_of_other_cores(topology: CPUTopology, progress: Progress) -> Progress:
    """Takes a CPU of every core of a socket before it takes a second one of any."""
    free = progress.free
    for socket in sockets_in_order(topology, free):
        turns: dict[int, int] = {}
        for core in topology.cores_by_socket[socket].values():
            turn = (core & progress.taken).bit_count()
            for cpu in CPUSet.from_mask(core & free & topology.sockets[socket]):
                turns[turn] = turns.get(turn, 0) | 1 << cpu
                turn += 1
        for _, cpus in sorted(turns.items()):
            progress = _take_threads(progress, cpus)
    return progress


def _by_uncore(
    topology: CPUTopology,
    progress: Progress,
    part: Callable[[CPUTopology, Progress, int], int],
    *,
    twice: bool,
) -> Progress:
    for uncore in _uncores_in_order(topology, progress.free):
        if progress.wanted >= topology.cpus_per_uncore:
            progress = _whole_uncores(topology, progress, twice=twice)
        if progress.wanted < 1:
            return progress
        cpus = part(topology, progress, topology.uncores[uncore])
        if cpus.bit_count() == progress.wanted:
            return progress.take(cpus)
    return progress


def _whole_uncores(topology: CPUTopology, progress: Progress, *, twice: bool) -> Progress:
    """Takes whole caches; one that lies in two nodes is met in both (see `Style.counts_twice`)."""
    order = _uncores_in_order(topology, progress.free)
    caches = (topology.uncores[uncore] for uncore in (order if twice else dict.fromkeys(order)))
    return _take_whole(progress, [cpus for cpus in caches if not cpus & ~progress.free])


def part_with_room(topology: CPUTopology, progress: Progress, cache: int) -> int:
    """The request out of any cache that has as many free CPUs, whole cores first."""
    inside = Progress(progress.free & cache, 0, progress.wanted)
    if inside.free.bit_count() < inside.wanted:
        return 0
    return _threads_by_core(topology, _whole_cores(topology, inside)).taken


def part_with_odd(topology: CPUTopology, progress: Progress, cache: int) -> int:
    """The request out of the first cores, of which the last may be split.

    Half-used cores count as cores and then do not suffice (defect `HALF_USED_CORES`).
    """
    cpus = _first_cores(topology, progress, cache, -(-progress.wanted // topology.cpus_per_core))
    if progress.wanted % 2 and topology.cpus_per_core > 1 and cpus.bit_count() > progress.wanted:
        cpus ^= 1 << (cpus.bit_length() - 1)
    return cpus


def part_of_cores(topology: CPUTopology, progress: Progress, cache: int) -> int:
    """The request out of the first cores, never an odd one (releases before 1.34)."""
    return _first_cores(topology, progress, cache, progress.wanted // topology.cpus_per_core)


def _first_cores(topology: CPUTopology, progress: Progress, cache: int, count: int) -> int:
    """The free CPUs of the first `count` cores that have free CPUs in a cache."""
    cores = touching(topology.cores, cache & progress.free)[:count]
    return union(topology.cores[core] for core in cores) & progress.free
