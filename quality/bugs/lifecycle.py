"""Bugs in what happens to resources when containers end, pods leave and the kubelet restarts.

Each is a slip that a plausible program makes: it releases or restores only a part of what a pod
has, or nothing, in one of the four managers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.devices.state import DeviceState, devices_by_resource
from numaproof.reference.memory import state as memory_state
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.state import MemoryState, NodeMemory, reserve_block
from numaproof.reference.node import StartedNode
from numaproof.reference.topology.hints import NO_AFFINITY
from numaproof.reference.topology.policy import TopologyPolicy
from quality.seeding import SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol import messages
    from numaproof.reference.cpu.state import CPUState
    from numaproof.reference.devices.manager import DeviceManager

seeds = SubjectBugs("lifecycle")


@shape(startup, "start")
def _restarting(change: Callable[[StartedNode], None], rule: Any, args: messages.StartArgs) -> Any:
    """Changes the node after a start that found pods."""
    node = rule()
    if args.pods:
        change(node)
    return node


@shape(StartedNode, "remove")
def _removing(
    change: Callable[[StartedNode, Any, str], None],
    rule: Any,
    self: StartedNode,
    args: messages.RemoveArgs,
) -> Any:
    """Changes the node after a pod is removed, given the node from before."""
    before = (self.cpus.state, self.memory.state, self.device_manager.state)
    answer = rule()
    if args.container is None:
        change(self, before, args.uid)
    return answer


@shape(StartedNode, "end")
def _ending(
    change: Callable[[StartedNode, Any, str], None],
    rule: Any,
    self: StartedNode,
    args: messages.EndArgs,
) -> Any:
    """Changes the node after a container has ended; gets the states before."""
    before = (self.cpus.state, self.memory.state, self.device_manager.state)
    answer = rule()
    change(self, before, args.uid)
    return answer


# Memory of containers that end and pods that leave


@seeds("NODE-END-001").by(_ending)
def memory_of_a_container_that_ends_is_kept(node: Any, before: Any, uid: str) -> None:
    if uid in node.pods:
        node.memory.state = before[1]


@seeds("NODE-END-002").by(_ending)
def memory_of_a_pod_that_ends_is_kept(node: Any, before: Any, uid: str) -> None:
    if uid not in node.pods:
        node.memory.state = replace(node.memory.state, nodes=before[1].nodes)


@seeds("MEM-REMOVE-001").by(_removing)
def memory_of_the_first_container_alone_is_released(node: Any, before: Any, uid: str) -> None:
    nodes = node.memory.state.nodes
    for blocks in [*before[1].entries.get(uid, {}).values()][1:]:
        for block in blocks:
            nodes = reserve_block(nodes, block, block.size)
    node.memory.state = replace(node.memory.state, nodes=nodes)


@seeds("MEM-REMOVE-001").by(_removing)
def huge_pages_are_not_released(node: Any, before: Any, uid: str) -> None:
    nodes = node.memory.state.nodes
    for blocks in before[1].entries.get(uid, {}).values():
        for block in blocks:
            if block.kind != "memory":
                nodes = reserve_block(nodes, block, block.size)
    node.memory.state = replace(node.memory.state, nodes=nodes)


@seeds("MEM-GROUP-006").by(_removing)
def the_group_of_a_removed_pod_stays(node: Any, before: Any, uid: str) -> None:
    del uid
    was, now = before[1].nodes, node.memory.state.nodes
    nodes = {one: replace(now[one], cells=was[one].cells) for one in now}
    node.memory.state = replace(node.memory.state, nodes=nodes)


@seeds("MEM-REMOVE-001").around(memory_state, "give_back")
def half_of_the_memory_is_released(rule: Any, size: int) -> Any:
    return rule(size=size // 2)


# Memory across restarts


def _with_memory(node: StartedNode, keeps: Callable[[str, str], bool]) -> None:
    """Restores only some containers' memory."""
    policy, state = node.memory.policy, node.memory.state
    if policy is None:
        return
    nodes = dict(policy.empty)
    entries: dict[str, dict[str, Any]] = {}
    for uid, name, blocks in state:
        if keeps(uid, name):
            entries.setdefault(uid, {})[name] = blocks
            for block in blocks:
                nodes = reserve_block(nodes, block, block.size)
    node.memory.state = MemoryState(nodes, entries)


@seeds("MEM-RESTART-001").by(_restarting)
def a_restart_loses_the_memory_of_the_last_pod(node: StartedNode) -> None:
    last = [*node.pods][-1]
    _with_memory(node, lambda uid, _: uid != last)


@seeds("MEM-RESTART-001").by(_restarting)
def a_restart_loses_the_memory_of_further_containers(node: StartedNode) -> None:
    firsts = {uid: next(iter(names)) for uid, names in node.memory.state.entries.items()}
    _with_memory(node, lambda uid, name: firsts[uid] == name)


@seeds("MEM-RESTART-001").by(_restarting)
def memory_that_a_restart_restores_is_free(node: StartedNode) -> None:
    if node.memory.policy is not None:
        node.memory.state = replace(node.memory.state, nodes=dict(node.memory.policy.empty))


@seeds("MEM-RESTART-001").by(_restarting)
def a_restart_reserves_memory_twice(node: StartedNode) -> None:
    nodes = node.memory.state.nodes
    for _, _, blocks in node.memory.state:
        for block in blocks:
            nodes = reserve_block(nodes, block, block.size)
    node.memory.state = replace(node.memory.state, nodes=nodes)


@seeds("MEM-RESTART-001").by(_restarting)
def a_restart_forgets_groups(node: StartedNode) -> None:
    nodes = {
        one: NodeMemory(memory.assignments, memory.tables, 1 << one)
        for one, memory in node.memory.state.nodes.items()
    }
    node.memory.state = replace(node.memory.state, nodes=nodes)


@seeds("MEM-RESTART-002").by(_restarting)
def memory_of_pods_that_left_during_a_restart_is_kept(node: StartedNode) -> None:
    gone = [one for one in node.memory.state if one[0] not in node.pods]
    state = node.memory.state
    for uid, name, _ in gone:
        state = replace(state.release(uid, name), nodes=state.nodes)
    node.memory.state = state


@seeds("MEM-RESTART-001").around(StaticMemoryPolicy, "restore")
def a_restart_restores_huge_pages_as_free(rule: Any, self: StaticMemoryPolicy) -> Any:
    state = rule()
    nodes = {
        one: replace(
            memory,
            tables={
                kind: table if kind == "memory" else self.empty[one].tables[kind]
                for kind, table in memory.tables.items()
            },
        )
        for one, memory in state.nodes.items()
    }
    return replace(state, nodes=nodes)


# CPUs


@seeds("CPU-REMOVE-001").by(_removing)
def cpus_of_the_first_container_alone_return(node: Any, before: Any, uid: str) -> None:
    others = [*before[0].exclusive.get(uid, {}).values()][1:]
    shared = node.cpus.state.shared
    for cpus in others:
        shared &= ~cpus
    node.cpus.state = replace(node.cpus.state, shared=shared)


@seeds("NODE-END-002").by(_ending)
def cpus_of_a_pod_that_ends_do_not_return(node: Any, before: Any, uid: str) -> None:
    if uid not in node.pods:
        node.cpus.state = replace(node.cpus.state, shared=before[0].shared)


def _with_cpus(node: StartedNode, keeps: Callable[[str, str], bool]) -> None:
    state: CPUState = node.cpus.state
    for uid, name, _ in tuple(state):
        if not keeps(uid, name):
            state = state.release(uid, name)
    node.cpus.state = state


@seeds("CPU-RESTART-001").by(_restarting)
def a_restart_loses_the_cpus_of_the_last_pod(node: StartedNode) -> None:
    last = [*node.pods][-1]
    _with_cpus(node, lambda uid, _: uid != last)


@seeds("CPU-RESTART-001").by(_restarting)
def a_restart_loses_the_cpus_of_further_containers(node: StartedNode) -> None:
    firsts = {uid: next(iter(names)) for uid, names in node.cpus.state.exclusive.items()}
    _with_cpus(node, lambda uid, name: firsts[uid] == name)


@seeds("CPU-RESTART-001").by(_restarting)
def exclusive_cpus_are_shared_after_a_restart(node: StartedNode) -> None:
    if node.cpus.policy is not None:
        node.cpus.state = replace(node.cpus.state, shared=node.cpus.policy.topology.cpus)


@seeds("CPU-REMOVE-003").around(StartedNode, "remove_stale_state")
def cpus_of_pods_gone_in_a_restart_never_return(rule: Any, self: StartedNode, when: Any) -> None:
    shared, starts = self.cpus.state.shared, self.awaited_pods == {*self.pods}
    rule()
    if when == "reconcile" and starts and self.pods:
        self.cpus.state = replace(self.cpus.state, shared=shared)


@seeds("CPU-RESERVE-008").by(_restarting)
def a_restart_drops_the_reservation_of_cpus(node: StartedNode) -> None:
    if node.cpus.policy is not None:
        node.cpus.policy = node.cpus.policy.with_reserved(0)


@seeds("CPU-RESTART-001").by(_restarting)
def reserved_cpus_leave_the_shared_pool_in_a_restart(node: StartedNode) -> None:
    if node.cpus.policy is not None:
        shared = node.cpus.state.shared & ~node.cpus.policy.reserved
        node.cpus.state = replace(node.cpus.state, shared=shared)


@seeds("CPU-RECONCILE-007").by(_restarting)
def the_first_pass_after_a_restart_sends_nothing(node: StartedNode) -> None:
    node.runtime_cpus = {
        (pod.uid, one.name): node.cpus.state.allowed_cpus(pod.uid, one.name)
        for pod in node.pods.values()
        for one in pod.containers
    }


# Devices


@seeds("NODE-END-002").by(_ending)
def devices_of_a_pod_that_ends_stay_taken(node: Any, before: Any, uid: str) -> None:
    if uid not in node.pods:
        state = node.device_manager.state
        taken = before[2].allocated_devices
        node.device_manager.state = replace(state, allocated_devices=taken)


@seeds("DEV-REMOVE-001").by(_removing)
def devices_of_the_first_resource_alone_are_released(node: Any, before: Any, uid: str) -> None:
    del uid
    state, taken = node.device_manager.state, before[2].allocated_devices
    left = {name: taken[name] for name in sorted(taken)[1:]}
    node.device_manager.state = replace(
        state, allocated_devices={**state.allocated_devices, **left}
    )


def _with_devices(node: StartedNode, keeps: Callable[[str, str], bool]) -> None:
    """Restores only some devices, by pod uid and resource."""
    state: DeviceState = node.device_manager.state
    held = {
        uid: {
            name: {kind: ids for kind, ids in devices.items() if keeps(uid, kind)}
            for name, devices in containers.items()
        }
        for uid, containers in state.held_devices.items()
    }
    node.device_manager.state = replace(
        state, held_devices=held, allocated_devices=devices_by_resource(held)
    )


@seeds("NODE-RESTART-001").by(_restarting)
def a_restart_loses_the_devices_of_the_last_pod(node: StartedNode) -> None:
    last = [*node.pods][-1]
    _with_devices(node, lambda uid, _: uid != last)


@seeds("NODE-RESTART-001").by(_restarting)
def devices_of_pods_that_left_during_a_restart_stay_taken(node: StartedNode) -> None:
    manager: DeviceManager = node.device_manager
    taken = manager.state.allocated_devices
    left = {uid: held for uid, held in manager.state.held_devices.items() if uid in node.pods}
    manager.state = replace(manager.state, held_devices=left, allocated_devices=taken)


@seeds("DEV-HEALTH-002").after(DeviceState, "report")
def a_device_that_recovers_stays_unhealthy(state: DeviceState, self: DeviceState) -> DeviceState:
    lists = {
        name: replace(
            one,
            healthy=frozenset(
                device
                for device in one.healthy
                if device not in self.lists[name].nodes or device in self.lists[name].healthy
            )
            if name in self.lists
            else one.healthy,
        )
        for name, one in state.lists.items()
    }
    return replace(state, lists=lists)


# Topology


@seeds("NODE-RESTART-001").around(StartedNode, "admit")
def pods_have_no_affinity_after_a_restart(rule: Any, self: StartedNode, args: Any) -> Any:
    uid = args.pod["metadata"]["uid"]
    again = uid in self.awaited_pods
    answer = rule()
    if again:
        self.affinity = {
            place: NO_AFFINITY if place[0] == uid else one for place, one in self.affinity.items()
        }
    return answer


@seeds("MEM-RESTART-004").by(_restarting)
def any_affinity_is_admitted_after_a_restart(node: StartedNode) -> None:
    policy = node.setup.topology_policy
    if isinstance(policy, TopologyPolicy):
        node.setup = replace(node.setup, topology_policy=replace(policy, name="best-effort"))


@seeds("DEV-RESTART-003").around(StartedNode, "admit")
def a_pod_refused_after_a_restart_stays(rule: Any, self: StartedNode, args: Any) -> Any:
    uid = args.pod["metadata"]["uid"]
    if uid not in self.awaited_pods:
        return rule()
    pod = self.pods[uid]
    try:
        return rule()
    finally:
        self.pods.setdefault(uid, pod)
