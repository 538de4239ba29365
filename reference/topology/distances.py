"""Distances between NUMA nodes, for the ``prefer-closest-numa-nodes`` policy option.

(Kubernetes documentation, "Topology manager policy options"; kubelet, NUMADistances.)

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from numaproof.protocol.sets import NUMASet

UNREACHABLE = 255
"""The distance between nodes if the machine reports none (ACPI specification, SLIT)."""

Table = Mapping[int, Mapping[int, int]]
"""The distance between two nodes, by their ids."""


@dataclass(frozen=True)
class Distances:
    """The distances between a machine's NUMA nodes, by which sets of nodes are sorted.

    `rows` has the distances that the kernel reports for each node, in ascending order of the other
    node's id.
    """

    rows: Mapping[int, Sequence[int]]

    @cached_property
    def table(self) -> Table:
        """The distance between any two nodes.

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
        """Whether `sort_sets` compares two sets only by `table` and by node ids.

        If so, the search does less work: it can compare two sets without looking at the others, and
        nodes with the same distances to all others are interchangeable.
        """
        return True

    def sort_sets(self, sets: Collection[int]) -> list[int]:
        """Sorts sets with the same number of nodes: closest nodes first, then low ids.

        Requirements: TOPO-OPT-001.
        """
        return by_average(sets, self.table)

    def put_first(self, ordered_sets: list[int], first_choice: int) -> list[int]:
        """Moves one of the sorted sets before those that are equally close."""
        if first_choice not in ordered_sets:
            return ordered_sets
        close = average(first_choice, self.table)
        place = next(
            n for n, nodes in enumerate(ordered_sets) if average(nodes, self.table) == close
        )
        others = [nodes for nodes in ordered_sets if nodes != first_choice]
        return [*others[:place], first_choice, *others[place:]]


def average(nodes: int, table: Table) -> float:
    """The average distance over all pairs of a set's nodes, including each node with itself.

    Requirements: TOPO-OPT-007.
    """
    members = tuple(NUMASet.from_mask(nodes))
    total = sum(table[one][other] for one in members for other in members)
    return total / (len(members) * len(members))


def by_average(sets: Collection[int], table: Table) -> list[int]:
    """Sorts sets by average distance, then by low ids.

    Requirements: TOPO-OPT-006.
    """
    return sorted(sets, key=lambda nodes: (average(nodes, table), nodes))
