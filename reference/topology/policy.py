"""The Topology Manager's policies: what they merge by, and which results they admit.

(Kubernetes documentation, "Topology manager policies".)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from numaproof.protocol.sets import NUMASet
from numaproof.reference.kubelet.options import OptionError
from numaproof.reference.topology import options as topology_options
from numaproof.reference.topology.search.merge import Rules, merge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.departures.releases import Release
    from numaproof.reference.kubelet.configuration import Config
    from numaproof.reference.topology.hints import Resources

NONE = "none"
BEST_EFFORT = "best-effort"
RESTRICTED = "restricted"
SINGLE_NUMA_NODE = "single-numa-node"

_UNREACHABLE = 255
"""The distance of nodes that the machine gives none for (ACPI specification, SLIT)."""


class TopologyManagerError(Exception):
    """The Topology Manager cannot be made; the text is the kubelet's."""


class KeptHint(NamedTuple):
    """The merged hint that containers are placed by; `nodes` is None for no affinity."""

    nodes: int | None
    preferred: bool

    @property
    def numa(self) -> NUMASet | None:
        """The nodes as a set; None for no affinity."""
        return None if self.nodes is None else NUMASet.from_mask(self.nodes)


@dataclass(frozen=True, slots=True)
class TopologyPolicy:
    """A policy by its name, and the rules that it merges by.

    Hints cannot name nodes with negative ids; a policy with some merges nothing.
    """

    name: str
    rules: Rules
    negative: bool

    def merge(self, providers: Sequence[Resources | None]) -> tuple[KeptHint, bool]:
        """The hint to keep for what the providers say, and whether it is admitted."""
        best = merge(self.rules, providers)
        nodes: int | None = best.nodes
        if self.name == SINGLE_NUMA_NODE and nodes == self.rules.nodes:
            # All nodes are no affinity here, even on a machine of one node.
            nodes = None
        return KeptHint(nodes, best.preferred), self.name == BEST_EFFORT or best.preferred


def make(config: Config, machine: MachineInfo, release: Release) -> TopologyPolicy | None:
    """The policy that a configuration asks for; None for policy none.

    The options' own feature gate is not asked here: see `topology_options.check_gate`.

    Raises:
        TopologyManagerError: bad options, a machine without distances where they are needed, or
            one with more nodes than the options allow.
    """
    if config.topology_policy == NONE:
        return None
    try:
        options = topology_options.parse(config.topology_options, release, config.gates)
    except OptionError as error:
        raise TopologyManagerError(str(error)) from None
    rows = {node.node_id: node.distances for node in machine.topology or ()}
    try:
        made = of_nodes(config.topology_policy, options, rows)
    except TopologyManagerError as error:
        raise TopologyManagerError(f"cannot discover NUMA topology: {error}") from None
    if len(machine.topology or ()) > options.most_nodes:
        raise TopologyManagerError(
            f"unsupported on machines with more than {options.most_nodes} NUMA Nodes"
        )
    return made


def of_nodes(
    name: str,
    options: topology_options.TopologyOptions,
    rows: Mapping[int, Sequence[int] | None],
) -> TopologyPolicy:
    """The policy `name` on a machine of the nodes of `rows`, with the distances from each.

    A row has the distances to the nodes in ascending order of their ids.

    Raises:
        TopologyManagerError: the closest nodes are preferred, and a row is missing.
    """
    if options.closest and any(row is None for row in rows.values()):
        raise TopologyManagerError("error getting NUMA distances from cadvisor")
    # One node is never closer than another to itself alone, so this policy has no use for them.
    wanted = options.closest and name != SINGLE_NUMA_NODE
    rules = Rules(
        nodes=NUMASet(node for node in rows if node >= 0).mask,
        distances=_distances(rows) if wanted else None,
        single=name == SINGLE_NUMA_NODE,
        misread=_by_position(rows) if wanted and options.by_position else None,
    )
    return TopologyPolicy(name, rules, negative=min(rows, default=0) < 0)


def _distances(rows: Mapping[int, Sequence[int] | None]) -> dict[int, dict[int, int]]:
    # By the order of nodes, as the kernel writes them.
    nodes = sorted(rows)
    return {
        node: {
            other: row[place] if place < len(row) else _UNREACHABLE
            for place, other in enumerate(nodes)
        }
        for node in nodes
        for row in (rows[node] or (),)
    }


def _by_position(rows: Mapping[int, Sequence[int] | None]) -> dict[int, dict[int, int]] | None:
    """The distances with ids taken for places in a row; None where they are."""
    if sorted(rows) == [*range(len(rows))]:
        return None
    found = [node for node in rows if all(node < len(row or ()) for row in rows.values())]
    return {node: {other: (rows[node] or ())[other] for other in found} for node in found}
