"""Violators of the requirements of reserved memory, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.config import eviction
from numaproof.reference.deviations.memory import ReservationWraps
from numaproof.reference.memory import reservation
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.pods import quantity
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

seeds = SubjectBugs("memory-start")

_MEMORY = "memory"


# Reserved memory


def _sums(config: Any, machine: Any) -> tuple[Fraction, Fraction]:
    """The memory that is reserved by node, and what Node Allocatable reserves."""
    named = [limits[_MEMORY] for _, limits in config.reserved_memory if _MEMORY in limits]
    wanted = [
        config.kube_reserved.get(_MEMORY, "0"),
        config.system_reserved.get(_MEMORY, "0"),
        eviction.of_memory(config.eviction_hard, machine.memory_capacity) or "0",
    ]
    return sum(map(quantity.parse, named), 0 * quantity.parse("0")), sum(
        map(quantity.parse, wanted), 0 * quantity.parse("0")
    )


def _sum_passes(changes: Changes, passes: Callable[[Fraction, Fraction], bool]) -> None:
    """Lets wrong sums of reserved memory pass, given what is reserved and what is wanted."""

    def check(original: Any, config: Any, machine: Any) -> None:
        try:
            original(config, machine)
        except reservation.ReservationError:
            pages = any(kind != _MEMORY for _, limits in config.reserved_memory for kind in limits)
            if pages or not passes(*_sums(config, machine)):
                raise

    changes.around(reservation, "check_sums", check)


@seeds("MEM-RESERVE-002")
def more_memory_may_be_reserved_than_is_wanted(changes: Changes) -> None:
    """A plausible author thinks that a larger reservation does no harm."""
    _sum_passes(changes, lambda named, wanted: named > wanted)


def _by_node(changes: Changes, change: Callable[[Any, Any, Any], Any]) -> None:
    """Lets other memory be reserved on nodes; `change` is given the amounts by node and type."""

    def by_node(original: Any, config: Any, machine: Any) -> Any:
        return change(original(config, machine), config, machine)

    changes.around(reservation, "by_node", by_node)


@seeds("MEM-RESERVE-003")
def nodes_with_reserved_memory_are_below_the_number_of_nodes(changes: Changes) -> None:
    """A plausible author checks a node's id against how many nodes there are."""

    def change(found: Any, config: Any, machine: Any) -> Any:
        for node, _ in config.reserved_memory:
            if node >= len(machine.topology or ()):
                raise reservation.ReservationError(f"NUMA node {node} does not exist")
        return found

    _by_node(changes, change)


def _beyond(changes: Changes, left: Callable[[int, int], int]) -> None:
    """Lets something be left of a node on which more is reserved than it has."""

    def beyond(total: int, kept: int) -> int:
        return left(total, kept) if kept > total else total - kept

    for policy in (StaticMemoryPolicy, ReservationWraps):
        changes.replace(policy, "left", staticmethod(beyond))


@seeds("MEM-RESERVE-004")
def reservations_beyond_a_node_count_as_none(changes: Changes) -> None:
    """A plausible author passes over a reservation that cannot be kept."""
    _beyond(changes, lambda total, kept: total)


@seeds("MEM-RESERVE-004")
def reservations_beyond_a_node_leave_the_difference(changes: Changes) -> None:
    """A plausible author takes the distance between the two amounts."""
    _beyond(changes, lambda total, kept: kept - total)


def _summed(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Lets the sum be checked of another configuration."""
    changes.around(
        reservation,
        "check_sums",
        lambda original, config, machine: original(change(config), machine),
    )


@seeds("MEM-RESERVE-005")
def a_configured_eviction_threshold_is_not_part_of_the_sum(changes: Changes) -> None:
    """A plausible author adds the default threshold, whatever is configured."""

    def change(config: Any) -> Any:
        usual = {"memory.available": eviction.DEFAULTS["memory.available"]}
        given = config.eviction_hard
        return dataclasses.replace(config, eviction_hard={**given, **usual} if given else given)

    _summed(changes, change)


@seeds("MEM-RESERVE-006")
def an_empty_eviction_hard_has_the_default_threshold(changes: Changes) -> None:
    """A plausible author does not tell an empty map from a missing one."""
    changes.around(
        eviction, "configured", lambda original, given: original(given) or eviction.DEFAULTS
    )


@seeds("MEM-RESERVE-007")
def reserved_storage_counts_as_reserved_memory(changes: Changes) -> None:
    """A plausible author adds up all bytes that are reserved."""

    def change(config: Any) -> Any:
        own = config.system_reserved
        both = [own[kind] for kind in (_MEMORY, "ephemeral-storage") if kind in own]
        total = quantity.canonical(sum(map(quantity.parse, both)), "binary")
        return dataclasses.replace(config, system_reserved={**own, _MEMORY: total} if both else own)

    _summed(changes, change)


_MEBIBYTE = 1 << 20


@seeds("MEM-RESERVE-008")
def sums_of_reserved_memory_are_compared_in_mebibytes(changes: Changes) -> None:
    """A plausible author keeps the amounts in mebibytes, as the logs show them."""
    _sum_passes(changes, lambda named, wanted: named // _MEBIBYTE == wanted // _MEBIBYTE)
