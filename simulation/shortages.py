"""Why a manager could not give a container what the Topology Manager let it ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu import hints as cpu_hints
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.devices import allocation
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.devices.state import Devices
from numaproof.reference.memory import hints as memory_hints
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.requests import AllocationError, at_once, part
from numaproof.simulation.amounts import amount, amounts, nodes_text
from numaproof.simulation.candidates import candidates, lacks, places
from numaproof.simulation.explanation import Allocation, Candidates
from numaproof.simulation.requests import exclusive_cpus

if TYPE_CHECKING:
    from numaproof.reference.cpu.policy import StaticPolicy
    from numaproof.reference.devices.state import DeviceState
    from numaproof.reference.manager import Manager
    from numaproof.reference.plan import Plan
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Family
    from numaproof.simulation.observation import Failed

_MOST_HOLDERS = 4
_NOT_AGAIN = "without what the pod's init containers had, too little is free"
_NAMES: dict[type[Manager[Any]], str] = {
    CPUManager: "CPU Manager",
    DeviceManager: "Device Manager",
    MemoryManager: "Memory Manager",
}


def explain(plan: Plan, pod: Pod, failed: Failed) -> tuple[Allocation, tuple[str, ...]]:
    """What was lacking, and what would help where that is certain."""
    manager = failed.manager
    if failed.error.reason == "EmptyPodSharedPoolError":
        return _allocation(failed, str(failed.error), Candidates()), ()
    if isinstance(manager, CPUManager) and plan.cpu:
        return _cpus(plan.cpu, manager, pod, failed)
    if isinstance(manager, MemoryManager):
        return _memory(manager, pod, failed)
    assert isinstance(manager, DeviceManager)
    return _devices(manager.state, pod, failed)


def name(manager: Manager[Any]) -> str:
    """The manager's name in the documents."""
    return _NAMES[type(manager)]


def memory_family(manager: MemoryManager, pod: Pod, sizes: dict[str, int]) -> Family:
    """Where memory of these sizes could be had, in the Memory Manager's own description."""
    return memory_hints.family(manager.state, manager.reuse, pod.uid, sizes)


def _cpus(
    policy: StaticPolicy, manager: CPUManager, pod: Pod, failed: Failed
) -> tuple[Allocation, tuple[str, ...]]:
    count = exclusive_cpus(pod, failed.container)
    reusable = manager.reuse.of(pod.uid)
    available = policy.available(manager.state)
    free = (available | reusable).bit_count()
    where = candidates(cpu_hints.generate(policy, available, reusable, count), ("cpu",))
    per_core = policy.cpus_per_core
    if failed.error.reason != "SMTAlignmentError":
        text = f"{amount('cpu', count)} asked for, {free} free. {_held(policy, manager, reusable)}"
        return _allocation(failed, text, where), (f"ask for at most {amount('cpu', free)}",) * (
            0 < free < count
        )
    rule = f"full-pcpus-only hands out whole cores, of {amount('cpu', per_core)} each"
    if count % per_core:
        below = count // per_core * per_core
        choice = " or ".join(str(one) for one in (below, below + per_core) if one)
        return _allocation(failed, f"{rule}: {count} is no multiple of {per_core}", Candidates()), (
            f"ask for {choice} CPUs",
        )
    broken = CPUSet.from_mask(policy.broken & ~policy.reserved)
    spoilt = f" CPUs on a core with a reserved one do not count: {broken}." if broken else ""
    whole = (available & ~policy.broken).bit_count()
    text = f"{rule}: {count} asked for, {whole} free.{spoilt} {_held(policy, manager, reusable)}"
    return _allocation(failed, text, Candidates()), ()


def _held(policy: StaticPolicy, manager: CPUManager, reusable: int) -> str:
    """Who has the CPUs that are not free, nor `reusable` for the pod."""
    held = [
        f"{uid}/{name} {CPUSet.from_mask(cpus & ~reusable)}"
        for uid, name, cpus in manager.state
        if cpus & ~reusable
    ]
    told = ", ".join(held[:_MOST_HOLDERS]) or "nobody has CPUs of its own"
    more = f" and {len(held) - _MOST_HOLDERS} more" if len(held) > _MOST_HOLDERS else ""
    reserved = CPUSet.from_mask(policy.reserved)
    return f"Of {policy.topology.cpus.bit_count()}, reserved: {reserved}; held: {told}{more}."


def _memory(manager: MemoryManager, pod: Pod, failed: Failed) -> tuple[Allocation, tuple[str, ...]]:
    try:
        sizes = part(pod, failed.container) if failed.container else at_once(pod)
    except AllocationError:
        text = "an amount is no whole number of bytes to the API machinery"
        return _allocation(failed, text, Candidates()), (
            "write it as a whole number, such as 1536Mi",
        )
    family = memory_family(manager, pod, sizes)
    where = candidates(family, tuple(sizes))
    numa = failed.affinity.numa
    if not family:
        lacking = places([one for one in where.told if one.mark == "impossible"])
        text = f"no set of nodes can give {amounts(sizes.items())}: {lacking}"
    elif numa is not None:
        why = ", ".join(lacks(family, tuple(sizes), numa.mask)) or _NOT_AGAIN
        text = f"the hints merged to {nodes_text(numa)}, which the Memory Manager can't use: {why}"
    else:
        text = f"{amounts(sizes.items())} can't be had where a preferred hint is kept"
    return _allocation(failed, text, where), ()


def _devices(state: DeviceState, pod: Pod, failed: Failed) -> tuple[Allocation, tuple[str, ...]]:
    short = []
    # Devices are never given to a pod as a whole.
    assert failed.container is not None
    for resource, count in allocation.requested(state, failed.container).items():
        text = devices_text(state, pod, resource, count)
        if text is not None:
            short.append(text)
    return _allocation(failed, "; ".join(short), Candidates()), ()


def devices_text(state: DeviceState, pod: Pod, resource: str, count: int) -> str | None:
    """What is there of a device resource; None where there is enough."""
    devices = state.lists.get(resource, Devices())
    free = len(state.available(resource) | state.reuse.of(pod.uid, resource))
    if free >= count:
        return None
    sick = len(devices.nodes) - len(devices.healthy)
    ill = f", {sick} of them unhealthy" if sick else ""
    return (
        f"{amount(resource, count)} asked for: {len(devices.nodes)} on this node{ill}, "
        f"{len(state.taken.get(resource, ()))} held by containers, {free} free"
    )


def _allocation(failed: Failed, text: str, where: Candidates) -> Allocation:
    container = failed.container.name if failed.container else None
    return Allocation(name(failed.manager), container, str(failed.error), text, where)
