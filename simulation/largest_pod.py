"""The largest pod that a node still admits, found by asking a copy of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from numaproof.protocol import messages
from numaproof.protocol.sets import NUMASet
from numaproof.reference.capacity.allocatable import total_request
from numaproof.reference.errors import AdmissionError
from numaproof.simulation.alignment import fewest_nodes, nodes_of
from numaproof.simulation.requests import CPU
from numaproof.simulation.trials import trial_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numaproof.reference.node import StartedNode

_MEMORY = "memory"
_MIB = 1 << 20


class LargestPod(msgspec.Struct, frozen=True):
    """The largest Guaranteed pod with one container that the node admits.

    It has the most CPUs, and as much memory, in bytes, as the search found for that many CPUs; None
    if the machine's memory is unknown. `numa` are the nodes where it would be; the memory can be
    elsewhere unless the Memory Manager's policy is Static. `allocatable_left` is what is left of
    the node's allocatable resources, by resource, where the pod would be larger without this limit:
    thousandths of CPUs, and bytes.
    """

    cpus: int
    memory: int | None
    numa: NUMASet
    allocatable_left: dict[str, int] = {}


class _Fit(NamedTuple):
    """A pod that the node admits; `memory` is in MiB."""

    cpus: int
    memory: int
    numa: NUMASet


def largest_pods(node: StartedNode) -> tuple[LargestPod | None, LargestPod | None]:
    """Returns the largest pod, and the largest whose CPUs and memory are on one NUMA node.

    Each is None if the node admits no such pod with at least one CPU. What is refused can be
    admitted with more CPUs, because more NUMA nodes are then preferred, so every number of CPUs is
    tried, the largest first.
    """
    anywhere, on_one = _largest(node, lambda _: True, _free_cpus(node)), None
    if anywhere is not None and len(anywhere.numa) == 1:
        on_one = anywhere
    elif anywhere is not None and anywhere.numa:
        limit = min(anywhere.cpus, max(map(int.bit_count, _free_by_node(node)), default=0))
        on_one = _largest(node, lambda numa: len(numa) == 1, limit)
    return anywhere, on_one


def _free_cpus(node: StartedNode) -> int:
    """Returns an upper bound of the CPUs that a pod can request."""
    free = _allocatable(node, CPU) // 1000
    return min(free, sum(map(int.bit_count, _free_by_node(node)))) if node.setup.cpu else free


def _free_by_node(node: StartedNode) -> list[int]:
    """Returns a mask of each NUMA node's assignable CPUs."""
    policy = node.setup.cpu
    free = policy.available(node.cpus.state) if policy else 0
    return [free & cpus for cpus in node.setup.topology.nodes.values()]


def _largest(
    node: StartedNode, accepts: Callable[[NUMASet], bool], limit: int
) -> LargestPod | None:
    """Returns the largest pod with at most `limit` CPUs on nodes that `accepts` accepts."""

    def place(cpus: int, memory: int) -> _Fit | None:
        numa = _place(node, cpus, memory)
        return _Fit(cpus, memory, numa) if numa is not None and accepts(numa) else None

    policy = node.setup.cpu
    step = policy.assignment.cpus_per_core if policy and policy.assignment.only_whole_cores else 1
    for cpus in range(limit // step * step, 0, -step):
        fit = next(filter(None, (place(cpus, least) for least in _least_memory(node, cpus))), None)
        if fit is not None:
            best = _with_most_memory(fit, _memory_bounds(node), place)
            limits = dict(_limits(node, best, step))
            return LargestPod(best.cpus, best.memory * _MIB, best.numa, limits)
    return None


def _limits(node: StartedNode, pod: _Fit, step: int) -> Iterator[tuple[str, int]]:
    """Yields what is left of allocatable resources, if it is less than the managers have free.

    `step` is the difference between numbers of CPUs that a pod can request.
    """
    nodes = pod.numa or NUMASet(node.setup.nodes)
    free = dict(zip(node.setup.topology.nodes, _free_by_node(node), strict=True))
    cpus = sum(free[number].bit_count() for number in nodes if number in free)
    left = _allocatable(node, CPU)
    if left // 1000 < pod.cpus + step <= cpus:
        yield CPU, left
    tables = (
        node.memory.state.nodes[n].tables.get(_MEMORY) for n in nodes & _nodes_with_memory(node)
    )
    left = _allocatable(node, _MEMORY)
    if left // _MIB == pod.memory < sum(table.free for table in tables if table) // _MIB:
        yield _MEMORY, left


def _nodes_with_memory(node: StartedNode) -> NUMASet:
    """Returns the nodes whose memory the Memory Manager assigns."""
    return NUMASet(node.memory.state.nodes)


def _least_memory(node: StartedNode, cpus: int) -> Iterable[int]:
    """Yields amounts in MiB to try with some CPUs.

    If the CPUs need several NUMA nodes, the hints may agree only if the memory needs as many.
    """
    yield 1
    nodes = fewest_nodes(node.setup.topology, cpus)
    if nodes > 1 and node.memory.state.nodes:
        tables = (one.tables.get(_MEMORY) for one in node.memory.state.nodes.values())
        sizes = sorted((table.allocatable for table in tables if table), reverse=True)
        yield sum(sizes[: nodes - 1]) // _MIB + 1


def _with_most_memory(
    fit: _Fit, bounds: list[int], place: Callable[[int, int], _Fit | None]
) -> _Fit:
    """Returns the pod with more memory: at one of the bounds, or between two of them.

    `bounds` are in MiB and ascending.
    """
    limit = bounds[-1]
    for bound in reversed(bounds):
        if bound <= fit.memory:
            break
        found = place(fit.cpus, bound)
        if found is not None:
            fit = found
            break
        limit = bound
    low, high = fit.memory, max(limit, fit.memory)
    while high - low > 1:
        middle = (low + high) // 2
        found = place(fit.cpus, middle)
        if found is None:
            high = middle
        else:
            fit, low = found, middle
    return fit


def _memory_bounds(node: StartedNode) -> list[int]:
    """Returns amounts of memory in MiB where admission may end: of each node, and of all."""
    tables = (one.tables.get(_MEMORY) for one in node.memory.state.nodes.values())
    free = [table.free // _MIB for table in tables if table]
    total = _allocatable(node, _MEMORY) // _MIB
    bounds = {min(one, total) for one in (*free, sum(free))} if free else set()
    return sorted(bounds | {total})


def _allocatable(node: StartedNode, resource: str) -> int:
    """Returns what is left of an allocatable resource, in the units of `total_request`."""
    assert node.setup.allocatable is not None
    used = sum(total_request(one, resource) for one in node.pods.values())
    return max(0, node.setup.allocatable.amounts[resource] - used)


def _place(node: StartedNode, cpus: int, memory: int) -> NUMASet | None:
    """Returns the NUMA nodes where a pod would be; None if the node refuses it.

    `memory` is in MiB.
    """
    amounts = {CPU: cpus, _MEMORY: memory * _MIB}
    container = {"name": "main", "resources": {"limits": amounts, "requests": amounts}}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "largest", "namespace": "default", "uid": "largest pod"},
        "spec": {"containers": [container]},
    }
    trial = trial_node(node)
    try:
        admitted = trial.admit(messages.AdmitArgs(manifest))
    except AdmissionError:
        return None
    return nodes_of(trial, admitted.containers["main"])
