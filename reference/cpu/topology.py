"""The CPU topology as the CPU Manager derives it from cAdvisor's `MachineInfo`.

Cores, sockets, NUMA nodes and uncore caches are bit masks of their CPUs, in ascending order of id.
A core's id is its lowest CPU number, because cAdvisor's core ids repeat across sockets and dies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from numaproof.protocol.sets import LARGEST_MEMBER, CPUSet
from numaproof.reference.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.protocol.machine import Core, MachineInfo

Groups = dict[int, int]
"""Masks of CPUs by the id of a unit, such as a core, in ascending order."""


class TopologyError(Exception):
    """The machine has no topology that the CPU Manager can use."""


@dataclass(frozen=True)
class CPUTopology:
    """Maps CPUs to cores, sockets, NUMA nodes and uncore caches.

    `cpu_count`, `core_count` and `socket_count` are cAdvisor's totals, which can contradict the
    groups if CPUs are offline or cores differ in size. `cpus` is the mask of all CPUs. Derived
    values are computed on first use.
    """

    cpu_count: int
    core_count: int
    socket_count: int
    cpus: int
    cores: Groups
    sockets: Groups
    nodes: Groups
    uncores: Groups
    cores_by_socket: Mapping[int, Groups]
    cores_by_node: Mapping[int, Groups]

    @cached_property
    def all_cpus(self) -> CPUSet:
        return CPUSet.from_mask(self.cpus)

    @cached_property
    def cpus_per_core(self) -> int:
        """The average, rounded down: 1 on a machine where few cores have two threads.

        It is at least 1, even if the totals contradict each other and the kubelet would divide by
        zero.
        """
        return max(1, self.cpu_count // self.core_count) if self.core_count else 1

    @cached_property
    def has_even_cores(self) -> bool:
        return all(core.bit_count() == self.most_cpus_per_core for core in self.cores.values())

    @cached_property
    def most_cpus_per_core(self) -> int:
        """The number of CPUs in the largest core, at least 1."""
        return max((core.bit_count() for core in self.cores.values()), default=1)

    @cached_property
    def cpus_per_uncore(self) -> int:
        """The average number of CPUs per uncore cache, rounded down, at least 1."""
        return max(1, self.cpu_count // len(self.uncores)) if self.uncores else 1

    @cached_property
    def sockets_within_nodes(self) -> bool:
        """Whether sockets are the smaller unit, that is, NUMA nodes do not outnumber sockets."""
        return self.socket_count >= len(self.nodes)

    def whole_cores(self, cpus: int) -> int:
        """The mask of all CPUs on cores that contain any of `cpus`."""
        return union(self.cores[core] for core in touching(self.cores, cpus))

    def complete_cores(self, cpus: int) -> int:
        """The mask of the cores whose CPUs are all in `cpus`."""
        return union(core for core in self.cores.values() if not core & ~cpus)


NO_CPUS = CPUTopology(0, 0, 0, 0, {}, {}, {}, {}, {}, {})
"""Stands for a machine whose CPUs are never read."""


def touching(groups: Groups, cpus: int) -> list[int]:
    """The ids of the groups with at least one of `cpus`, in the order of `groups`."""
    return [number for number, mask in groups.items() if mask & cpus]


def union(masks: Iterable[int]) -> int:
    joined = 0
    for mask in masks:
        joined |= mask
    return joined


@lru_cache(maxsize=128)
def derive(machine: MachineInfo) -> CPUTopology:
    """Derives a machine's topology as the kubelet does.

    Raises:
        TopologyError: there are no CPUs, or a core has no threads or lists a thread twice.
        RequestError: a CPU number is out of range.

    Requirements: CPU-OPT-UNCORE-007, DISCOVERY-004, DISCOVERY-023.
    """
    if machine.num_cores == 0:
        raise TopologyError("could not detect number of cpus")
    places: dict[int, tuple[int, int, int, int]] = {}
    core_count = 0
    for node in machine.topology or ():
        core_count += len(node.cores or ())
        for core in node.cores or ():
            threads = core.thread_ids or ()
            if not threads:
                raise TopologyError("no cpus provided")
            if not 0 <= min(threads) <= max(threads) < LARGEST_MEMBER:
                raise RequestError(
                    f"CPUs {min(threads)} to {max(threads)} are out of range "
                    f"(expected less than {LARGEST_MEMBER})"
                )
            if len(threads) != len(set(threads)):
                raise TopologyError("cpus provided are not unique")
            place = (min(threads), core.socket_id, node.node_id, _uncore(core))
            for cpu in threads:
                places[cpu] = place
    together: dict[tuple[int, int, int, int], int] = {}
    for cpu, place in places.items():
        together[place] = together.get(place, 0) | 1 << cpu
    cores, sockets, nodes, uncores = (_groups(together, part) for part in range(4))
    return CPUTopology(
        cpu_count=machine.num_cores,
        core_count=core_count,
        socket_count=machine.num_sockets,
        cpus=union(nodes.values()),
        cores=cores,
        sockets=sockets,
        nodes=nodes,
        uncores=uncores,
        cores_by_socket={number: _within(cores, mask) for number, mask in sockets.items()},
        cores_by_node={number: _within(cores, mask) for number, mask in nodes.items()},
    )


def _uncore(core: Core) -> int:
    # Without uncore caches, all CPUs of a socket count as sharing one.
    return core.uncore_caches[0].id if core.uncore_caches else core.socket_id


def _groups(together: dict[tuple[int, int, int, int], int], part: int) -> Groups:
    groups: Groups = {}
    for place, cpus in together.items():
        groups[place[part]] = groups.get(place[part], 0) | cpus
    return dict(sorted(groups.items()))


def _within(groups: Groups, cpus: int) -> Groups:
    return {number: mask for number, mask in groups.items() if mask & cpus}
