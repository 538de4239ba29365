"""Deviations of the Topology Manager."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from numaproof.protocol.sets import NUMASet
from numaproof.reference.deviations.deviation import ALL, ISSUES, Defect
from numaproof.reference.topology.distances import Distances, by_average

if TYPE_CHECKING:
    from collections.abc import Collection

    from numaproof.reference.topology.distances import Table

_CLOSEST = (
    "If the prefer-closest-numa-nodes policy option is specified, the best-effort and restricted "
    "policies favor sets of NUMA nodes with shorter distance between them."
)


class DistancesByPosition(Distances):
    """Looks up distances as if node ids had no gaps.

    On machines whose node IDs have gaps, distances are looked up by ID in a list ordered by
    position, so node sets are compared by the distances of other nodes.
    """

    deviation = Defect("closest-nodes-by-position", ALL, _CLOSEST)

    @cached_property
    def misread_table(self) -> Table | None:
        """The distances that a kubelet reads, or None if they are correct."""
        if sorted(self.rows) == [*range(len(self.rows))]:
            return None
        found = [node for node in self.rows if all(node < len(row) for row in self.rows.values())]
        return {node: {other: self.rows[node][other] for other in found} for node in found}

    @property
    def by_table_alone(self) -> bool:
        """True only if no distances are misread; otherwise, node ids also matter."""
        return self.misread_table is None

    def sort_sets(self, sets: Collection[int]) -> list[int]:
        """Sorts sets by the misread distances.

        If the kubelet finds no distances for some node, it panics; the reference then uses the
        correct distances.
        """
        misread = self.misread_table
        if misread is None or any(nodes & ~NUMASet(misread).mask for nodes in sets):
            return super().sort_sets(sets)
        return by_average(sets, misread)


CLOSEST_PANIC = Defect(
    "closest-nodes-panic-on-node-id",
    ALL,
    _CLOSEST,
    what="On machines whose node IDs have gaps, comparing sets of NUMA nodes by distance causes a "
    "panic if a node's ID is not below the number of nodes.",
    answers=False,
)

NODE_ID_PANIC = Defect(
    "hints-panic-on-node-id",
    ALL,
    "The Topology Manager collects hints from Hint Providers.",
    what="Computing hints on a machine with a NUMA node ID below 0 or above 63 causes a panic.",
    answers=False,
)

ALL_COMBINATIONS = Defect(
    "merge-of-all-combinations",
    ALL,
    "The maximum number of NUMA nodes that the Topology Manager allows is 8; with more there "
    "is a state explosion when it enumerates the possible affinities.",
    f"{ISSUES}131738",
    what="Every combination of the providers' hints is merged. On eight nodes with four resources, "
    "there are 255 to the power of 4 combinations, so a single admission takes minutes.",
    answers=False,
)
