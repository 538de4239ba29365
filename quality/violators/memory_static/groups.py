"""Violators of the requirements of groups of nodes and of freed memory, each breaking one."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from numaproof.reference.errors import AllocationError
from numaproof.reference.memory import hints
from numaproof.reference.memory import policy as policies
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.state import MemoryState
from numaproof.reference.topology.hints import TopologyHint
from numaproof.reference.topology.merge import Rules
from numaproof.reference.topology.search import evaluation
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("memory-static")

_MOST_NODES = 8
"""Hints are listed one by one here, and their number doubles with each node."""


def _narrowest(changes: Changes, change: Callable[[Any, Any, int], Any]) -> None:
    """Lets the policy choose other nodes of a demand; `containing` is 0 without an affinity."""

    def narrowest(demand: Any, containing: int = 0) -> Any:
        return change(demand, evaluation.narrowest(demand, containing), containing)

    changes.replace(policies, "evaluation", SimpleNamespace(narrowest=narrowest))


def _listed(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets the manager give other hints; `change` is given the demand and its hints."""

    def calculated(original: Any, *args: Any) -> Any:
        found = original(*args)
        if not found or len(args[0].nodes) > _MOST_NODES:
            return found
        demand = next(iter(found.values()))
        return dict.fromkeys(found, tuple(change(demand, evaluation.listed(demand))))

    changes.around(hints, "calculated", calculated)


def _demand(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets the manager look for other nodes; `change` is given the state and the demand."""
    changes.around(
        MemoryState, "demand", lambda original, held, *rest: change(held, original(held, *rest))
    )


def _several(nodes: int) -> bool:
    return nodes & (nodes - 1) != 0


# Groups of nodes


@seeds("MEM-GROUP-001")
def affinities_break_groups(changes: Changes) -> None:
    """A plausible author takes the nodes that the Topology Manager says."""
    changes.replace(StaticMemoryPolicy, "breaks_group", lambda self, held, nodes: False)


@seeds("MEM-GROUP-001")
def affinities_widen_groups(changes: Changes) -> None:
    """A plausible author forbids to divide a group, and lets it grow."""
    changes.replace(
        StaticMemoryPolicy,
        "breaks_group",
        lambda self, held, nodes: any(
            memory.assignments and nodes >> node & 1 and memory.cells & ~nodes
            for node, memory in held.nodes.items()
        ),
    )


@seeds("MEM-GROUP-001")
def nodes_in_use_alone_join_groups(changes: Changes) -> None:
    """A plausible author takes for a group what has several nodes."""
    _demand(
        changes,
        lambda held, demand: dataclasses.replace(
            demand, cells=tuple(cell for cell in demand.cells if _several(cell[1]))
        ),
    )
    changes.replace(
        StaticMemoryPolicy,
        "breaks_group",
        lambda self, held, nodes: any(
            memory.assignments and nodes >> node & 1 and memory.cells not in (1 << node, nodes)
            for node, memory in held.nodes.items()
        ),
    )


@seeds("MEM-GROUP-002")
def groups_have_two_nodes_at_most(changes: Changes) -> None:
    """A plausible author tries each node, then each pair, and gives up."""
    pair = 2
    _narrowest(
        changes,
        lambda demand, chosen, containing: (
            None if chosen is not None and chosen.nodes.bit_count() > pair else chosen
        ),
    )
    _listed(
        changes,
        lambda demand, found: [hint for hint in found if hint.nodes.bit_count() <= pair],
    )


@seeds("MEM-GROUP-002")
def requests_beyond_one_node_take_all_nodes(changes: Changes) -> None:
    """A plausible author knows one node, or all of them."""

    def everything(demand: Any, chosen: Any, _: int) -> Any:
        every = sum(1 << node for node in demand.nodes)
        if chosen is None or not _several(chosen.nodes):
            return chosen
        return TopologyHint(every, chosen.preferred) if demand.met_by(every) else None

    _narrowest(changes, everything)


@seeds("MEM-GROUP-005")
def small_containers_are_kept_out_of_groups(changes: Changes) -> None:
    """A plausible author admits to a group only what needs one, under every policy."""

    def allocate(
        original: Any, self: Any, held: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        after = original(self, held, pod, container, affinity)
        for block in after.of(pod.uid, container.name) or () if after is not held else ():
            most = max(memory.tables[block.kind].allocatable for memory in self.empty.values())
            lowest = (block.nodes & -block.nodes).bit_length() - 1
            if _several(block.nodes) and block.size <= most and held.nodes[lowest].assignments:
                raise AllocationError(
                    "[memorymanager] preferred hint violates NUMA node allocation"
                )
        return after

    changes.around(StaticMemoryPolicy, "allocate", allocate)


@seeds("MEM-GROUP-008")
def unpreferred_affinities_are_as_narrow_as_the_least_demanding(changes: Changes) -> None:
    """A plausible author takes the narrowest hint of all."""

    def target(lists: Any) -> int:
        sizes = [hint.nodes.bit_count() for hints_ in lists for hint in hints_ if hint.nodes >= 0]
        return min(sizes, default=0)

    changes.around(Rules, "target", lambda original, self, lists: target(lists))
