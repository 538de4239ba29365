"""The amount of memory of each type that containers, and pods as a whole, request."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from numaproof.reference.errors import AllocationError
from numaproof.reference.pods import budget, containers, quantity
from numaproof.reference.pods.budget import EmptySharedPoolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod

MEMORY = "memory"
UNSIGNED = 1 << 64

Amounts = dict[str, int]
"""Bytes by memory type, sorted by type."""


def container_amounts(pod: Pod, container: PodContainer) -> Amounts:
    """Returns the amounts that a container requests for itself.

    Raises:
        AllocationError: an amount is not an integer according to the API machinery.

    Requirements: MEM-ERROR-002, MEM-HUGE-010, MEM-STATIC-001.
    """
    return {} if pod.shares_budget(container) else _amounts(container.requests)


def _amounts(requests: Mapping[str, Any]) -> Amounts:
    found: Amounts = {}
    for kind, text in sorted(requests.items()):
        if kind == MEMORY or kind.startswith("hugepages-"):
            size = quantity.exact(text)
            if size is None:
                raise AllocationError("[memorymanager] failed to represent quantity as int64")
            found[kind] = size
    return found


def check_budget(pod: Pod, whole: Amounts) -> None:
    """Checks that the pod has memory left for containers without requests.

    Raises:
        EmptySharedPoolError: no memory is left, or an amount is not an integer.
    """
    try:
        parts = [(container, container_amounts(pod, container)) for container in pod.containers]
    except AllocationError as error:
        raise EmptySharedPoolError(str(error)) from None
    budget.check(whole, parts)


def shares(pod: Pod, whole: Amounts) -> dict[str, Amounts]:
    """Returns how much of the pod's memory each container may use, by container name."""
    left = dict(whole)
    found: dict[str, Amounts] = {}
    for container in pod.containers:
        own = container_amounts(pod, container)
        if own or container.runs_to_completion:
            found[container.name] = own or dict(left)
        if not container.runs_to_completion:
            for kind, size in own.items():
                left[kind] = (left.get(kind, 0) - size) % UNSIGNED
    return {one.name: found.get(one.name, left) for one in pod.containers}


def peak(pod: Pod) -> Amounts:
    """Returns the pod-level requests for each memory type, or else the containers' peak.

    Raises:
        AllocationError: an amount is not an integer according to the API machinery.

    Requirements: MEM-HINT-008, MEM-HUGE-009, NODE-PODLEVEL-009, NODE-PODLEVEL-012.
    """
    if pod.budget is not None:
        return {kind: size for kind, size in _amounts(pod.budget).items() if size > 0}
    amounts = {container.name: container_amounts(pod, container) for container in pod.containers}
    kinds = {kind for own in amounts.values() for kind in own}
    return {
        kind: containers.peak(pod.containers, partial(_amount, amounts, kind))
        for kind in sorted(kinds)
    }


def _amount(amounts: Mapping[str, Amounts], kind: str, container: PodContainer) -> int:
    return amounts.get(container.name, {}).get(kind, 0)
