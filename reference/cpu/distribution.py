"""Distributing a request evenly over NUMA nodes (the ``distribute-cpus-across-numa`` option).

A request uses the fewest nodes that can share it evenly, in the combination that best balances the
free CPUs of all nodes (lowest standard deviation). The remainder goes to the nodes of the
combination that best keep the balance. (Kubernetes documentation, section
"distribute-cpus-across-numa".)

CPU sets are bit masks in this module.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from numaproof.reference.cpu.assignment import Assignment, PartialAssignment, nodes_in_order
from numaproof.reference.cpu.topology import touching, union
from numaproof.reference.errors import AllocationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class AccountingError(AllocationError):
    """The nodes of the chosen distribution turn out to have too few CPUs."""


class CPURequest(NamedTuple):
    """A request for `cpu_count` CPUs in groups of `group`.

    `free` has the number of free CPUs by node, in the order in which nodes are used.
    """

    free: dict[int, int]
    cpu_count: int
    group: int

    def even_share(self, nodes: Sequence[int]) -> int:
        """The number of CPUs that each of `nodes` contributes to an even split, in whole groups."""
        return self.cpu_count // len(nodes) // self.group * self.group

    def whole_groups(self, node: int) -> int:
        """The number of free CPUs on a node, rounded down to whole groups."""
        return self.free[node] // self.group * self.group


class Distribution(NamedTuple):
    """Takes `share` CPUs from each of `nodes`, and the rest in groups from `remainder`."""

    balance: float
    nodes: tuple[int, ...]
    share: int
    remainder: tuple[int, ...]


class DistributedAssignment(Assignment):
    """Chooses CPUs with ``distribute-cpus-across-numa`` enabled."""

    __slots__ = ()

    def take(self, available: int, count: int, held_cpus: int = 0, min_nodes: int = 0) -> int:
        """Chooses `count` CPUs out of `available`, in whole cores if the options require them.

        A request is packed instead if it is not for whole cores as required, or if no combination
        of nodes can share it.

        Raises:
            NotEnoughCPUsError: `available` has fewer than `count` CPUs.
            AccountingError: the chosen nodes turn out to have too few CPUs.

        Requirements: CPU-HINT-018, CPU-OPT-DISTNUMA-002, CPU-OPT-DISTNUMA-003,
        CPU-OPT-DISTNUMA-005, CPU-OPT-DISTNUMA-006, CPU-OPT-DISTNUMA-007.
        """
        del held_cpus
        nodes = self.topology.nodes
        group = self.cpus_per_core if self.options.full_cores else 1
        if count % group:
            return self.pack(available, count)
        if count < 1:
            return 0
        order = nodes_in_order(self.topology, available)
        free = {node: (nodes[node] & available).bit_count() for node in order}
        request = CPURequest(free, count, group)
        best = self.choose(request, self.sizes(request, min_nodes))
        return (
            self._take_distribution(available, request, best)
            if best
            else self.pack(available, count)
        )

    def sizes(self, request: CPURequest, min_nodes: int) -> list[int]:
        """The numbers of nodes to try: in ascending order from `min_nodes`, then smaller ones."""
        fewest = self.fewest(request)
        most = min(request.cpu_count // request.group, len(request.free))
        min_nodes = min(max(fewest, min_nodes), most + 1)
        return [*range(min_nodes, most + 1), *range(fewest, min_nodes)]

    def choose(self, request: CPURequest, sizes: Sequence[int]) -> Distribution | None:
        """The best distribution, on a single socket if an option asks for this and it is possible.

        Requirements: CPU-OPT-ALIGNSOCKET-006.
        """
        for one_socket in (True, False) if self.options.by_socket else (False,):
            for size in sizes:
                if best := self.best_of_size(request, size, one_socket=one_socket):
                    return best
        return None

    def fewest(self, request: CPURequest) -> int:
        """The smallest number of NUMA nodes that together have enough free CPUs.

        Requirements: CPU-OPT-DISTNUMA-003.
        """
        missing = request.cpu_count
        largest = sorted(map(request.whole_groups, request.free), reverse=True)
        for found, free in enumerate(largest, 1):
            missing -= free
            if missing <= 0:
                return found
        return len(largest)

    def best_of_size(
        self, request: CPURequest, size: int, *, one_socket: bool = False
    ) -> Distribution | None:
        """The best way to share the request among `size` nodes, or None if there is none."""
        best: Distribution | None = None
        for nodes in combinations(request.free, size):
            if one_socket and not self.on_one_socket(nodes):
                continue
            found = self.best_over(request, nodes)
            if found and (best is None or self.is_better(found, best)):
                best = found
                if self.is_best(best):
                    break
        return best

    def on_one_socket(self, nodes: Iterable[int]) -> bool:
        """Whether all CPUs of the nodes belong to a single socket."""
        cpus = union(self.topology.nodes[node] for node in nodes)
        return len(touching(self.topology.sockets, cpus)) == 1

    def is_better(self, candidate: Distribution, best: Distribution) -> bool:
        """Whether a distribution is better than another over the same number of nodes."""
        return candidate.balance < best.balance

    def is_best(self, candidate: Distribution) -> bool:
        """Whether no distribution over the same number of nodes can be better."""
        return candidate.balance == 0

    def share(self, request: CPURequest, nodes: Sequence[int]) -> int | None:
        """How many CPUs each node contributes besides the remainder; None if nodes cannot share.

        If a node has too few CPUs for an even share, ``align-by-socket`` lowers the share of all
        nodes; without that option, the nodes cannot share.

        Requirements: CPU-OPT-ALIGNSOCKET-007, CPU-OPT-DISTNUMA-002.
        """
        even = request.even_share(nodes)
        least = min(even, *(request.whole_groups(node) for node in nodes))
        return least if least == even or self.options.by_socket else None

    def best_over(self, request: CPURequest, nodes: tuple[int, ...]) -> Distribution | None:
        """The best distribution over exactly these nodes, if any.

        Requirements: CPU-OPT-DISTNUMA-002, CPU-OPT-DISTNUMA-003, CPU-OPT-DISTNUMA-004,
        CPU-OPT-DISTNUMA-006, CPU-OPT-DISTNUMA-008.
        """
        free, count, group = request
        if sum(free[node] // group for node in nodes) * group < count:
            return None
        share = self.share(request, nodes)
        if share is None:
            return None
        left = {node: free[node] - share if node in nodes else free[node] for node in free}
        remainder = count - share * len(nodes)
        if remainder == 0:
            return Distribution(standard_deviation(left.values()), nodes, share, ())
        takers = [node for node in nodes if left[node] >= group]
        best: Distribution | None = None
        # Larger subsets first: of equally good ones, the remainder should use the most nodes.
        for size in range(len(takers), 0, -1):
            for subset in combinations(takers, size):
                after = _after_remainder(left, remainder, group, subset)
                if after is None:
                    continue
                balance = standard_deviation(after.values())
                if best is None or balance < best.balance:
                    best = Distribution(balance, nodes, share, subset)
        return best

    def _take_distribution(
        self, available: int, request: CPURequest, distribution: Distribution
    ) -> int:
        nodes, group = self.topology.nodes, request.group
        progress = PartialAssignment(available, 0, request.cpu_count)
        for node in distribution.nodes:
            on_node = progress.free & nodes[node]
            if on_node.bit_count() >= distribution.share:
                progress = progress.take(self.pack(on_node, distribution.share))
        remainder = request.cpu_count - distribution.share * len(distribution.nodes)
        while remainder > 0:
            before = remainder
            for node in distribution.remainder:
                on_node = progress.free & nodes[node]
                if remainder > 0 and on_node.bit_count() >= group:
                    progress = progress.take(self.pack(on_node, group))
                    remainder -= group
            if remainder == before:
                break
        if progress.remaining_count > 0:
            raise AccountingError(
                "accounting error, not enough CPUs allocated,"
                f" remaining: {progress.remaining_count}"
            )
        return progress.taken_cpus


def _after_remainder(
    free_by_node: dict[int, int], remainder: int, group: int, subset: Sequence[int]
) -> dict[int, int] | None:
    """The numbers of free CPUs by node once the nodes in `subset` have provided the remainder.

    The nodes take turns. Returns None if they do not have enough whole groups.
    """
    if sum(free_by_node[node] // group for node in subset) * group < remainder:
        return None
    after = dict(free_by_node)
    while remainder > 0:
        for node in subset:
            if remainder > 0 and after[node] >= group:
                after[node] -= group
                remainder -= group
    return after


def standard_deviation(values: Iterable[int]) -> float:
    """The population standard deviation; the mean and the result are rounded to three decimals.

    Requirements: CPU-OPT-DISTNUMA-008.
    """
    numbers = list(values)
    mean = _thousandths(sum(numbers) / len(numbers))
    squares = sum((number - mean) * (number - mean) for number in numbers)
    return _thousandths(math.sqrt(squares / len(numbers)))


def _thousandths(value: float) -> float:
    # Rounds half up; Python's round() rounds half to even.
    return math.floor(value * 1000 + 0.5) / 1000
