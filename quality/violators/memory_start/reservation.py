"""Violators of the requirements of reserved memory, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.departures.memory import ReservationWraps
from numaproof.reference.kubelet import eviction
from numaproof.reference.memory import policy as policies
from numaproof.reference.memory import reservation
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.state import MemoryTable
from numaproof.reference.pods import quantity
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

seeds = SubjectBugs("memory-start")

_MEMORY = "memory"


# Reserved memory


@seeds("MEM-RESERVE-001")
def reserved_memory_comes_off_the_first_node(changes: Changes) -> None:
    """A plausible author reads the system's memory as one amount, and keeps it on node 0."""

    def made(original: Any, machine: Any, system: Any, *rules: Any) -> Any:
        total = sum(kinds.get(_MEMORY, 0) for kinds in system.values())
        moved = {node: {**kinds, _MEMORY: 0} for node, kinds in system.items()}
        moved[min(moved)][_MEMORY] = total
        return original(machine, moved, *rules)

    changes.around(policies, "make_static", made)


@seeds("MEM-RESERVE-001")
def reserved_memory_is_spread_over_all_nodes(changes: Changes) -> None:
    """A plausible author has every node bear an equal part of the system's memory."""

    def made(original: Any, machine: Any, system: Any, *rules: Any) -> Any:
        each, rest = divmod(sum(kinds.get(_MEMORY, 0) for kinds in system.values()), len(system))
        spread = {
            node: {**kinds, _MEMORY: each + (rest if node == min(system) else 0)}
            for node, kinds in system.items()
        }
        return original(machine, spread, *rules)

    changes.around(policies, "make_static", made)


@seeds("MEM-RESERVE-001")
def reserved_memory_is_free(changes: Changes) -> None:
    """A plausible author takes the reservation off what is allocatable, not off what is free."""

    def table(cls: Any, total: int, system: int, pages: int) -> MemoryTable:
        allocatable = cls.left(total, system + pages)
        return MemoryTable(total, system, allocatable, 0, max(0, total - pages))

    changes.replace(StaticMemoryPolicy, "table", classmethod(table))


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


@seeds("MEM-RESERVE-002")
def less_memory_may_be_reserved_than_is_wanted(changes: Changes) -> None:
    """A plausible author takes Node Allocatable for the most that may be reserved."""
    _sum_passes(changes, lambda named, wanted: named < wanted)


def _by_node(changes: Changes, change: Callable[[Any, Any, Any], Any]) -> None:
    """Lets other memory be reserved on nodes; `change` is given the amounts by node and type."""

    def by_node(original: Any, config: Any, machine: Any) -> Any:
        return change(original(config, machine), config, machine)

    changes.around(reservation, "by_node", by_node)


def _without_cpus(machine: Any) -> set[int]:
    return {node.node_id for node in machine.topology or () if not node.cores}


@seeds("MEM-RESERVE-003")
def memory_cannot_be_reserved_on_nodes_without_cpus(changes: Changes) -> None:
    """A plausible author thinks that the system runs, and has its memory, where CPUs are."""

    def change(found: Any, config: Any, machine: Any) -> Any:
        if _without_cpus(machine) & {node for node, _ in config.reserved_memory}:
            raise reservation.ReservationError("memory is reserved on a NUMA node without CPUs")
        return found

    _by_node(changes, change)


@seeds("MEM-RESERVE-003")
def reservations_on_nodes_without_cpus_keep_nothing(changes: Changes) -> None:
    """A plausible author goes through the nodes of CPUs to reserve memory on them."""

    def change(found: Any, _: Any, machine: Any) -> Any:
        left_out = _without_cpus(machine)
        return {node: {} if node in left_out else kinds for node, kinds in found.items()}

    _by_node(changes, change)


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


def _less(amounts: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: amount for name, amount in amounts.items() if name not in names}


@seeds("MEM-RESERVE-005")
def kube_reserved_memory_lies_within_that_of_the_system(changes: Changes) -> None:
    """A plausible author takes the larger one of kubeReserved and systemReserved."""

    def change(config: Any) -> Any:
        kube, system = config.kube_reserved, config.system_reserved
        if quantity.parse(kube.get(_MEMORY, 0)) > quantity.parse(system.get(_MEMORY, 0)):
            return dataclasses.replace(config, system_reserved=_less(system, _MEMORY))
        return dataclasses.replace(config, kube_reserved=_less(kube, _MEMORY))

    _summed(changes, change)


@seeds("MEM-RESERVE-005")
def kube_reserved_memory_is_not_part_of_the_sum(changes: Changes) -> None:
    """A plausible author reads what the system is to have from systemReserved."""
    _summed(
        changes,
        lambda config: dataclasses.replace(
            config, kube_reserved=_less(config.kube_reserved, _MEMORY)
        ),
    )


@seeds("MEM-RESERVE-005")
def system_reserved_memory_is_not_part_of_the_sum(changes: Changes) -> None:
    """A plausible author reads the kubelet's own part alone."""
    _summed(
        changes,
        lambda config: dataclasses.replace(
            config, system_reserved=_less(config.system_reserved, _MEMORY)
        ),
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
def the_default_eviction_threshold_stands_beside_others(changes: Changes) -> None:
    """A plausible author fills in the default for each signal that is left out."""
    changes.around(
        eviction, "configured", lambda original, given: {**eviction.DEFAULTS, **original(given)}
    )


@seeds("MEM-RESERVE-006")
def an_empty_eviction_hard_has_the_default_threshold(changes: Changes) -> None:
    """A plausible author does not tell an empty map from a missing one."""
    changes.around(
        eviction, "configured", lambda original, given: original(given) or eviction.DEFAULTS
    )


@seeds("MEM-RESERVE-006")
def there_is_no_default_eviction_threshold(changes: Changes) -> None:
    """A plausible author adds up what the configuration says."""
    changes.around(
        eviction,
        "configured",
        lambda original, given: original(given) if given.get("evictionHard") else {},
    )


@seeds("MEM-RESERVE-007")
def eviction_thresholds_in_percent_count_as_nothing(changes: Changes) -> None:
    """A plausible author adds up amounts, and a share is none."""
    changes.around(
        eviction,
        "of_memory",
        lambda original, thresholds, capacity: original(
            {signal: text for signal, text in thresholds.items() if not text.endswith("%")},
            capacity,
        ),
    )


@seeds("MEM-RESERVE-007")
def an_eviction_threshold_of_100_percent_is_all_memory(changes: Changes) -> None:
    """A plausible author takes 100% for a share like any other."""

    def of_memory(original: Any, thresholds: Mapping[str, str], capacity: int) -> Any:
        whole = thresholds.get("memory.available") == "100%"
        return str(capacity) if whole else original(thresholds, capacity)

    changes.around(eviction, "of_memory", of_memory)


@seeds("MEM-RESERVE-007")
def soft_eviction_thresholds_count(changes: Changes) -> None:
    """A plausible author takes the soft threshold where there is no hard one."""

    def configured(original: Any, given: Any) -> Any:
        soft = (given.get("evictionSoft") or {}).get("memory.available")
        found = original(given)
        return found if soft is None else {**found, "memory.available": soft}

    changes.around(eviction, "configured", configured)


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


@seeds("MEM-RESERVE-008")
def sums_of_reserved_memory_differ_in_other_units(changes: Changes) -> None:
    """A plausible author compares what the sums look like."""

    def check(original: Any, config: Any, machine: Any) -> None:
        original(config, machine)
        styles = {
            quantity.style(amounts[_MEMORY])
            for amounts in (
                *(limits for _, limits in config.reserved_memory),
                config.kube_reserved,
                config.system_reserved,
            )
            if quantity.parse(amounts.get(_MEMORY, 0))
        }
        if len(styles) > 1:
            raise reservation.ReservationError("the sums of reserved memory are not equal")

    changes.around(reservation, "check_sums", check)
