"""Mutants of the Memory Manager's startup."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference.config import configuration, eviction, fields, validation
from numaproof.reference.config import reservation as allocatable
from numaproof.reference.deviations.memory import ReservationWraps
from numaproof.reference.errors import AdmissionError, AllocationError
from numaproof.reference.memory import requests, reservation
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.pods import quantity
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

seeds = SubjectBugs("memory-start")


# Configuration


def _only(entries: Any, keep: Callable[[int, str, str], bool]) -> Any:
    """Filters the amounts in entries of ``reservedMemory``."""
    return tuple(
        (node, {kind: amount for kind, amount in limits.items() if keep(node, kind, amount)})
        for node, limits in entries
    )


@seeds("MEM-CONFIG-005").around(validation, "memory_problems")
def duplicate_reservations_are_noticed_in_neighbouring_entries_alone(
    rule: Any, reservations: Any
) -> Any:
    """Finds duplicates only in adjacent entries."""
    pairs = [reservations[place : place + 2] for place in range(len(reservations))]
    found = {text: None for pair in pairs for text in rule(reservations=pair)}
    return [text for text in rule() if text in found]


@seeds("MEM-CONFIG-006").around(validation, "memory_problems")
def every_type_that_begins_with_hugepages_is_one(rule: Any, reservations: Any) -> Any:
    """Accepts memory types such as hugepages and hugepages2Mi."""
    return rule(
        reservations=_only(
            reservations,
            lambda _, kind, amount: (
                kind.startswith("hugepages-") or not kind.startswith("hugepages")
            ),
        )
    )


def _validated_if(changes: Changes, is_validated: Callable[[Mapping[str, Any]], bool]) -> None:
    """Validates ``reservedMemory`` only if `is_validated` is true for the configuration."""
    validates = [True]

    def load(rule: Any, kubelet_config: Any) -> Any:
        validates[0] = is_validated(kubelet_config)
        return rule()

    changes.around(configuration, "load", load)
    changes.around(validation, "memory_problems", lambda rule: rule() if validates[0] else ())


@seeds("MEM-CONFIG-007").of(
    _validated_if, lambda kubelet_config: bool(kubelet_config.get("memoryManagerPolicy"))
)
def reserved_memory_is_not_validated_without_a_policy() -> None:
    """Doesn't validate ``reservedMemory`` unless a policy is configured."""


@seeds("MEM-CONFIG-008").around(validation, "memory_problems", lambda rule: [*rule()][:1])
def only_the_first_mistake_in_reserved_memory_is_reported() -> None:
    """Reports only the first error."""


@seeds("MEM-CONFIG-009").around(fields, "decode")
def reservations_without_a_node_are_passed_over(rule: Any, kubelet_config: Any) -> Any:
    """Ignores entries without a node."""
    entries = kubelet_config.get("reservedMemory")
    if not isinstance(entries, list | tuple):
        return rule()
    placed = [one for one in entries if (one or {}).get("numaNode") is not None]
    return rule(kubelet_config={**kubelet_config, "reservedMemory": placed})


def _without_memory(amounts: Mapping[str, str]) -> dict[str, str]:
    return {kind: amount for kind, amount in amounts.items() if kind != "memory"}


@seeds("MEM-CONFIG-010").around(allocatable, "cpus_of")
def kube_reserved_memory_may_be_negative(rule: Any, amounts: Mapping[str, str], whose: str) -> Any:
    """Accepts negative memory in kubeReserved."""
    negative = re.fullmatch(r"-[0-9]+([KMGT]i?)?", amounts.get("memory", ""))
    return rule(amounts=_without_memory(amounts) if negative and whose == "kube" else amounts)


@seeds("MEM-CONFIG-010").after(fields, "decode")
def system_reserved_memory_that_is_no_quantity_counts_as_nothing(decoded_config: Any) -> Any:
    """Ignores malformed memory in systemReserved."""
    reserved = decoded_config["systemReserved"] or {}
    try:
        quantity.parse(reserved.get("memory", "0"))
    except quantity.QuantityError:
        return {**decoded_config, "systemReserved": _without_memory(reserved)}
    return decoded_config


@seeds("MEM-CONFIG-010").around(allocatable, "reserved_cpus")
def reserved_memory_amounts_are_read_under_static_alone(rule: Any, config: Any) -> Any:
    """Ignores memory in kubeReserved and systemReserved under the None policy."""
    if config.memory_policy != "Static":
        config = replace(
            config,
            kube_reserved=_without_memory(config.kube_reserved),
            system_reserved=_without_memory(config.system_reserved),
        )
    return rule(config=config)


@seeds("MEM-CONFIG-011").around(eviction, "check")
def an_eviction_threshold_of_0_is_none(rule: Any, thresholds: Any) -> Any:
    """Treats an eviction threshold of 0 like 0%."""
    return rule(
        thresholds={
            signal: text
            for signal, text in thresholds.items()
            if re.fullmatch("0+([KMGT]i?)?", text) is None
        }
    )


# Errors


_MEMORY = "memory"


# Reserved memory


@shape(reservation, "check_sums")
def _change_summed_config(change: Callable[[Any], Any], rule: Any, config: Any) -> Any:
    """Lets `change` replace the configuration whose sums are checked."""
    return rule(config=change(config))


_UNSPECIFIED = "you should specify the system reserved memory"


@shape(reservation, "by_node")
def _forgive(words: str, fallback: Change, rule: Any, config: Any, machine: Any) -> Any:
    """Accepts a reservation whose error contains `words`, and reserves `fallback` instead."""
    try:
        return rule()
    except reservation.ReservationError as error:
        instead = fallback(config, machine) if words in str(error) else None
        if instead is None:
            raise
        return instead


def _nothing(machine: Any) -> dict[int, dict[str, int]]:
    return {node.node_id: {} for node in machine.topology or ()}


@seeds("MEM-RESERVE-009").by(_forgive, _UNSPECIFIED)
def a_reservation_without_limits_is_one(config: Any, machine: Any) -> Any:
    """Accepts entries without limits as a reservation."""
    return _nothing(machine) if config.reserved_memory else None


def _on_nodes_that_exist(config: Any, machine: Any) -> Any:
    known = _nothing(machine)
    kept = tuple(entry for entry in config.reserved_memory if entry[0] in known)
    reservation.check_sums(config, machine)
    for node, limits in kept:
        known[node].update({kind: quantity.value(text) for kind, text in limits.items()})
    return known


@seeds("MEM-RESERVE-011").by(_change_summed_config)
def reserved_huge_pages_are_not_checked(config: Any) -> Any:
    """Doesn't check the sums of reserved huge pages."""
    return replace(
        config,
        reserved_memory=tuple(
            (node, {kind: text for kind, text in limits.items() if kind == _MEMORY})
            for node, limits in config.reserved_memory
        ),
    )


_NO_BYTES = "could not covert"


@seeds("MEM-RESERVE-012").by(_forgive, _NO_BYTES)
def fractions_of_reserved_bytes_may_add_up_to_bytes(config: Any, machine: Any) -> Any:
    """Accepts fractions of bytes if their sum is a whole number."""
    texts = [limits[_MEMORY] for _, limits in config.reserved_memory if _MEMORY in limits]
    whole = sum(map(quantity.parse, texts)) % 1 == 0
    return _on_nodes_that_exist(config, machine) if whole else None


# Messages


def _reword_refusal(
    changes: Changes, words: str, reason: str, reword: Callable[[str], str]
) -> None:
    """Changes reason and message of rejections that contain `words`."""

    def allocate(rule: Any) -> Any:
        try:
            return rule()
        except AdmissionError as error:
            if words not in str(error):
                raise
            raise AdmissionError(reason, reword(str(error))) from None

    changes.around(MemoryManager, "allocate", allocate)
    changes.around(MemoryManager, "allocate_pod", allocate)


_UNEXPECTED = "UnexpectedAdmissionError"
_TOPOLOGY = "TopologyAffinityError"
_NO_ROOM = "failed to get the default NUMA affinity"
_NO_INTEGER = "failed to represent quantity as int64"
_NO_EXTENSION = "failed to find NUMA nodes to extend the current topology hint"
_MIXED = "preferred hint violates NUMA node allocation"


@seeds("MEM-ERROR-001").by(_reword_refusal, _NO_ROOM, _UNEXPECTED)
def a_full_node_is_reported_without_what_is_missing(text: str) -> Any:
    """Truncates the message about insufficient memory."""
    return text.replace(" is available", "")


@seeds("MEM-ERROR-002").of(_reword_refusal, _NO_INTEGER, _TOPOLOGY, lambda text: text)
def a_fraction_of_a_byte_is_a_topology_affinity_error() -> None:
    """Rejects fractions of bytes with TopologyAffinityError."""


@shape(reservation, "check_sums")
def _reword_sums(reword: Callable[[str], str], rule: Any) -> None:
    """Lets `reword` change the error about sums of reserved memory."""
    try:
        rule()
    except reservation.ReservationError as error:
        raise reservation.ReservationError(reword(str(error))) from None


_AMOUNT = r"(amount|value) \"([^\"]*)\""


@seeds("MEM-ERROR-003").by(_reword_sums)
def the_two_sums_of_reserved_memory_are_mixed_up(text: str) -> str:
    """Swaps the two sums of reserved memory."""
    amounts = [amount for _, amount in re.findall(_AMOUNT, text)]
    return re.sub(_AMOUNT, lambda amount_match: f'{amount_match[1]} "{amounts.pop()}"', text)


@seeds("MEM-ERROR-004").of(_reword_refusal, _NO_EXTENSION, _TOPOLOGY, lambda text: text)
def an_affinity_without_extension_is_a_topology_affinity_error() -> None:
    """Rejects affinities that can't be extended with TopologyAffinityError."""


@seeds("MEM-ERROR-005").of(_reword_refusal, _MIXED, _TOPOLOGY, lambda text: text)
def mixed_groups_are_a_topology_affinity_error() -> None:
    """Rejects mixed groups with TopologyAffinityError."""


# Policies


_REFUSED = "UnexpectedAdmissionError"


def _change_settings(changes: Changes, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Lets `change` replace the configuration."""
    changes.around(
        configuration,
        "load",
        lambda rule, kubelet_config: rule(kubelet_config=change({**kubelet_config})),
    )


def _pins_nothing(self: Any) -> bool:
    """Returns whether this Memory Manager has the None policy."""
    return not self.state.nodes


# The None policy


@seeds("MEM-NONE-001").around(MemoryManager, "allocate")
def none_policy_rejects_fractions_of_bytes(rule: Any, self: Any, pod: Any, container: Any) -> None:
    """Rejects fractions of bytes under the None policy."""
    if _pins_nothing(self) and pod.qos == "Guaranteed":
        try:
            requests.container_amounts(pod, container)
        except AllocationError as error:
            message = f"Allocate failed due to {error}, which is unexpected"
            raise AdmissionError(_REFUSED, message) from None
    rule()


@seeds("MEM-NONE-002").by(_change_settings)
def reserved_memory_switches_the_static_memory_policy_on(config: dict[str, Any]) -> dict[str, Any]:
    """Defaults to the Static policy if memory is reserved."""
    if config.get("memoryManagerPolicy") is None and config.get("reservedMemory"):
        config["memoryManagerPolicy"] = "Static"
    return config


# Reserved memory


def _both_sums(config: Any, machine: Any) -> tuple[Fraction, Fraction]:
    """Returns the memory reserved by node and the memory that Node Allocatable reserves."""
    named = [limits[_MEMORY] for _, limits in config.reserved_memory if _MEMORY in limits]
    wanted = [
        config.kube_reserved.get(_MEMORY, "0"),
        config.system_reserved.get(_MEMORY, "0"),
        eviction.of_memory(config.eviction_hard, machine.memory_capacity) or "0",
    ]
    return sum(map(quantity.parse, named), 0 * quantity.parse("0")), sum(
        map(quantity.parse, wanted), 0 * quantity.parse("0")
    )


@shape(reservation, "check_sums")
def _sum_passes(passes: Change, rule: Any, config: Any, machine: Any) -> None:
    """Ignores incorrect sums if `passes` is true for the reserved and the required amount."""
    try:
        rule()
    except reservation.ReservationError:
        pages = any(kind != _MEMORY for _, limits in config.reserved_memory for kind in limits)
        if pages or not passes(*_both_sums(config, machine)):
            raise


@seeds("MEM-RESERVE-002").of(
    _sum_passes, lambda configured_sum, required_sum: configured_sum > required_sum
)
def more_memory_may_be_reserved_than_is_wanted() -> None:
    """Accepts reservations larger than required."""


@seeds("MEM-RESERVE-003").after(reservation, "by_node")
def nodes_with_reserved_memory_are_below_the_number_of_nodes(
    amounts: Any, config: Any, machine: Any
) -> Any:
    """Requires node ids below the number of nodes."""
    for node, _ in config.reserved_memory:
        if node >= len(machine.topology or ()):
            raise reservation.ReservationError(f"NUMA node {node} does not exist")
    return amounts


def _change_remaining(changes: Changes, compute_remaining: Callable[[int, int], int]) -> None:
    """Lets `compute_remaining` override a node's memory after a reservation that exceeds it."""

    def remaining_bytes(total: int, reserved_bytes: int) -> int:
        return (
            compute_remaining(total, reserved_bytes)
            if reserved_bytes > total
            else total - reserved_bytes
        )

    for policy in (StaticMemoryPolicy, ReservationWraps):
        changes.replace(policy, "remaining_bytes", staticmethod(remaining_bytes))


@seeds("MEM-RESERVE-004").of(_change_remaining, lambda total, reserved_bytes: total)
def reservations_beyond_a_node_count_as_none() -> None:
    """Ignores reservations that exceed a node."""


@seeds("MEM-RESERVE-004").of(
    _change_remaining, lambda total, reserved_bytes: reserved_bytes - total
)
def reservations_beyond_a_node_leave_the_difference() -> None:
    """Uses the absolute difference for reservations that exceed a node."""


@seeds("MEM-RESERVE-005").by(_change_summed_config)
def a_configured_eviction_threshold_is_not_part_of_the_sum(config: Any) -> Any:
    """Uses the default eviction threshold instead of the configured one."""
    usual = {"memory.available": eviction.DEFAULTS["memory.available"]}
    given = config.eviction_hard
    return replace(config, eviction_hard={**given, **usual} if given else given)


@seeds("MEM-RESERVE-006").around(
    eviction, "hard_thresholds", lambda rule: rule() or eviction.DEFAULTS
)
def an_empty_eviction_hard_has_the_default_threshold() -> None:
    """Uses the default eviction threshold if ``evictionHard`` is empty."""


@seeds("MEM-RESERVE-007").by(_change_summed_config)
def reserved_storage_counts_as_reserved_memory(config: Any) -> Any:
    """Adds reserved storage to reserved memory."""
    own = config.system_reserved
    both = [own[kind] for kind in (_MEMORY, "ephemeral-storage") if kind in own]
    total = quantity.canonical(sum(map(quantity.parse, both)), "binary")
    return replace(config, system_reserved={**own, _MEMORY: total} if both else own)


_MEBIBYTE = 1 << 20


@seeds("MEM-RESERVE-008").by(_sum_passes)
def sums_of_reserved_memory_are_compared_in_mebibytes(
    configured_sum: Fraction, required_sum: Fraction
) -> Any:
    """Compares the sums in MiB."""
    return configured_sum // _MEBIBYTE == required_sum // _MEBIBYTE
