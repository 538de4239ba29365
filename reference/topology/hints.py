"""Topology hints: the sets of NUMA nodes that could serve a request, and which are preferred.

A provider says for each resource where a request could be met. It may list its hints, or describe
them: a machine of 34 nodes has 2^34 sets of nodes, so a `Family` says which sets are hints
without listing them. (Kubernetes documentation, "Topology Manager: how it works".)

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import compress
from operator import or_
from typing import NamedTuple

from numaproof.protocol import messages
from numaproof.protocol.sets import NUMASet
from numaproof.reference.topology.search.symmetry import Twins, classify

ANYWHERE = -1
"""The nodes of a hint that names none: every bit is one, so that it narrows no other hint."""


class Hint(NamedTuple):
    """A set of nodes, not empty, and whether no smaller one would do on an empty machine."""

    nodes: int
    preferred: bool


class Supply(NamedTuple):
    """An `amount` that a set of nodes has if any of `nodes` is in it.

    A node's free memory stands on that node alone; a device may be near several nodes.
    """

    nodes: int
    amount: int


@dataclass(frozen=True, slots=True)
class Need:
    """An `amount` of one thing: what is `free` now, and what an empty machine has in `total`.

    `reusable` is free for those exact sets of nodes besides.
    """

    amount: int
    free: tuple[Supply, ...]
    total: tuple[Supply, ...]
    reusable: tuple[Supply, ...] = ()


@dataclass(frozen=True)
class Family:
    """Hints described by what a set of nodes must have.

    A set of nodes out of `nodes` is a hint when it has enough free of every one of `needs`; when
    it has a node of each set in `touching` (what is to be used again lies there); and when it is
    exactly ``cells[node]`` for each of its nodes that `cells` names (nodes in use as a group).

    A hint is preferred when it has as few nodes as any set with enough on an empty machine; or,
    where `sockets` (the nodes of each socket) are given, when it touches as few sockets as that
    many nodes fill at `per_socket` nodes each.
    """

    nodes: tuple[int, ...]
    needs: tuple[Need, ...]
    touching: tuple[int, ...] = ()
    cells: tuple[tuple[int, int], ...] = ()
    sockets: tuple[int, ...] = ()
    per_socket: int = 0

    @cached_property
    def signatures(self) -> Mapping[int, Hashable]:
        """What these hints know of each of `nodes`; two with one signature may be swapped."""
        groups = [*self.touching]
        for named, cell in self.cells:
            groups += [1 << named, cell]
        for need in self.needs:
            groups += [one.nodes for one in (*need.free, *need.total) if not _single(one)]
            groups += [one.nodes for one in need.reusable]
        named_ones = reduce(or_, groups, 0)
        amounts = [_by_node(some) for need in self.needs for some in (need.free, need.total)]
        return {
            node: (node, "named")
            if named_ones >> node & 1
            else (
                tuple(by_node.get(node, 0) for by_node in amounts),
                tuple(socket >> node & 1 for socket in self.sockets),
            )
            for node in self.nodes
        }

    def among(self, twins: Twins) -> list[Hint]:
        """The hints that are representatives of `twins`, which must keep to `signatures`."""
        sets = self._sets(twins)
        full = [(need.total, (), need.amount) for need in self.needs]
        fewest = min(map(int.bit_count, _enough(full, sets, twins)), default=len(self.nodes))
        found = self._found(sets, twins)
        few_sockets = self._in_few_sockets(found, fewest)
        return [Hint(nodes, nodes.bit_count() == fewest or nodes in few_sockets) for nodes in found]

    def _sets(self, twins: Twins) -> list[int]:
        """The representatives; the empty set in the place of those beyond `nodes`."""
        outside = ~sum(1 << node for node in self.nodes)
        return [0 if nodes & outside else nodes for nodes in twins.representatives()]

    def _found(self, sets: list[int], twins: Twins) -> list[int]:
        """Those of the representatives that are hints."""
        free = [(need.free, need.reusable, need.amount) for need in self.needs]
        return self._allowed(_enough(free, sets, twins))

    def _allowed(self, found: list[int]) -> list[int]:
        if self.cells:
            named = reduce(or_, (1 << node for node, _ in self.cells))
            groups = self._whole_groups()
            found = [nodes for nodes in found if not nodes & named or nodes in groups]
        for group in self.touching:
            found = [nodes for nodes in found if nodes & group]
        return found

    def _whole_groups(self) -> set[int]:
        """The groups in `cells` on which all of their own nodes agree."""
        return {
            group
            for node, group in self.cells
            if group >> node & 1
            and all(other == group for member, other in self.cells if group >> member & 1)
        }

    def _in_few_sockets(self, found: list[int], fewest: int) -> set[int]:
        if not self.sockets or not self.per_socket:
            return set()
        wanted = -(-fewest // self.per_socket)
        return {nodes for nodes in found if sum(1 for one in self.sockets if nodes & one) == wanted}

    def narrowest(self, containing: int = 0) -> Hint | None:
        """The best hint that has all of `containing`: preferred, then few nodes, then low ids."""
        known = self.signatures
        twins = classify(self.nodes, lambda node: (known[node], containing >> node & 1))
        fitting = [hint for hint in self.among(twins) if not containing & ~hint.nodes]
        return min(
            fitting,
            key=lambda hint: (not hint.preferred, hint.nodes.bit_count(), hint.nodes),
            default=None,
        )

    def __bool__(self) -> bool:
        """Whether any set of nodes is a hint."""
        # Mostly some node will do alone.
        if any(self._has(1 << node) for node in self.nodes):
            return True
        twins = classify(self.nodes, self.signatures.__getitem__)
        return bool(self._found(self._sets(twins), twins))

    def _has(self, nodes: int) -> bool:
        """Whether just this set of nodes is a hint."""
        for need in self.needs:
            free = sum(one.amount for one in need.free if one.nodes & nodes)
            free += sum(one.amount for one in need.reusable if one.nodes == nodes)
            if free < need.amount:
                return False
        return bool(self._allowed([nodes]))


def _single(supply: Supply) -> bool:
    return supply.nodes.bit_count() == 1


def _by_node(supplies: tuple[Supply, ...]) -> dict[int, int]:
    amounts: dict[int, int] = {}
    for supply in supplies:
        if _single(supply):
            node = supply.nodes.bit_length() - 1
            amounts[node] = amounts.get(node, 0) + supply.amount
    return amounts


def _enough(
    needs: Iterable[tuple[tuple[Supply, ...], tuple[Supply, ...], int]],
    sets: list[int],
    twins: Twins,
) -> list[int]:
    """Those of `sets`, not empty, that have the amounts of all `needs`.

    A need is what there is, what there is besides for exact sets, and the amount. `sets` stand
    at the places of the representatives of `twins`.
    """
    enough: list[list[bool]] = []
    for supplies, reusable, amount in needs:
        sums = twins.weigh(_by_node(supplies))
        for supply in supplies:
            if not _single(supply):
                sums = [
                    total + supply.amount if nodes & supply.nodes else total
                    for nodes, total in zip(sets, sums, strict=True)
                ]
        for supply in reusable:
            sums = [
                total + supply.amount if nodes == supply.nodes else total
                for nodes, total in zip(sets, sums, strict=True)
            ]
        enough.append([total >= amount for total in sums])
    return [nodes for nodes in compress(sets, map(all, zip(*enough, strict=True))) if nodes]


Hints = tuple[Hint, ...] | Family
"""The hints for one resource, listed or described; without any, it cannot be had anywhere."""

Resources = Mapping[str, Hints | None]
"""A provider's hints by resource; None for a resource without preference, nothing at all for a
provider without preference."""


def listed(hints: Hints) -> tuple[Hint, ...]:
    """The hints one by one; those of a family in the kubelet's order.

    Sets of fewer nodes come first; those of one size in the order of `Family.nodes`.
    """
    if not isinstance(hints, Family):
        return hints
    place = {node: position for position, node in enumerate(hints.nodes)}

    def order(hint: Hint) -> tuple[int, list[int]]:
        members = [place[node] for node in NUMASet.from_mask(hint.nodes)]
        return len(members), sorted(members)

    every = Twins(tuple((node,) for node in sorted(hints.nodes)))
    return tuple(sorted(hints.among(every), key=order))


def to_messages(resources: Resources) -> messages.ProviderHints:
    """A provider's hints as the protocol has them."""
    return {
        resource: None
        if hints is None
        else tuple(
            messages.Hint(NUMASet.from_mask(hint.nodes), hint.preferred) for hint in listed(hints)
        )
        for resource, hints in resources.items()
    }
