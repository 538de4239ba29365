"""Explains why an allocation failed although the Topology Manager admitted the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu import hints as cpu_hints
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.devices import policy
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.devices.state import Devices
from numaproof.reference.errors import AllocationError
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.requests import at_once, part
from numaproof.reference.topology.search import evaluation
from numaproof.simulation.amounts import amount, amounts, nodes_text
from numaproof.simulation.candidates import candidates, lacks, places
from numaproof.simulation.explanation import Allocation, Candidates
from numaproof.simulation.requests import exclusive_cpus

if TYPE_CHECKING:
    from numaproof.reference.cpu.policy import StaticCPUPolicy
    from numaproof.reference.devices.state import DeviceState
    from numaproof.reference.manager import Manager
    from numaproof.reference.node import NodeSetup
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Demand
    from numaproof.simulation.observation import Failed

_MOST_HOLDERS = 4
_NOT_AGAIN = "too little is free without what the pod's init containers used"
_NAMES: dict[type[Manager[Any]], str] = {
    CPUManager: "CPU Manager",
    DeviceManager: "Device Manager",
    MemoryManager: "Memory Manager",
}


def explain(setup: NodeSetup, pod: Pod, failed: Failed) -> tuple[Allocation, tuple[str, ...]]:
    """What was lacking, and what would certainly help, if anything."""
    manager = failed.manager
    if failed.error.reason == "EmptyPodSharedPoolError":
        return _allocation(failed, str(failed.error), Candidates()), ()
    if isinstance(manager, CPUManager) and setup.cpu:
        return _cpus(setup.cpu, manager, pod, failed)
    if isinstance(manager, MemoryManager):
        return _memory(manager, pod, failed)
    assert isinstance(manager, DeviceManager)
    return _devices(manager.state, pod, failed)


def name(manager: Manager[Any]) -> str:
    """The manager's name in the documentation."""
    # A release may have a deviation of its own in place of the rule.
    return next(name for rule, name in _NAMES.items() if isinstance(manager, rule))


def memory_demand(manager: MemoryManager, pod: Pod, sizes: dict[str, int]) -> Demand:
    """The sets of nodes with memory of these sizes, as the Memory Manager describes them."""
    return manager.state.demand(pod.uid, sizes)


def _cpus(
    policy: StaticCPUPolicy, manager: CPUManager, pod: Pod, failed: Failed
) -> tuple[Allocation, tuple[str, ...]]:
    count = exclusive_cpus(pod, failed.container)
    reusable = manager.state.reuse.of(pod.uid)
    available = policy.available(manager.state)
    free = (available | reusable).bit_count()
    where = candidates(cpu_hints.generate(policy, available, reusable, count), ("cpu",))
    per_core = policy.assignment.cpus_per_core
    if failed.error.reason != "SMTAlignmentError":
        text = f"{amount('cpu', count)} requested, {free} free. {_held(policy, manager, reusable)}"
        return _allocation(failed, text, where), (f"request at most {amount('cpu', free)}",) * (
            0 < free < count
        )
    rule = f"full-pcpus-only assigns whole cores of {amount('cpu', per_core)} each"
    if count % per_core:
        below = count // per_core * per_core
        choice = " or ".join(str(one) for one in (below, below + per_core) if one)
        text = f"{rule}: {count} is not a multiple of {per_core}"
        return _allocation(failed, text, Candidates()), (f"request {choice} CPUs",)
    broken = CPUSet.from_mask(policy.broken & ~policy.reserved)
    unusable = f" CPUs that share a core with a reserved CPU do not count: {broken}."
    whole = (available & ~policy.broken).bit_count()
    text = f"{rule}: {count} requested, {whole} free.{unusable if broken else ''} " + _held(
        policy, manager, reusable
    )
    return _allocation(failed, text, Candidates()), ()


def _held(policy: StaticCPUPolicy, manager: CPUManager, reusable: int) -> str:
    """Who holds the CPUs that are neither free nor `reusable` by the pod."""
    held = [
        f"{uid}/{name} {CPUSet.from_mask(cpus & ~reusable)}"
        for uid, name, cpus in manager.state
        if cpus & ~reusable
    ]
    holders = ", ".join(held[:_MOST_HOLDERS]) or "none"
    more = f" and {len(held) - _MOST_HOLDERS} more" if len(held) > _MOST_HOLDERS else ""
    reserved = CPUSet.from_mask(policy.reserved)
    total = amount("cpu", policy.topology.cpus.bit_count())
    return f"Of {total}, reserved: {reserved}; exclusive: {holders}{more}."


def _memory(manager: MemoryManager, pod: Pod, failed: Failed) -> tuple[Allocation, tuple[str, ...]]:
    try:
        sizes = part(pod, failed.container) if failed.container else at_once(pod)
    except AllocationError:
        text = "an amount is not a whole number of bytes to the API machinery"
        return _allocation(failed, text, Candidates()), ("use a whole number, such as 1536Mi",)
    demand = memory_demand(manager, pod, sizes)
    where = candidates(demand, tuple(sizes))
    numa = failed.affinity.numa
    if not evaluation.satisfiable(demand):
        lacking = places([one for one in where.told if one.mark == "impossible"])
        text = f"no set of nodes can provide {amounts(sizes.items())}: {lacking}"
    elif numa is not None:
        why = ", ".join(lacks(demand, tuple(sizes), numa.mask)) or _NOT_AGAIN
        text = f"the hints merge to {nodes_text(numa)}, which the Memory Manager cannot use: {why}"
    else:
        text = f"no preferred set of nodes can provide {amounts(sizes.items())}"
    return _allocation(failed, text, where), ()


def _devices(state: DeviceState, pod: Pod, failed: Failed) -> tuple[Allocation, tuple[str, ...]]:
    short = []
    # Devices are never allocated to a pod as a whole.
    assert failed.container is not None
    for resource, count in policy.requested(state, failed.container).items():
        text = devices_text(state, pod, resource, count)
        if text is not None:
            short.append(text)
    return _allocation(failed, "; ".join(short), Candidates()), ()


def devices_text(state: DeviceState, pod: Pod, resource: str, count: int) -> str | None:
    """How many devices of a resource there are and who holds them; None if enough are free."""
    devices = state.lists.get(resource, Devices())
    free = len(state.available(resource) | state.reuse.of(pod.uid, resource))
    if free >= count:
        return None
    sick = len(devices.nodes) - len(devices.healthy)
    unhealthy = f", {sick} of them unhealthy" if sick else ""
    return (
        f"{amount(resource, count)} requested: {len(devices.nodes)} on this node{unhealthy}, "
        f"{len(state.taken.get(resource, ()))} held by containers, {free} free"
    )


def _allocation(failed: Failed, text: str, where: Candidates) -> Allocation:
    container = failed.container.name if failed.container else None
    return Allocation(name(failed.manager), container, str(failed.error), text, where)
