"""Mutants that are wrong only at an edge: exactly all of a resource, one more, or one less."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference.capacity import allocatable
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.policy import SMTAlignmentError, StaticCPUPolicy
from numaproof.reference.devices import policy as device_policy
from numaproof.reference.errors import AllocationError
from numaproof.reference.memory import policy as memory_policies
from numaproof.reference.memory.state import MemoryState
from numaproof.reference.topology.hints import Demand, Supply
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from numaproof.reference.devices.policy import DeviceRequest
    from numaproof.reference.devices.state import DeviceState

seeds = SubjectBugs("cpus")


# CPUs


@shape(StaticCPUPolicy, "allocate")
def _one_too_many(
    change: Change, rule: Any, self: StaticCPUPolicy, state: Any, pod: Any, container: Any
) -> Any:
    """Lets `change` replace policy and state for requests of one CPU more than are free."""
    free = (self.available(state) | state.reuse.of(pod.uid)).bit_count()
    missing = pod.exclusive_cpus(container) - free
    if missing != 1 or state.of(pod.uid, container.name) is not None:
        return rule()
    policy, wider = change(self, state)
    return rule(self=policy, state=wider)


def _lowest(cpus: int) -> int:
    return cpus & -cpus


@seeds("CPU-RESERVE-008").by(_one_too_many)
def one_cpu_too_many_is_taken_from_the_reserved(policy: Any, state: Any) -> Any:
    """Hands out a reserved CPU if exactly one CPU is missing."""
    return policy.with_reserved(policy.reserved & ~_lowest(policy.reserved)), state


@seeds("CPU-STATIC-003").by(_one_too_many)
def one_cpu_too_many_is_taken_from_a_neighbour(policy: Any, state: Any) -> Any:
    """Hands out another pod's CPU if exactly one CPU is missing."""
    others = policy.topology.cpus & ~state.shared & ~policy.reserved
    return policy, replace(state, shared=state.shared | _lowest(others))


@seeds("CPU-STATIC-015").around(StaticCPUPolicy, "allocate")
def the_last_free_cpu_is_kept(rule: Any, self: Any, state: Any, pod: Any, container: Any) -> Any:
    """Rejects requests for exactly as many CPUs as are free."""
    count, free = pod.exclusive_cpus(container), self.available(state).bit_count()
    if count and count == free and state.of(pod.uid, container.name) is None:
        raise NotEnoughCPUsError(count, free)
    return rule()


@seeds("CPU-STATIC-015").around(StaticCPUPolicy, "available")
def the_last_core_is_never_assigned(rule: Any, self: StaticCPUPolicy) -> int:
    """Leaves the machine's last core out."""
    return int(rule()) & ~self.topology.cores[max(self.topology.cores)]


@seeds("CPU-OPT-FULLPCPUS-002").around(StaticCPUPolicy, "allocate")
def a_core_too_many_is_put_together_from_broken_ones(
    rule: Any, self: StaticCPUPolicy, state: Any, pod: Any, container: Any
) -> Any:
    """With full-pcpus-only, breaks cores up if exactly one core is missing."""
    missing = pod.exclusive_cpus(container) - self.in_unbroken_cores(state, 0)
    if missing != self.assignment.cpus_per_core or not self.options.full_cores:
        return rule()
    loose = replace(self.assignment, options=replace(self.options, full_cores=False))
    return rule(self=replace(self, assignment=loose))


@seeds("CPU-OPT-FULLPCPUS-011").around(StaticCPUPolicy, "check_alignment")
def the_last_free_core_is_kept(rule: Any, self: Any, count: int, free: int) -> None:
    """With full-pcpus-only, rejects requests for exactly the free cores."""
    rule()
    if self.options.full_cores and count == free:
        raise SMTAlignmentError("not enough free physical CPUs")


# Memory


@seeds("MEM-STATIC-009", level="invariants")
def one_byte_too_many_is_pinned(changes: Changes) -> None:
    """Pins one byte more than is free on single nodes."""

    def wider(demand: Demand) -> Demand:
        needs = tuple(
            replace(need, free=tuple(Supply(one.nodes, one.amount + 1) for one in need.free))
            for need in demand.needs
        )
        return replace(demand, needs=needs)

    changes.after(MemoryState, "demand", wider)
    changes.around(
        memory_policies,
        "satisfies",
        lambda rule, amounts: rule(amounts={kind: size - 1 for kind, size in amounts.items()}),
    )


@seeds("MEM-STATIC-009").around(memory_policies.StaticMemoryPolicy, "allocate")
def the_last_byte_is_kept(rule: Any, self: Any, state: Any) -> Any:
    """Rejects a container that leaves no byte on a node."""
    after = rule()
    for node, memory in after.nodes.items():
        table = memory.tables["memory"]
        if not table.free and table.allocatable and state.nodes[node].tables["memory"].free:
            raise AllocationError("[memorymanager] not enough memory")
    return after


@seeds("MEM-STATIC-009").after(MemoryState, "demand")
def the_last_node_provides_no_memory(demand: Demand) -> Demand:
    """Leaves the machine's last NUMA node out, unless it is the only one."""
    nodes = sorted(demand.nodes)
    if len(nodes) == 1:
        return demand
    last = 1 << nodes[-1]
    needs = tuple(
        replace(need, free=tuple(one for one in need.free if one.nodes != last))
        for need in demand.needs
    )
    return replace(demand, needs=needs)


# Devices


@shape(device_policy, "allocate_resource")
def _device_edge(change: Change, rule: Any, state: DeviceState, request: DeviceRequest) -> Any:
    """Lets `change` replace the request, given how many devices too many it is for."""
    held = state.of(request.uid, request.container).get(request.resource)
    usable = state.available(request.resource) | state.reuse.of(request.uid, request.resource)
    if held is not None:
        return rule()
    return rule(request=change(request, request.amount - len(usable), state))


@seeds("DEV-ALLOCATE-003").by(_device_edge)
def a_device_too_many_is_left_out(request: Any, missing: int, state: Any) -> Any:
    """Allocates one device less if exactly one is missing, and another is there."""
    return request._replace(amount=request.amount - (missing == 1 and request.amount > 1))


@seeds("DEV-ERROR-001", level="admission").by(_device_edge)
def the_last_free_device_is_kept(request: Any, missing: int, state: Any) -> Any:
    """Rejects requests for exactly as many devices as are free."""
    return request._replace(amount=request.amount + (missing == 0 and request.amount > 0))


# The node


@shape(allocatable.Allocatable, "shortages")
def _allowing(more: dict[str, int], rule: Any, self: Any) -> Any:
    amounts = {name: size + more.get(name, 0) for name, size in self.amounts.items()}
    return rule(self=replace(self, amounts=amounts))


@seeds("NODE-ALLOC-003", level="invariants").of(_allowing, {"pods": 1})
def one_pod_too_many_is_admitted() -> None:
    """Admits one pod more than allowed."""


@seeds("NODE-ALLOC-001", level="invariants").of(_allowing, {"cpu": 1})
def a_thousandth_of_a_cpu_too_much_is_admitted() -> None:
    """Admits a thousandth of a CPU more than the node has."""


@seeds("NODE-ALLOC-002", level="invariants").of(_allowing, {"memory": 1})
def a_byte_too_much_is_admitted() -> None:
    """Admits a byte more than the node has."""


@seeds("NODE-ALLOC-002").of(_allowing, {"memory": -1})
def the_last_byte_of_the_node_is_kept() -> None:
    """Admits a byte less than the node has."""
