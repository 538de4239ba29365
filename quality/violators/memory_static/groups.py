"""Violators of the requirements of groups of nodes and of freed memory, each breaking one."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from numaproof.reference.memory import hints, state
from numaproof.reference.memory import policy as policies
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.requests import AllocationError
from numaproof.reference.memory.state import NodeMemory
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
        hints, "demand", lambda original, held, *rest: change(held, original(held, *rest))
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


def _with_groups_without_blocks(changes: Changes) -> None:
    """Lets nodes be in a group on which no block counts."""
    _demand(
        changes,
        lambda held, demand: dataclasses.replace(
            demand,
            cells=tuple(
                (node, memory.cells)
                for node, memory in sorted(held.nodes.items())
                if memory.assignments or _several(memory.cells)
            ),
        ),
    )


def _reserved(changes: Changes, reserved: Callable[..., Any]) -> None:
    """Lets blocks be laid on nodes in another way."""
    for module in (state, policies):
        changes.around(module, "reserved", reserved)


@seeds("MEM-GROUP-003")
def memory_of_a_group_comes_from_its_highest_node_first(changes: Changes) -> None:
    """A plausible author keeps the low nodes free."""

    def reserved(original: Any, nodes: Any, block: Any, size: int) -> Any:
        found = dict(original(nodes, block, 0))
        for node in sorted(found, reverse=True):
            table = found[node].tables.get(block.kind)
            if block.nodes >> node & 1 and table is not None:
                taken = min(size, table.free)
                size -= taken
                tables = {**found[node].tables, block.kind: table.take(taken)}
                found[node] = dataclasses.replace(found[node], tables=tables)
        return found

    _reserved(changes, reserved)


@seeds("MEM-GROUP-003")
def blocks_on_several_nodes_count_on_the_lowest(changes: Changes) -> None:
    """A plausible author counts blocks, and a block once."""

    def reserved(original: Any, nodes: Any, block: Any, size: int) -> Any:
        found = original(nodes, block, size)
        lowest = block.nodes & -block.nodes
        return {
            node: dataclasses.replace(memory, assignments=nodes[node].assignments)
            if block.nodes >> node & 1 and lowest != 1 << node
            else memory
            for node, memory in found.items()
        }

    def give_back(original: Any, nodes: Any, node: int, kind: str, size: int) -> int:
        before = nodes[node]
        given: int = original(nodes, node, kind, size)
        if before.cells & -before.cells != 1 << node:
            alone = not nodes[node].tables[kind].reserved
            cells = 1 << node if alone else before.cells
            nodes[node] = NodeMemory(before.assignments, nodes[node].tables, cells)
        return given

    _reserved(changes, reserved)
    changes.around(state, "give_back", give_back)
    _with_groups_without_blocks(changes)


@seeds("MEM-GROUP-004")
def groups_are_not_shared(changes: Changes) -> None:
    """A plausible author gives a group to one container."""
    _demand(
        changes,
        lambda held, demand: dataclasses.replace(
            demand,
            cells=tuple((node, 0 if _several(group) else group) for node, group in demand.cells),
        ),
    )


@seeds("MEM-GROUP-005")
def groups_in_use_are_preferred_where_no_node_is_free(changes: Changes) -> None:
    """A plausible author prefers the smallest of the hints that there are."""

    def preferring(demand: Any, found: Any) -> Any:
        fewest = min(hint.nodes.bit_count() for hint in found)
        groups = {group for _, group in demand.cells if _several(group)}
        return [
            TopologyHint(
                hint.nodes,
                hint.preferred or (hint.nodes in groups and hint.nodes.bit_count() == fewest),
            )
            for hint in found
        ]

    _listed(changes, preferring)


@seeds("MEM-GROUP-005")
def small_containers_are_kept_out_of_groups(changes: Changes) -> None:
    """A plausible author admits to a group only what needs one, under every policy."""

    def allocate(
        original: Any, self: Any, held: Any, reuse: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        after, kept = original(self, held, reuse, pod, container, affinity)
        for block in after.of(pod.uid, container.name) or () if after is not held else ():
            most = max(memory.tables[block.kind].allocatable for memory in self.empty.values())
            lowest = (block.nodes & -block.nodes).bit_length() - 1
            if _several(block.nodes) and block.size <= most and held.nodes[lowest].assignments:
                raise AllocationError(
                    "[memorymanager] preferred hint violates NUMA node allocation"
                )
        return after, kept

    changes.around(StaticMemoryPolicy, "allocate", allocate)


def _groups_after_blocks(
    changes: Changes, cells: Callable[[NodeMemory, NodeMemory, int], int]
) -> None:
    """Lets a node be in another group after a block has gone, given it before and after."""

    def give_back(original: Any, nodes: Any, node: int, kind: str, size: int) -> int:
        before = nodes[node]
        given: int = original(nodes, node, kind, size)
        group = cells(before, nodes[node], node)
        nodes[node] = dataclasses.replace(nodes[node], cells=group)
        return given

    def agree(original: Any, self: Any, real: Any, expected: Any) -> bool:
        groups = any(_several(one.cells) for one in (*real.values(), *expected.values()))
        if groups:
            # How much lies on which node depends on the groups that there were.
            every = sum(1 << node for node in expected)
            real, expected = (
                {node: dataclasses.replace(one, cells=every) for node, one in nodes.items()}
                for nodes in (real, expected)
            )
        same: bool = original(self, real, expected)
        return same

    changes.around(state, "give_back", give_back)
    changes.around(StaticMemoryPolicy, "agree", agree)


@seeds("MEM-GROUP-006")
def groups_last_for_ever(changes: Changes) -> None:
    """A plausible author thinks that what has been spanned will be spanned again."""
    _groups_after_blocks(changes, lambda before, after, node: before.cells)
    _with_groups_without_blocks(changes)


@seeds("MEM-GROUP-006")
def groups_dissolve_with_their_first_block(changes: Changes) -> None:
    """A plausible author undoes what the allocation of the block did."""
    _groups_after_blocks(changes, lambda before, after, node: 1 << node)


@seeds("MEM-GROUP-007")
def too_small_affinities_are_replaced(changes: Changes) -> None:
    """A plausible author looks for the best nodes anew."""
    changes.replace(
        policies,
        "evaluation",
        SimpleNamespace(narrowest=lambda demand, containing=0: evaluation.narrowest(demand)),
    )


@seeds("MEM-GROUP-007")
def too_small_affinities_are_extended_to_all_nodes(changes: Changes) -> None:
    """A plausible author lets a container that does not fit go anywhere."""

    def everything(demand: Any, chosen: Any, containing: int) -> Any:
        every = sum(1 << node for node in demand.nodes)
        if not containing or chosen is None or not demand.met_by(every):
            return chosen
        return TopologyHint(every, chosen.preferred)

    _narrowest(changes, everything)


@seeds("MEM-GROUP-007")
def too_small_affinities_are_never_extended(changes: Changes) -> None:
    """A plausible author takes the affinity for the last word."""
    _narrowest(changes, lambda demand, chosen, containing: None if containing else chosen)


@seeds("MEM-GROUP-007")
def too_small_affinities_are_taken_as_they_are(changes: Changes) -> None:
    """A plausible author trusts the Topology Manager to have counted."""
    changes.replace(policies, "satisfies", lambda held, nodes, amounts: True)


@seeds("MEM-GROUP-008")
def unpreferred_affinities_are_as_narrow_as_the_least_demanding(changes: Changes) -> None:
    """A plausible author takes the narrowest hint of all."""

    def target(lists: Any) -> int:
        sizes = [hint.nodes.bit_count() for hints_ in lists for hint in hints_ if hint.nodes >= 0]
        return min(sizes, default=0)

    changes.around(Rules, "target", lambda original, self, lists: target(lists))


@seeds("MEM-GROUP-008")
def unpreferred_affinities_are_as_narrow_as_can_be(changes: Changes) -> None:
    """A plausible author prefers fewer nodes, as for preferred hints."""
    changes.around(Rules, "target", lambda original, self, lists: 1)
