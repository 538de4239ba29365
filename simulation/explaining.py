"""Explains an admission step by step from the answers of the reference's managers."""

from __future__ import annotations

import copy
import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from itertools import groupby
from math import comb
from operator import or_
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from numaproof.inputs.plurals import plural
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.capacity.allocatable import PODS, in_units
from numaproof.reference.cpu import hints as cpu_hints
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.devices import policy
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.devices.state import Devices, DeviceState
from numaproof.reference.errors import AdmissionError, AllocationError
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.requests import container_amounts, peak
from numaproof.reference.pods import containers, quantity
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import Demand, Resources, TopologyHint
from numaproof.reference.topology.hints import Hints as ResourceHints
from numaproof.reference.topology.policy import (
    BEST_EFFORT,
    RESTRICTED,
    SINGLE_NUMA_NODE,
    TopologyPolicy,
)
from numaproof.reference.topology.search import evaluation
from numaproof.reference.topology.search.enumeration import among, interchangeable
from numaproof.reference.topology.search.symmetry import NodeClasses
from numaproof.simulation import requests
from numaproof.simulation.causes import Cause
from numaproof.simulation.requests import amount, amounts, free_of, is_memory, mask_text, nodes_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from fractions import Fraction

    from numaproof.reference.capacity.allocatable import Shortage
    from numaproof.reference.cpu.policy import StaticCPUPolicy
    from numaproof.reference.manager import Manager
    from numaproof.reference.node import NodeSetup, StartedNode
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.simulation.causes import CauseKind


Preference = Literal["preferred", "possible", "impossible"]
"""Whether a set of NUMA nodes is a preferred hint, another hint, or no hint for a request."""


class Candidate(msgspec.Struct, frozen=True):
    """A set of NUMA nodes for a request; `text` describes what is available there.

    `alike` is the number of other sets that differ only in node ids.
    """

    numa: NUMASet
    mark: Preference
    text: str
    alike: int = 0


class Candidates(msgspec.Struct, frozen=True):
    """The sets to show (`sets`), and the number of sets left out (`more`)."""

    sets: tuple[Candidate, ...] = ()
    more: int = 0


class RequestedResources(msgspec.Struct, frozen=True, tag_field="step", tag="request"):
    """The aligned resources requested by a container, or by the pod if `container` is None."""

    container: str | None
    asks: dict[str, int]
    text: str


class ManagerHints(msgspec.Struct, frozen=True, tag_field="step", tag="hints"):
    """A manager's hints for a resource; `resource` is None if the manager has no preference."""

    manager: str
    resource: str | None
    text: str
    candidates: Candidates = Candidates()


class Merge(msgspec.Struct, frozen=True, tag_field="step", tag="merge"):
    """The merged hint; `numa` is None if there is no affinity."""

    policy: str
    numa: NUMASet | None
    preferred: bool
    admitted: bool
    text: str


class Allocation(msgspec.Struct, frozen=True, tag_field="step", tag="allocation"):
    """A failed allocation; `message` is the kubelet's own.

    `container` is None for the whole pod.
    """

    manager: str
    container: str | None
    message: str
    text: str
    candidates: Candidates = Candidates()


class Scheduling(msgspec.Struct, frozen=True, tag_field="step", tag="scheduling"):
    """Why the scheduler would not place the pod on this node."""

    text: str


class Room(msgspec.Struct, frozen=True, tag_field="step", tag="room"):
    """A resource of which the node has too little left for the pod.

    Amounts are thousandths of CPUs, bytes, or pods; `others` is what all other pods request.
    """

    resource: str
    request: int
    others: int
    allocatable: int
    text: str


ExplanationStep = RequestedResources | ManagerHints | Merge | Allocation | Scheduling | Room


class Explanation(msgspec.Struct, frozen=True):
    """Why a pod was refused or admitted: in one sentence, and step by step.

    `advice` lists changes that would certainly help. `cause` is None for an admitted pod.
    """

    summary: str
    steps: tuple[ExplanationStep, ...]
    advice: tuple[str, ...] = ()
    cause: Cause | None = None


MAX_SHOWN = 8
MAX_OTHERS = 2
_MAX_IN_SENTENCE = 3
_MAX_SINGLE = 8
"""On machines with more nodes, sets that differ only in node ids are shown once."""


def candidates(demand: Demand, resources: tuple[str, ...]) -> Candidates:
    """Selects the sets to show: those preferred on an empty machine, then the other hints.

    `resources` names the resource for each of the demand's needs.
    """
    classes = _classes(demand)
    now = {hint.nodes: hint for hint in _among(demand, classes)}
    empty = [hint.nodes for hint in _among(_on_idle_machine(demand), classes) if hint.preferred]
    wanted = [now.get(nodes) or nodes for nodes in empty]
    wanted += [group for group in _groups_in_use(demand) if group not in now and group not in empty]
    others = [hint for nodes, hint in now.items() if nodes not in empty]
    if not (wanted or others):
        wanted = [reduce(or_, (1 << node for node in demand.nodes), 0)]
    # If space is limited, prefer sets that suffice, then those with the smallest shortage.
    best = sorted(
        wanted,
        key=lambda hint_or_nodes: (
            not isinstance(hint_or_nodes, TopologyHint),
            _shortage(demand, hint_or_nodes),
        ),
    )
    shown = [one for one in wanted if one in best[:MAX_SHOWN]] + others[:MAX_OTHERS]
    return Candidates(
        tuple(_candidate(demand, resources, classes, one) for one in shown),
        len(wanted) + len(others) - len(shown),
    )


def describe_shortages(lacking: Sequence[Candidate]) -> str:
    """Describes what each set lacks, grouping single nodes with equal shortages."""
    shown = []
    if all(len(one.numa) == 1 and not one.alike for one in lacking):
        nodes: dict[str, list[int]] = {}
        for one in lacking:
            nodes.setdefault(one.text, []).extend(one.numa)
        shown = [f"{nodes_text(NUMASet(members))}: {text}" for text, members in nodes.items()]
    else:
        shown = [f"{nodes_text(one.numa)}{alike_suffix(one)}: {one.text}" for one in lacking]
    others = ["and others"] if len(shown) > _MAX_IN_SENTENCE else []
    return "; ".join(shown[:_MAX_IN_SENTENCE] + others)


def alike_suffix(candidate: Candidate) -> str:
    """Returns a suffix for the set's name that counts the other sets like it."""
    return f" (and {candidate.alike} like it)" if candidate.alike else ""


def shortage_reasons(demand: Demand, resources: tuple[str, ...], nodes: int) -> Iterator[str]:
    """Yields the reasons why a set of nodes is not a hint; none if it is one."""
    for need, resource in zip(demand.needs, resources, strict=True):
        if need.free_on(nodes) < need.amount:
            total = need.total_on(nodes)
            text = free_of(resource, need.free_on(nodes), need.amount)
            # The total shows when even an idle machine could not satisfy the request.
            yield text if total >= need.amount else f"{text} ({amount(resource, total)} in total)"
    for node, group in demand.cells:
        if nodes >> node & 1 and nodes != group:
            alone = group == 1 << node
            yield f"node {node} is in use " + (
                "on its own" if alone else f"as part of the group of {mask_text(group)}"
            )
    for group in demand.touching:
        if not nodes & group:
            yield f"an init container of the pod used {mask_text(group)}, which must be reused"


def _candidate(
    demand: Demand,
    resources: tuple[str, ...],
    classes: NodeClasses,
    hint_or_nodes: TopologyHint | int,
) -> Candidate:
    nodes = hint_or_nodes.nodes if isinstance(hint_or_nodes, TopologyHint) else hint_or_nodes
    alike = _alike(classes, nodes)
    numa = NUMASet.from_mask(nodes)
    if not isinstance(hint_or_nodes, TopologyHint):
        return Candidate(
            numa, "impossible", ", ".join(shortage_reasons(demand, resources, nodes)), alike
        )
    have = ", ".join(
        free_of(resource, need.free_on(nodes), need.amount)
        for need, resource in zip(demand.needs, resources, strict=True)
    )
    if hint_or_nodes.preferred:
        return Candidate(numa, "preferred", have, alike)
    fewer = "sockets" if demand.sockets else "nodes"
    return Candidate(numa, "possible", f"{have}; an empty machine would need fewer {fewer}", alike)


def _on_idle_machine(demand: Demand) -> Demand:
    needs = tuple(replace(need, free=need.total, reusable=()) for need in demand.needs)
    return replace(demand, needs=needs, touching=(), cells=())


def _groups_in_use(demand: Demand) -> list[int]:
    return sorted({group for _, group in demand.cells if group.bit_count() > 1})


def _classes(demand: Demand) -> NodeClasses:
    if len(demand.nodes) <= _MAX_SINGLE:
        return NodeClasses.all_distinct(demand.nodes)
    return interchangeable(demand)


def _among(demand: Demand, classes: NodeClasses) -> list[TopologyHint]:
    return sorted(among(demand, classes), key=lambda hint: _order(hint.nodes))


@lru_cache(maxsize=1 << 12)
def _order(nodes: int) -> tuple[int, tuple[int, ...]]:
    return nodes.bit_count(), tuple(NUMASet.from_mask(nodes))


def _alike(classes: NodeClasses, nodes: int) -> int:
    """Counts the other sets that have the same number of nodes from each class."""
    sets = 1
    for members in classes.classes:
        inside = sum(nodes >> node & 1 for node in members)
        sets *= comb(len(members), inside)
    return sets - 1


def _shortage(demand: Demand, hint_or_nodes: TopologyHint | int) -> float:
    """Returns how much of the request a set of nodes lacks, as a sum of fractions."""
    nodes = hint_or_nodes.nodes if isinstance(hint_or_nodes, TopologyHint) else hint_or_nodes
    return sum(
        max(0, need.amount - need.free_on(nodes)) / need.amount
        for need in demand.needs
        if need.amount
    )


@dataclass(frozen=True, slots=True)
class ObservedHints:
    """A manager's hints, and a copy of the manager from that moment.

    `container` is None for the whole pod.
    """

    container: PodContainer | None
    manager: Manager[Any]
    resources: Resources


@dataclass(frozen=True, slots=True)
class ObservedMerge:
    """The hints for a container or the whole pod, the merged hint, and whether it is admitted."""

    container: PodContainer | None
    hints: tuple[ObservedHints, ...]
    affinity: TopologyHint
    admitted: bool


@dataclass(frozen=True, slots=True)
class FailedAllocation:
    """A failed allocation, and a copy of the manager before it.

    `container` is None for the whole pod.
    """

    container: PodContainer | None
    manager: Manager[Any]
    affinity: TopologyHint
    error: AdmissionError


@dataclass(frozen=True, slots=True)
class ObservedAdmission:
    """All steps of an admission, in order; `failure` is None if nothing failed."""

    pod: Pod
    merges: tuple[ObservedMerge, ...]
    failure: FailedAllocation | None

    @property
    def admitted(self) -> bool:
        """Whether the pod was admitted."""
        return self.failure is None and all(one.admitted for one in self.merges)


class _ObservedManager:
    """A manager that records its hints and its failed allocation."""

    def __init__(self, manager: Manager[Any], observed_hints: list[ObservedHints]) -> None:
        self._manager = manager
        self._observed_hints = observed_hints
        self.failure: FailedAllocation | None = None

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        found = self._manager.hints(pod, container)
        self._observed_hints.append(ObservedHints(container, copy.copy(self._manager), found))
        return found

    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        self._try(container, affinity, lambda: self._manager.allocate(pod, container, affinity))

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        self._try(None, affinity, lambda: self._manager.allocate_pod(pod, affinity))

    def _try(
        self, container: PodContainer | None, affinity: TopologyHint, allocate: Callable[[], None]
    ) -> None:
        before = copy.copy(self._manager)
        try:
            allocate()
        except AdmissionError as error:
            self.failure = FailedAllocation(container, before, affinity, error)
            raise


def snapshot(node: StartedNode) -> StartedNode:
    """Returns a copy of the node; admissions to one of the two do not affect the other."""
    twin = copy.copy(node)
    twin.pods, twin.admitted = dict(node.pods), set(node.admitted)
    twin.affinity, twin.awaited_pods = dict(node.affinity), set(node.awaited_pods)
    twin.counts = node.counts.copy()
    twin.device_manager = copy.copy(node.device_manager)
    twin.cpus = copy.copy(node.cpus)
    twin.memory = copy.copy(node.memory)
    return twin


def observe(node: StartedNode, pod: Pod, policy: TopologyPolicy | None) -> ObservedAdmission:
    """Simulates an admission without changing the node.

    The managers' states are immutable, so admission can run on shallow copies of the managers.

    `policy` is the Topology Manager's policy: the node's own, or another one to try.
    """
    hinted: list[ObservedHints] = []
    managers = snapshot(node).providers
    for manager in managers:
        manager.remove_stale_state({**node.pods, pod.uid: pod}, "reconcile")
    watches = [_ObservedManager(manager, hinted) for manager in managers]
    with suppress(AdmissionError):
        scope.admit(policy, node.setup.scope, watches, pod, lambda *_: None)
    failed = next((one.failure for one in watches if one.failure), None)
    return ObservedAdmission(pod, tuple(_merges(policy, hinted)), failed)


def _merges(
    policy: TopologyPolicy | None, observed_hints: list[ObservedHints]
) -> Iterator[ObservedMerge]:
    for container, group in groupby(observed_hints, key=lambda hints: hints.container):
        asked = tuple(group)
        if policy is not None:
            affinity, admitted = policy.merge([one.resources for one in asked])
            yield ObservedMerge(container, asked, affinity, admitted)


_MAX_HOLDERS = 4
_NOT_AGAIN = "too little is free in addition to what the pod's init containers used"
_NAMES: dict[type[Manager[Any]], str] = {
    CPUManager: "CPU Manager",
    DeviceManager: "Device Manager",
    MemoryManager: "Memory Manager",
}


def explain_shortage(
    node: StartedNode, pod: Pod, failure: FailedAllocation, names: Mapping[str, str]
) -> tuple[Allocation, tuple[str, ...]]:
    """Returns the shortage, and advice that would certainly help, if any.

    `names` are the names of pods by uid, where they differ.
    """
    manager = failure.manager
    if failure.error.reason == "EmptyPodSharedPoolError":
        return _allocation(failure, str(failure.error), Candidates()), ()
    if isinstance(manager, CPUManager) and node.setup.cpu:
        return _cpus(node, node.setup.cpu, pod, failure, names)
    if isinstance(manager, MemoryManager):
        return _memory(manager, pod, failure)
    assert isinstance(manager, DeviceManager)
    return _devices(manager.state, pod, failure)


def manager_name(manager: Manager[Any]) -> str:
    """Returns the manager's name in the documentation."""
    # A release may use a subclass with deviations.
    return next(name for rule, name in _NAMES.items() if isinstance(manager, rule))


def _cpus(
    node: StartedNode,
    policy: StaticCPUPolicy,
    pod: Pod,
    failure: FailedAllocation,
    names: Mapping[str, str],
) -> tuple[Allocation, tuple[str, ...]]:
    manager = failure.manager
    assert isinstance(manager, CPUManager)
    count = requests.exclusive_cpus(pod, failure.container)
    reusable = manager.state.reuse.of(pod.uid)
    available = policy.available(manager.state)
    free = (available | reusable).bit_count()
    where = candidates(cpu_hints.generate(policy, available, reusable, count), ("cpu",))
    per_core = policy.assignment.cpus_per_core
    if failure.error.reason != "SMTAlignmentError":
        holders = _describe_holders(policy, manager, reusable, names)
        text = f"{amount('cpu', count)} requested, {free} free. {holders}"
        return _allocation(failure, text, where), tuple(
            _fewer_cpus(node, pod, failure.container, min(free, count - 1))
        )
    rule = f"full-pcpus-only assigns whole cores of {amount('cpu', per_core)} each"
    if count % per_core:
        text = f"{rule}: {count} is not a multiple of {per_core}"
        return _allocation(failure, text, Candidates()), tuple(
            _whole_cores(node, pod, failure.container, per_core)
        )
    broken = CPUSet.from_mask(policy.broken_cores & ~policy.reserved)
    unusable = f" CPUs that share a core with a reserved CPU do not count: {broken}."
    whole = (available & ~policy.broken_cores).bit_count()
    text = (
        f"{rule}: {count} requested, {whole} free.{unusable if broken else ''} "
        + _describe_holders(policy, manager, reusable, names)
    )
    return _allocation(failure, text, Candidates()), ()


def _fewer_cpus(
    node: StartedNode, pod: Pod, container: PodContainer | None, most: int
) -> Iterator[str]:
    """Advises on the largest number of CPUs, up to `most`, with which the node admits the pod."""
    name = container.name if container else None
    # A pod's budget is never below what its containers request.
    least = 1 if container else math.ceil(containers.peak(pod.containers, _requested_cpus))
    for count in range(most, max(1, least) - 1, -1):
        smaller = _with_cpus(pod, {name: count})
        if not node.shortages(smaller):
            if _admits(node, smaller, node.setup.topology_policy):
                yield f"request at most {amount('cpu', count)}"
            return


def _requested_cpus(container: PodContainer) -> Fraction:
    return quantity.parse(container.requests.get(requests.CPU, 0))


def _with_cpus(pod: Pod, counts: Mapping[str | None, int]) -> Pod:
    """Returns a pod with other numbers of CPUs, by container; None is the pod as a whole."""

    def with_cpus(amounts: Mapping[str, Any], name: str | None) -> dict[str, Any]:
        return {**amounts, requests.CPU: counts[name]}

    if None in counts:
        pod = replace(
            pod,
            budget=with_cpus(pod.budget or {}, None),
            requests=with_cpus(pod.requests, None),
            limits=with_cpus(pod.limits, None),
        )
    resized = (
        replace(
            one, requests=with_cpus(one.requests, one.name), limits=with_cpus(one.limits, one.name)
        )
        if one.name in counts
        else one
        for one in pod.containers
    )
    return replace(pod, containers=tuple(resized))


def _whole_cores(
    node: StartedNode, pod: Pod, container: PodContainer | None, per_core: int
) -> Iterator[str]:
    """Advises on the requests of all containers whose CPUs don't fill cores."""
    counts: dict[str | None, int] = {one.name: pod.exclusive_cpus(one) for one in pod.containers}
    if container is None:
        counts = {None: requests.exclusive_cpus(pod, None)}
    odd = {name: count for name, count in counts.items() if count % per_core}
    fewer = {name: count // per_core * per_core or per_core for name, count in odd.items()}
    more = {name: count // per_core * per_core + per_core for name, count in odd.items()}
    fitting = [
        one
        for one in (fewer, more)
        if _admits(node, _with_cpus(pod, one), node.setup.topology_policy)
    ]
    if not fitting:
        return

    def choice(name: str | None) -> str:
        *first, last = sorted({one[name] for one in fitting})
        return " or ".join((*map(str, first), plural(last, "CPU")))

    if len(odd) == 1:
        yield f"request {choice(*odd)}"
    else:
        yield "request " + " and ".join(f"{choice(name)} for container {name}" for name in odd)


def _describe_holders(
    policy: StaticCPUPolicy, manager: CPUManager, reusable: int, names: Mapping[str, str]
) -> str:
    """Describes who holds the CPUs that are neither free nor `reusable` by the pod."""
    held = [
        f"{names.get(uid, uid)}/{name} {CPUSet.from_mask(cpus & ~reusable)}"
        for uid, name, cpus in manager.state
        if cpus & ~reusable
    ]
    holders = ", ".join(held[:_MAX_HOLDERS]) or "none"
    more = f" and {len(held) - _MAX_HOLDERS} more" if len(held) > _MAX_HOLDERS else ""
    reserved = CPUSet.from_mask(policy.reserved)
    total = amount("cpu", policy.topology.cpus.bit_count())
    return f"Of {total}, reserved: {reserved}; exclusive: {holders}{more}."


def _memory(
    manager: MemoryManager, pod: Pod, failure: FailedAllocation
) -> tuple[Allocation, tuple[str, ...]]:
    try:
        sizes = container_amounts(pod, failure.container) if failure.container else peak(pod)
    except AllocationError:
        text, advice = requests.inexact_memory(pod, failure.container)
        return _allocation(failure, text, Candidates()), advice
    demand = manager.state.demand(pod.uid, sizes)
    where = candidates(demand, tuple(sizes))
    numa = failure.affinity.numa
    if not evaluation.satisfiable(demand):
        lacking = describe_shortages([one for one in where.sets if one.mark == "impossible"])
        text = f"no set of nodes can provide {amounts(sizes.items())}: {lacking}"
    elif numa is not None:
        why = ", ".join(shortage_reasons(demand, tuple(sizes), numa.mask)) or _NOT_AGAIN
        text = f"the hints merge to {nodes_text(numa)}, which the Memory Manager cannot use: {why}"
    else:
        text = f"no preferred set of nodes can provide {amounts(sizes.items())}"
    return _allocation(failure, text, where), ()


def _devices(
    state: DeviceState, pod: Pod, failure: FailedAllocation
) -> tuple[Allocation, tuple[str, ...]]:
    short = []
    # Devices are never allocated to a whole pod.
    assert failure.container is not None
    for resource, count in policy.requested_devices(state, failure.container).items():
        text = devices_text(state, pod, resource, count)
        if text is not None:
            short.append(text)
    return _allocation(failure, "; ".join(short), Candidates()), ()


def devices_text(state: DeviceState, pod: Pod, resource: str, count: int) -> str | None:
    """Describes the devices of a resource and how many are in use; None if enough are free."""
    devices = state.lists.get(resource, Devices())
    free = len(state.available(resource) | state.reuse.of(pod.uid, resource))
    if free >= count:
        return None
    sick = len(devices.nodes) - len(devices.healthy)
    unhealthy = f", {sick} of them unhealthy" if sick else ""
    return (
        f"{amount(resource, count)} requested: {len(devices.nodes)} on this node{unhealthy}, "
        f"{len(state.allocated_devices.get(resource, ()))} held by containers, {free} free"
    )


def _allocation(failure: FailedAllocation, text: str, where: Candidates) -> Allocation:
    container = failure.container.name if failure.container else None
    return Allocation(manager_name(failure.manager), container, str(failure.error), text, where)


def hint_steps(
    setup: NodeSetup, pod: Pod, observed_hints: ObservedHints, requested_amounts: dict[str, int]
) -> Iterator[ManagerHints]:
    """Yields the manager's hints for each requested resource."""
    if not observed_hints.resources:
        yield _explain_no_preference(setup, pod, observed_hints, requested_amounts)
    first = None
    for resource, hints in observed_hints.resources.items():
        if first and is_memory(resource):
            text = f"the hints for {first} also cover this"
            yield ManagerHints(manager_name(observed_hints.manager), resource, text)
        else:
            yield _resource(
                pod, observed_hints, resource, hints, requested_amounts.get(resource, 0)
            )
            first = resource


def why_not_preferred(
    policy: TopologyPolicy, pod: Pod, merge: ObservedMerge, requested_amounts: dict[str, int]
) -> str:
    """Explains why the hints do not agree on a preferred set of nodes."""
    wanted: dict[str, list[NUMASet]] = {}
    missing = []
    for hinted, resource in _hinted_resources(merge):
        found, reason = _judge_candidates(
            policy, pod, hinted, resource, requested_amounts.get(resource, 0)
        )
        if reason is not None:
            missing.append(reason)
        wanted[resource] = [one.numa for one in found if one.mark == "preferred"]
    return (
        "; and ".join(missing)
        or f"no set of nodes is preferred for every resource: {_describe_preferences(wanted)}"
    )


def _hinted_resources(merge: ObservedMerge) -> Iterator[tuple[ObservedHints, str]]:
    """Yields the resources with hints of their own; all types of memory share theirs."""
    for hinted in merge.hints:
        previous = None
        for resource, hints in hinted.resources.items():
            if hints is None or (previous is hints and is_memory(resource)):
                continue
            previous = hints
            yield hinted, resource


def _merge_cause(policy: TopologyPolicy, merge: ObservedMerge) -> Cause:
    """Returns why the hints do not agree on a preferred set of nodes."""
    lacking: dict[str, CauseKind] = {}
    resources = []
    for hinted, resource in _hinted_resources(merge):
        resources.append(resource)
        hints = hinted.resources[resource]
        best = evaluation.narrowest(hints) if isinstance(hints, Demand) else None
        if best is None or not best.preferred:
            lacking[resource] = "preferred nodes"
        elif policy.name == SINGLE_NUMA_NODE and best.nodes.bit_count() > 1:
            lacking[resource] = "one node"
    if not lacking:
        return Cause("common nodes", tuple(resources))
    kind: CauseKind = "one node" if "one node" in lacking.values() else "preferred nodes"
    return Cause(kind, tuple(name for name, why in lacking.items() if why == kind))


def _describe_preferences(preferred_sets: dict[str, list[NUMASet]]) -> str:
    """Describes the nodes that each resource prefers; only counts them if the counts differ."""
    counts = {resource: len(sets[0]) for resource, sets in preferred_sets.items()}
    if len(set(counts.values())) > 1:
        return ", ".join(f"{one} on {plural(count, 'node')}" for one, count in counts.items())
    return ", ".join(
        f"{resource} on {' or '.join(map(nodes_text, sets[:_MAX_IN_SENTENCE]))}"
        + (" or others" if len(sets) > _MAX_IN_SENTENCE else "")
        for resource, sets in preferred_sets.items()
    )


def _judge_candidates(
    policy: TopologyPolicy, pod: Pod, observed_hints: ObservedHints, resource: str, count: int
) -> tuple[tuple[Candidate, ...], str | None]:
    """Returns the candidates for a resource, and why none is acceptable (None if one is)."""
    hints = observed_hints.resources[resource]
    if not isinstance(hints, Demand):
        return (), _nowhere(pod, observed_hints, resource, count)
    wish = amount(resource, count)
    best = evaluation.narrowest(hints)
    found = candidates(hints, _need_resources(observed_hints, resource)).sets
    if best is None or not best.preferred:
        lacking = [one for one in found if one.mark == "impossible"]
        kind = "node" if all(len(one.numa) == 1 for one in lacking) else "set of nodes"
        return found, f"no {kind} can provide {wish}: {describe_shortages(lacking)}"
    nodes = best.nodes.bit_count()
    if policy.name == SINGLE_NUMA_NODE and nodes > 1:
        return found, (
            f"even an empty machine needs {nodes} nodes for {wish}, but {policy.name} allows one"
        )
    return found, None


def _explain_no_preference(
    setup: NodeSetup, pod: Pod, observed_hints: ObservedHints, requested_amounts: dict[str, int]
) -> ManagerHints:
    manager, container = observed_hints.manager, observed_hints.container
    name = manager_name(manager)
    reason: str | None = "no devices are requested"
    if isinstance(manager, CPUManager):
        reason = requests.why_no_cpus(setup, pod, container)
    elif isinstance(manager, MemoryManager):
        reason = requests.why_no_memory(setup, pod, container)
        if reason is None:
            sizes = {kind: size for kind, size in requested_amounts.items() if is_memory(kind)}
            demand = manager.state.demand(pod.uid, sizes)
            text = "no set of nodes has enough, so it reports no preference"
            return ManagerHints(name, None, text, candidates(demand, tuple(sizes)))
    return ManagerHints(name, None, f"no preference: {reason}")


def _resource(
    pod: Pod, observed_hints: ObservedHints, resource: str, hints: ResourceHints | None, count: int
) -> ManagerHints:
    manager = manager_name(observed_hints.manager)
    if hints is None:
        return ManagerHints(manager, resource, "no preference: its plugin reports no NUMA nodes")
    if not isinstance(hints, Demand):
        return ManagerHints(manager, resource, _nowhere(pod, observed_hints, resource, count))
    where = "available" if evaluation.satisfiable(hints) else "not available on any set of nodes"
    found = candidates(hints, _need_resources(observed_hints, resource))
    return ManagerHints(manager, resource, f"{amount(resource, count)} {where}", found)


def _need_resources(observed_hints: ObservedHints, resource: str) -> tuple[str, ...]:
    """Returns the resource of each need; all types of memory share their hints."""
    return tuple(observed_hints.resources) if is_memory(resource) else (resource,)


def _nowhere(pod: Pod, observed_hints: ObservedHints, resource: str, count: int) -> str:
    if isinstance(observed_hints.manager, DeviceManager):
        short = devices_text(observed_hints.manager.state, pod, resource, count)
        if short is not None:
            return short
    return f"{amount(resource, count)} not available on any set of nodes"


_WEAKER = {SINGLE_NUMA_NODE: (RESTRICTED, BEST_EFFORT), RESTRICTED: (BEST_EFFORT,)}
"""For each policy, the more permissive ones."""


def explain(node: StartedNode, pod: Pod, names: Mapping[str, str]) -> Explanation:
    """Explains why the node would admit or refuse the pod now, without changing the node.

    `names` are the names of pods by uid, where they differ.
    """
    setup = node.setup
    policy = setup.topology_policy
    observed = observe(node, pod, policy)
    steps: list[ExplanationStep] = []
    if policy is not None:
        for merged in observed.merges:
            # A refusal is about the last container, so only that container needs the details.
            in_full = observed.admitted or merged is observed.merges[-1]
            steps += _merge_steps(setup, policy, pod, merged, in_full=in_full)
    if observed.failure is not None:
        failed = observed.failure
        if policy is None:
            asked = requests.requested_amounts(
                setup, node.device_manager.state, pod, failed.container
            )
            steps.append(_request(pod, failed.container, asked))
        allocation, advice = explain_shortage(node, pod, failed, names)
        summary = f"{_who(failed.container)}: {allocation.text}"
        return Explanation(summary, (*steps, allocation), advice, _cause(node, pod, observed))
    refused = next((one for one in observed.merges if not one.admitted), None)
    if policy is None or refused is None:
        if room := [_room(pod, one) for one in node.shortages(pod)]:
            summary, cause = "; ".join(one.text for one in room), _cause(node, pod, observed)
            return Explanation(summary, (*steps, *room), cause=cause)
        return Explanation("every manager can satisfy the request", tuple(steps))
    why = why_not_preferred(policy, pod, refused, _asks(setup, pod, refused))
    summary = f"{_who(refused.container)}: {why}"
    cause, advice = _cause(node, pod, observed), tuple(_advice(node, policy, pod))
    return Explanation(summary, tuple(steps), advice, cause)


def cause_of(node: StartedNode, pod: Pod) -> Cause:
    """Returns why the node refuses a pod, without the details of `explain`."""
    return _cause(node, pod, observe(node, pod, node.setup.topology_policy))


def _cause(node: StartedNode, pod: Pod, admission: ObservedAdmission) -> Cause:
    if too_large := tuple(_resources_beyond_capacity(node, pod)):
        return Cause("empty node", too_large)
    policy = node.setup.topology_policy
    if admission.failure is not None:
        return _allocation_cause(node.setup, pod, admission.failure)
    refused = next((one for one in admission.merges if not one.admitted), None)
    if policy is None or refused is None:
        return Cause("allocatable", tuple(one.resource for one in node.shortages(pod)))
    return _merge_cause(policy, refused)


def _resources_beyond_capacity(node: StartedNode, pod: Pod) -> Iterator[str]:
    """Yields the resources of which a pod requests more than the node has if it is empty."""
    state = node.device_manager.state
    asked = requests.requested_amounts(node.setup, state, pod, None)
    exceeded = [name for name, count in asked.items() if count > _assignable(node, name)]
    shortages = (one.resource for one in node.shortages(pod) if one.request > one.capacity)
    yield from dict.fromkeys((*exceeded, *shortages))


def _assignable(node: StartedNode, resource: str) -> int:
    """Returns how much of a resource the managers can assign on the empty node."""
    policy = node.setup.cpu
    if resource == requests.CPU and policy is not None:
        broken = policy.broken_cores if policy.assignment.only_whole_cores else 0
        return (policy.topology.cpus & ~policy.reserved & ~broken).bit_count()
    if is_memory(resource):
        tables = (one.tables.get(resource) for one in node.memory.state.nodes.values())
        return sum(table.allocatable for table in tables if table)
    return len(node.device_manager.state.lists.get(resource, Devices()).nodes)


def _allocation_cause(setup: NodeSetup, pod: Pod, failure: FailedAllocation) -> Cause:
    """Returns the cause of a failed allocation."""
    if failure.error.reason == "EmptyPodSharedPoolError":
        return Cause("pod's shared pool")
    manager = failure.manager
    if isinstance(manager, CPUManager):
        if failure.error.reason != "SMTAlignmentError" or setup.cpu is None:
            return Cause("free", (requests.CPU,))
        per_core = setup.cpu.assignment.cpus_per_core
        odd = requests.exclusive_cpus(pod, failure.container) % per_core
        return Cause("multiple of a core" if odd else "whole cores")
    if isinstance(manager, MemoryManager):
        try:
            sizes = container_amounts(pod, failure.container) if failure.container else peak(pod)
        except AllocationError:
            return Cause("not whole bytes")
        return Cause("free", tuple(sizes))
    assert isinstance(manager, DeviceManager)
    assert failure.container is not None
    asked = policy.requested_devices(manager.state, failure.container)
    short = (name for name, count in asked.items() if devices_text(manager.state, pod, name, count))
    return Cause("free", tuple(short))


def _room(pod: Pod, shortage: Shortage) -> Room:
    """Explains which requests of a pod exceed the node's allocatable resources."""
    resource, request, others, capacity = shortage
    if resource == PODS:
        text = f"the node allows {plural(capacity, 'pod')}, and {others} are on it"
    else:
        wish, taken, whole = (requests.room(resource, one) for one in shortage[1:])
        overhead = in_units(resource, quantity.parse(pod.overhead.get(resource, 0)))
        included = f" (overhead: {requests.room(resource, overhead)})" if overhead else ""
        text = f"{wish} requested{included}, {whole} allocatable"
        if others:
            text += f", {taken} requested by other pods"
    return Room(resource, request, others, capacity, text)


def _merge_steps(
    setup: NodeSetup, policy: TopologyPolicy, pod: Pod, merge: ObservedMerge, *, in_full: bool
) -> Iterator[ExplanationStep]:
    asked = _asks(setup, pod, merge)
    yield _request(pod, merge.container, asked)
    if in_full:
        for one in merge.hints:
            yield from hint_steps(setup, pod, one, asked)
    numa, preferred = merge.affinity.numa, merge.affinity.preferred
    best = "no affinity" if numa is None else nodes_text(numa)
    text = f"the hints merge to {best}, {'' if preferred else 'not '}preferred; "
    verdict = "admits this" if merge.admitted else "admits only preferred hints"
    text += f"the {policy.name} policy {verdict}"
    yield Merge(policy.name, numa, preferred, merge.admitted, text)


def _asks(setup: NodeSetup, pod: Pod, merge: ObservedMerge) -> dict[str, int]:
    devices = next(one.manager for one in merge.hints if isinstance(one.manager, DeviceManager))
    return requests.requested_amounts(setup, devices.state, pod, merge.container)


def _request(
    pod: Pod, container: PodContainer | None, requested_amounts: dict[str, int]
) -> RequestedResources:
    name = container.name if container else None
    what = amounts(requested_amounts.items()) or "nothing that needs aligning"
    return RequestedResources(
        name, requested_amounts, f"{_who(container)} requests {what} ({pod.qos})"
    )


def _who(container: PodContainer | None) -> str:
    return "the pod as a whole" if container is None else f"container {container.name}"


def _advice(node: StartedNode, policy: TopologyPolicy, pod: Pod) -> Iterator[str]:
    for name in _WEAKER.get(policy.name, ()):
        weaker = replace(policy, name=name, rules=replace(policy.rules, single=False))
        if _admits(node, pod, weaker):
            yield f"the pod would be admitted with topologyManagerPolicy: {name}"
            return


def _admits(node: StartedNode, pod: Pod, policy: TopologyPolicy | None) -> bool:
    """Whether the node would admit a pod under a policy of the Topology Manager."""
    return observe(node, pod, policy).admitted and not node.shortages(pod)
