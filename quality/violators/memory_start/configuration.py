"""Violators of the requirements of the Memory Manager's configuration."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from numaproof.reference.kubelet import configuration, eviction, fields, validation
from numaproof.reference.kubelet import reservation as allocatable
from numaproof.reference.kubelet.fields import ConfigError
from numaproof.reference.pods import quantity
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

seeds = SubjectBugs("memory-start")


def _reserved(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Lets the kubelet read other entries of ``reservedMemory`` than there are."""
    changes.around(fields, "memory_reservations", lambda original, given: change(original(given)))


def _validated(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Lets the kubelet validate other entries of ``reservedMemory`` than there are."""
    changes.around(
        validation, "memory_problems", lambda original, entries: original(change(entries))
    )


def _only(entries: Any, keep: Callable[[int, str, str], bool]) -> Any:
    """The entries, each with those of its amounts that are to be kept."""
    return tuple(
        (node, {kind: amount for kind, amount in limits.items() if keep(node, kind, amount)})
        for node, limits in entries
    )


@seeds("MEM-CONFIG-004")
def zero_memory_is_noticed_as_a_plain_0_alone(changes: Changes) -> None:
    """A plausible author compares texts, so that 0Mi and 0.0 pass."""
    _validated(
        changes,
        lambda entries: _only(
            entries, lambda _, kind, amount: amount == "0" or quantity.parse(amount) != 0
        ),
    )


@seeds("MEM-CONFIG-004")
def zero_huge_pages_may_be_reserved(changes: Changes) -> None:
    """A plausible author thinks that no huge pages is what one may well write down."""
    _validated(
        changes,
        lambda entries: _only(
            entries, lambda _, kind, amount: kind == "memory" or quantity.parse(amount) != 0
        ),
    )


@seeds("MEM-CONFIG-005")
def reservations_of_the_same_memory_are_added_up(changes: Changes) -> None:
    """A plausible author keeps a map of nodes and adds each entry to it."""

    def merged(entries: Any) -> Any:
        found: dict[int, dict[str, str]] = {}
        for node, limits in entries:
            own = found.setdefault(node, {})
            for kind, amount in limits.items():
                total = quantity.parse(amount) + quantity.parse(own.get(kind, "0"))
                own[kind] = quantity.canonical(total, "binary") if kind in own else amount
        return tuple(found.items())

    _reserved(changes, merged)


@seeds("MEM-CONFIG-005")
def duplicate_reservations_are_noticed_in_neighbouring_entries_alone(changes: Changes) -> None:
    """A plausible author compares each entry with the one before it."""

    def problems(original: Any, entries: Any) -> Any:
        pairs = [entries[place : place + 2] for place in range(len(entries))]
        found = {text: None for pair in pairs for text in original(pair)}
        return [text for text in original(entries) if text in found]

    changes.around(validation, "memory_problems", problems)


@seeds("MEM-CONFIG-006")
def reservations_of_other_resources_are_ignored(changes: Changes) -> None:
    """A plausible author reads the memory types and leaves the rest unread."""
    _reserved(
        changes,
        lambda entries: _only(
            entries, lambda _, kind, amount: kind == "memory" or kind.startswith("hugepages-")
        ),
    )


@seeds("MEM-CONFIG-006")
def every_type_that_begins_with_hugepages_is_one(changes: Changes) -> None:
    """A plausible author forgets the dash, so that hugepages and hugepages2Mi pass."""
    _validated(
        changes,
        lambda entries: _only(
            entries,
            lambda _, kind, amount: (
                kind.startswith("hugepages-") or not kind.startswith("hugepages")
            ),
        ),
    )


def _validated_if(changes: Changes, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
    """Lets the kubelet validate ``reservedMemory`` only of the configurations that are wanted."""
    validates = [True]

    def load(original: Any, given: Any, *rest: Any) -> Any:
        validates[0] = wanted(given)
        return original(given, *rest)

    changes.around(configuration, "load", load)
    changes.around(
        validation,
        "memory_problems",
        lambda original, entries: original(entries) if validates[0] else (),
    )


@seeds("MEM-CONFIG-007")
def reserved_memory_is_validated_under_static_alone(changes: Changes) -> None:
    """A plausible author validates it where it is used."""
    _validated_if(changes, lambda given: given.get("memoryManagerPolicy") == "Static")


@seeds("MEM-CONFIG-007")
def reserved_memory_is_not_validated_without_a_policy(changes: Changes) -> None:
    """A plausible author validates what goes with a policy only if one is configured."""
    _validated_if(changes, lambda given: bool(given.get("memoryManagerPolicy")))


@seeds("MEM-CONFIG-008")
def only_the_first_mistake_in_reserved_memory_is_reported(changes: Changes) -> None:
    """A plausible author stops at the first entry that is wrong."""
    changes.around(
        validation, "memory_problems", lambda original, entries: [*original(entries)][:1]
    )


@seeds("MEM-CONFIG-008")
def mistakes_in_reserved_memory_are_reported_by_node(changes: Changes) -> None:
    """A plausible author goes through the nodes instead of the entries."""
    _validated(changes, lambda entries: tuple(sorted(entries, key=lambda entry: entry[0])))


@seeds("MEM-CONFIG-008")
def mistakes_in_reserved_memory_are_reported_first(changes: Changes) -> None:
    """A plausible author validates the managers in the order of their names."""
    others: list[str] = []

    def earlier(original: Any, *args: Any) -> tuple[str, ...]:
        others.extend(original(*args))
        return ()

    changes.around(validation, "topology_problems", earlier)
    changes.around(validation, "named_problems", earlier)
    changes.around(
        validation, "memory_problems", lambda original, entries: [*original(entries), *others]
    )


def _by_entry(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets an entry of ``reservedMemory`` count otherwise; None lets it not count at all.

    `change` is given the entry as it is written, and as it is read.
    """

    def read(original: Any, given: Any) -> Any:
        found = original(given)
        entries = given.get("reservedMemory") or ()
        changed = [change(entry or {}, own) for entry, own in zip(entries, found, strict=True)]
        return tuple(own for own in changed if own is not None)

    changes.around(fields, "memory_reservations", read)


@seeds("MEM-CONFIG-009")
def reservations_without_a_node_are_passed_over(changes: Changes) -> None:
    """A plausible author has nowhere to put what names no node."""
    _by_entry(changes, lambda entry, own: None if entry.get("numaNode") is None else own)


@seeds("MEM-CONFIG-009")
def reservations_without_a_node_are_for_node_1(changes: Changes) -> None:
    """A plausible author counts nodes that are not named from one."""
    _by_entry(changes, lambda entry, own: (1, own[1]) if entry.get("numaNode") is None else own)


@seeds("MEM-CONFIG-009")
def reservations_without_limits_are_refused(changes: Changes) -> None:
    """A plausible author wants every entry to reserve something."""

    def entry(_: Any, own: Any) -> Any:
        if not own[1]:
            raise ConfigError(f"reservedMemory for NUMA node {own[0]} has no limits")
        return own

    _by_entry(changes, entry)


def _without_memory(amounts: Mapping[str, str]) -> dict[str, str]:
    return {kind: amount for kind, amount in amounts.items() if kind != "memory"}


@seeds("MEM-CONFIG-010")
def kube_reserved_memory_may_be_negative(changes: Changes) -> None:
    """A plausible author checks that CPUs are not negative, and reads memory as it is."""

    def cpus_of(original: Any, amounts: Mapping[str, str], whose: str) -> Any:
        negative = re.fullmatch(r"-[0-9]+([KMGT]i?)?", amounts.get("memory", ""))
        return original(
            _without_memory(amounts) if negative and whose == "kube" else amounts, whose
        )

    changes.around(allocatable, "cpus_of", cpus_of)


@seeds("MEM-CONFIG-010")
def system_reserved_memory_that_is_no_quantity_counts_as_nothing(changes: Changes) -> None:
    """A plausible author passes over what cannot be read."""

    def texts(original: Any, given: Any, name: str) -> Any:
        found = original(given, name)
        try:
            quantity.parse(found.get("memory", "0"))
        except quantity.QuantityError:
            return _without_memory(found) if name == "systemReserved" else found
        return found

    changes.around(fields, "texts", texts)


@seeds("MEM-CONFIG-010")
def reserved_memory_amounts_are_read_under_static_alone(changes: Changes) -> None:
    """A plausible author reads kubeReserved and systemReserved where they are used."""

    def reserved(original: Any, config: Any, *rest: Any, **named: Any) -> Any:
        if config.memory_policy != "Static":
            config = dataclasses.replace(
                config,
                kube_reserved=_without_memory(config.kube_reserved),
                system_reserved=_without_memory(config.system_reserved),
            )
        return original(config, *rest, **named)

    changes.around(allocatable, "reserved_cpus", reserved)


def _thresholds(changes: Changes, checked: Callable[[str, str], bool]) -> None:
    """Lets the kubelet check some hard eviction thresholds only, by signal and text."""
    changes.around(
        eviction,
        "check",
        lambda original, thresholds: original(
            {signal: text for signal, text in thresholds.items() if checked(signal, text)}
        ),
    )


@seeds("MEM-CONFIG-011")
def unknown_eviction_signals_are_passed_over(changes: Changes) -> None:
    """A plausible author checks the signals that it knows."""

    def check(original: Any, thresholds: Mapping[str, str]) -> None:
        for signal, text in sorted(thresholds.items()):
            try:
                original({signal: text})
            except eviction.ThresholdError as error:
                if not str(error).startswith("unsupported eviction signal"):
                    raise

    changes.around(eviction, "check", check)


@seeds("MEM-CONFIG-011")
def an_eviction_threshold_of_0_is_none(changes: Changes) -> None:
    """A plausible author takes 0 for what 0% is."""
    _thresholds(changes, lambda _, text: re.fullmatch(r"0+([KMGT]i?)?", text) is None)


@seeds("MEM-CONFIG-011")
def only_the_eviction_threshold_for_memory_is_checked(changes: Changes) -> None:
    """A plausible author reads what the Memory Manager needs."""
    _thresholds(changes, lambda signal, _: signal == "memory.available")
