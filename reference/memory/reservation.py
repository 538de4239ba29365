"""Memory that the Memory Manager reserves for the system, by NUMA node.

The sum of ``reservedMemory`` must equal the reservation for Node Allocatable, which consists of
``kubeReserved``, ``systemReserved`` and the hard eviction threshold. (Kubernetes documentation,
"Control Memory Management Policies on a Node: Reserved memory flag".)
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
    """The Memory Manager rejects the reservation; the text is the kubelet's."""


def by_node(config: Config, machine: MachineInfo) -> Reserved:
    """Returns the reserved memory by node.

    Raises:
        ReservationError: a node does not exist, a sum differs from the reservation for Node
            Allocatable, an amount is not an integer, or no memory is reserved.

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
    """Checks that the nodes' reservations add up to the reservation for Node Allocatable.

    Raises:
        ReservationError: for some memory type, they do not.

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
        # The kubelet adds the others to the last entry, whose style the sum keeps.
        named = [limits[kind] for _, limits in config.reserved_memory if kind in limits][::-1]
        wanted = expected if kind == _MEMORY else []
        if sum(map(quantity.parse, named)) != sum(map(quantity.parse, wanted)):
            raise ReservationError(
                f'the total amount "{_sum(named)}" of type "{kind}" is not equal to the value '
                f'"{_sum(wanted)}" determined by Node Allocatable feature'
            )


def _sum(amounts: Iterable[str]) -> str:
    """Formats the sum in the style of the first amount that is not zero."""
    present = [text for text in amounts if quantity.parse(text)]
    style = quantity.style(present[0]) if present else "decimal"
    return quantity.canonical(sum(map(quantity.parse, present)), style)
