"""Bugs in the Memory Manager and the Device Manager."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol import messages
from numaproof.protocol.sets import NUMASet
from numaproof.reference import node as managers
from numaproof.reference.devices import policy as device_policy
from numaproof.reference.devices.hints import DeviceHints
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.devices.state import (
    Devices,
    DeviceState,
    ReusableDevices,
    devices_by_resource,
)
from numaproof.reference.memory import hints, policy, requests, reservation, state
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.state import MemoryState, MemoryTable, NodeMemory, ReusableMemory
from numaproof.reference.pods import quantity
from numaproof.reference.topology.hints import ANYWHERE, Demand, TopologyHint
from numaproof.reference.topology.search import evaluation
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("memory")


# Reservation


@seeds("MEM-RESERVE-001").around(policy.StaticMemoryPolicy, "table")
def reserved_memory_is_allocatable(_: Any, total: int, system: int, pages: int) -> MemoryTable:
    return MemoryTable(total, system, total - pages, 0, total - pages)


@seeds("MEM-HUGE-001").around(policy.StaticMemoryPolicy, "table", lambda rule: rule(pages=0))
def huge_pages_are_memory_besides() -> None: ...


@seeds("#109766", "MEM-RESERVE-002").replace(reservation, "check_sums", lambda *_: None)
def reserved_memory_need_not_add_up() -> None: ...


@seeds("MEM-RESERVE-010").around(reservation, "by_node")
def reservations_of_unknown_nodes_are_passed_over(rule: Any, config: Any, machine: Any) -> Any:
    known = {node.node_id for node in machine.topology or ()}
    kept = tuple(entry for entry in config.reserved_memory if entry[0] in known)
    return rule(config=replace(config, reserved_memory=kept))


@seeds("MEM-RESERVE-003").after(reservation, "by_node")
def all_memory_is_reserved_on_the_first_node(amounts: Any) -> Any:
    sums: dict[str, int] = {}
    for kinds in amounts.values():
        for kind, size in kinds.items():
            sums[kind] = sums.get(kind, 0) + size
    return {node: sums if node == min(amounts) else {} for node in amounts}


# Requests


@seeds("MEM-STATIC-002").replace(policy, "is_served", lambda pod: pod.qos != "BestEffort")
def burstable_pods_have_memory_pinned() -> None: ...


@seeds("MEM-STATIC-014").replace(policy.StaticMemoryPolicy, "requests_memory")
def who_asks_for_no_memory_gets_nodes(self: Any, pod: Any, container: Any) -> Any:
    return True


@seeds("MEM-STATIC-006").around(requests, "container_amounts")
def memory_is_pinned_in_whole_pages(rule: Any) -> Any:
    return {kind: size >> 12 << 12 for kind, size in rule().items()}


@seeds("MEM-HUGE-002").around(requests, "container_amounts")
def huge_pages_are_not_pinned(rule: Any) -> Any:
    return {kind: size for kind, size in rule().items() if kind == requests.MEMORY}


@seeds("NODE-ALIGN-002").around(policy.StaticMemoryPolicy, "allocate")
def memory_ignores_the_affinity(rule: Any, affinity: Any) -> Any:
    return rule(affinity=TopologyHint(ANYWHERE, affinity.preferred))


# Groups of nodes


@seeds("PR #123443", "#113035", "MEM-GROUP-001")
def groups_of_nodes_may_overlap(changes: Changes) -> None:
    _hints_without_cells(changes)
    changes.replace(policy.StaticMemoryPolicy, "breaks_group", lambda self, state, nodes: False)


@seeds("MEM-GROUP-004").around(policy.StaticMemoryPolicy, "breaks_group")
def a_group_is_never_shared(_: Any, state: MemoryState, nodes: int) -> bool:
    return nodes.bit_count() > 1 and any(
        state.nodes[node].assignments for node in NUMASet.from_mask(nodes)
    )


@seeds("MEM-GROUP-006").around(state, "give_back")
def groups_outlive_their_blocks(rule: Any, nodes: Any, node: int) -> Any:
    cells = nodes[node].cells
    given = rule()
    nodes[node] = replace(nodes[node], cells=cells)
    return given


@seeds("MEM-GROUP-006").after(state, "give_back")
def a_group_ends_with_the_first_block(result: Any, nodes: Any, node: int) -> Any:
    nodes[node] = replace(nodes[node], cells=1 << node)
    return result


def _reserving(
    changes: Changes, order: Callable[[NUMASet], list[int]], *, once: bool = False
) -> None:
    """Fills the nodes of a block in another order, or only the first node if `once`."""

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

    changes.replace(state, "reserve_block", reserved)
    changes.replace(policy, "reserve_block", reserved)


@seeds("MEM-GROUP-003").of(_reserving, lambda nodes: sorted(nodes, reverse=True))
def blocks_fill_the_highest_node_first() -> None: ...


@seeds("#113035", "MEM-GROUP-003").of(_reserving, sorted, once=True)
def blocks_count_on_their_first_node_alone() -> None: ...


# Hints and the minimum number of nodes


def _hints_without_cells(changes: Changes) -> None:
    changes.after(MemoryState, "demand", lambda demand: replace(demand, cells=()))


@seeds("#128669", "#128708", "MEM-GROUP-005").of(_hints_without_cells)
def memory_hints_ignore_groups() -> None: ...


@seeds("MEM-STATIC-009").after(MemoryState, "demand")
def memory_hints_ignore_what_is_taken(demand: Demand) -> Demand:
    needs = tuple(replace(need, free=need.total) for need in demand.needs)
    return replace(demand, needs=needs)


@seeds("MEM-GROUP-002", "MEM-STATIC-003").after(MemoryState, "demand")
def memory_hints_prefer_what_is_fewest_now(demand: Demand) -> Demand:
    needs = tuple(replace(need, total=need.free) for need in demand.needs)
    return replace(demand, needs=needs)


@seeds("MEM-HINT-001").around(hints, "for_container")
def memory_is_hinted_for_every_pod(rule: Any, pod: Any) -> Any:
    guaranteed = replace(pod, qos="Guaranteed")
    return rule(pod=guaranteed)


@seeds("MEM-HINT-005").around(hints, "calculate_hints")
def memory_that_is_nowhere_is_an_empty_list(rule: Any, amounts: Any) -> Any:
    return rule() or dict.fromkeys(amounts, ())


@seeds("MEM-STATIC-012").around(hints, "for_container")
def memory_hints_forget_what_is_held(rule: Any, state: MemoryState) -> Any:
    return rule(state=MemoryState(state.nodes, reuse=state.reuse))


# Extension


@seeds("MEM-GROUP-007").around(evaluation, "narrowest")
def a_hint_that_does_not_suffice_is_refused(rule: Any, containing: Any) -> Any:
    return None if containing else rule()


@seeds("MEM-GROUP-007").after(evaluation, "narrowest")
def a_hint_is_extended_to_all_nodes(
    hint: TopologyHint | None, demand: Any, containing: int
) -> TopologyHint | None:
    if containing and hint is not None:
        return TopologyHint(sum(1 << node for node in demand.nodes), hint.preferred)
    return hint


@seeds("MEM-GROUP-007").around(evaluation, "narrowest", lambda rule: rule(containing=0))
def an_extended_hint_leaves_the_first_nodes() -> None: ...


@seeds("MEM-GROUP-007").replace(policy, "satisfies", lambda state, nodes, amounts: True)
def memory_beyond_the_hint_is_promised() -> None: ...


@seeds("#104682", "MEM-HUGE-004").around(policy, "satisfies")
def memory_alone_decides_whether_a_hint_suffices(rule: Any, amounts: Any) -> Any:
    return rule(amounts={kind: size for kind, size in amounts.items() if kind == requests.MEMORY})


# Containers of one pod


@seeds("#100838", "MEM-INIT-001").replace(ReusableMemory, "of", lambda self, uid, nodes, kind: 0)
def init_memory_is_not_reused() -> None: ...


@seeds("#104682", "MEM-INIT-001").after(MemoryState, "demand")
def memory_hints_leave_out_what_can_be_reused(demand: Demand) -> Demand:
    needs = tuple(replace(need, reusable=()) for need in demand.needs)
    return replace(demand, needs=needs)


@seeds("#119442", "PR #120715", "MEM-INIT-005").around(policy, "update_reuse")
def sidecar_memory_is_reused(rule: Any, container: Any) -> Any:
    return rule(container=replace(container, sidecar=False))


@seeds("MEM-INIT-002").around(policy, "update_reuse")
def app_memory_is_reused(rule: Any, container: Any) -> Any:
    return rule(container=replace(container, init=True, sidecar=False))


@seeds("#100838", "MEM-INIT-003").replace(policy, "shrink_init_blocks")
def reused_memory_is_counted_for_both(state: Any, pod: Any, container: Any, blocks: Any) -> Any:
    return state


@seeds("MEM-INIT-004").replace(ReusableMemory, "of")
def memory_is_reused_by_other_pods(self: Any, uid: Any, nodes: Any, kind: Any) -> Any:
    return self.sizes.get((nodes, kind), 0)


@seeds("#119407", "TOPO-SCOPE-003").around(requests, "peak")
def memory_of_sidecars_is_left_out_of_pod_hints(rule: Any, pod: Any) -> Any:
    return rule(pod=_without_sidecars(pod))


def _without_sidecars(pod: Pod) -> Pod:
    left = tuple(container for container in pod.containers if not container.sidecar)
    return replace(pod, containers=left)


# Removal


@seeds("MEM-REMOVE-001").replace(MemoryManager, "remove_stale_state", lambda self, pods, when: None)
def removed_pods_keep_their_memory() -> None: ...


@seeds("MEM-REMOVE-002").around(managers.StartedNode, "remove")
def ended_containers_keep_their_memory(rule: Any, self: Any, args: messages.RemoveArgs) -> Any:
    before = self.memory.state
    answer = rule()
    if args.container is not None:
        self.memory.state = before
        self.memory.save()
    return answer


@seeds("MEM-REMOVE-001").after(MemoryState, "release")
def memory_of_removed_pods_leaks(after: MemoryState, self: MemoryState) -> MemoryState:
    return MemoryState(self.nodes, after.entries, reuse=self.reuse)


seeds.about("devices")


# Health and lists


@seeds("DEV-HEALTH-001").after(DeviceState, "report")
def unhealthy_devices_are_given(state: DeviceState) -> DeviceState:
    known = {name: replace(one, healthy=frozenset(one.nodes)) for name, one in state.lists.items()}
    return replace(state, lists=known)


@seeds("DEV-HEALTH-005", "DEV-RESTART-003").around(device_policy, "check_health")
def a_pod_stays_with_devices_that_fell_ill(rule: Any, held_devices: Any) -> Any:
    return None if held_devices else rule()


@seeds("DEV-HEALTH-003").after(DeviceState, "report")
def a_device_that_fell_ill_is_taken_away(state: DeviceState) -> DeviceState:
    well = {resource: devices.healthy for resource, devices in state.lists.items()}
    held = {
        uid: {
            name: {resource: ids & well.get(resource, ids) for resource, ids in own.items()}
            for name, own in containers.items()
        }
        for uid, containers in state.held_devices.items()
    }
    return replace(state, held_devices=held)


def _deaf(self: managers.StartedNode, _args: messages.DevicesArgs) -> messages.Done:
    self.save()
    return messages.Done()


@seeds("DEV-HEALTH-001").replace(managers.StartedNode, "devices", _deaf)
def a_new_report_is_not_heard() -> None: ...


@seeds("DEV-HEALTH-004").around(DeviceState, "report")
def a_report_of_one_resource_takes_the_others_away(rule: Any, self: Any) -> Any:
    return rule(self=replace(self, lists={}))


# Allocation


@seeds("DEV-ALLOCATE-002").replace(DeviceState, "available")
def devices_are_given_twice(self: Any, resource: Any) -> Any:
    return self.lists.get(resource, Devices()).healthy


@shape(device_policy, "by_affinity", Changes.after)
def _ordering(key: Change, order: list[str], state: DeviceState, request: Any) -> list[str]:
    """Orders devices by their nodes first."""
    nodes = state.lists[request.resource].nodes
    return sorted(order, key=lambda device: key(nodes[device] or 0))


@seeds("PR #101893", "DEV-ALLOCATE-001").around(device_policy, "by_affinity")
def devices_ignore_the_affinity(rule: Any) -> Any:
    return rule(affinity=ANYWHERE)


@seeds("PR #101893", "DEV-ALLOCATE-007").of(_ordering, lambda nodes: nodes.bit_count() > 1)
def devices_near_several_nodes_count_as_far() -> None: ...


@seeds("DEV-ALLOCATE-008").around(device_policy, "by_affinity")
def what_the_plugin_prefers_is_ignored(rule: Any, request: Any) -> Any:
    return rule(request=request._replace(preferred=()))


@seeds("DEV-ERROR-004").around(DeviceState, "report")
def the_failure_of_a_plugin_is_ignored(rule: Any, lists: Any) -> Any:
    return rule(lists=[msgspec.structs.replace(one, fails=False) for one in lists])


@seeds("DEV-ALLOCATE-006").of(_ordering, bool)
def devices_without_topology_come_first() -> None: ...


@seeds("DEV-ALLOCATE-003").around(device_policy, "requested_devices")
def one_device_of_several_is_given(rule: Any) -> Any:
    return {resource: min(count, 1) for resource, count in rule().items()}


@seeds("DEV-ALLOCATE-003").around(device_policy, "requested_devices")
def zero_devices_are_one(rule: Any) -> Any:
    return {resource: count or 1 for resource, count in rule().items()}


@seeds("DEV-ALLOCATE-004").around(device_policy, "requested_devices")
def a_resource_without_a_plugin_cannot_be_had(rule: Any, container: Any) -> dict[str, int]:
    names = [name for name in container.limits if "/" in name]
    unknown = {name: quantity.value(container.limits[name]) for name in names}
    return {**unknown, **rule()}


@seeds("DEV-ALLOCATE-003").around(device_policy, "allocate_resource")
def too_few_devices_are_enough(rule: Any, state: DeviceState, request: Any) -> DeviceState:
    had = state.of(request.uid, request.container).get(request.resource)
    there = len(state.available(request.resource) | state.reuse.of(request.uid, request.resource))
    if had is None and there:
        request = request._replace(amount=min(request.amount, there))
    after: DeviceState = rule(request=request)
    return after


# Containers of one pod


@shape(device_policy, "allocate")
def _with_container(change: Callable[[Any], Any], rule: Any, container: Any) -> Any:
    return rule(container=change(container))


@seeds("DEV-INIT-001").replace(ReusableDevices, "of", lambda self, uid, resource: frozenset())
def init_devices_are_not_reused() -> None: ...


@seeds("#119442", "DEV-INIT-003").by(_with_container)
def sidecar_devices_are_reused(container: Any) -> Any:
    return replace(container, sidecar=False)


@seeds("DEV-ALLOCATE-002", "DEV-INIT-001").by(_with_container)
def app_devices_are_reused(container: Any) -> Any:
    return replace(container, init=True, sidecar=False)


# Removal


@seeds("DEV-REMOVE-001").replace(DeviceManager, "remove_stale_state", lambda self, pods, when: None)
def removed_pods_keep_their_devices() -> None: ...


@seeds("DEV-REMOVE-001").after(DeviceState, "release")
def devices_of_removed_pods_leak(after: DeviceState, self: DeviceState) -> DeviceState:
    return replace(after, allocated_devices=self.allocated_devices)


@seeds("DEV-REMOVE-002").after(managers.StartedNode, "remove")
def ended_containers_lose_their_devices(answer: Any, self: Any, args: messages.RemoveArgs) -> Any:
    kept = self.device_manager.state
    if args.container is not None and args.uid in kept.held_devices:
        pod = {
            name: own for name, own in kept.held_devices[args.uid].items() if name != args.container
        }
        held = {**kept.held_devices, args.uid: pod}
        self.device_manager.state = replace(
            kept, held_devices=held, allocated_devices=devices_by_resource(held)
        )
    return answer


# Hints


@seeds("DEV-HINT-002").around(DeviceHints, "of_resource")
def device_hints_ignore_what_is_taken(rule: Any, state: Any) -> Any:
    return rule(state=replace(state, allocated_devices={}))


@seeds("#112234", "DEV-HINT-001").after(DeviceHints, "of_resource")
def devices_without_topology_are_nowhere(demand: Any) -> Any:
    return () if demand is None else demand


@seeds("#139430", "DEV-HINT-002").after(DeviceHints, "of_resource")
def device_hints_prefer_what_is_fewest_now(demand: Any) -> Any:
    if not demand:
        return demand
    needs = tuple(replace(need, total=need.free) for need in demand.needs)
    return replace(demand, needs=needs)


@seeds("#109595", "DEV-HINT-008").around(DeviceHints, "of_resource")
def device_hints_forget_what_is_held(rule: Any, need: Any) -> Any:
    return rule(need=need._replace(held_devices=frozenset()))


@seeds("DEV-HINT-002").after(DeviceHints, "of_resource")
def device_hints_are_the_preferred_ones_alone(demand: Any) -> Any:
    if demand is None:
        return None
    return tuple(hint for hint in evaluation.list_hints(demand) if hint.preferred)


@seeds("DEV-HINT-009").around(DeviceHints, "for_pod")
def a_pod_asks_for_the_devices_of_its_first_container(rule: Any, pod: Any) -> Any:
    return rule(pod=replace(pod, containers=pod.containers[:1]))


@seeds("DEV-HINT-010").around(DeviceHints, "for_container")
def devices_that_nobody_asks_for_are_hinted(rule: Any, state: Any) -> Any:
    return {**dict.fromkeys(state.lists), **rule()}
