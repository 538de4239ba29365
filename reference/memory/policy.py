"""The Memory Manager's ``Static`` policy.

(Kubernetes documentation, "Control Memory Management Policies on a Node".) A policy is an immutable
value; its functions return the next state. The kubelet uses unordered maps; here, they are sorted
by memory type.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from numaproof.protocol.sets import NUMASet
from numaproof.reference.errors import AllocationError, UnsupportedError
from numaproof.reference.memory import requests
from numaproof.reference.memory.requests import MEMORY, UNSIGNED
from numaproof.reference.memory.state import (
    Block,
    MemoryState,
    MemoryTable,
    NodeMemory,
    ReusableMemory,
    reserve_block,
    same_memory,
)
from numaproof.reference.pods import quantity
from numaproof.reference.pods.readmission import Readmission
from numaproof.reference.topology.hints import ANYWHERE, sets_of_size
from numaproof.reference.topology.search import evaluation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.choices import Decisions
    from numaproof.reference.memory.requests import Amounts
    from numaproof.reference.memory.state import Blocks, Nodes
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Demand, TopologyHint


class RestoreError(Exception):
    """The restored state does not fit the machine or the reservation."""


@dataclass(frozen=True, slots=True)
class StaticMemoryPolicy(Readmission):
    """The static policy on a machine; `empty` has the machine's nodes without allocations.

    `first_choice` has, by container, the nodes that come before equally good ones; `decisions`, if
    any, choose instead.
    """

    empty: Mapping[int, NodeMemory]
    first_choice: Mapping[str, int] = field(default_factory=dict, compare=False)
    decisions: Decisions | None = field(default=None, compare=False)

    @classmethod
    def table(cls, total: int, system: int, pages: int) -> MemoryTable:
        """Creates the table of an empty node with `total` bytes of a memory type.

        `system` bytes are reserved, and `pages` bytes are in the node's huge pages.

        Requirements: MEM-HUGE-001, MEM-RESERVE-001, MEM-RESERVE-004.
        """
        left = cls.remaining_bytes(total, system + pages)
        return MemoryTable(total, system % UNSIGNED, left, 0, left)

    @staticmethod
    def remaining_bytes(total: int, reserved_bytes: int) -> int:
        return max(0, total - reserved_bytes)

    def with_reservation_of(self, other: StaticMemoryPolicy) -> Self:
        return replace(self, empty=other.empty)

    def preferring(self, first_choice: Mapping[str, int], decisions: Decisions | None) -> Self:
        return replace(self, first_choice=first_choice, decisions=decisions)

    @property
    def allocatable(self) -> Blocks:
        """The allocatable memory of the empty machine, sorted by type, then by node."""
        found = [
            Block(1 << node, kind, table.allocatable)
            for node, memory in self.empty.items()
            for kind, table in memory.tables.items()
            if table.allocatable
        ]
        return tuple(sorted(found, key=lambda block: (block.kind, block.nodes)))

    def allocate(
        self,
        state: MemoryState,
        pod: Pod,
        container: PodContainer,
        affinity: TopologyHint,
    ) -> MemoryState:
        """Allocates the container's memory, unless the container already has it.

        `affinity` is the Topology Manager's hint for the container.

        Raises:
            AllocationError: the memory cannot be allocated.

        Requirements: MEM-ERROR-001, MEM-ERROR-004, MEM-GROUP-002, MEM-GROUP-007, MEM-HUGE-002,
        MEM-HUGE-005, MEM-HUGE-007, MEM-INIT-002, MEM-RESTART-001, MEM-STATIC-003, MEM-STATIC-012.
        """
        if not is_served(pod) or not self.requests_memory(pod, container):
            return state
        blocks = state.of(pod.uid, container.name)
        if blocks is None:
            if self.has_ended(state, pod, container):
                return state
            amounts = requests.container_amounts(pod, container)
            choice = self.first_choice.get(container.name, 0)
            nodes = self._choose(state, pod, amounts, affinity, choice)
            blocks = tuple(Block(nodes, kind, size) for kind, size in amounts.items())
            for block in blocks:
                again = state.reuse.of(pod.uid, nodes, block.kind)
                state = state.reserve(block, max(0, block.size - again))
            state = state.with_blocks(pod.uid, container.name, blocks)
            state = shrink_init_blocks(state, pod, container, blocks)
        return replace(state, reuse=update_reuse(state.reuse, pod, container, blocks))

    def pins(self, pod: Pod, container: PodContainer) -> bool:
        """Whether memory of the container is pinned, unless its amounts are invalid."""
        return is_served(pod) and not pod.shares_budget(container)

    def release(self, state: MemoryState, uid: str, name: str) -> MemoryState:
        left = state.release(uid, name)
        reuse = self.still_reusable(left)
        return left if reuse == left.reuse else replace(left, reuse=reuse)

    def still_reusable(self, state: MemoryState) -> ReusableMemory:
        """Returns the memory that stays reusable after a container ends: none if its pod has none.

        Requirements: MEM-INIT-004.
        """
        return state.reuse if state.reuse.uid in state.entries else ReusableMemory()

    def requests_memory(self, pod: Pod, container: PodContainer) -> bool:
        """Whether a container gets memory from this policy.

        Raises:
            AllocationError: an amount is not an integer according to the API machinery.

        Requirements: MEM-STATIC-014.
        """
        return bool(requests.container_amounts(pod, container))

    def allocate_pod(self, state: MemoryState, pod: Pod, affinity: TopologyHint) -> MemoryState:
        """Allocates the pod's memory and divides it among its containers.

        Containers with requests get their own memory. Ordinary init containers without requests
        can use all memory that preceding sidecars leave; the other containers share the rest.
        `affinity` is the Topology Manager's hint for the pod.

        Raises:
            AllocationError: the memory cannot be allocated.
            EmptySharedPoolError: no memory would remain for containers without requests.

        Requirements: MEM-RESTART-001, NODE-PODLEVEL-009, NODE-PODLEVEL-011.
        """
        if not is_served(pod) or self.keeps(state, pod):
            return state
        try:
            amounts = self.peak(pod)
        except AllocationError:
            return state
        requests.check_budget(pod, amounts)
        choice = next(filter(None, self.first_choice.values()), 0)
        nodes = self._choose(state, pod, amounts, affinity, choice)
        whole = _blocks(nodes, amounts)
        for block in whole:
            state = state.reserve(block, block.size)
        state = state.with_pod(pod.uid, whole)
        for name, share in requests.shares(pod, amounts).items():
            state = state.with_blocks(pod.uid, name, _blocks(nodes, share))
        return state

    def peak(self, pod: Pod) -> Amounts:
        """Returns the pod's peak demand for each memory type.

        Raises:
            AllocationError: an amount is not an integer according to the API machinery.
        """
        return requests.peak(pod)

    def _choose(
        self,
        state: MemoryState,
        pod: Pod,
        amounts: Amounts,
        affinity: TopologyHint,
        choice: int,
    ) -> int:
        chosen = affinity
        if affinity.nodes == ANYWHERE:
            default = self._best(state.demand(pod.uid, amounts), 0, choice) if amounts else None
            if default is None:
                raise AllocationError(
                    "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with "
                    "enough memory is available"
                )
            if affinity.preferred and not default.preferred:
                raise AllocationError("[memorymanager] failed to find the default preferred hint")
            chosen = default
        if not satisfies(state, chosen.nodes, amounts):
            extended = self._best(state.demand(pod.uid, amounts), chosen.nodes, choice)
            if extended is None:
                raise AllocationError(
                    "[memorymanager] failed to find NUMA nodes to extend the current topology hint"
                )
            if chosen.preferred and not extended.preferred:
                raise AllocationError("[memorymanager] failed to find the extended preferred hint")
            chosen = extended
        if self.breaks_group(state, chosen.nodes):
            raise AllocationError("[memorymanager] preferred hint violates NUMA node allocation")
        return chosen.nodes

    def _best(self, demand: Demand, containing: int, first_choice: int) -> TopologyHint | None:
        best = self.best(demand, containing, first_choice)
        if self.decisions is None or best is None:
            return best
        every = NUMASet(demand.nodes).mask
        others = (self.best(demand, containing, nodes) for nodes in sets_of_size(every, best.nodes))
        return self.decisions.pick(best, filter(None, others))

    def best(self, demand: Demand, containing: int, first_choice: int) -> TopologyHint | None:
        """The best hint that includes `containing`, or None if there is none.

        `first_choice` comes before equally good sets of nodes.
        """
        return evaluation.narrowest(demand, containing, first_choice)

    def breaks_group(self, state: MemoryState, nodes: int) -> bool:
        """Whether one of the nodes is already used with a set of nodes other than `nodes`.

        Requirements: MEM-ERROR-005, MEM-GROUP-001.
        """
        return any(
            state.nodes[node].assignments and state.nodes[node].cells != nodes
            for node in NUMASet.from_mask(nodes)
        )

    def restore(self, state: MemoryState) -> MemoryState:
        """Returns the initial state, given the state in the checkpoint file.

        Raises:
            RestoreError: the checkpoint does not fit the machine or the reservation.

        Requirements: MEM-CHECKPOINT-002, MEM-CHECKPOINT-010, MEM-RESTART-001, MEM-RESTART-005.
        """
        if not state.nodes:
            if state.entries:
                raise RestoreError(
                    "[memorymanager] machine state can not be empty when it has memory assignments"
                )
            return MemoryState(self.empty)
        expected: Nodes = dict(self.empty)
        containers = (entry for entry in state if not state.pods.get(entry[0]))
        pods = ((uid, "", whole) for uid in state.entries if (whole := state.pods.get(uid)))
        for uid, name, blocks in (*pods, *containers):
            place = f"[memorymanager] (pod: {uid}, container: {name}) the memory assignment uses "
            for block in blocks:
                for node in NUMASet.from_mask(block.nodes):
                    if node not in expected:
                        raise RestoreError(f"{place}the NUMA that does not exist")
                    if block.kind not in expected[node].tables:
                        raise RestoreError(f"{place}memory resource that does not exist")
                expected = reserve_block(expected, block, block.size)
        if not self.agree(state.nodes, expected):
            raise RestoreError(
                "[memorymanager] the expected machine state is different from the real one"
            )
        return state

    def agree(self, real: Mapping[int, NodeMemory], expected: Mapping[int, NodeMemory]) -> bool:
        """Whether the machine in the checkpoint, with its allocations, is the `expected` one."""
        return same_memory(real, expected)


def make_static(
    machine: MachineInfo,
    system: Mapping[int, Mapping[str, int]],
    rules: type[StaticMemoryPolicy] = StaticMemoryPolicy,
) -> StaticMemoryPolicy:
    """Creates the static policy; `system` has the reserved bytes by node and memory type.

    Raises:
        UnsupportedError: a node has a negative id, which the protocol cannot express.

    Requirements: MEM-HUGE-001, MEM-HUGE-008, MEM-STATIC-011.
    """
    if any(node.node_id < 0 for node in machine.topology or ()):
        raise UnsupportedError("memory on NUMA nodes with negative ids")
    nodes: Nodes = {}
    for node in sorted(machine.topology or (), key=lambda node: node.node_id):
        kept = system.get(node.node_id, {})
        tables: dict[str, MemoryTable] = {}
        pages = 0
        for pool in node.hugepages or ():
            page = quantity.canonical(pool.page_size * 1024, "binary")
            kind = f"hugepages-{page}"
            total = pool.num_pages * pool.page_size * 1024
            tables[kind] = rules.table(total, kept.get(kind, 0), 0)
            pages += total
        tables[MEMORY] = rules.table(node.memory, kept.get(MEMORY, 0), pages)
        nodes[node.node_id] = NodeMemory(0, tables, 1 << node.node_id)
    return rules(nodes)


def _blocks(nodes: int, amounts: Amounts) -> Blocks:
    return tuple(Block(nodes, kind, size) for kind, size in sorted(amounts.items()) if size)


def update_reuse(
    reuse: ReusableMemory, pod: Pod, container: PodContainer, blocks: Blocks
) -> ReusableMemory:
    """Returns the reusable memory once a container has these blocks.

    Requirements: MEM-INIT-001, MEM-INIT-005.
    """
    sizes = dict(reuse.sizes) if reuse.uid == pod.uid else {}
    for block in blocks:
        place = (block.nodes, block.kind)
        if container.runs_to_completion:
            sizes[place] = max(sizes.get(place, 0), block.size)
        elif place in sizes:
            sizes[place] = max(0, sizes[place] - block.size)
    return ReusableMemory(pod.uid, sizes)


def shrink_init_blocks(
    state: MemoryState, pod: Pod, container: PodContainer, blocks: Blocks
) -> MemoryState:
    """Shrinks the blocks of earlier init containers by the memory that these blocks reuse.

    Afterwards, a pod's blocks add up to the memory that it occupies.

    Requirements: MEM-INIT-001, MEM-INIT-003, MEM-INIT-005.
    """
    for block in blocks:
        left = block.size
        for earlier in pod.containers:
            if earlier.name == container.name or not earlier.init:
                break
            had = state.of(pod.uid, earlier.name)
            if earlier.sidecar or not had:
                continue
            after = []
            for old in had:
                taken = min(left, old.size) if old[:2] == block[:2] else 0
                left -= taken
                after.append(old._replace(size=old.size - taken))
            state = state.with_blocks(pod.uid, earlier.name, tuple(after))
    return state


def is_served(pod: Pod) -> bool:
    """Whether the policy pins the memory of the pod's containers.

    Requirements: MEM-HINT-001, MEM-STATIC-002, MEM-STATIC-005.
    """
    return pod.qos == "Guaranteed" and not pod.shared_pool


def satisfies(state: MemoryState, nodes: int, amounts: Amounts) -> bool:
    """Whether the nodes together have enough free memory of every type.

    Requirements: MEM-ERROR-005, MEM-GROUP-001, MEM-HUGE-003, MEM-STATIC-009.
    """
    return all(
        sum(
            state.nodes[node].tables[kind].free
            for node in NUMASet.from_mask(nodes)
            if kind in state.nodes[node].tables
        )
        >= size
        for kind, size in amounts.items()
    )
