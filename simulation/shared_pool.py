"""The shared pool, and the containers that have to share what is left of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.protocol.sets import CPUSet
from numaproof.reference.capacity.allocatable import in_units
from numaproof.reference.pods import quantity
from numaproof.simulation.requests import CPU

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction

    from numaproof.reference.node import StartedNode
    from numaproof.reference.pods.containers import PodContainer


class SharingPod(msgspec.Struct, frozen=True):
    """A pod with containers in the shared pool; `request` is in thousandths of CPUs."""

    pod: str
    request: int


class SharedPool(msgspec.Struct, frozen=True):
    """How the shared pool has shrunk under the pods in it.

    Attributes:
        before, after: the CPUs of the pool.
        request: what all containers in the pool request, in thousandths of CPUs.
        pods: the pods that were in the pool before it shrank.
    """

    before: CPUSet
    after: CPUSet
    request: int
    pods: tuple[SharingPod, ...]

    @property
    def is_short(self) -> bool:
        """Whether the pool has fewer CPUs than its containers request."""
        return len(self.after) * 1000 < self.request


def shrinkage(
    before: StartedNode, after: StartedNode, names: Mapping[str, str]
) -> SharedPool | None:
    """Returns how the shared pool has shrunk; None if it has not, or no pod was in it.

    Args:
        before: the node before an admission.
        after: the same node afterwards.
        names: the pods' names by uid.
    """
    pool, left = before.cpus.state.shared, after.cpus.state.shared
    sharing = tuple(
        SharingPod(names.get(uid, uid), request)
        for uid, request in pool_requests(before)
        if uid in after.pods
    )
    if not pool & ~left or not sharing:
        return None
    total = sum(request for _, request in pool_requests(after))
    return SharedPool(CPUSet.from_mask(pool), CPUSet.from_mask(left), total, sharing)


def pool_requests(node: StartedNode) -> Iterator[tuple[str, int]]:
    """Yields the pods with containers in the shared pool, and what these containers request.

    Init containers that end don't count: they don't run next to the others. Pod-level requests
    include those of containers with exclusive CPUs.
    """
    for uid, pod in node.pods.items():
        running = [one for one in pod.containers if not one.runs_to_completion]
        sharing = [one for one in running if node.cpus.state.of(uid, one.name) is None]
        if not sharing:
            continue
        own = pod.requests.get(CPU)
        if own is None:
            amount = sum(map(_request, sharing), quantity.parse(0))
        else:
            exclusive = sum(pod.exclusive_cpus(one) for one in running if one not in sharing)
            amount = quantity.parse(own) - exclusive
        yield uid, in_units(CPU, amount)


def _request(container: PodContainer) -> Fraction:
    return quantity.parse(container.requests.get(CPU, 0))
