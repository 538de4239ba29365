"""Explains a manager's hints, and why hints do not agree on a preferred set of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.topology.hints import Demand
from numaproof.reference.topology.policy import SINGLE_NUMA_NODE
from numaproof.reference.topology.search import evaluation
from numaproof.simulation import requests, shortages
from numaproof.simulation.amounts import amount, is_memory, nodes_text
from numaproof.simulation.candidates import candidates, places
from numaproof.simulation.explanation import ManagerHints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.sets import NUMASet
    from numaproof.reference.node import NodeSetup
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Hints as ResourceHints
    from numaproof.reference.topology.policy import TopologyPolicy
    from numaproof.simulation.explanation import Candidate
    from numaproof.simulation.observation import ObservedHints, ObservedMerge

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
            yield ManagerHints(shortages.name(hinted.manager), resource, text)
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
    name = shortages.name(manager)
    reason: str | None = "no devices are requested"
    if isinstance(manager, CPUManager):
        reason = requests.why_no_cpus(setup, pod, container)
    elif isinstance(manager, MemoryManager):
        reason = requests.why_no_memory(setup, pod, container)
        if reason is None:
            sizes = {kind: size for kind, size in asked.items() if is_memory(kind)}
            demand = shortages.memory_demand(manager, pod, sizes)
            text = "no set of nodes has enough, which it reports as no preference"
            return ManagerHints(name, None, text, candidates(demand, tuple(sizes)))
    return ManagerHints(name, None, f"no preference: {reason}")


def _resource(
    pod: Pod, hinted: ObservedHints, resource: str, hints: ResourceHints | None, count: int
) -> ManagerHints:
    manager = shortages.name(hinted.manager)
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
        short = shortages.devices_text(hinted.manager.state, pod, resource, count)
        if short is not None:
            return short
    return f"{amount(resource, count)} not available on any set of nodes"
