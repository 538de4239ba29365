"""Bounds for sets of pods to remove: what they must give back before a pod can be admitted.

A bound never rules out a set that suffices, so it can be loose: it counts what pods hold on a set
of NUMA nodes, not how. On a node without pods, the preferred hints are the sets of NUMA nodes that
can ever be preferred, because hints compare with an empty machine.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from itertools import accumulate, product
from math import ceil, inf, prod
from operator import and_
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.reference.capacity.allocatable import PODS, total_request
from numaproof.reference.topology.hints import Demand
from numaproof.reference.topology.policy import RESTRICTED, SINGLE_NUMA_NODE
from numaproof.reference.topology.search.enumeration import among
from numaproof.reference.topology.search.symmetry import NodeClasses
from numaproof.simulation import requests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.reference.node import StartedNode
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod

MAX_NODES = 12
"""On machines with more NUMA nodes, sets of nodes are not compared."""

MAX_CHOICES = 512
"""The number of ways to choose a set of nodes for each resource; if there are more, the resources
are bounded one by one.
"""

_EVERYWHERE = -1
"""The mask of all NUMA nodes."""


class Bound(NamedTuple):
    """Removed pods must give back `deficit` of a resource; `gains` has what each pod gives back."""

    deficit: int
    gains: Mapping[str, int]


Cost = tuple[int, int]
"""A pod's priority, and the thousandths of CPUs that it requests; sums are compared in order."""

Alternatives = tuple[tuple[Bound, ...], ...]
"""Bounds that must all be met in at least one of the alternatives."""


def bounds(node: StartedNode, empty: StartedNode, pod: Pod) -> tuple[Alternatives, ...]:
    """Returns what must be met so that a node can admit a pod.

    `empty` is the same node without its pods.
    """
    usage = _Usage(node)
    found = [*_capacity(node, pod), *_totals(usage, empty, pod)]
    policy = node.setup.topology_policy
    aligns = policy is not None and policy.name in {RESTRICTED, SINGLE_NUMA_NODE}
    if policy and aligns and len(node.setup.nodes) <= MAX_NODES:
        found += _alignment(usage, empty, pod, alone=policy.name == SINGLE_NUMA_NODE)
    # An alternative without bounds is met whatever is removed.
    return tuple(one for one in found if all(one))


def places(node: StartedNode, uid: str) -> tuple[object, ...]:
    """Describes where a pod holds resources; pods with equal descriptions are interchangeable.

    A pod with parts of cores is like no other, because the rest of the core matters.
    """
    topology = node.setup.topology
    cpus = _own_cpus(node, uid)
    if topology.whole_cores(cpus) != cpus:
        return (uid,)
    groups = (topology.nodes, topology.sockets)
    blocks = [*(node.memory.state.pods.get(uid) or ())]
    for each in node.memory.state.entries.get(uid, {}).values():
        blocks += each
    lists = node.device_manager.state.lists
    devices = [
        (resource, lists[resource].nodes.get(one), one in lists[resource].healthy)
        for resource, one in _own_devices(node, uid)
        if resource in lists
    ]
    return (
        tuple((cpus & one).bit_count() for group in groups for one in group.values()),
        tuple(sorted(blocks)),
        tuple(sorted(devices, key=repr)),
    )


def _own_cpus(node: StartedNode, uid: str) -> int:
    state = node.cpus.state
    found = state.pods.get(uid, 0)
    for cpus in state.exclusive.get(uid, {}).values():
        found |= cpus
    return found


def _own_devices(node: StartedNode, uid: str) -> Iterator[tuple[str, str]]:
    for devices in node.device_manager.state.held_devices.get(uid, {}).values():
        for resource, ids in devices.items():
            for one in sorted(ids):
                yield resource, one


class _Usage:
    """What each pod holds on sets of NUMA nodes, at least."""

    def __init__(self, node: StartedNode) -> None:
        self._node = node
        self._cpus = {uid: _own_cpus(node, uid) for uid in node.pods}
        self._devices = {uid: tuple(_own_devices(node, uid)) for uid in node.pods}

    def bounds_on(self, resource: str, nodes: int, spare: int) -> tuple[Bound, ...]:
        """Returns the bound for a resource on some nodes; empty if it is met.

        `spare` is what the pod would leave free if there were no other pods.
        """
        gains = {uid: self._amount(uid, resource, nodes) for uid in self._node.pods}
        deficit = sum(gains.values()) - spare
        return (Bound(deficit, gains),) if deficit > 0 else ()

    def _amount(self, uid: str, resource: str, nodes: int) -> int:
        if resource == requests.CPU:
            near = self._node.setup.topology.nodes.items()
            inside = sum(cpus for node, cpus in near if nodes >> node & 1)
            return (self._cpus[uid] & inside).bit_count()
        if requests.is_memory(resource):
            return self._memory(uid, resource, nodes)
        devices = self._node.device_manager.state.lists[resource]
        return sum(
            name == resource
            and one in devices.healthy
            and (nodes == _EVERYWHERE or bool((devices.nodes.get(one) or 0) & nodes))
            for name, one in self._devices[uid]
        )

    def _memory(self, uid: str, kind: str, nodes: int) -> int:
        """Counts only blocks inside: of others, any part may be on nodes outside."""
        state = self._node.memory.state
        whole = state.pods.get(uid)
        containers = state.entries.get(uid, {}).values() if whole is None else (whole,)
        return sum(
            block.size
            for blocks in containers
            for block in blocks
            if block.kind == kind and not block.nodes & ~nodes
        )


def _capacity(node: StartedNode, pod: Pod) -> Iterator[Alternatives]:
    """Yields bounds for the node's allocatable resources."""
    for resource, request, others, capacity in node.shortages(pod):
        gains = {
            uid: 1 if resource == PODS else total_request(one, resource)
            for uid, one in node.pods.items()
            if uid in node.admitted
        }
        yield ((Bound(request + others - capacity, gains),),)


def _totals(usage: _Usage, empty: StartedNode, pod: Pod) -> Iterator[Alternatives]:
    """Yields bounds for each resource of the managers, wherever it is."""
    setup, devices = empty.setup, empty.device_manager.state
    for resource, amount in requests.requested_amounts(setup, devices, pod, None).items():
        if resource == requests.CPU:
            assert setup.cpu is not None
            free = setup.cpu.available(empty.cpus.state).bit_count()
        elif requests.is_memory(resource):
            tables = (one.tables.get(resource) for one in empty.memory.state.nodes.values())
            free = sum(one.free for one in tables if one)
        else:
            free = len(devices.available(resource))
        yield (usage.bounds_on(resource, _EVERYWHERE, free - amount),)


def _alignment(
    usage: _Usage, empty: StartedNode, pod: Pod, *, alone: bool
) -> Iterator[Alternatives]:
    """Yields bounds for preferred sets of NUMA nodes that overlap; with `alone`, single nodes."""
    targets: Sequence[PodContainer | None] = pod.containers
    if empty.setup.scope == "pod":
        targets = (None,)
    for target in targets:
        demands = [*_demands(empty, pod, target)]
        choices = [_preferred(demand, alone=alone) for _, demand in demands]
        if prod(map(len, choices)) <= MAX_CHOICES:
            together = [one for one in product(*choices) if reduce(and_, one, _EVERYWHERE)]
            yield tuple(_on_all(usage, demands, masks) for masks in together)
        else:
            for one, masks in zip(demands, choices, strict=True):
                yield tuple(_on_all(usage, [one], [mask]) for mask in masks)


def _demands(
    empty: StartedNode, pod: Pod, target: PodContainer | None
) -> Iterator[tuple[tuple[str, ...], Demand]]:
    """Yields the demands of a container or the pod, with the resource of each of their needs."""
    for manager in empty.providers:
        hints = manager.hints(pod, target)
        # The types of memory share a demand.
        by_id: dict[int, tuple[list[str], Any]] = {}
        for resource, demand in hints.items():
            by_id.setdefault(id(demand), ([], demand))[0].append(resource)
        for resources, demand in by_id.values():
            if isinstance(demand, Demand):
                yield tuple(resources), demand


def _preferred(demand: Demand, *, alone: bool) -> list[int]:
    """Returns the preferred sets of nodes; with `alone`, only single nodes."""
    hints = among(demand, NodeClasses.all_distinct(demand.nodes))
    masks = [hint.nodes for hint in hints if hint.preferred]
    return [mask for mask in masks if mask.bit_count() == 1] if alone else masks


def _on_all(
    usage: _Usage, demands: Sequence[tuple[tuple[str, ...], Demand]], masks: Sequence[int]
) -> tuple[Bound, ...]:
    """Returns the bounds for each demand on its set of nodes."""
    return tuple(
        bound
        for (resources, demand), nodes in zip(demands, masks, strict=True)
        for resource, need in zip(resources, demand.needs, strict=True)
        for bound in usage.bounds_on(resource, nodes, need.free_on(nodes) - need.amount)
    )


class Reach:
    """What incomplete sets of pods can still become.

    Args:
        every: the bounds.
        classes: the pods in the order in which they are chosen, in groups.
        size: the number of pods of a complete set.
        costs: the cost of each pod.
    """

    def __init__(
        self,
        every: tuple[Alternatives, ...],
        classes: Sequence[Sequence[str]],
        size: int,
        costs: Mapping[str, Cost],
    ) -> None:
        self._costs = costs
        self._goals = [
            [[_Goal(one, classes, size, costs) for one in all_of] for all_of in alternatives]
            for alternatives in every
        ]
        self._cheapest = [
            _least(classes, size, {uid: cost[part] for uid, cost in costs.items()})
            for part in range(2)
        ]

    def can_meet(self, selection: Sequence[str], start: int, left: int) -> bool:
        """Whether `selection` and `left` pods of the classes from `start` on could be enough."""
        return all(
            any(
                all(goal.missing(selection) <= goal.most(start, left) for goal in one)
                for one in each
            )
            for each in self._goals
        )

    def least_cost(self, selection: Sequence[str], start: int, left: int) -> tuple[float, float]:
        """Returns a lower bound for the cost of `selection` and `left` pods of the classes.

        It is infinite if there are not as many pods.
        """
        priority, cpus = (sum(self._costs[uid][part] for uid in selection) for part in range(2))
        needed = max(
            (
                min(max(goal.least_cpus(selection) for goal in one) for one in each)
                for each in self._goals
            ),
            default=0,
        )
        of_priority, of_cpus = (sums[start][left] for sums in self._cheapest)
        return priority + of_priority, cpus + max(of_cpus, needed)


class _Goal:
    """A bound, and what pods can contribute to it."""

    def __init__(
        self,
        need: Bound,
        classes: Sequence[Sequence[str]],
        size: int,
        costs: Mapping[str, Cost],
    ) -> None:
        self._need = need
        self._most = _least(classes, size, {uid: -gain for uid, gain in need.gains.items()})
        prices = (Fraction(costs[uid][1], gain) for uid, gain in need.gains.items() if gain)
        self._price = min(prices, default=Fraction())

    def missing(self, selection: Sequence[str]) -> int:
        return self._need.deficit - sum(self._need.gains.get(uid, 0) for uid in selection)

    def most(self, start: int, left: int) -> float:
        """The most that `left` pods of the classes from `start` on can give back."""
        return -self._most[start][left]

    def least_cpus(self, selection: Sequence[str]) -> int:
        """The CPUs that the pods still to be chosen request at least."""
        return ceil(max(0, self.missing(selection)) * self._price)


def _least(
    classes: Sequence[Sequence[str]], size: int, values: Mapping[str, int]
) -> list[list[float]]:
    """The least sums of 0, 1, ... `size` pods' values, for the classes from each one on."""
    best: list[int] = []
    found: list[list[float]] = [[0, *[inf] * size]]
    for members in reversed(classes):
        best = sorted([*best, *(values.get(uid, 0) for uid in members)])[:size]
        found.append([0, *accumulate(best), *[inf] * (size - len(best))])
    return found[::-1]
