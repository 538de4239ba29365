"""Spreading a request evenly over NUMA nodes (option ``distribute-cpus-across-numa``).

The fewest nodes over which the request can be handed out evenly are used; among several such
combinations the one that leaves the free CPUs of all nodes most alike, measured by their standard
deviation. What cannot be divided evenly (the remainder) goes to those nodes of the combination
where it leaves the best balance. (Kubernetes documentation, section
"distribute-cpus-across-numa".)

Sets of CPUs are bit masks in this module.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from numaproof.reference.cpu.assignment import (
    NotEnoughCPUsError,
    Progress,
    Style,
    nodes_in_order,
    packed,
    sockets_in_order,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numaproof.reference.cpu.topology import CPUTopology


class AccountingError(Exception):
    """An even distribution was chosen and then could not be taken."""


class Request(NamedTuple):
    """`wanted` CPUs in groups of `group`, wanted from nodes with `free` CPUs each.

    The nodes stand in the order in which they are used up. `overwrites` is the defect
    `COMBINATION_OVERWRITTEN`.
    """

    free: dict[int, int]
    wanted: int
    group: int
    overwrites: bool


class Plan(NamedTuple):
    """An even share from each node of `nodes`, and the rest in groups from `remainder`."""

    balance: float
    nodes: tuple[int, ...]
    remainder: tuple[int, ...]


def distributed(topology: CPUTopology, available: int, count: int, group: int, style: Style) -> int:
    """The mask of `count` CPUs out of `available`, handed out in groups of `group` CPUs.

    A request that is no multiple of `group`, or that no combination of nodes can share evenly,
    is packed instead.

    Raises:
        NotEnoughCPUsError: `available` has fewer.
        AccountingError: the chosen nodes did not have the CPUs after all.
    """
    style = style._replace(uncore=None)
    if count % group:
        return packed(topology, available, count, style)
    if count < 1:
        return 0
    if count > (available & topology.cpus).bit_count():
        raise NotEnoughCPUsError(count, available.bit_count())
    free = {
        node: (topology.nodes[node] & available).bit_count()
        for node in nodes_in_order(topology, available)
    }
    request = Request(free, count, group, style.overwrites)
    fewest, most = _range(topology, len(free), count, group)
    least = min(max(fewest, style.least_nodes), most + 1)
    for size in (*range(least, most + 1), *range(fewest, least)):
        if plan := _best_plan(request, size):
            return _carry_out(topology, available, request, plan, style)
    return packed(topology, available, count, style)


def of_one_socket(topology: CPUTopology, available: int, count: int) -> int:
    """The part of `available` on one socket that has `count` CPUs; all of it where none has."""
    for socket in sockets_in_order(topology, available):
        on_socket = available & topology.sockets[socket]
        if on_socket.bit_count() >= count:
            return on_socket
    return available


def _range(topology: CPUTopology, available: int, count: int, group: int) -> tuple[int, int]:
    """The fewest and the most NUMA nodes worth trying."""
    groups = -(-topology.cpus.bit_count() // group)
    groups_per_node = -(-groups // len(topology.nodes))
    wanted = -(-count // group)
    return -(-wanted // groups_per_node), min(wanted, available)


def _best_plan(request: Request, size: int) -> Plan | None:
    best: Plan | None = None
    found = combinations(request.free, size)
    following: tuple[int, ...] | None = ()
    for nodes in found:
        plan = _plan(request, nodes)
        if plan and (best is None or plan.balance < best.balance):
            best = plan
            if best.balance == 0:
                following = next(found, None)
                break
    if best and request.overwrites:
        return best._replace(nodes=_overwritten(best.nodes, tuple(request.free), following))
    return best


def _overwritten(
    chosen: tuple[int, ...], among: tuple[int, ...], following: tuple[int, ...] | None = ()
) -> tuple[int, ...]:
    """What is left of a chosen combination once the kubelet has walked on to later ones.

    It keeps the combination in memory that later ones partly share (defect
    `COMBINATION_OVERWRITTEN`): combinations that agree up to one more than the largest power of
    two below their size have the rest in common. `following` is the one that ended the walk,
    None if there was none after `chosen`, and empty where the walk went to its end.
    """
    size = len(chosen)
    own = 1 + (1 << (size - 1).bit_length() >> 1)
    if following is None or own >= size:
        return chosen
    last = following or chosen[:own] + among[own - size :]
    return last if last[:own] == chosen[:own] else chosen


def _plan(request: Request, nodes: tuple[int, ...]) -> Plan | None:
    """The best way to distribute over just these nodes, if there is one."""
    free, count, group = request.free, request.wanted, request.group
    if sum(free[node] // group for node in nodes) * group < count:
        return None
    share = _share(count, group, nodes)
    if any(free[node] < share for node in nodes):
        return None
    left = {node: free[node] - share if node in nodes else free[node] for node in free}
    remainder = count - share * len(nodes)
    if remainder == 0:
        return Plan(standard_deviation(left.values()), nodes, ())
    takers = [node for node in nodes if left[node] >= group]
    best: Plan | None = None
    # Larger subsets first: the remainder, too, is better on many nodes than on few.
    for size in range(len(takers), 0, -1):
        for subset in combinations(takers, size):
            after = _after_remainder(left, remainder, group, subset)
            if after is None:
                continue
            balance = standard_deviation(after.values())
            if best is None or balance < best.balance:
                best = Plan(balance, nodes, subset)
    if best and request.overwrites:
        return best._replace(remainder=_overwritten(best.remainder, tuple(takers)))
    return best


def _after_remainder(
    left: dict[int, int], remainder: int, group: int, subset: Sequence[int]
) -> dict[int, int] | None:
    """Free CPUs by node once the remainder is taken in turns from `subset`, or None.

    A subset whose whole groups do not suffice is no candidate. The kubelet compares single CPUs
    here and then never ends where reserved CPUs break cores (defect `ENDLESS_LOOP`).
    """
    if sum(left[node] // group for node in subset) * group < remainder:
        return None
    after = dict(left)
    while remainder > 0:
        for node in subset:
            if remainder > 0 and after[node] >= group:
                after[node] -= group
                remainder -= group
    return after


def _share(count: int, group: int, nodes: Sequence[int]) -> int:
    return count // len(nodes) // group * group


def _carry_out(
    topology: CPUTopology, available: int, request: Request, plan: Plan, style: Style
) -> int:
    group = request.group
    share = _share(request.wanted, group, plan.nodes)
    progress = Progress(available, 0, request.wanted)
    for node in plan.nodes:
        on_node = progress.free & topology.nodes[node]
        if on_node.bit_count() >= share:
            progress = progress.take(packed(topology, on_node, share, style))
    remainder = request.wanted - share * len(plan.nodes)
    while remainder > 0:
        before = remainder
        for node in plan.remainder:
            on_node = progress.free & topology.nodes[node]
            if remainder > 0 and on_node.bit_count() >= group:
                progress = progress.take(packed(topology, on_node, group, style))
                remainder -= group
        if remainder == before:
            break
    if progress.wanted > 0:
        raise AccountingError(
            f"accounting error, not enough CPUs allocated, remaining: {progress.wanted}"
        )
    return progress.taken


def standard_deviation(values: Iterable[int]) -> float:
    """The population standard deviation, mean and result rounded to three decimals."""
    numbers = list(values)
    mean = _thousandths(sum(numbers) / len(numbers))
    squares = sum((number - mean) * (number - mean) for number in numbers)
    return _thousandths(math.sqrt(squares / len(numbers)))


def _thousandths(value: float) -> float:
    # Half away from zero; Python's own round() goes to the even neighbour.
    return math.floor(value * 1000 + 0.5) / 1000
