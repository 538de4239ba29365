"""Bugs of the Memory Manager: reservation, requests, groups of nodes, reuse, hints, extension."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference import node as managers
from numaproof.reference.memory import hints, policy, requests, reservation, state
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.state import MemoryState, MemoryTable, NodeMemory, ReusableMemory
from numaproof.reference.topology.hints import ANYWHERE, Demand, TopologyHint
from numaproof.reference.topology.search import evaluation
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.protocol import messages
    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("memory")


# Reservation


@seeds("MEM-RESERVE-001")
def reserved_memory_is_allocatable(changes: Changes) -> None:
    def generous(_: Any, total: int, system: int, pages: int) -> MemoryTable:
        return MemoryTable(total, system, total - pages, 0, total - pages)

    changes.around(policy.StaticMemoryPolicy, "table", generous)


@seeds("MEM-HUGE-001")
def huge_pages_are_memory_besides(changes: Changes) -> None:
    changes.around(
        policy.StaticMemoryPolicy,
        "table",
        lambda original, total, system, pages: original(total, system, 0),
    )


@seeds("#109766", "MEM-RESERVE-002")
def reserved_memory_need_not_add_up(changes: Changes) -> None:
    changes.replace(reservation, "check_sums", lambda *_: None)


@seeds("MEM-RESERVE-010")
def reservations_of_unknown_nodes_are_passed_over(changes: Changes) -> None:
    def lenient(original: Any, config: Any, machine: Any) -> Any:
        known = {node.node_id for node in machine.topology or ()}
        kept = tuple(entry for entry in config.reserved_memory if entry[0] in known)
        return original(dataclasses.replace(config, reserved_memory=kept), machine)

    changes.around(reservation, "by_node", lenient)


@seeds("MEM-RESERVE-003")
def all_memory_is_reserved_on_the_first_node(changes: Changes) -> None:
    def first(original: Any, config: Any, machine: Any) -> Any:
        found = original(config, machine)
        sums: dict[str, int] = {}
        for kinds in found.values():
            for kind, size in kinds.items():
                sums[kind] = sums.get(kind, 0) + size
        return {node: sums if node == min(found) else {} for node in found}

    changes.around(reservation, "by_node", first)


# Requests


@seeds("MEM-STATIC-002")
def burstable_pods_have_memory_pinned(changes: Changes) -> None:
    changes.replace(policy, "is_served", lambda pod: pod.qos != "BestEffort")


@seeds("MEM-STATIC-014")
def who_asks_for_no_memory_gets_nodes(changes: Changes) -> None:
    changes.replace(policy.StaticMemoryPolicy, "asks", lambda self, pod, container: True)


@seeds("MEM-STATIC-006")
def memory_is_pinned_in_whole_pages(changes: Changes) -> None:
    changes.around(
        requests,
        "part",
        lambda original, *asking: {
            kind: size >> 12 << 12 for kind, size in original(*asking).items()
        },
    )


@seeds("MEM-HUGE-002")
def huge_pages_are_not_pinned(changes: Changes) -> None:
    changes.around(
        requests,
        "part",
        lambda original, *asking: {
            kind: size for kind, size in original(*asking).items() if kind == requests.MEMORY
        },
    )


@seeds("NODE-ALIGN-002")
def memory_ignores_the_affinity(changes: Changes) -> None:
    changes.around(
        policy.StaticMemoryPolicy,
        "allocate",
        lambda original, self, kept, pod, container, affinity: original(
            self, kept, pod, container, TopologyHint(ANYWHERE, affinity.preferred)
        ),
    )


# Groups of nodes


@seeds("PR #123443", "#113035", "MEM-GROUP-001")
def groups_of_nodes_may_overlap(changes: Changes) -> None:
    _hints_without_cells(changes)
    changes.replace(policy.StaticMemoryPolicy, "breaks_group", lambda self, state, nodes: False)


@seeds("MEM-GROUP-004")
def a_group_is_never_shared(changes: Changes) -> None:
    def alone(_: Any, _self: Any, kept: MemoryState, nodes: int) -> bool:
        return nodes.bit_count() > 1 and any(
            kept.nodes[node].assignments for node in NUMASet.from_mask(nodes)
        )

    changes.around(policy.StaticMemoryPolicy, "breaks_group", alone)


@seeds("MEM-GROUP-006")
def groups_outlive_their_blocks(changes: Changes) -> None:
    def lasting(original: Any, nodes: Any, node: int, *rest: Any) -> Any:
        cells = nodes[node].cells
        given = original(nodes, node, *rest)
        nodes[node] = dataclasses.replace(nodes[node], cells=cells)
        return given

    changes.around(state, "give_back", lasting)


@seeds("MEM-GROUP-006")
def a_group_ends_with_the_first_block(changes: Changes) -> None:
    def hasty(original: Any, nodes: Any, node: int, *rest: Any) -> Any:
        given = original(nodes, node, *rest)
        nodes[node] = dataclasses.replace(nodes[node], cells=1 << node)
        return given

    changes.around(state, "give_back", hasty)


def _reserving(
    changes: Changes, order: Callable[[NUMASet], list[int]], *, once: bool = False
) -> None:
    """Lets blocks fill nodes in another order, or be counted on the first node alone."""

    def reserved(nodes: Mapping[int, NodeMemory], block: Any, size: int) -> dict[int, NodeMemory]:
        found = dict(nodes)
        for place, node in enumerate(order(NUMASet.from_mask(block.nodes))):
            memory = found[node]
            table = memory.tables[block.kind]
            taken = min(size, table.free)
            size -= taken
            found[node] = NodeMemory(
                memory.assignments + (not once or not place),
                {**memory.tables, block.kind: table.take(taken)},
                block.nodes,
            )
        return found

    changes.replace(state, "reserved", reserved)
    changes.replace(policy, "reserved", reserved)


@seeds("MEM-GROUP-003")
def blocks_fill_the_highest_node_first(changes: Changes) -> None:
    _reserving(changes, lambda nodes: sorted(nodes, reverse=True))


@seeds("#113035", "MEM-GROUP-003")
def blocks_count_on_their_first_node_alone(changes: Changes) -> None:
    _reserving(changes, sorted, once=True)


# Hints and the minimum-node rule


def _hints_changed(changes: Changes, change: Callable[[Demand], Demand]) -> None:
    changes.around(MemoryState, "demand", lambda original, *args: change(original(*args)))


def _hints_without_cells(changes: Changes) -> None:
    _hints_changed(changes, lambda demand: dataclasses.replace(demand, cells=()))


@seeds("#128669", "#128708", "MEM-GROUP-005")
def memory_hints_ignore_groups(changes: Changes) -> None:
    _hints_without_cells(changes)


@seeds("MEM-STATIC-009")
def memory_hints_ignore_what_is_taken(changes: Changes) -> None:
    def empty(demand: Demand) -> Demand:
        needs = tuple(dataclasses.replace(need, free=need.total) for need in demand.needs)
        return dataclasses.replace(demand, needs=needs)

    _hints_changed(changes, empty)


@seeds("MEM-GROUP-002", "MEM-STATIC-003")
def memory_hints_prefer_what_is_fewest_now(changes: Changes) -> None:
    def by_now(demand: Demand) -> Demand:
        needs = tuple(dataclasses.replace(need, total=need.free) for need in demand.needs)
        return dataclasses.replace(demand, needs=needs)

    _hints_changed(changes, by_now)


@seeds("MEM-HINT-001")
def memory_is_hinted_for_every_pod(changes: Changes) -> None:
    def any_class(original: Any, self: Any, kept: Any, pod: Any, container: Any) -> Any:
        guaranteed = dataclasses.replace(pod, qos="Guaranteed")
        return original(self, kept, guaranteed, container)

    changes.around(hints, "for_container", any_class)


@seeds("MEM-HINT-005")
def memory_that_is_nowhere_is_an_empty_list(changes: Changes) -> None:
    changes.around(
        hints,
        "calculated",
        lambda original, kept, uid, amounts: (
            original(kept, uid, amounts) or dict.fromkeys(amounts, ())
        ),
    )


@seeds("MEM-STATIC-012")
def memory_hints_forget_what_is_held(changes: Changes) -> None:
    def forgetful(original: Any, policy: Any, kept: MemoryState, pod: Any, container: Any) -> Any:
        return original(policy, MemoryState(kept.nodes, reuse=kept.reuse), pod, container)

    changes.around(hints, "for_container", forgetful)


# Extension


@seeds("MEM-GROUP-007")
def a_hint_that_does_not_suffice_is_refused(changes: Changes) -> None:
    changes.around(
        evaluation,
        "narrowest",
        lambda original, demand, containing=0: None if containing else original(demand),
    )


@seeds("MEM-GROUP-007")
def a_hint_is_extended_to_all_nodes(changes: Changes) -> None:
    def widest(original: Any, demand: Demand, containing: int = 0) -> TopologyHint | None:
        found: TopologyHint | None = original(demand, containing)
        if containing and found is not None:
            return TopologyHint(sum(1 << node for node in demand.nodes), found.preferred)
        return found

    changes.around(evaluation, "narrowest", widest)


@seeds("MEM-GROUP-007")
def an_extended_hint_leaves_the_first_nodes(changes: Changes) -> None:
    changes.around(evaluation, "narrowest", lambda original, demand, containing=0: original(demand))


@seeds("MEM-GROUP-007")
def memory_beyond_the_hint_is_promised(changes: Changes) -> None:
    changes.replace(policy, "satisfies", lambda state, nodes, amounts: True)


@seeds("#104682", "MEM-HUGE-004")
def memory_alone_decides_whether_a_hint_suffices(changes: Changes) -> None:
    changes.around(
        policy,
        "satisfies",
        lambda original, kept, nodes, amounts: original(
            kept, nodes, {kind: size for kind, size in amounts.items() if kind == requests.MEMORY}
        ),
    )


# Containers of one pod


@seeds("#100838", "MEM-INIT-001")
def init_memory_is_not_reused(changes: Changes) -> None:
    changes.replace(ReusableMemory, "of", lambda self, uid, nodes, kind: 0)


@seeds("#104682", "MEM-INIT-001")
def memory_hints_leave_out_what_can_be_reused(changes: Changes) -> None:
    def without(demand: Demand) -> Demand:
        needs = tuple(dataclasses.replace(need, reusable=()) for need in demand.needs)
        return dataclasses.replace(demand, needs=needs)

    _hints_changed(changes, without)


@seeds("#119442", "PR #120715", "MEM-INIT-005")
def sidecar_memory_is_reused(changes: Changes) -> None:
    changes.around(
        policy,
        "reused",
        lambda original, reuse, pod, container, blocks: original(
            reuse, pod, dataclasses.replace(container, sidecar=False), blocks
        ),
    )


@seeds("MEM-INIT-002")
def app_memory_is_reused(changes: Changes) -> None:
    changes.around(
        policy,
        "reused",
        lambda original, reuse, pod, container, blocks: original(
            reuse, pod, dataclasses.replace(container, init=True, sidecar=False), blocks
        ),
    )


@seeds("#100838", "MEM-INIT-003")
def reused_memory_is_counted_for_both(changes: Changes) -> None:
    changes.replace(policy, "shrunk", lambda state, pod, container, blocks: state)


@seeds("MEM-INIT-004")
def memory_is_reused_by_other_pods(changes: Changes) -> None:
    changes.replace(
        ReusableMemory, "of", lambda self, uid, nodes, kind: self.sizes.get((nodes, kind), 0)
    )


@seeds("#119407", "TOPO-SCOPE-003")
def memory_of_sidecars_is_left_out_of_pod_hints(changes: Changes) -> None:
    changes.around(
        requests,
        "at_once",
        lambda original, pod: original(_without_sidecars(pod)),
    )


def _without_sidecars(pod: Pod) -> Pod:
    left = tuple(container for container in pod.containers if not container.sidecar)
    return dataclasses.replace(pod, containers=left)


# Removal


@seeds("MEM-REMOVE-001")
def removed_pods_keep_their_memory(changes: Changes) -> None:
    changes.replace(MemoryManager, "remove_stale_state", lambda self, pods, when: None)


@seeds("MEM-REMOVE-002")
def ended_containers_keep_their_memory(changes: Changes) -> None:
    def keeping(original: Any, self: managers.StartedNode, args: messages.RemoveArgs) -> Any:
        before = self.memory.state
        answer = original(self, args)
        if args.container is not None:
            self.memory.state = before
            self.memory.save()
        return answer

    changes.around(managers.StartedNode, "remove", keeping)


@seeds("MEM-REMOVE-001")
def memory_of_removed_pods_leaks(changes: Changes) -> None:
    def leaking(original: Any, self: MemoryState, uid: str, name: str) -> MemoryState:
        after: MemoryState = original(self, uid, name)
        return MemoryState(self.nodes, after.entries, reuse=self.reuse)

    changes.around(MemoryState, "release", leaking)
