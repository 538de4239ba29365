"""Mutants that consider only one of several containers, sizes, nodes or resources."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState, ReusableCPUs
from numaproof.reference.cpu.topology import union
from numaproof.reference.devices import policy as device_policy
from numaproof.reference.devices.state import ReusableDevices
from numaproof.reference.memory import policy as memory_policies
from numaproof.reference.memory import requests
from numaproof.reference.memory import state as memory_states
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.state import MemoryState, ReusableMemory
from numaproof.reference.pods import containers as pod_containers
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.pods.containers import PodContainer

seeds = SubjectBugs("cpus")


# Init containers


def _inits(pod: Any) -> list[str]:
    return [one.name for one in pod.containers if one.runs_to_completion]


@shape(StaticCPUPolicy, "allocate", Changes.after)
def _leaving(
    change: Change, after: Any, self: Any, state: Any, pod: Any, container: Any, affinity: Any
) -> Any:
    """Lets `change` replace the CPUs that init containers leave for later containers."""
    if not container.runs_to_completion or not after.of(pod.uid, container.name):
        return after
    left = change(state.reuse.of(pod.uid), after.of(pod.uid, container.name), pod, container)
    return replace(after, reuse=ReusableCPUs(pod.uid, left))


@seeds("CPU-INIT-003").by(_leaving)
def only_the_first_init_container_leaves_cpus(before: int, own: int, pod: Any, one: Any) -> int:
    """Lets containers reuse only the CPUs of the first init container."""
    return own if one.name == _inits(pod)[0] else before


@seeds("CPU-INIT-001").by(_leaving)
def only_the_last_init_container_leaves_cpus(before: int, own: int, pod: Any, one: Any) -> int:
    """Lets containers reuse only the CPUs of the latest init container."""
    return own


@seeds("MEM-INIT-001").around(memory_policies, "update_reuse")
def only_the_first_init_container_leaves_memory(
    rule: Any, reuse: Any, pod: Any, container: Any
) -> Any:
    """Lets containers reuse only the memory of the first init container."""
    if container.runs_to_completion and container.name != _inits(pod)[0]:
        return reuse
    return rule()


@seeds("MEM-INIT-001").around(memory_policies, "update_reuse")
def only_the_last_init_container_leaves_memory(rule: Any, reuse: Any, container: Any) -> Any:
    """Lets containers reuse only the memory of the latest init container."""
    return rule(reuse=ReusableMemory() if container.runs_to_completion else reuse)


@seeds("MEM-INIT-005").around(memory_policies, "update_reuse")
def only_the_first_sidecar_keeps_its_memory(rule: Any, pod: Any, container: Any) -> Any:
    """Lets containers reuse the memory of all sidecars but the first."""
    sidecars = [one.name for one in pod.containers if one.sidecar]
    if container.sidecar and container.name != sidecars[0]:
        container = replace(container, sidecar=False)
    return rule(container=container)


@seeds("DEV-INIT-001").after(device_policy, "update_reuse")
def only_the_first_init_container_leaves_devices(
    after: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Lets containers reuse only the devices of the first init container."""
    first = container.runs_to_completion and container.name != _inits(pod)[0]
    return state.with_reuse(state.reuse) if first else after


@seeds("DEV-INIT-001").around(device_policy, "update_reuse")
def only_the_last_init_container_leaves_devices(
    rule: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Lets containers reuse only the devices of the latest init container."""
    if container.runs_to_completion:
        state = state.with_reuse(ReusableDevices(pod.uid, {}))
    return rule(state=state)


@shape(pod_containers, "peak")
def _counting(change: Change, rule: Any, containers: tuple[PodContainer, ...]) -> Any:
    """Lets `change` select the containers of a pod's peak request."""
    return rule(containers=tuple(change(containers)))


@seeds("TOPO-SCOPE-003", level="admission").by(_counting)
def only_the_first_sidecar_counts_for_the_pod(containers: Any) -> Any:
    """Counts the first of several sidecars in a pod's peak request."""
    sidecars = [one.name for one in containers if one.sidecar]
    return [one for one in containers if not one.sidecar or one.name == sidecars[0]]


@seeds("TOPO-SCOPE-003", level="admission").by(_counting)
def only_the_first_init_container_counts_for_the_pod(containers: Any) -> Any:
    """Counts the first of several init containers in a pod's peak request."""
    inits = [one.name for one in containers if one.runs_to_completion]
    return [one for one in containers if not one.runs_to_completion or one.name == inits[0]]


@seeds("TOPO-SCOPE-003", level="admission").by(_counting)
def only_the_last_init_container_counts_for_the_pod(containers: Any) -> Any:
    """Counts the last of several init containers in a pod's peak request."""
    inits = [one.name for one in containers if one.runs_to_completion]
    return [one for one in containers if not one.runs_to_completion or one.name == inits[-1]]


# Containers of a pod


@seeds("MEM-REMOVE-001").around(MemoryManager, "remove_stale_state")
def only_one_container_of_a_removed_pod_gives_memory_back(
    rule: Any, self: MemoryManager, pods: Mapping[str, Any]
) -> None:
    """Releases the nodes' memory of only one container of a removed pod."""
    before = self.state
    rule()
    gone = [uid for uid in before.entries if uid not in pods]
    for uid in gone:
        lost = before
        for name in [*before.entries[uid]][:1]:
            lost = lost.release(uid, name)
        self.state = replace(self.state, nodes=lost.nodes)


@seeds("CPU-CHECKPOINT-013", kubernetes="1.36").around(cpu_checkpoint, "restore")
def one_container_of_each_pod_is_migrated(rule: Any, content: bytes) -> CPUState:
    """Adopts only one container of each pod from a checkpoint in the first format."""
    state: CPUState = rule()
    try:
        entries = json.loads(content).get("entries") or {}
    except ValueError:
        return state
    if not any(isinstance(cpus, str) for cpus in entries.values()):
        return state
    kept = {uid: dict([*own.items()][:1]) for uid, own in state.exclusive.items()}
    lost = union(cpus for own in state.exclusive.values() for cpus in [*own.values()][1:])
    return replace(state, shared=state.shared | lost, exclusive=kept)


# Huge pages of two sizes


@seeds("MEM-HUGE-001").around(memory_policies, "make_static")
def the_second_size_of_huge_pages_counts_as_memory(
    rule: Any, machine: Any, system: Any, rules: Any
) -> Any:
    """Subtracts only the first huge page size from a node's memory."""
    made = rule()
    nodes = dict(made.empty)
    for node in machine.topology or ():
        pools = [*(node.hugepages or ())]
        if len(pools) > 1:
            pages = pools[0].num_pages * pools[0].page_size * 1024
            reserved = system.get(node.node_id, {}).get("memory", 0)
            own = nodes[node.node_id]
            table = rules.table(node.memory, reserved, pages)
            nodes[node.node_id] = replace(own, tables={**own.tables, "memory": table})
    return replace(made, empty=nodes)


@seeds("MEM-HUGE-010").around(requests, "container_amounts")
def one_size_of_huge_pages_is_pinned(rule: Any) -> Any:
    """Pins only the first of several huge page sizes."""
    amounts = rule()
    pages = sorted(kind for kind in amounts if kind != requests.MEMORY)
    return {kind: size for kind, size in amounts.items() if kind not in pages[1:]}


@seeds("MEM-HUGE-004", level="invariants")
def the_second_size_of_huge_pages_is_not_looked_for(changes: Changes) -> None:
    """Ignores all but the first huge page size when it looks for nodes."""

    def first(rule: Any, amounts: Mapping[str, int]) -> Any:
        pages = sorted(kind for kind in amounts if kind != requests.MEMORY)
        return rule(amounts={kind: size for kind, size in amounts.items() if kind not in pages[1:]})

    changes.around(MemoryState, "demand", first)


# Groups of nodes


@seeds("MEM-GROUP-001").around(memory_policies.StaticMemoryPolicy, "breaks_group")
def only_the_first_node_of_a_group_is_looked_at(rule: Any, state: Any, nodes: int) -> Any:
    """Compares only the lowest node's group with the chosen nodes."""
    first = nodes & -nodes
    (node,) = NUMASet.from_mask(first)
    memory = state.nodes[node]
    return bool(memory.assignments and memory.cells != nodes)


@seeds("MEM-GROUP-005").after(MemoryState, "demand")
def only_the_first_node_of_a_group_is_taken(demand: Any) -> Any:
    """Treats only the lowest node of a group as part of it."""
    cells = tuple((node, mask) for node, mask in demand.cells if mask & -mask == 1 << node)
    return replace(demand, cells=cells)


@seeds("MEM-GROUP-006", level="admission").around(memory_states, "give_back")
def only_the_first_node_of_a_group_is_dissolved(rule: Any, nodes: Any, node: int) -> Any:
    """Lets only the lowest node leave a group whose last block is released."""
    cells = nodes[node].cells
    given = rule()
    if cells & -cells != 1 << node:
        nodes[node] = replace(nodes[node], cells=cells)
    return given


# Several resources


@seeds("DEV-ALLOCATE-003").after(device_policy, "requested_devices")
def one_resource_of_devices_is_served(found: Any) -> Any:
    """Allocates devices of only the first resource."""
    return dict([*found.items()][:1])
