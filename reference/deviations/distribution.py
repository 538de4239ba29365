"""Deviations in the distribution of CPUs over NUMA nodes."""

from __future__ import annotations

from itertools import combinations, dropwhile
from typing import TYPE_CHECKING, ClassVar

from numaproof.protocol.releases import between
from numaproof.reference.cpu.distribution import DistributedAssignment
from numaproof.reference.deviations.deviation import (
    ALL,
    ISSUES,
    PULLS,
    Defect,
    UndocumentedBehaviour,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.reference.cpu.distribution import CPURequest, Distribution

_BY_SOCKET = (
    "If the align-by-socket policy option is specified, CPUs will be considered aligned at the "
    "socket boundary when deciding how to allocate CPUs to a container."
)
_EVENLY = (
    "If the distribute-cpus-across-numa policy option is specified, the static policy will evenly "
    "distribute CPUs across NUMA nodes in cases where more than one NUMA node is required to "
    "satisfy the allocation."
)


class NodesAcrossSockets(DistributedAssignment):
    """Distributes CPUs over NUMA nodes on any sockets.

    With distribute-cpus-across-numa, a request that fits on one socket is spread over nodes of
    several sockets.
    """

    deviation = Defect(
        "distribute-across-numa-ignores-sockets",
        between("1.30", "1.36"),
        _BY_SOCKET,
        f"{ISSUES}114642",
    )

    def choose(self, request: CPURequest, sizes: Sequence[int]) -> Distribution | None:
        found = (self.best_of_size(request, size) for size in sizes)
        return next((best for best in found if best), None)


class EvenSharesAlone(DistributedAssignment):
    """Never distributes CPUs unevenly, even with align-by-socket.

    NUMA nodes without enough CPUs for an even share are never chosen, whether on one socket or on
    several.
    """

    deviation = UndocumentedBehaviour("distribute-even-shares-alone", between("1.30", "1.36"))

    def share(self, request: CPURequest, nodes: Sequence[int]) -> int | None:
        even = request.even_share(nodes)
        return even if all(request.free[node] >= even for node in nodes) else None


class FewNodesBeforeOneSocket(NodesAcrossSockets):
    """Stays on one socket only if that does not take more NUMA nodes.

    With distribute-cpus-across-numa, a request that fits on one socket is spread over several
    sockets if that takes fewer NUMA nodes.
    """

    deviation = Defect("distribute-prefers-few-nodes-to-one-socket", between("1.37"), _BY_SOCKET)

    def is_better(self, candidate: Distribution, best: Distribution) -> bool:
        """Prefers one socket to several, then compares as documented."""
        if self._stays(candidate) != self._stays(best):
            return self._stays(candidate)
        return super().is_better(candidate, best)

    def is_best(self, candidate: Distribution) -> bool:
        return self._stays(candidate) and super().is_best(candidate)

    def _stays(self, distribution: Distribution) -> bool:
        """Whether the nodes are on one socket, or sockets do not matter."""
        return not self.options.by_socket or self.on_one_socket(distribution.nodes)


class LargeNodesOverlooked(DistributedAssignment):
    """Computes the number of NUMA nodes from their average size.

    On machines with unequal NUMA nodes, a request larger than the average node is distributed over
    several nodes even if it fits on one.
    """

    deviation = Defect("distribute-overlooks-large-nodes", ALL, _EVENLY)

    def fewest(self, request: CPURequest) -> int:
        groups = -(-self.topology.cpus.bit_count() // request.group)
        groups_per_node = -(-groups // len(self.topology.nodes))
        return -(-request.cpu_count // request.group // groups_per_node)


class AffinityShrunk(DistributedAssignment):
    """Distributes CPUs over fewer NUMA nodes than the affinity has.

    With distribute-cpus-across-numa, CPUs are spread over as few nodes as possible, even if the
    affinity has more because of the container's devices.
    """

    deviation = Defect(
        "distribute-shrinks-affinity",
        ALL,
        "The hint is stored in the Topology Manager and used by the Hint Providers when making "
        "the resource allocation decisions.",
        f"{ISSUES}139430",
    )

    def sizes(self, request: CPURequest, min_nodes: int) -> list[int]:
        return super().sizes(request, 0)


class CombinationOverwritten(DistributedAssignment):
    """Overwrites the chosen combination with later ones.

    A chosen combination of four NUMA nodes, or of six or more, is overwritten in memory by
    combinations that are tried later. Its last nodes are replaced by the last nodes of the machine,
    or the pod is refused because the CPUs are not found there.
    """

    deviation: ClassVar[Defect | UndocumentedBehaviour] = Defect(
        "distribute-combination-overwritten", ALL, _EVENLY, f"{ISSUES}141237"
    )

    def best_of_size(
        self, request: CPURequest, size: int, *, one_socket: bool = False
    ) -> Distribution | None:
        """The best distribution, over the nodes that it has in memory after being overwritten."""
        best = super().best_of_size(request, size, one_socket=one_socket)
        if best is None:
            return None
        to_the_end = not self.is_best(best)
        nodes = _overwrite_combination(best.nodes, tuple(request.free), to_the_end=to_the_end)
        return self.over_others(request, best, nodes)

    def over_others(
        self, request: CPURequest, best: Distribution, nodes: tuple[int, ...]
    ) -> Distribution:
        """Moves a distribution to `nodes`; the node with the fewest CPUs determines the share.

        If the remainder cannot compensate for this, the kubelet never answers, and the original
        distribution is returned.
        """
        share = min(best.share, *(request.whole_groups(node) for node in nodes))
        left = {
            node: request.whole_groups(node) - (share if node in nodes else 0)
            for node in best.remainder
        }
        missing = request.cpu_count - share * len(nodes)
        return best if sum(left.values()) < missing else best._replace(nodes=nodes, share=share)

    def best_over(self, request: CPURequest, nodes: tuple[int, ...]) -> Distribution | None:
        best = super().best_over(request, nodes)
        if best is None or not best.remainder:
            return best
        takers = tuple(node for node in nodes if request.free[node] - best.share >= request.group)
        return best._replace(
            remainder=_overwrite_combination(best.remainder, takers, to_the_end=True)
        )


class OverwrittenShareKept(CombinationOverwritten):
    """Takes the original share from the overwritten nodes.

    A wrongly chosen node must provide the share of the node that it replaced, and the pod is
    refused if it has less.
    """

    deviation = UndocumentedBehaviour("", between("1.30", "1.36"))

    def over_others(
        self, request: CPURequest, best: Distribution, nodes: tuple[int, ...]
    ) -> Distribution:
        return best._replace(nodes=nodes)


def _overwrite_combination(
    combination: tuple[int, ...], among: tuple[int, ...], *, to_the_end: bool
) -> tuple[int, ...]:
    """Returns what a chosen combination becomes when later ones overwrite it in memory.

    Combinations of n nodes share memory if their first p + 1 members are the same, where p is the
    largest power of two below n. The kubelet continues until the last combination, or only until
    the next one.
    """
    size = len(combination)
    own = 1 + (1 << (size - 1).bit_length() >> 1)
    if own >= size:
        return combination
    last = combination[:own] + among[own - size :]
    if not to_the_end:
        walk = dropwhile(lambda nodes: nodes != combination, combinations(among, size))
        next(walk)
        last = next(walk, combination)
    return last if last[:own] == combination[:own] else combination


ENDLESS_LOOP = Defect(
    "distribute-endless-loop",
    ALL,
    _EVENLY,
    f"{PULLS}140730",
    what="With full-pcpus-only and reserved CPUs that break cores, distributing the remainder of "
    "an uneven request never ends.",
    answers=False,
)

OVERWRITTEN_LOOP = Defect(
    "distribute-overwritten-endless-loop",
    between("1.37"),
    _EVENLY,
    f"{ISSUES}141237",
    what="If the last chosen NUMA nodes are overwritten in memory by nodes with fewer free CPUs, "
    "the missing CPUs are requested from nodes that have none left, and the search never "
    "ends.",
    answers=False,
)
