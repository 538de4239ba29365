"""Violators of the requirements of reserved memory and of messages, each breaking one sentence."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from numaproof.reference.errors import AdmissionError
from numaproof.reference.memory import reservation
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.pods import quantity
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("memory-start")

_MEMORY = "memory"


# Reserved memory


def _summed(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Lets the sum be checked of another configuration."""
    changes.around(
        reservation,
        "check_sums",
        lambda original, config, machine: original(change(config), machine),
    )


_UNSPECIFIED = "you should specify the system reserved memory"


def _forgiven(changes: Changes, words: str, found: Callable[[Any, Any], Any]) -> None:
    """Lets a reservation pass that is refused in these words; `found` is then reserved instead."""

    def by_node(original: Any, config: Any, machine: Any) -> Any:
        try:
            return original(config, machine)
        except reservation.ReservationError as error:
            instead = found(config, machine) if words in str(error) else None
            if instead is None:
                raise
            return instead

    changes.around(reservation, "by_node", by_node)


def _nothing(machine: Any) -> dict[int, dict[str, int]]:
    return {node.node_id: {} for node in machine.topology or ()}


@seeds("MEM-RESERVE-009")
def a_reservation_without_limits_is_one(changes: Changes) -> None:
    """A plausible author looks whether there is any entry."""
    _forgiven(
        changes,
        _UNSPECIFIED,
        lambda config, machine: _nothing(machine) if config.reserved_memory else None,
    )


def _on_nodes_that_exist(config: Any, machine: Any) -> Any:
    known = _nothing(machine)
    kept = tuple(entry for entry in config.reserved_memory if entry[0] in known)
    reservation.check_sums(config, machine)
    for node, limits in kept:
        known[node].update({kind: quantity.value(text) for kind, text in limits.items()})
    return known


@seeds("MEM-RESERVE-011")
def reserved_huge_pages_are_not_checked(changes: Changes) -> None:
    """A plausible author checks the sum of the type that Node Allocatable has."""
    _summed(
        changes,
        lambda config: dataclasses.replace(
            config,
            reserved_memory=tuple(
                (node, {kind: text for kind, text in limits.items() if kind == _MEMORY})
                for node, limits in config.reserved_memory
            ),
        ),
    )


_NO_BYTES = "could not covert"


@seeds("MEM-RESERVE-012")
def fractions_of_reserved_bytes_may_add_up_to_bytes(changes: Changes) -> None:
    """A plausible author looks at the sum, which must be whole."""

    def found(config: Any, machine: Any) -> Any:
        texts = [limits[_MEMORY] for _, limits in config.reserved_memory if _MEMORY in limits]
        whole = sum(map(quantity.parse, texts)) % 1 == 0
        return _on_nodes_that_exist(config, machine) if whole else None

    _forgiven(changes, _NO_BYTES, found)


# Messages


def _told(changes: Changes, words: str, reason: str, reword: Callable[[str], str]) -> None:
    """Lets a refusal with these words have another reason and another message."""

    def tells(original: Any, *args: Any) -> Any:
        try:
            return original(*args)
        except AdmissionError as error:
            if words not in str(error):
                raise
            raise AdmissionError(reason, reword(str(error))) from None

    changes.around(MemoryManager, "allocate", tells)
    changes.around(MemoryManager, "allocate_pod", tells)


_UNEXPECTED = "UnexpectedAdmissionError"
_TOPOLOGY = "TopologyAffinityError"
_NO_ROOM = "failed to get the default NUMA affinity"
_NO_INTEGER = "failed to represent quantity as int64"
_NO_EXTENSION = "failed to find NUMA nodes to extend the current topology hint"
_MIXED = "preferred hint violates NUMA node allocation"


@seeds("MEM-ERROR-001")
def a_full_node_is_reported_without_what_is_missing(changes: Changes) -> None:
    """A plausible author cuts the message short."""
    _told(changes, _NO_ROOM, _UNEXPECTED, lambda text: text.replace(" is available", ""))


@seeds("MEM-ERROR-002")
def a_fraction_of_a_byte_is_a_topology_affinity_error(changes: Changes) -> None:
    """A plausible author gives every refusal of the Memory Manager one reason."""
    _told(changes, _NO_INTEGER, _TOPOLOGY, lambda text: text)


def _sums(changes: Changes, reword: Callable[[str], str]) -> None:
    """Lets the kubelet report a wrong sum of reserved memory in other words."""

    def check(original: Any, *args: Any) -> None:
        try:
            original(*args)
        except reservation.ReservationError as error:
            raise reservation.ReservationError(reword(str(error))) from None

    changes.around(reservation, "check_sums", check)


_AMOUNT = r"(amount|value) \"([^\"]*)\""


@seeds("MEM-ERROR-003")
def the_two_sums_of_reserved_memory_are_mixed_up(changes: Changes) -> None:
    """A plausible author takes the wanted sum for the one that was found."""

    def reword(text: str) -> str:
        amounts = [amount for _, amount in re.findall(_AMOUNT, text)]
        return re.sub(_AMOUNT, lambda found: f'{found[1]} "{amounts.pop()}"', text)

    _sums(changes, reword)


@seeds("MEM-ERROR-004")
def an_affinity_without_extension_is_a_topology_affinity_error(changes: Changes) -> None:
    """A plausible author blames the Topology Manager, whose affinity it was."""
    _told(changes, _NO_EXTENSION, _TOPOLOGY, lambda text: text)


@seeds("MEM-ERROR-005")
def mixed_groups_are_a_topology_affinity_error(changes: Changes) -> None:
    """A plausible author blames the Topology Manager, whose affinity it was."""
    _told(changes, _MIXED, _TOPOLOGY, lambda text: text)
