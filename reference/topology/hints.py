"""Topology hints: the sets of NUMA nodes that can satisfy a request, and whether each is preferred.

A provider (the CPU, Memory or Device Manager) describes its demand on a set of nodes. The hints are
all sets that meet the demand with the resources that are free now. A hint is preferred if no
smaller set would meet the demand on an empty machine. (Kubernetes documentation, "Topology Manager:
how it works"; kubelet, generateCPUTopologyHints and its counterparts in the other managers.)

This module is the definition: it enumerates all sets of nodes. For machines with too many nodes,
`numaproof.reference.topology.search.evaluation` computes the same answers.

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice
from typing import NamedTuple

from numaproof.protocol.sets import NUMASet
from numaproof.reference.choices import MAX_OPTIONS

ANYWHERE = -1
"""The nodes of a hint without nodes. All bits are set, so it does not restrict other hints."""


class TopologyHint(NamedTuple):
    """A non-empty set of nodes, and whether the provider prefers it.

    It also represents an affinity, the merged hint by which containers are placed.
    """

    nodes: int
    preferred: bool

    @property
    def numa(self) -> NUMASet | None:
        """The nodes as a set, or None if the hint names no nodes."""
        return None if self.nodes == ANYWHERE else NUMASet.from_mask(self.nodes)


NO_AFFINITY = TopologyHint(ANYWHERE, preferred=False)
"""The affinity of a container for which the Topology Manager merged no hints."""


class Supply(NamedTuple):
    """An `amount` that a set of nodes provides if it includes any of `nodes`.

    Memory belongs to a single node; a device may be close to several.

    Requirements: DEV-HINT-006.
    """

    nodes: int
    amount: int


@dataclass(frozen=True, slots=True)
class Need:
    """An `amount` of one resource, the supplies `free` now and the `total` on an empty machine.

    `reusable` supplies are also free, but only for exactly their sets of nodes.
    """

    amount: int
    free: tuple[Supply, ...]
    total: tuple[Supply, ...]
    reusable: tuple[Supply, ...] = ()

    def free_on(self, nodes: int) -> int:
        reusable = sum(supply.amount for supply in self.reusable if supply.nodes == nodes)
        return _near(self.free, nodes) + reusable

    def met_on(self, nodes: int) -> bool:
        """Whether a set of nodes has enough now and, if supplies are reusable, also in total."""
        if self.free_on(nodes) < self.amount:
            return False
        return not self.reusable or self.total_on(nodes) >= self.amount

    def total_on(self, nodes: int) -> int:
        return _near(self.total, nodes)


@dataclass(frozen=True, slots=True)
class Demand:
    """A request's demand on a set of NUMA nodes.

    Attributes:
        nodes: the ids of the nodes to form sets from, in the provider's order.
        needs: resources that the set must have enough of.
        touching: sets of nodes with resources that the request must reuse; the set must include a
            node of each of them.
        cells: for each node in use, the group of nodes that it is used with. A set that includes
            such a node must equal its group.
        sockets: the nodes of each socket, if sockets decide which hints are preferred.
        per_socket: the number of nodes per socket, if `sockets` is set.
    """

    nodes: tuple[int, ...]
    needs: tuple[Need, ...]
    touching: tuple[int, ...] = ()
    cells: tuple[tuple[int, int], ...] = ()
    sockets: tuple[int, ...] = ()
    per_socket: int = 0

    def met_by(self, nodes: int) -> bool:
        """Whether a set of nodes is a hint, that is, meets the demand with the free resources.

        Requirements: DEV-INIT-001, MEM-HUGE-004.
        """
        return (
            all(need.met_on(nodes) for need in self.needs)
            and all(nodes & group for group in self.touching)
            and all(nodes == group for node, group in self.cells if nodes >> node & 1)
        )

    def possible(self, nodes: int) -> bool:
        """Whether a set of nodes would have enough on an empty machine."""
        return all(need.total_on(nodes) >= need.amount for need in self.needs)

    def prefers(self, nodes: int, fewest: int) -> bool:
        """Whether a hint is preferred if the demand needs `fewest` nodes on an empty machine.

        With ``align-by-socket``, hints that touch as many sockets as `fewest` nodes fill are also
        preferred.

        Requirements: CPU-OPT-ALIGNSOCKET-002.
        """
        if nodes.bit_count() == fewest:
            return True
        if not self.sockets:
            return False
        touched = sum(1 for socket in self.sockets if socket & nodes)
        return touched == -(-fewest // self.per_socket)


Hints = tuple[TopologyHint, ...] | Demand
"""The hints for one resource, as a list or a demand; an empty list if no nodes are suitable."""

Resources = Mapping[str, Hints | None]
"""A provider's hints by resource. None means that a resource has no preference; an empty mapping
means that the provider has none."""


def sets_of(nodes: tuple[int, ...]) -> Iterator[int]:
    """Yields all non-empty sets of nodes, in the kubelet's order.

    Smaller sets come first; sets of equal size are ordered by the positions of their members.

    Requirements: CPU-HINT-007, TOPO-OPT-018.
    """
    for size in range(len(nodes)):
        for members in combinations(nodes, size + 1):
            yield sum(1 << node for node in members)


def sets_of_size(nodes: int, model: int) -> Iterator[int]:
    """Yields subsets of `nodes` with as many members as `model`, up to `MAX_OPTIONS`.

    Yields nothing if `model` is ANYWHERE.
    """
    if model != ANYWHERE:
        sets = combinations(NUMASet.from_mask(nodes), model.bit_count())
        for members in islice(sets, MAX_OPTIONS):
            yield NUMASet(members).mask


def fewest_nodes(demand: Demand) -> int:
    """The size of the smallest set that meets the needs on an empty machine.

    If no set does, returns the number of nodes.

    Requirements: TOPO-POLICY-005.
    """
    for nodes in sets_of(demand.nodes):
        if demand.possible(nodes):
            return nodes.bit_count()
    return len(demand.nodes)


def list_hints(hints: Hints) -> tuple[TopologyHint, ...]:
    """Lists the hints in the kubelet's order."""
    if not isinstance(hints, Demand):
        return hints
    fewest = fewest_nodes(hints)
    return tuple(
        TopologyHint(nodes, hints.prefers(nodes, fewest))
        for nodes in sets_of(hints.nodes)
        if hints.met_by(nodes)
    )


def satisfiable(demand: Demand) -> bool:
    return bool(list_hints(demand))


def narrowest(demand: Demand, containing: int = 0, first_choice: int = 0) -> TopologyHint | None:
    """The best hint that includes `containing`: preferred, then fewest nodes, then lowest ids.

    `first_choice` comes before equally good sets of nodes.

    Requirements: MEM-STATIC-008.
    """
    fitting = (hint for hint in list_hints(demand) if not containing & ~hint.nodes)
    return best_of(fitting, first_choice)


def best_of(hints: Iterable[TopologyHint], first_choice: int) -> TopologyHint | None:
    """The best of some hints, as in `narrowest`; None if there are none."""

    def order(hint: TopologyHint) -> tuple[bool, int, bool, int]:
        nodes, preferred = hint
        return not preferred, nodes.bit_count(), nodes != first_choice, nodes

    return min(hints, key=order, default=None)


def _near(supplies: tuple[Supply, ...], nodes: int) -> int:
    return sum(supply.amount for supply in supplies if supply.nodes & nodes)
