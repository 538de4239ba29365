"""Violators of the requirements of the Memory Manager's hints, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.memory import hints, requests
from numaproof.reference.memory.state import MemoryState
from numaproof.reference.topology.hints import Supply, TopologyHint
from numaproof.reference.topology.search import evaluation
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("memory-hints")

_MOST_NODES = 8
"""Hints are listed one by one here, and their number doubles with each node."""


def _listed(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets the manager give other hints; `change` is given the demand and its hints."""

    def calculated(original: Any, *args: Any) -> Any:
        found = original(*args)
        if not found or len(args[0].nodes) > _MOST_NODES:
            return found
        demand = next(iter(found.values()))
        return dict.fromkeys(found, tuple(change(demand, evaluation.listed(demand))))

    changes.around(hints, "calculated", calculated)


def _hinted(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets hints be of another demand, where containers are served by the right one.

    `change` is given the state and the demand.
    """

    def calculated(_: Any, held: Any, uid: str, amounts: Any) -> Any:
        described = change(held, held.demand(uid, amounts))
        if not amounts or not evaluation.satisfiable(described):
            return {}
        return dict.fromkeys(amounts, described)

    changes.around(hints, "calculated", calculated)


@seeds("MEM-HINT-001")
def best_effort_pods_have_hints_for_huge_pages(changes: Changes) -> None:
    """A plausible author takes every class but Burstable for one that is limited."""

    def limited(pod: Any) -> Any:
        return dataclasses.replace(pod, qos="Guaranteed") if pod.qos == "BestEffort" else pod

    changes.around(
        hints,
        "for_container",
        lambda original, policy, held, pod, container: original(
            policy, held, limited(pod), container
        ),
    )


@seeds("MEM-HINT-002")
def memory_hints_of_a_size_are_in_the_order_of_their_masks(changes: Changes) -> None:
    """A plausible author sorts by size and mask: 1 and 2 before 0 and 3."""
    _listed(
        changes,
        lambda demand, found: sorted(found, key=lambda hint: (hint.nodes.bit_count(), hint.nodes)),
    )


@seeds("MEM-HINT-003")
def an_empty_machine_has_no_reserved_memory(changes: Changes) -> None:
    """A plausible author takes all of a node's memory for what it has when it is empty."""

    def demand(original: Any, held: Any, uid: str, amounts: Any) -> Any:
        described = original(held, uid, amounts)
        needs = tuple(
            dataclasses.replace(
                need,
                total=tuple(
                    Supply(1 << node, memory.tables[kind].total)
                    for node, memory in sorted(held.nodes.items())
                    if kind in memory.tables
                ),
            )
            for kind, need in zip(amounts, described.needs, strict=True)
        )
        return dataclasses.replace(described, needs=needs)

    changes.around(MemoryState, "demand", demand)


@seeds("MEM-HINT-004")
def memory_hints_leave_out_nodes_that_are_all_reserved(changes: Changes) -> None:
    """A plausible author forms sets of the nodes that have something to give."""

    def giving(held: Any, demand: Any) -> Any:
        nodes = tuple(
            node
            for node, memory in sorted(held.nodes.items())
            if memory.tables["memory"].allocatable or not memory.tables["memory"].total
        )
        return dataclasses.replace(demand, nodes=nodes)

    _hinted(changes, giving)


@seeds("MEM-HINT-004")
def memory_hints_leave_out_nodes_in_use(changes: Changes) -> None:
    """A plausible author offers the nodes that are empty."""

    def unused(_: Any, demand: Any) -> Any:
        used = {node for node, _ in demand.cells}
        return dataclasses.replace(
            demand, nodes=tuple(node for node in demand.nodes if node not in used)
        )

    _hinted(changes, unused)


@seeds("MEM-HINT-006")
def memory_types_have_hints_of_their_own(changes: Changes) -> None:
    """A plausible author looks for each type by itself."""

    def calculated(original: Any, held: Any, uid: str, amounts: Any) -> Any:
        if not original(held, uid, amounts):
            return {}
        alone = (original(held, uid, {kind: size}) for kind, size in amounts.items())
        return {kind: found for own in alone for kind, found in own.items()}

    changes.around(hints, "calculated", calculated)


@seeds("MEM-HINT-007")
def containers_with_another_request_have_hints_for_their_memory(changes: Changes) -> None:
    """A plausible author takes what a container has for what it asks for."""

    def regenerated(original: Any, blocks: Any, amounts: Any) -> Any:
        found = {block.kind: (TopologyHint(block.nodes, preferred=True),) for block in blocks}
        return original(blocks, amounts) or found

    changes.around(hints, "regenerated", regenerated)


def _at_once(changes: Changes, total: Callable[[list[tuple[Any, int]]], int]) -> None:
    """Lets a whole pod ask for another amount, given its containers with the amount of each."""

    def at_once(original: Any, pod: Any) -> Any:
        found = original(pod)
        if pod.budget is not None:
            return found
        parts = [(container, requests.part(pod, container)) for container in pod.containers]
        return {kind: total([(one, own.get(kind, 0)) for one, own in parts]) for kind in found}

    changes.around(requests, "at_once", at_once)


@seeds("MEM-HINT-008")
def a_pod_asks_for_memory_of_init_containers_with_all_sidecars(changes: Changes) -> None:
    """A plausible author counts the sidecars that start after an init container, too."""

    def total(parts: list[tuple[Any, int]]) -> int:
        sidecars = sum(size for one, size in parts if one.sidecar)
        passing = max((size for one, size in parts if one.passes), default=0)
        return sidecars + max(passing, sum(size for one, size in parts if not one.init))

    _at_once(changes, total)
