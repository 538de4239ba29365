"""Topology hints: the sets of NUMA nodes that could serve a request, and which are preferred.

A provider (the CPU, Memory or Device Manager) describes what a request demands of a set of nodes.
The hints are all sets that meet the demand with what is free now. A hint is preferred when no
smaller set would meet it on an empty machine. (Kubernetes documentation, "Topology Manager: how
it works"; kubelet, generateCPUTopologyHints and its like in the other managers.)

This is the definition: it looks at every set of nodes. On machines with too many nodes for that,
`numaproof.reference.topology.search.evaluation` gives the same answers.

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from numaproof.protocol.sets import NUMASet

ANYWHERE = -1
"""The nodes of a hint that names none: every bit is one, so that it narrows no other hint."""


class TopologyHint(NamedTuple):
    """A non-empty set of nodes, and whether a provider prefers it.

    Also the affinity that containers are placed by: the hint that all providers agree on.
    """

    nodes: int
    preferred: bool

    @property
    def numa(self) -> NUMASet | None:
        """The nodes as a set; None where the hint names none."""
        return None if self.nodes == ANYWHERE else NUMASet.from_mask(self.nodes)


NO_AFFINITY = TopologyHint(ANYWHERE, preferred=False)
"""The affinity of a container that the Topology Manager has not judged."""


class Supply(NamedTuple):
    """An `amount` that a set of nodes has if any of `nodes` is in it.

    Memory belongs to one node alone; a device may be near several.

    Requirements: DEV-HINT-006.
    """

    nodes: int
    amount: int


@dataclass(frozen=True, slots=True)
class Need:
    """An `amount` of one resource: what is `free` now, and the `total` of an empty machine.

    `reusable` is free for exactly these sets of nodes, in addition.
    """

    amount: int
    free: tuple[Supply, ...]
    total: tuple[Supply, ...]
    reusable: tuple[Supply, ...] = ()

    def free_on(self, nodes: int) -> int:
        """How much of the resource is free on a set of nodes."""
        reusable = sum(supply.amount for supply in self.reusable if supply.nodes == nodes)
        return _near(self.free, nodes) + reusable

    def met_on(self, nodes: int) -> bool:
        """Whether a set of nodes has enough: what may be reused adds to no more than all it has."""
        if self.free_on(nodes) < self.amount:
            return False
        return not self.reusable or self.total_on(nodes) >= self.amount

    def total_on(self, nodes: int) -> int:
        """How much of the resource a set of nodes has on an empty machine."""
        return _near(self.total, nodes)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a request demands of a set of NUMA nodes.

    Attributes:
        nodes: the ids of the nodes that sets are made of, in the provider's order.
        needs: the set must have enough of each.
        touching: sets of nodes; the set must contain a node of each, because resources that the
            request is to reuse are there.
        cells: the group of nodes that a node is in use with, by node; a set with such a node must
            be that group.
        sockets: the nodes of each socket, where sockets decide what is preferred.
        per_socket: how many nodes a socket has then.
    """

    nodes: tuple[int, ...]
    needs: tuple[Need, ...]
    touching: tuple[int, ...] = ()
    cells: tuple[tuple[int, int], ...] = ()
    sockets: tuple[int, ...] = ()
    per_socket: int = 0

    def met_by(self, nodes: int) -> bool:
        """Whether a set of nodes is a hint: it meets the demand with what is free now.

        Requirements: DEV-INIT-001, MEM-HUGE-004.
        """
        return (
            all(need.met_on(nodes) for need in self.needs)
            and all(nodes & group for group in self.touching)
            and all(nodes == group for node, group in self.cells if nodes >> node & 1)
        )

    def possible(self, nodes: int) -> bool:
        """Whether a set of nodes has enough on an empty machine."""
        return all(need.total_on(nodes) >= need.amount for need in self.needs)

    def prefers(self, nodes: int, fewest: int) -> bool:
        """Whether a hint is preferred, where an empty machine would do with `fewest` nodes.

        With ``align-by-socket``, so are hints that touch no more sockets than `fewest` nodes fill.

        Requirements: CPU-OPT-ALIGNSOCKET-002.
        """
        if nodes.bit_count() == fewest:
            return True
        if not self.sockets:
            return False
        touched = sum(1 for socket in self.sockets if socket & nodes)
        return touched == -(-fewest // self.per_socket)


Hints = tuple[TopologyHint, ...] | Demand
"""The hints for one resource, listed or described; an empty list if no set of nodes will do."""

Resources = Mapping[str, Hints | None]
"""A provider's hints by resource; None for a resource without preference, an empty mapping for a
provider without any."""


def sets_of(nodes: tuple[int, ...]) -> Iterator[int]:
    """All sets of nodes but the empty one, in the kubelet's order.

    Smaller sets come first; sets of one size go by the positions of their members in `nodes`.

    Requirements: CPU-HINT-007, TOPO-OPT-018.
    """
    for size in range(len(nodes)):
        for members in combinations(nodes, size + 1):
            yield sum(1 << node for node in members)


def fewest_nodes(demand: Demand) -> int:
    """The size of the smallest set that would meet the needs on an empty machine.

    If no set would, it is the number of nodes.

    Requirements: TOPO-POLICY-005.
    """
    for nodes in sets_of(demand.nodes):
        if demand.possible(nodes):
            return nodes.bit_count()
    return len(demand.nodes)


def list_hints(hints: Hints) -> tuple[TopologyHint, ...]:
    """The hints one by one, in the kubelet's order."""
    if not isinstance(hints, Demand):
        return hints
    fewest = fewest_nodes(hints)
    return tuple(
        TopologyHint(nodes, hints.prefers(nodes, fewest))
        for nodes in sets_of(hints.nodes)
        if hints.met_by(nodes)
    )


def satisfiable(demand: Demand) -> bool:
    """Whether any set of nodes is a hint."""
    return bool(list_hints(demand))


def narrowest(demand: Demand, containing: int = 0) -> TopologyHint | None:
    """The best hint with all nodes of `containing`: preferred, then few nodes, then low ids.

    Requirements: MEM-STATIC-008.
    """
    return min(
        (hint for hint in list_hints(demand) if not containing & ~hint.nodes),
        key=lambda hint: (not hint.preferred, hint.nodes.bit_count(), hint.nodes),
        default=None,
    )


def _near(supplies: tuple[Supply, ...], nodes: int) -> int:
    return sum(supply.amount for supply in supplies if supply.nodes & nodes)
