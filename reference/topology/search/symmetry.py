"""Interchangeable NUMA nodes, and sets of nodes that differ only by swapping them.

What is true of one set of nodes is true of every set with the same number of nodes from each class
of interchangeable nodes. It is enough to check the set with the lowest ids, called the
representative. A machine with 34 nodes has 2^34 sets of nodes; if 28 nodes are empty and
interchangeable, it has at most 2^6 * 29 representatives. If all nodes differ, every set is a
representative.

At most `MAX_SETS` representatives are checked. Only machines with at least 18 different nodes
exceed the limit, and no known machine has that many.

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from numaproof.reference.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping


MAX_SETS = 1 << 17


@dataclass(frozen=True, slots=True)
class NodeClasses:
    """Classes of interchangeable nodes, each with ascending ids."""

    classes: tuple[tuple[int, ...], ...]

    @classmethod
    def all_distinct(cls, nodes: Iterable[int]) -> NodeClasses:
        """Puts each node in its own class, which makes every set of nodes a representative."""
        return cls(tuple((node,) for node in sorted(nodes)))

    def representatives(self) -> list[int]:
        """The sets with the lowest ids of each class, the empty set first.

        Raises:
            UnsupportedError: there are more than `MAX_SETS` representatives.
        """
        if prod(len(members) + 1 for members in self.classes) > MAX_SETS:
            nodes = sum(map(len, self.classes))
            raise UnsupportedError(
                f"{nodes} NUMA nodes of {len(self.classes)} kinds have too many sets"
            )
        sets = [0]
        for members in self.classes:
            sets = [known | lowest for lowest in _prefixes(members) for known in sets]
        return sets

    def weigh(self, weights: Mapping[int, int]) -> list[int]:
        """The sum of weights for each representative, in the order of the representatives.

        `weights` maps nodes to weights (default: 0), which must be equal within a class.
        """
        sums = [0]
        for members in self.classes:
            weight = weights.get(members[0], 0)
            sums = [total + count * weight for count in range(len(members) + 1) for total in sums]
        return sums

    def smallest_intersection(self, outside: int, nodes: int) -> int:
        """The part of `outside` that is left if `nodes` is swapped to exclude as much as possible.

        Both arguments and the result are representatives.
        """
        stays = 0
        for members in self.classes:
            if len(members) == 1:
                stays |= outside & nodes & 1 << members[0]
                continue
            prefixes = _prefixes(members)
            whole = prefixes[-1]
            out = len(members) - (nodes & whole).bit_count()
            stays |= prefixes[max(0, (outside & whole).bit_count() - out)]
        return stays

    def lowest(self, nodes: int) -> int:
        """The representative with the same number of nodes from each class as `nodes`."""
        found = 0
        for members in self.classes:
            prefixes = _prefixes(members)
            found |= prefixes[(nodes & prefixes[-1]).bit_count()]
        return found


def _prefixes(members: tuple[int, ...]) -> list[int]:
    masks = [0]
    for node in members:
        masks.append(masks[-1] | 1 << node)
    return masks


def classify(
    nodes: Iterable[int],
    signature: Callable[[int], Hashable],
    distances: Mapping[int, Mapping[int, int]] | None = None,
) -> NodeClasses:
    """Groups nodes with equal signatures that no distance distinguishes."""
    classes: dict[Hashable, list[list[int]]] = {}
    for node in sorted(set(nodes)):
        alike = classes.setdefault(signature(node), [])
        for members in alike:
            if distances is None or _are_interchangeable(members[0], node, distances):
                members.append(node)
                break
        else:
            alike.append([node])
    return NodeClasses(tuple(tuple(one) for alike in classes.values() for one in alike))


def _are_interchangeable(node: int, other: int, distances: Mapping[int, Mapping[int, int]]) -> bool:
    """Whether swapping two nodes preserves the sum of distances within every set."""
    return distances[node][node] == distances[other][other] and all(
        distances[node][third] + distances[third][node]
        == distances[other][third] + distances[third][other]
        for third in distances
        if third not in (node, other)
    )
