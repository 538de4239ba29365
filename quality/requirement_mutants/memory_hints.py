"""Mutants of memory hints, init containers and restarts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.checkpoints import memory as checkpoint
from numaproof.reference.errors import AllocationError, StartError
from numaproof.reference.memory import hints, requests
from numaproof.reference.memory import policy as policies
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.policy import RestoreError, StaticMemoryPolicy
from numaproof.reference.memory.state import MemoryState, ReusableMemory
from numaproof.reference.pods import qos
from numaproof.reference.pods.containers import PodContainer
from numaproof.reference.pods.pod import Pod
from numaproof.reference.topology.hints import Supply, TopologyHint
from numaproof.reference.topology.search import evaluation
from quality.requirement_mutants.memory_static import change_hints
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

seeds = SubjectBugs("memory-hints")


# Hints


@shape(hints, "calculate_hints")
def _change_demand(change: Change, _: Any, state: Any, uid: str, amounts: Any) -> Any:
    """Lets `change` replace the demand in hints, but not in allocations.

    `change` is called with the state and the demand.
    """
    described = change(state, state.demand(uid, amounts))
    if not amounts or not evaluation.satisfiable(described):
        return {}
    return dict.fromkeys(amounts, described)


@seeds("MEM-HINT-001")
def best_effort_pods_have_hints_for_huge_pages(changes: Changes) -> None:
    """Returns hints for BestEffort pods with huge pages."""

    def as_guaranteed(pod: Any) -> Any:
        return replace(pod, qos="Guaranteed") if pod.qos == "BestEffort" else pod

    changes.around(hints, "for_container", lambda rule, pod: rule(pod=as_guaranteed(pod)))


@seeds("MEM-HINT-002").by(change_hints)
def memory_hints_of_a_size_are_in_the_order_of_their_masks(demand: Any, hint_list: Any) -> Any:
    """Sorts hints of the same size by their bit masks."""
    return sorted(hint_list, key=lambda hint: (hint.nodes.bit_count(), hint.nodes))


@seeds("MEM-HINT-003").after(MemoryState, "demand")
def an_empty_machine_has_no_reserved_memory(demand: Any, self: Any, amounts: Any) -> Any:
    """Ignores reserved memory when deciding whether a hint is preferred."""
    needs = tuple(
        replace(
            need,
            total=tuple(
                Supply(1 << node, memory.tables[kind].total)
                for node, memory in sorted(self.nodes.items())
                if kind in memory.tables
            ),
        )
        for kind, need in zip(amounts, demand.needs, strict=True)
    )
    return replace(demand, needs=needs)


@seeds("MEM-HINT-004").by(_change_demand)
def memory_hints_leave_out_nodes_that_are_all_reserved(memory_state: Any, demand: Any) -> Any:
    """Omits nodes that have no allocatable memory from hints."""
    nodes = tuple(
        node
        for node, memory in sorted(memory_state.nodes.items())
        if memory.tables["memory"].allocatable or not memory.tables["memory"].total
    )
    return replace(demand, nodes=nodes)


@seeds("MEM-HINT-004").by(_change_demand)
def memory_hints_leave_out_nodes_in_use(_: Any, demand: Any) -> Any:
    """Omits nodes in use from hints."""
    used = {node for node, _ in demand.cells}
    return replace(demand, nodes=tuple(node for node in demand.nodes if node not in used))


@seeds("MEM-HINT-006").around(hints, "calculate_hints")
def memory_types_have_hints_of_their_own(rule: Any, amounts: Any) -> Any:
    """Computes hints for each memory type separately."""
    if not rule():
        return {}
    ungroup = (rule(amounts={kind: size}) for kind, size in amounts.items())
    return {kind: found for own in ungroup for kind, found in own.items()}


@seeds("MEM-HINT-007").around(hints, "regenerate_hints")
def containers_with_another_request_have_hints_for_their_memory(rule: Any, blocks: Any) -> Any:
    """Returns the nodes a container uses as its hint, even if its request changed."""
    found = {block.kind: (TopologyHint(block.nodes, preferred=True),) for block in blocks}
    return rule() or found


@shape(requests, "peak", Changes.after)
def _change_peak(total: Callable[[list[tuple[Any, int]]], int], amounts: Any, pod: Any) -> Any:
    """Lets `total` compute a pod's request, given the amount of each container."""
    if pod.budget is not None:
        return amounts
    parts = [
        (container, requests.container_amounts(pod, container)) for container in pod.containers
    ]
    return {kind: total([(one, own.get(kind, 0)) for one, own in parts]) for kind in amounts}


@seeds("MEM-HINT-008").by(_change_peak)
def a_pod_asks_for_memory_of_init_containers_with_all_sidecars(parts: list[tuple[Any, int]]) -> int:
    """Adds every sidecar to every init container."""
    sidecars = sum(size for one, size in parts if one.sidecar)
    passing = max((size for one, size in parts if one.runs_to_completion), default=0)
    return sidecars + max(passing, sum(size for one, size in parts if not one.init))


# Init containers


@shape(policies, "shrink_init_blocks")
def _keep_blocks(keeps: Callable[[Any], bool], rule: Any, state: Any, container: Any) -> Any:
    """Doesn't shrink init containers' blocks if `keeps` is true for the container."""
    return state if keeps(container) else rule()


@shape(StaticMemoryPolicy, "allocate")
def _with_reuse(reusable: Change, rule: Any, state: Any, pod: Any, container: Any) -> Any:
    """Lets `reusable` override the reusable memory.

    `reusable` is called with the state, the pod and the container.
    """
    return rule(state=replace(state, reuse=reusable(state, pod, container)))


@seeds("MEM-INIT-001")
def sidecars_do_not_reuse_memory_of_init_containers(changes: Changes) -> None:
    """Doesn't let sidecars reuse memory."""
    _with_reuse(
        changes,
        lambda memory_state, pod, container: (
            ReusableMemory(pod.uid)
            if container.sidecar and memory_state.reuse.uid == pod.uid
            else memory_state.reuse
        ),
    )
    _keep_blocks(changes, lambda container: container.sidecar)


@seeds("MEM-INIT-003").of(_keep_blocks, lambda container: True)
def init_containers_keep_blocks_that_are_reused() -> None:
    """Doesn't shrink the blocks of init containers when they are reused."""


@seeds("MEM-INIT-003").after(StaticMemoryPolicy, "allocate")
def what_is_left_of_init_containers_is_freed_for_apps(
    after: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Releases unused memory of init containers when an app container starts."""
    if after.entries is not state.entries and not container.init:
        for one in pod.containers:
            if one.runs_to_completion and after.of(pod.uid, one.name):
                after = after.release(pod.uid, one.name).with_blocks(pod.uid, one.name, ())
    return after


@seeds("MEM-INIT-004").by(_with_reuse)
def memory_of_init_containers_is_reused_by_the_next_pod(memory_state: Any, pod: Any, _: Any) -> Any:
    """Lets the next pod reuse the memory of init containers."""
    reuse = memory_state.reuse
    return ReusableMemory(pod.uid, reuse.sizes) if reuse.uid in memory_state.entries else reuse


@seeds("MEM-INIT-005").around(policies, "update_reuse")
def memory_of_sidecars_is_reused_by_apps(rule: Any, container: Any) -> Any:
    """Lets app containers reuse the memory of sidecars."""
    return rule(container=replace(container, sidecar=False))


@seeds("MEM-INIT-005")
def memory_of_sidecars_is_reused_by_init_containers(changes: Changes) -> None:
    """Lets init containers reuse the memory of sidecars."""
    own: list[ReusableMemory] = []

    def reusable(memory_state: Any, pod: Any, container: Any) -> Any:
        reuse = memory_state.reuse
        own[:] = [reuse]
        if not container.runs_to_completion:
            return reuse
        sizes = dict(reuse.sizes) if reuse.uid == pod.uid else {}
        for other in pod.containers:
            if other.name == container.name:
                break
            for block in (memory_state.of(pod.uid, other.name) or ()) if other.sidecar else ():
                place = (block.nodes, block.kind)
                sizes[place] = sizes.get(place, 0) + block.size
        return ReusableMemory(pod.uid, sizes)

    _with_reuse(changes, reusable)
    changes.around(policies, "update_reuse", lambda rule: rule(reuse=own[0]))


@seeds("MEM-INIT-006").around(policies, "is_served")
def sidecars_do_not_count_towards_the_class(rule: Any, pod: Any) -> bool:
    """Ignores sidecars when computing the QoS class."""
    counted = tuple(one for one in pod.containers if not one.sidecar)
    alike = pod.budget is None and (not pod.shared_pool) and (pod.qos != "BestEffort")
    return bool(rule()) or (alike and qos.class_of(counted) == "Guaranteed")


@seeds("MEM-INIT-007").replace(ReusableMemory, "of")
def memory_of_init_containers_is_reused_on_any_nodes(
    self: Any, uid: Any, nodes: Any, kind: Any
) -> Any:
    """Reuses memory regardless of its nodes."""
    return (
        sum(size for (_, had), size in self.sizes.items() if had == kind) if uid == self.uid else 0
    )


@seeds("MEM-INIT-007").after(MemoryState, "demand")
def hints_count_memory_of_init_containers_on_every_node(demand: Any) -> Any:
    """Counts reusable memory on every node."""
    needs = tuple(
        replace(
            need,
            reusable=tuple(
                Supply(1 << node, sum(supply.amount for supply in need.reusable))
                for node in (demand.nodes if need.reusable else ())
            ),
        )
        for need in demand.needs
    )
    return replace(demand, needs=needs)


# Restarts


@shape(startup, "start", Changes.after)
def _noting(name: str, what: Callable[[Any, Any], Any], node: Any, args: Any) -> Any:
    """Stores `what` about each start in the Memory Manager's attribute `name`."""
    setattr(node.memory, name, what(node, args))
    return node


# Running pods


@seeds("MEM-RESTART-001")
def groups_are_forgotten_at_a_restart(changes: Changes) -> None:
    """Doesn't restore groups of nodes."""

    def ungroup(memory_state: MemoryState) -> MemoryState:
        nodes = {
            node: replace(memory, cells=1 << node) for node, memory in memory_state.nodes.items()
        }
        return replace(memory_state, nodes=nodes)

    def agree(rule: Any, real: Any, expected: Any) -> bool:
        known = {
            node: replace(memory, cells=expected[node].cells) if node in expected else memory
            for node, memory in real.items()
        }
        same: bool = rule(real=known)
        return same

    changes.after(StaticMemoryPolicy, "restore", ungroup)
    changes.around(StaticMemoryPolicy, "agree", agree)


@seeds("MEM-RESTART-001")
def affinities_are_lost_at_a_restart(changes: Changes) -> None:
    """Returns no hints for containers that were restored."""
    _noting(changes, "running", lambda node, _: {(uid, name) for uid, name, _ in node.memory.state})

    def hints_unless_running(rule: Any, self: Any, pod: Any, container: Any) -> Any:
        place = (pod.uid, container.name if container else "")
        return {} if place in getattr(self, "running", ()) else rule()

    changes.around(MemoryManager, "hints", hints_unless_running)


def _absent_pods(node: Any, args: Any) -> set[str]:
    present = {pod["metadata"]["uid"] for pod in args.pods}
    return {uid for uid in node.memory.state.entries if uid not in present}


def _with_absent_pods(self: Any, pods: Any) -> dict[str, Any]:
    """Returns the pods on the node, and those that left during a restart."""
    found = dict(pods)
    for uid in getattr(self, "gone", ()):
        own = tuple(PodContainer(name, {}, {}) for name in self.state.entries.get(uid, {}))
        found.setdefault(uid, Pod(uid, own, "Guaranteed"))
    return found


def _keep_of_pods_that_left(changes: Changes, kept_fields: Collection[str]) -> None:
    """Releases memory of pods that left during a restart, but keeps some fields of its nodes."""

    def remove_stale_state(rule: Any, self: Any, pods: Any) -> None:
        rule(pods=_with_absent_pods(self, pods))
        before = self.state.nodes
        for uid in getattr(self, "gone", ()):
            for name in tuple(self.state.entries.get(uid, {})) if uid not in pods else ():
                self.release(uid, name)
        nodes = {
            node: replace(memory, **{name: getattr(before[node], name) for name in kept_fields})
            for node, memory in self.state.nodes.items()
        }
        if nodes != dict(self.state.nodes):
            self.state = replace(self.state, nodes=nodes)

    _noting(changes, "gone", _absent_pods)
    changes.around(MemoryManager, "remove_stale_state", remove_stale_state)


@seeds("MEM-RESTART-002").of(_keep_of_pods_that_left, ("assignments", "cells"))
def groups_of_pods_that_left_during_a_restart_stay() -> None:
    """Releases the memory but not the groups of pods that left during a restart."""


@seeds("MEM-RESTART-002").of(_keep_of_pods_that_left, ("cells",))
def cells_of_pods_that_left_during_a_restart_stay() -> None:
    """Forgets to dissolve the groups, although their nodes count as unused."""


@seeds("MEM-RESTART-003").around(StaticMemoryPolicy, "allocate")
def init_containers_take_back_what_was_reused(
    rule: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Allocates an init container's reused memory again."""
    had = state.of(pod.uid, container.name) if container.runs_to_completion else None
    amounts = requests.container_amounts(pod, container) if had else {}
    for block in had or ():
        missing = amounts.get(block.kind, 0) - block.size
        if missing > 0:
            if not policies.satisfies(state, block.nodes, {block.kind: missing}):
                raise AllocationError(
                    "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes "
                    "with enough memory is available"
                )
            state = state.reserve(block, missing)
    return rule(state=state)


@seeds("MEM-RESTART-004").around(hints, "regenerate_hints")
def memory_on_several_nodes_is_not_judged_again(rule: Any, blocks: Any) -> Any:
    """Returns no hints for memory on several nodes."""
    return {} if any(block.nodes & (block.nodes - 1) for block in blocks) else rule()


# Changes during a restart


@seeds("MEM-RESTART-005")
def running_pods_without_a_checkpoint_stay_unpinned(changes: Changes) -> None:
    """Doesn't pin the memory of pods that aren't in the checkpoint."""

    def unknown(node: Any, args: Any) -> set[str]:
        present = {pod["metadata"]["uid"] for pod in args.pods}
        return present - set(node.memory.state.entries)

    def allocate(rule: Any, self: Any, pod: Any) -> None:
        if pod.uid not in getattr(self, "unknown", ()):
            rule()

    _noting(changes, "unknown", unknown)
    changes.around(MemoryManager, "allocate", allocate)


@shape(startup, "start")
def _remembering(what: Change, rule: Any, args: Any, release: Any, discover: Any) -> Any:
    """Refuses to start if the value of `what` changed since the last start.

    `what` is called with the request and its machine; None means that nothing is compared.
    """
    folder = Path(args.state_dir)
    path = folder / "memory_manager_machine"
    known = path.read_text() if path.exists() else None
    if not (folder / checkpoint.FILE_NAME).exists():
        known = None
    node = rule()
    found = what(args, args.machine or discover(args.root, release))
    if found is None:
        return node
    text = json.dumps(found, sort_keys=True)
    if known not in (None, text):
        raise StartError(
            "memory",
            "start memory manager error: [memorymanager] the expected machine state is "
            "different from the real one",
        )
    path.write_text(text)
    return node


def _policy(args: Any) -> str:
    return str(args.config.get("memoryManagerPolicy") or "None")


@seeds("MEM-RESTART-006").by(_remembering)
def none_policy_refuses_changed_memory(args: Any, machine: Any) -> Any:
    """Compares the nodes' memory under the None policy."""
    if _policy(args) != "None":
        return None
    return [[node.node_id, node.memory] for node in machine.topology or ()]


@seeds("MEM-RESTART-007")
def another_reservation_is_taken_over_at_a_restart(changes: Changes) -> None:
    """Accepts a changed reservation if the nodes' total memory is unchanged."""

    def totals(nodes: Any) -> Any:
        return {
            node: {kind: table.total for kind, table in memory.tables.items()}
            for node, memory in nodes.items()
        }

    def restore(rule: Any, self: Any, state: MemoryState) -> MemoryState:
        try:
            restored: MemoryState = rule()
        except RestoreError:
            if not state.nodes or totals(state.nodes) != totals(self.empty):
                raise
            anew = replace(state, nodes=self.empty)
            for uid, _, blocks in state:
                for block in () if state.pods.get(uid) else blocks:
                    anew = anew.reserve(block, block.size)
            return anew
        return restored

    changes.around(StaticMemoryPolicy, "restore", restore)
