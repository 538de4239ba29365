"""The Topology Manager's policies: their merging rules, and which results they admit.

(Kubernetes documentation, "Topology manager policies".)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from numaproof.protocol.sets import NUMASet
from numaproof.reference.topology.distances import Distances
from numaproof.reference.topology.hints import ANYWHERE, TopologyHint, sets_of_size
from numaproof.reference.topology.merge import Rules
from numaproof.reference.topology.search import evaluation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.choices import Decisions
    from numaproof.reference.topology.hints import Resources
    from numaproof.reference.topology.options import TopologyOptions

NONE = "none"
BEST_EFFORT = "best-effort"
RESTRICTED = "restricted"
SINGLE_NUMA_NODE = "single-numa-node"


class TopologyManagerError(Exception):
    """The Topology Manager cannot be created; the text is the kubelet's."""


@dataclass(frozen=True, slots=True)
class TopologyPolicy:
    """A policy: its name and its merging rules.

    `negative` is set if the machine has nodes with negative ids, which hints cannot name.
    `first_choice` has, by container, the nodes that come before equally good ones; `decisions`, if
    any, choose instead.
    """

    name: str
    rules: Rules
    negative: bool
    first_choice: Mapping[str, int] = field(default_factory=dict, compare=False)
    decisions: Decisions | None = field(default=None, compare=False)

    def preferring(self, first_choice: Mapping[str, int], decisions: Decisions | None) -> Self:
        return replace(self, first_choice=first_choice, decisions=decisions)

    def merge(
        self, providers: Sequence[Resources | None], container: str | None = None
    ) -> tuple[TopologyHint, bool]:
        """Merges the providers' hints into an affinity, and decides whether to admit it.

        `container` is the name of the container to align; None for the pod as a whole.

        Requirements: TOPO-POLICY-002, TOPO-POLICY-003, TOPO-POLICY-004, TOPO-POLICY-007,
        TOPO-POLICY-008, TOPO-POLICY-009, TOPO-POLICY-014, TOPO-POLICY-016.
        """
        rules = self.rules
        if self.first_choice:
            first = next(iter(self.first_choice.values()))
            choice = self.first_choice.get(container, 0) if container else first
            rules = replace(rules, first_choice=choice)
        best = evaluation.merge(rules, providers)
        if self.decisions is not None:
            best = self.decisions.pick(best, _equally_good(rules, providers, best))
        if self.name == SINGLE_NUMA_NODE and best.nodes == self.rules.nodes:
            # All nodes count as no affinity here, even on a machine with one node.
            best = TopologyHint(ANYWHERE, best.preferred)
        return best, self.name == BEST_EFFORT or best.preferred


def _equally_good(
    rules: Rules, providers: Sequence[Resources | None], best: TopologyHint
) -> Iterator[TopologyHint]:
    """Yields the results that are as good as the best one."""
    for nodes in sets_of_size(rules.nodes, best.nodes):
        result = evaluation.merge(replace(rules, first_choice=nodes), providers)
        if result == TopologyHint(nodes, best.preferred):
            yield result


def on_machine(
    name: str,
    options: TopologyOptions,
    machine: MachineInfo,
    distances: type[Distances] = Distances,
) -> TopologyPolicy:
    """Creates policy `name` (not ``none``) for a machine.

    `distances` sorts sets of nodes if the policy prefers close nodes.

    Raises:
        TopologyManagerError: required distances are missing, or the machine has more nodes than
            the options allow.

    Requirements: TOPO-OPT-003, TOPO-OPT-004.
    """
    rows = {node.node_id: node.distances for node in machine.topology or ()}
    try:
        made = of_nodes(name, options, rows, distances)
    except TopologyManagerError as error:
        raise TopologyManagerError(f"cannot discover NUMA topology: {error}") from None
    if len(machine.topology or ()) > options.most_nodes:
        raise TopologyManagerError(
            f"unsupported on machines with more than {options.most_nodes} NUMA Nodes"
        )
    return made


def of_nodes(
    name: str,
    options: TopologyOptions,
    rows: Mapping[int, Sequence[int] | None],
    distances: type[Distances] = Distances,
) -> TopologyPolicy:
    """Creates policy `name` for a machine with the nodes and distances in `rows`.

    A row lists the distances to all nodes in ascending order of their ids.

    Raises:
        TopologyManagerError: the policy prefers close nodes, but a row is missing.

    Requirements: TOPO-ERROR-011, TOPO-MERGE-014, TOPO-OPT-008.
    """
    known = {node: row for node, row in rows.items() if row is not None}
    if options.closest and len(known) < len(rows):
        raise TopologyManagerError("error getting NUMA distances from cadvisor")
    single = name == SINGLE_NUMA_NODE
    rules = Rules(
        nodes=NUMASet(node for node in rows if node >= 0).mask,
        # All sets of one node are equally close, so single-numa-node does not need distances.
        distances=distances(known) if options.closest and not single else None,
        single=single,
    )
    return TopologyPolicy(name, rules, negative=any(node < 0 for node in rows))
