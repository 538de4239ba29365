"""Memory that the Memory Manager keeps for the system, by NUMA node.

What ``reservedMemory`` names must sum up to Node Allocatable's reservation, that is to
``kubeReserved``, ``systemReserved`` and the hard eviction threshold together. (Kubernetes
documentation, "Control Memory Management Policies on a Node: Reserved memory flag".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.config import eviction
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.config.configuration import Config

Reserved = dict[int, dict[str, int]]
"""Bytes by NUMA node and memory type."""

_MEMORY = "memory"


class ReservationError(Exception):
    """The Memory Manager is not made with this reservation; the text is the kubelet's."""


def by_node(config: Config, machine: MachineInfo) -> Reserved:
    """What is reserved on each node.

    Raises:
        ReservationError: a node that there is not, a sum that is not Node Allocatable's, an
            amount that is no integer, or nothing reserved at all.

    Requirements: MEM-CONFIG-005, MEM-RESERVE-003, MEM-RESERVE-009, MEM-RESERVE-010,
    MEM-RESERVE-012.
    """
    found: Reserved = {node.node_id: {} for node in machine.topology or ()}
    for node, _ in config.reserved_memory:
        if node not in found:
            raise ReservationError(
                f"the reserved memory configuration references a NUMA node {node} that does not "
                "exist on this machine"
            )
    check_sums(config, machine)
    for node, limits in config.reserved_memory:
        for kind, text in limits.items():
            size = quantity.exact(text)
            if size is None:
                raise ReservationError("could not covert a variable of type Quantity to int64")
            found[node][kind] = size
    if not sum(kinds.get(_MEMORY, 0) for kinds in found.values()):
        raise ReservationError("[memorymanager] you should specify the system reserved memory")
    return found


def check_sums(config: Config, machine: MachineInfo) -> None:
    """Checks that what is reserved by node sums up to Node Allocatable's reservation.

    Raises:
        ReservationError: it does not, for a memory type.

    Requirements: MEM-ERROR-003, MEM-RESERVE-002, MEM-RESERVE-005, MEM-RESERVE-008, MEM-RESERVE-011.
    """
    expected = [
        amount
        for amount in (
            config.system_reserved.get(_MEMORY),
            config.kube_reserved.get(_MEMORY),
            eviction.of_memory(config.eviction_hard, machine.memory_capacity),
        )
        if amount is not None
    ]
    kinds = {kind for _, limits in config.reserved_memory for kind in limits}
    for kind in sorted(kinds | {_MEMORY}):
        # The last entry is the one that the others are added to, and is written like.
        named = [limits[kind] for _, limits in config.reserved_memory if kind in limits][::-1]
        wanted = expected if kind == _MEMORY else []
        if sum(map(quantity.parse, named)) != sum(map(quantity.parse, wanted)):
            raise ReservationError(
                f'the total amount "{_sum(named)}" of type "{kind}" is not equal to the value '
                f'"{_sum(wanted)}" determined by Node Allocatable feature'
            )


def _sum(amounts: Iterable[str]) -> str:
    """The sum, written in the style of the first amount that is not zero."""
    present = [text for text in amounts if quantity.parse(text)]
    style = quantity.style(present[0]) if present else "decimal"
    return quantity.canonical(sum(map(quantity.parse, present)), style)
