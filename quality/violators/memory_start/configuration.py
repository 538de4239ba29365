"""Violators of the requirements of the Memory Manager's configuration."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from numaproof.reference.config import configuration, eviction, fields, validation
from numaproof.reference.config import reservation as allocatable
from numaproof.reference.pods import quantity
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

seeds = SubjectBugs("memory-start")


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


@seeds("MEM-CONFIG-005")
def duplicate_reservations_are_noticed_in_neighbouring_entries_alone(changes: Changes) -> None:
    """A plausible author compares each entry with the one before it."""

    def problems(original: Any, entries: Any) -> Any:
        pairs = [entries[place : place + 2] for place in range(len(entries))]
        found = {text: None for pair in pairs for text in original(pair)}
        return [text for text in original(entries) if text in found]

    changes.around(validation, "memory_problems", problems)


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
def reserved_memory_is_not_validated_without_a_policy(changes: Changes) -> None:
    """A plausible author validates what goes with a policy only if one is configured."""
    _validated_if(changes, lambda given: bool(given.get("memoryManagerPolicy")))


@seeds("MEM-CONFIG-008")
def only_the_first_mistake_in_reserved_memory_is_reported(changes: Changes) -> None:
    """A plausible author stops at the first entry that is wrong."""
    changes.around(
        validation, "memory_problems", lambda original, entries: [*original(entries)][:1]
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
def an_eviction_threshold_of_0_is_none(changes: Changes) -> None:
    """A plausible author takes 0 for what 0% is."""
    _thresholds(changes, lambda _, text: re.fullmatch(r"0+([KMGT]i?)?", text) is None)
