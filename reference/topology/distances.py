"""How far apart NUMA nodes are, for the policy option ``prefer-closest-numa-nodes``.

(Kubernetes documentation, "Topology manager policy options"; kubelet, NUMADistances.)

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from numaproof.protocol.sets import NUMASet

UNREACHABLE = 255
"""The distance of nodes for which the machine reports none (ACPI specification, SLIT)."""

Table = Mapping[int, Mapping[int, int]]
"""The distance from node to node."""


@dataclass(frozen=True)
class Distances:
    """The distances of a machine's NUMA nodes, and the order that they give to sets of nodes.

    `rows` holds what the kernel writes for each node: the distances to all nodes in ascending
    order of their ids.
    """

    rows: Mapping[int, Sequence[int]]

    @cached_property
    def table(self) -> Table:
        """The distance from node to node.

        Requirements: TOPO-OPT-009.
        """
        nodes = sorted(self.rows)
        return {
            node: {
                other: row[place] if place < len(row) else UNREACHABLE
                for place, other in enumerate(nodes)
            }
            for node, row in self.rows.items()
        }

    @property
    def by_table_alone(self) -> bool:
        """Whether `ordered` compares any two sets by `table` and by their ids alone.

        The search saves work then: it needs no other set to compare two, and nodes at the same
        distances from all others are interchangeable.
        """
        return True

    def sort_sets(self, sets: Collection[int]) -> list[int]:
        """Sets with equally many nodes, those with the closest nodes first, then low ids.

        Requirements: TOPO-OPT-001.
        """
        return by_average(sets, self.table)


def average(nodes: int, table: Table) -> float:
    """The average distance of a set's nodes from each other and from themselves.

    Requirements: TOPO-OPT-007.
    """
    members = tuple(NUMASet.from_mask(nodes))
    total = sum(table[one][other] for one in members for other in members)
    return total / (len(members) * len(members))


def by_average(sets: Collection[int], table: Table) -> list[int]:
    """Sets by their average distance, then by low ids.

    Requirements: TOPO-OPT-006.
    """
    return sorted(sets, key=lambda nodes: (average(nodes, table), nodes))
