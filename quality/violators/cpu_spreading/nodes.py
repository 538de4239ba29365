"""Violators of ``distribute-cpus-across-numa``."""

from __future__ import annotations

import dataclasses
import math
import struct
from typing import TYPE_CHECKING, Any

from numaproof.reference.cpu import distribution, options
from numaproof.reference.cpu.assignment import Assignment, NotEnoughCPUsError, nodes_in_order
from numaproof.reference.cpu.distribution import (
    AccountingError,
    CPURequest,
    DistributedAssignment,
    Distribution,
)
from numaproof.reference.cpu.policy import StaticCPUPolicy
from quality.seeding import Changes, SubjectBugs
from quality.violators.cpu_options.whole_cores import matures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

seeds = SubjectBugs("cpu-spreading")

MOST_TRIED = 64
"""The combinations of NUMA nodes after which somebody gives up."""


# Availability of distribute-cpus-across-numa


@seeds("CPU-OPT-DISTNUMA-001", kubernetes="1.30")
def distributing_is_unknown_while_alpha(changes: Changes) -> None:
    """Its author starts with the release in which the option is beta."""
    matures(changes, options.ACROSS_NUMA, None)


@seeds("CPU-OPT-DISTNUMA-001", kubernetes="1.32")
def distributing_becomes_beta_a_release_early(changes: Changes) -> None:
    """Its author shows the option by default before it is beta."""
    matures(changes, options.ACROSS_NUMA, "beta")


@seeds("CPU-OPT-DISTNUMA-001", kubernetes="1.33")
def distributing_becomes_beta_a_release_late(changes: Changes) -> None:
    """Its author has the option alpha for one release more."""
    matures(changes, options.ACROSS_NUMA, "alpha")


@seeds("CPU-OPT-DISTNUMA-001")
def distributing_stays_alpha(changes: Changes) -> None:
    """Its author goes by the table of an old document."""
    matures(changes, options.ACROSS_NUMA, "alpha")


@seeds("CPU-OPT-DISTNUMA-001")
def distributing_needs_no_gate(changes: Changes) -> None:
    """Its author takes an option that is visible by default for a stable one."""
    matures(changes, options.ACROSS_NUMA, "stable")


# An even spread


def _packed(changes: Changes, when: Callable[..., bool]) -> None:
    """Packs a request that is to be distributed, if `when` says so."""

    def take(
        original: Any, self: Any, available: int, count: int, beside: int = 0, least: int = 0
    ) -> Any:
        if count > 0 and when(self, available, count, least):
            return self.pack(available, count)
        return original(self, available, count, beside, least)

    changes.around(DistributedAssignment, "take", take)


@seeds("CPU-OPT-DISTNUMA-002")
def distributing_ends_with_the_first_node_in_use(changes: Changes) -> None:
    """Its author tries it with nodes whose CPUs are all free."""

    def in_use(self: DistributedAssignment, available: int, _count: int, _least: int) -> bool:
        nodes = self.topology.nodes.values()
        return sum(not cpus & ~available for cpus in nodes) < len(nodes) // 2

    _packed(changes, in_use)


@seeds("CPU-OPT-DISTNUMA-002")
def requests_with_an_affinity_are_packed_within_it(changes: Changes) -> None:
    """Its author lets the Topology Manager decide about nodes alone."""
    _packed(changes, lambda self, available, count, least: least > 1)


@seeds("CPU-OPT-DISTNUMA-003")
def request_as_large_as_a_free_node_is_spread(changes: Changes) -> None:
    """Its author compares with "less than" where a node is just large enough."""

    def sizes(original: Any, self: Any, request: CPURequest, least: int) -> Any:
        found = original(self, request, least)
        if max(request.free.values(), default=0) == request.wanted and len(found) > 1:
            return [size for size in found if size > 1]
        return found

    changes.around(DistributedAssignment, "sizes", sizes)


# What is left over


def _remainder(changes: Changes, order: Callable[[CPURequest, Distribution], list[int]]) -> None:
    """Takes what is left over of an even split from the first nodes in `order`."""

    def over(original: Any, self: Any, request: CPURequest, nodes: tuple[int, ...]) -> Any:
        found = original(self, request, nodes)
        if found is None or not found.remainder:
            return found
        groups = (request.wanted - found.share * len(nodes)) // request.group
        left = [
            node
            for node in order(request, found)
            if request.free[node] - found.share >= request.group
        ]
        for count in range(min(groups, len(left)), len(left) + 1):
            taken = left[:count]
            if sum((request.free[one] - found.share) // request.group for one in taken) >= groups:
                return found._replace(remainder=tuple(taken))
        return found

    changes.around(DistributedAssignment, "over", over)


@seeds("CPU-OPT-DISTNUMA-004")
def remainder_comes_from_the_lowest_nodes(changes: Changes) -> None:
    """Its author hands the rest out from the first node on."""
    _remainder(changes, lambda request, found: sorted(found.nodes))


@seeds("CPU-OPT-DISTNUMA-004")
def remainder_comes_from_the_fullest_nodes(changes: Changes) -> None:
    """Its author fills up nodes as packing does."""
    _remainder(
        changes, lambda request, found: sorted(found.nodes, key=lambda node: request.free[node])
    )


# Where nothing is even


def _shared_by_some(self: Any, available: int, count: int) -> bool:
    """Whether some nodes can share a request."""
    group = self.cpus_per_core if self.options.full_cores else 1
    order = nodes_in_order(self.topology, available)
    free = {node: (self.topology.nodes[node] & available).bit_count() for node in order}
    request = CPURequest(free, count, group)
    return count % group == 0 and bool(self.choose(request, self.sizes(request, 0)))


@seeds("CPU-OPT-DISTNUMA-005")
def request_that_no_nodes_share_is_refused(changes: Changes) -> None:
    """Its author takes "evenly" for a condition."""

    def take(
        original: Any, self: Any, available: int, count: int, beside: int = 0, least: int = 0
    ) -> Any:
        if 0 < count <= available.bit_count() and not _shared_by_some(self, available, count):
            raise NotEnoughCPUsError(count, available.bit_count())
        return original(self, available, count, beside, least)

    changes.around(DistributedAssignment, "take", take)


@seeds("CPU-OPT-DISTNUMA-005")
def request_that_no_nodes_share_takes_the_lowest_cpus(changes: Changes) -> None:
    """Its author takes whatever there is once spreading has failed."""

    def take(
        original: Any, self: Any, available: int, count: int, beside: int = 0, least: int = 0
    ) -> Any:
        if 0 < count <= available.bit_count() and not _shared_by_some(self, available, count):
            chosen = 0
            for _ in range(count):
                free = available & ~chosen
                chosen |= free & -free
            return chosen
        return original(self, available, count, beside, least)

    changes.around(DistributedAssignment, "take", take)


# Whole cores


def _in_groups(changes: Changes, size: int) -> None:
    """Distributes groups of `size` CPUs where cores must be whole."""

    def take(original: Any, self: Any, *args: Any) -> Any:
        if self.options.full_cores:
            topology = dataclasses.replace(self.topology)
            vars(topology).update(cpus_per_core=size, most_cpus_per_core=size)
            self = dataclasses.replace(self, topology=topology)
        return original(self, *args)

    def whole(self: Assignment) -> bool:
        return self.options.full_cores and not self.options.across_numa

    changes.around(DistributedAssignment, "take", take)
    changes.replace(Assignment, "only_whole_cores", property(whole))


@seeds("CPU-OPT-DISTNUMA-006")
def pairs_are_distributed_on_cores_of_four_threads(changes: Changes) -> None:
    """Its author takes two threads for a core on every machine."""
    _in_groups(changes, 2)


@seeds("CPU-OPT-DISTNUMA-007")
def uneven_request_beside_broken_cores_is_an_accounting_error(changes: Changes) -> None:
    """Its author cuts the endless loop short, and has nothing to go on with."""

    def allocate(original: Any, self: Any, state: Any, pod: Any, *rest: Any) -> Any:
        container, *_ = rest
        count, size = pod.exclusive_cpus(container), self.assignment.cpus_per_core
        largest = max(map(int.bit_count, self.topology.nodes.values()))
        needed = -(-count // largest)
        both = self.options.full_cores and self.options.across_numa
        broken = self.broken != self.reserved
        held = state.of(pod.uid, container.name)
        if both and broken and held is None and needed > 1 and count % (needed * size):
            raise AccountingError("accounting error, the remainder does not get smaller")
        return original(self, state, pod, *rest)

    changes.around(StaticCPUPolicy, "allocate", allocate)


@seeds("CPU-OPT-DISTNUMA-007")
def distribution_of_cores_gives_up_on_many_nodes(changes: Changes) -> None:
    """Its author bounds the number of combinations, and refuses beyond it."""

    def sizes(original: Any, self: Any, request: CPURequest, least: int) -> Any:
        found = original(self, request, least)
        tried = sum(math.comb(len(request.free), size) for size in found)
        if self.options.full_cores and tried > MOST_TRIED:
            raise AccountingError("accounting error, too many combinations of NUMA nodes")
        return found

    changes.around(DistributedAssignment, "sizes", sizes)


# Equally balanced distributions


def _single(number: float) -> float:
    """A number as a single-precision one."""
    value: float = struct.unpack("f", struct.pack("f", number))[0]
    return value


@seeds("CPU-OPT-DISTNUMA-008")
def balance_is_not_rounded(changes: Changes) -> None:
    """Its author compares numbers of single precision as they come out of the sum."""

    def deviation(values: Iterable[int]) -> float:
        mean, squares = 0.0, 0.0
        for place, number in enumerate(values, start=1):
            before = _single(number - mean)
            mean = _single(mean + _single(before / place))
            squares = _single(squares + _single(before * _single(number - mean)))
        return squares

    changes.replace(distribution, "standard_deviation", deviation)
