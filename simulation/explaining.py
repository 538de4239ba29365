"""Explains an admission step by step from what the reference's managers answered."""

from __future__ import annotations

from dataclasses import replace
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
from numaproof.reference.topology.hints import Demand
from numaproof.reference.topology.policy import (
    BEST_EFFORT,
    RESTRICTED,
    SINGLE_NUMA_NODE,
    TopologyPolicy,
)
from numaproof.reference.topology.search import evaluation
from numaproof.simulation import requests
from numaproof.simulation.amounts import amount, amounts, is_memory, nodes_text
from numaproof.simulation.explanation import (
    Allocation,
    Candidates,
    Explanation,
    ManagerHints,
    Merge,
    RequestedResources,
    candidates,
    lacks,
    places,
)
from numaproof.simulation.observation import observe
from numaproof.simulation.requests import exclusive_cpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.sets import NUMASet
    from numaproof.reference.cpu.policy import StaticCPUPolicy
    from numaproof.reference.devices.state import DeviceState
    from numaproof.reference.manager import Manager
    from numaproof.reference.node import NodeSetup, StartedNode
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Hints as ResourceHints
    from numaproof.reference.topology.policy import TopologyPolicy
    from numaproof.simulation.explanation import Candidate, ExplanationStep
    from numaproof.simulation.observation import Failed, ObservedHints, ObservedMerge


_MOST_HOLDERS = 4
_NOT_AGAIN = "too little is free without what the pod's init containers used"
_NAMES: dict[type[Manager[Any]], str] = {
    CPUManager: "CPU Manager",
    DeviceManager: "Device Manager",
    MemoryManager: "Memory Manager",
}


def explain_shortage(
    setup: NodeSetup, pod: Pod, failed: Failed
) -> tuple[Allocation, tuple[str, ...]]:
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


def manager_name(manager: Manager[Any]) -> str:
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
    return Allocation(manager_name(failed.manager), container, str(failed.error), text, where)


_MOST_IN_SENTENCE = 3


def hint_steps(
    setup: NodeSetup, pod: Pod, hinted: ObservedHints, asked: dict[str, int]
) -> Iterator[ManagerHints]:
    """The manager's hints for each requested resource (`asked` has the amounts)."""
    if not hinted.resources:
        yield _without(setup, pod, hinted, asked)
    first = None
    for resource, hints in hinted.resources.items():
        if first and is_memory(resource):
            text = f"the hints for {first} cover this as well"
            yield ManagerHints(manager_name(hinted.manager), resource, text)
        else:
            yield _resource(pod, hinted, resource, hints, asked.get(resource, 0))
            first = resource


def why_not_preferred(
    policy: TopologyPolicy, pod: Pod, merged: ObservedMerge, asked: dict[str, int]
) -> str:
    """What kept the hints from agreeing on a preferred set of nodes."""
    wanted: dict[str, list[NUMASet]] = {}
    missing = []
    for hinted in merged.hints:
        previous = None
        for resource, hints in hinted.resources.items():
            if hints is None or (previous is hints and is_memory(resource)):
                continue
            previous = hints
            found, reason = _judged(policy, pod, hinted, resource, asked.get(resource, 0))
            if reason is not None:
                missing.append(reason)
            wanted[resource] = [one.numa for one in found if one.mark == "preferred"]
    return "; and ".join(missing) or f"no nodes are preferred by all: {_wishes(wanted)}"


def _wishes(wanted: dict[str, list[NUMASet]]) -> str:
    """The nodes that each resource prefers: just their number, if those differ."""
    counts = {resource: len(sets[0]) for resource, sets in wanted.items()}
    if len(set(counts.values())) > 1:
        return ", ".join(
            f"{resource} on {count} node{'' if count == 1 else 's'}"
            for resource, count in counts.items()
        )
    return ", ".join(
        f"{resource} on {' or '.join(map(nodes_text, sets[:_MOST_IN_SENTENCE]))}"
        + (" or others" if len(sets) > _MOST_IN_SENTENCE else "")
        for resource, sets in wanted.items()
    )


def _judged(
    policy: TopologyPolicy, pod: Pod, hinted: ObservedHints, resource: str, count: int
) -> tuple[tuple[Candidate, ...], str | None]:
    """The candidates for a resource, and why none is acceptable; None if one is."""
    hints = hinted.resources[resource]
    if not isinstance(hints, Demand):
        return (), _nowhere(pod, hinted, resource, count)
    wish = amount(resource, count)
    best = evaluation.narrowest(hints)
    found = candidates(hints, _needed(hinted, resource)).told
    if best is None or not best.preferred:
        lacking = [one for one in found if one.mark == "impossible"]
        kind = "node" if all(len(one.numa) == 1 for one in lacking) else "set of nodes"
        return found, f"no {kind} can provide {wish}: {places(lacking)}"
    nodes = best.nodes.bit_count()
    if policy.name == SINGLE_NUMA_NODE and nodes > 1:
        return found, (
            f"even an empty machine needs {nodes} nodes for {wish}, and {policy.name} admits one"
        )
    return found, None


def _without(
    setup: NodeSetup, pod: Pod, hinted: ObservedHints, asked: dict[str, int]
) -> ManagerHints:
    """Why a manager has no preference for any resource."""
    manager, container = hinted.manager, hinted.container
    name = manager_name(manager)
    reason: str | None = "no devices are requested"
    if isinstance(manager, CPUManager):
        reason = requests.why_no_cpus(setup, pod, container)
    elif isinstance(manager, MemoryManager):
        reason = requests.why_no_memory(setup, pod, container)
        if reason is None:
            sizes = {kind: size for kind, size in asked.items() if is_memory(kind)}
            demand = memory_demand(manager, pod, sizes)
            text = "no set of nodes has enough, which it reports as no preference"
            return ManagerHints(name, None, text, candidates(demand, tuple(sizes)))
    return ManagerHints(name, None, f"no preference: {reason}")


def _resource(
    pod: Pod, hinted: ObservedHints, resource: str, hints: ResourceHints | None, count: int
) -> ManagerHints:
    manager = manager_name(hinted.manager)
    if hints is None:
        return ManagerHints(manager, resource, "no preference: its plugin reports no NUMA nodes")
    if not isinstance(hints, Demand):
        return ManagerHints(manager, resource, _nowhere(pod, hinted, resource, count))
    where = "available" if evaluation.satisfiable(hints) else "not available on any set of nodes"
    found = candidates(hints, _needed(hinted, resource))
    return ManagerHints(manager, resource, f"{amount(resource, count)} {where}", found)


def _needed(hinted: ObservedHints, resource: str) -> tuple[str, ...]:
    """The resource of each need of a resource's hints: all types of memory share their hints."""
    return tuple(hinted.resources) if is_memory(resource) else (resource,)


def _nowhere(pod: Pod, hinted: ObservedHints, resource: str, count: int) -> str:
    if isinstance(hinted.manager, DeviceManager):
        short = devices_text(hinted.manager.state, pod, resource, count)
        if short is not None:
            return short
    return f"{amount(resource, count)} not available on any set of nodes"


_WEAKER = {SINGLE_NUMA_NODE: (RESTRICTED, BEST_EFFORT), RESTRICTED: (BEST_EFFORT,)}
"""Policies that admit everything that another one admits, and more."""


def explain(node: StartedNode, pod: Pod) -> Explanation:
    """Why the node would admit or refuse the pod now; the node does not change."""
    setup = node.setup
    policy = setup.topology_policy
    observed = observe(node, pod, policy)
    steps: list[ExplanationStep] = []
    if policy is not None:
        for merged in observed.merges:
            # A refusal is about the last container, so only that one needs the details.
            in_full = observed.admitted or merged is observed.merges[-1]
            steps += _merge_steps(setup, policy, pod, merged, in_full=in_full)
    if observed.failed is not None:
        failed = observed.failed
        if policy is None:
            steps.append(_request(setup, node.device_manager.state, pod, failed.container))
        return _with_failure(setup, pod, tuple(steps), failed)
    refused = next((one for one in observed.merges if not one.admitted), None)
    if policy is None or refused is None:
        return Explanation("every manager can satisfy the request", tuple(steps))
    why = why_not_preferred(policy, pod, refused, _asks(setup, pod, refused))
    summary = f"{_who(refused.container)}: {why}"
    return Explanation(summary, tuple(steps), tuple(_advice(node, policy, pod)))


def _with_failure(
    setup: NodeSetup, pod: Pod, steps: tuple[ExplanationStep, ...], failed: Failed
) -> Explanation:
    allocation, advice = explain_shortage(setup, pod, failed)
    summary = f"{_who(failed.container)}: {allocation.text}"
    return Explanation(summary, (*steps, allocation), advice)


def _merge_steps(
    setup: NodeSetup, policy: TopologyPolicy, pod: Pod, merged: ObservedMerge, *, in_full: bool
) -> Iterator[ExplanationStep]:
    asked = _asks(setup, pod, merged)
    name = merged.container.name if merged.container else None
    yield RequestedResources(name, asked, _asks_text(pod, merged.container, asked))
    if in_full:
        for one in merged.hints:
            yield from hint_steps(setup, pod, one, asked)
    numa, preferred = merged.affinity.numa, merged.affinity.preferred
    best = "no affinity" if numa is None else nodes_text(numa)
    text = f"the hints merge to {best}, {'' if preferred else 'not '}preferred; "
    verdict = "admits this" if merged.admitted else "admits only preferred hints"
    text += f"{policy.name} {verdict}"
    yield Merge(policy.name, numa, preferred, merged.admitted, text)


def _asks(setup: NodeSetup, pod: Pod, merged: ObservedMerge) -> dict[str, int]:
    devices = next(one.manager for one in merged.hints if isinstance(one.manager, DeviceManager))
    return requests.asks(setup, devices.state, pod, merged.container)


def _request(
    setup: NodeSetup, devices: DeviceState, pod: Pod, container: PodContainer | None
) -> RequestedResources:
    asked = requests.asks(setup, devices, pod, container)
    name = container.name if container else None
    return RequestedResources(name, asked, _asks_text(pod, container, asked))


def _asks_text(pod: Pod, container: PodContainer | None, asked: dict[str, int]) -> str:
    what = amounts(asked.items()) or "nothing that needs aligning"
    return f"{_who(container)} asks for {what} ({pod.qos})"


def _who(container: PodContainer | None) -> str:
    return "the pod as a whole" if container is None else f"container {container.name}"


def _advice(node: StartedNode, policy: TopologyPolicy, pod: Pod) -> Iterator[str]:
    for name in _WEAKER.get(policy.name, ()):
        weaker = replace(policy, name=name, rules=replace(policy.rules, single=False))
        if observe(node, pod, weaker).admitted:
            yield f"with topologyManagerPolicy: {name} the pod would be admitted"
            return
