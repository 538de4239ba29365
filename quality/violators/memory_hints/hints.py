"""Violators of the requirements of the Memory Manager's hints, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference.memory import hints, requests
from numaproof.reference.memory import policy as policies
from numaproof.reference.memory.policy import StaticMemoryPolicy
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

    def calculated(_: Any, held: Any, reuse: Any, uid: str, amounts: Any) -> Any:
        described = change(held, hints.demand(held, reuse, uid, amounts))
        if not amounts or not evaluation.satisfiable(described):
            return {}
        return dict.fromkeys(amounts, described)

    changes.around(hints, "calculated", calculated)


def _as_guaranteed(pod: Any) -> Any:
    burstable = pod.qos == "Burstable" and not pod.shared_pool and pod.budget is None
    return dataclasses.replace(pod, qos="Guaranteed") if burstable else pod


@seeds("MEM-HINT-001")
def containers_of_burstable_pods_have_memory_hints(changes: Changes) -> None:
    """A plausible author asks for the class when memory is pinned, and not before."""
    changes.around(
        StaticMemoryPolicy,
        "hints_for_container",
        lambda original, self, held, reuse, pod, container: original(
            self, held, reuse, _as_guaranteed(pod), container
        ),
    )


@seeds("MEM-HINT-001")
def burstable_pods_have_memory_hints_as_a_whole(changes: Changes) -> None:
    """A plausible author asks for the class in scope container alone."""
    changes.around(
        StaticMemoryPolicy,
        "hints_for_pod",
        lambda original, self, held, reuse, pod: original(self, held, reuse, _as_guaranteed(pod)),
    )


@seeds("MEM-HINT-001")
def best_effort_pods_have_hints_for_huge_pages(changes: Changes) -> None:
    """A plausible author takes every class but Burstable for one that is limited."""

    def limited(pod: Any) -> Any:
        return dataclasses.replace(pod, qos="Guaranteed") if pod.qos == "BestEffort" else pod

    changes.around(
        StaticMemoryPolicy,
        "hints_for_container",
        lambda original, self, held, reuse, pod, container: original(
            self, held, reuse, limited(pod), container
        ),
    )


@seeds("MEM-HINT-002")
def only_the_smallest_sets_are_memory_hints(changes: Changes) -> None:
    """A plausible author stops at the first size that has hints."""

    def smallest(_: Any, found: Any) -> Any:
        fewest = min(hint.nodes.bit_count() for hint in found)
        return [hint for hint in found if hint.nodes.bit_count() == fewest]

    _listed(changes, smallest)


@seeds("MEM-HINT-002")
def memory_hints_are_in_the_order_of_their_masks(changes: Changes) -> None:
    """A plausible author counts masks upwards: 0, 1, 0 and 1, 2."""
    _listed(changes, lambda demand, found: sorted(found, key=lambda hint: hint.nodes))


@seeds("MEM-HINT-002")
def memory_hints_of_a_size_are_in_the_order_of_their_masks(changes: Changes) -> None:
    """A plausible author sorts by size and mask: 1 and 2 before 0 and 3."""
    _listed(
        changes,
        lambda demand, found: sorted(found, key=lambda hint: (hint.nodes.bit_count(), hint.nodes)),
    )


@seeds("MEM-HINT-002")
def memory_hints_with_most_free_memory_come_first(changes: Changes) -> None:
    """A plausible author offers the emptiest nodes first."""
    _listed(
        changes,
        lambda demand, found: sorted(
            found,
            key=lambda hint: (
                hint.nodes.bit_count(),
                -sum(need.free_on(hint.nodes) for need in demand.needs),
            ),
        ),
    )


@seeds("MEM-HINT-003")
def the_smallest_memory_hints_are_preferred(changes: Changes) -> None:
    """A plausible author compares with the other hints, and not with an empty machine."""

    def preferring(_: Any, found: Any) -> Any:
        fewest = min(hint.nodes.bit_count() for hint in found)
        return [TopologyHint(hint.nodes, hint.nodes.bit_count() == fewest) for hint in found]

    _listed(changes, preferring)


@seeds("MEM-HINT-003")
def only_memory_hints_of_one_node_are_preferred(changes: Changes) -> None:
    """A plausible author takes preferred for local."""
    _listed(
        changes,
        lambda demand, found: [
            TopologyHint(hint.nodes, hint.preferred and hint.nodes.bit_count() == 1)
            for hint in found
        ],
    )


@seeds("MEM-HINT-003")
def an_empty_machine_has_no_reserved_memory(changes: Changes) -> None:
    """A plausible author takes all of a node's memory for what it has when it is empty."""

    def demand(original: Any, held: Any, reuse: Any, uid: str, amounts: Any) -> Any:
        described = original(held, reuse, uid, amounts)
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

    changes.around(hints, "demand", demand)


def _supplied(changes: Changes, free: Callable[[Any], int]) -> None:
    """Lets hints count other amounts as free; `free` is given a table of a node."""

    def calculated(_: Any, held: Any, reuse: Any, uid: str, amounts: Any) -> Any:
        described = hints.demand(held, reuse, uid, amounts)
        needs = tuple(
            dataclasses.replace(
                need,
                free=tuple(
                    Supply(1 << node, free(memory.tables[kind]))
                    for node, memory in sorted(held.nodes.items())
                    if kind in memory.tables
                ),
            )
            for kind, need in zip(amounts, described.needs, strict=True)
        )
        described = dataclasses.replace(described, needs=needs)
        if not amounts or not evaluation.satisfiable(described):
            return {}
        return dict.fromkeys(amounts, described)

    changes.around(hints, "calculated", calculated)


@seeds("MEM-HINT-004")
def memory_hints_count_reserved_memory(changes: Changes) -> None:
    """A plausible author takes what is in use off the total."""
    _supplied(changes, lambda table: table.total - table.reserved)


@seeds("MEM-HINT-004")
def memory_hints_count_memory_in_use(changes: Changes) -> None:
    """A plausible author takes what is allocatable at all."""
    _supplied(changes, lambda table: table.allocatable)


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


@seeds("MEM-HINT-005")
def unmet_requests_for_memory_have_empty_lists(changes: Changes) -> None:
    """A plausible author has a list for each type, and nothing in it."""
    changes.around(
        hints,
        "calculated",
        lambda original, held, reuse, uid, amounts: (
            original(held, reuse, uid, amounts) or dict.fromkeys(amounts, ())
        ),
    )


@seeds("MEM-HINT-005")
def unmet_requests_for_memory_have_a_hint_for_all_nodes(changes: Changes) -> None:
    """A plausible author falls back to the whole machine, without preferring it."""

    def calculated(original: Any, held: Any, reuse: Any, uid: str, amounts: Any) -> Any:
        every = NUMASet(held.nodes).mask
        return original(held, reuse, uid, amounts) or dict.fromkeys(
            amounts, (TopologyHint(every, preferred=False),) if every else ()
        )

    changes.around(hints, "calculated", calculated)


@seeds("MEM-HINT-006")
def memory_types_have_hints_of_their_own(changes: Changes) -> None:
    """A plausible author looks for each type by itself."""

    def calculated(original: Any, held: Any, reuse: Any, uid: str, amounts: Any) -> Any:
        if not original(held, reuse, uid, amounts):
            return {}
        alone = (original(held, reuse, uid, {kind: size}) for kind, size in amounts.items())
        return {kind: found for own in alone for kind, found in own.items()}

    changes.around(hints, "calculated", calculated)


@seeds("MEM-HINT-006")
def only_one_memory_type_has_hints(changes: Changes) -> None:
    """A plausible author gives the hints once, as they are the same for all types."""

    def calculated(original: Any, *args: Any) -> Any:
        return dict([*original(*args).items()][-1:])

    changes.around(hints, "calculated", calculated)


@seeds("MEM-HINT-007")
def containers_with_memory_have_hints_for_what_is_free(changes: Changes) -> None:
    """A plausible author calculates hints for every container alike."""

    def asked(original: Any, self: Any, held: Any, reuse: Any, pod: Any, container: Any) -> Any:
        if policies.is_served(pod) and held.of(pod.uid, container.name) is not None:
            return hints.calculated(held, reuse, pod.uid, requests.part(pod, container))
        return original(self, held, reuse, pod, container)

    changes.around(StaticMemoryPolicy, "hints_for_container", asked)


@seeds("MEM-HINT-007")
def containers_with_another_request_have_hints_for_their_memory(changes: Changes) -> None:
    """A plausible author takes what a container has for what it asks for."""

    def regenerated(original: Any, blocks: Any, amounts: Any) -> Any:
        found = {block.kind: (TopologyHint(block.nodes, preferred=True),) for block in blocks}
        return original(blocks, amounts) or found

    changes.around(hints, "regenerated", regenerated)


@seeds("MEM-HINT-007")
def containers_with_memory_have_hints_for_more_nodes_too(changes: Changes) -> None:
    """A plausible author adds all nodes as a hint that is not preferred."""

    def asked(original: Any, self: Any, held: Any, *rest: Any) -> Any:
        found = original(self, held, *rest)
        every = NUMASet(held.nodes).mask
        return {
            kind: (*own, TopologyHint(every, preferred=False))
            if isinstance(own, tuple) and own and own[0].nodes != every
            else own
            for kind, own in found.items()
        }

    changes.around(StaticMemoryPolicy, "hints_for_container", asked)


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
def a_pod_asks_for_the_memory_of_all_its_containers(changes: Changes) -> None:
    """A plausible author adds up init containers as well."""
    _at_once(changes, lambda parts: sum(size for _, size in parts))


@seeds("MEM-HINT-008")
def a_pod_asks_for_the_memory_of_its_app_containers_alone(changes: Changes) -> None:
    """A plausible author forgets init containers, sidecars or not."""
    _at_once(changes, lambda parts: sum(size for one, size in parts if not one.init))


@seeds("MEM-HINT-008")
def a_pod_asks_for_no_memory_of_sidecars_beside_apps(changes: Changes) -> None:
    """A plausible author takes sidecars for init containers like any other."""
    _at_once(
        changes,
        lambda parts: max(
            sum(size for one, size in parts if not one.init),
            max((size for one, size in parts if one.init), default=0),
        ),
    )


@seeds("MEM-HINT-008")
def a_pod_asks_for_memory_of_init_containers_with_all_sidecars(changes: Changes) -> None:
    """A plausible author counts the sidecars that start after an init container, too."""

    def total(parts: list[tuple[Any, int]]) -> int:
        sidecars = sum(size for one, size in parts if one.sidecar)
        passing = max((size for one, size in parts if one.passes), default=0)
        return sidecars + max(passing, sum(size for one, size in parts if not one.init))

    _at_once(changes, total)
