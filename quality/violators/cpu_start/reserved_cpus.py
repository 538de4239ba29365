"""Violators of the quantities of a CPU reservation, and of the reconcile period."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from numaproof.reference.config import fields, reservation
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.pods import quantity
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-start")


# Values that are no quantities, or negative


def _not_looked_at(changes: Changes, ignored: Callable[[str, str, str], bool]) -> None:
    """Lets amounts be `ignored`, by whose they are, resource and text."""
    changes.around(
        reservation,
        "cpus_of",
        lambda original, amounts, whose: original(
            {name: text for name, text in amounts.items() if not ignored(whose, name, text)}, whose
        ),
    )


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        return False
    return True


@seeds("CPU-CONFIG-011")
def storage_and_pids_are_not_parsed(changes: Changes) -> None:
    """Only the reserved CPUs and the reserved memory are read at all."""
    _not_looked_at(
        changes,
        lambda whose, name, text: name in ("ephemeral-storage", "pid") and not _is_quantity(text),
    )


@seeds("CPU-CONFIG-011")
def malformed_reserved_memory_counts_as_nothing(changes: Changes) -> None:
    """The CPU Manager reads the CPUs alone, and the Memory Manager is off."""
    _not_looked_at(changes, lambda whose, name, text: name == "memory" and not _is_quantity(text))


@seeds("CPU-CONFIG-011")
def empty_reserved_quantities_count_as_nothing(changes: Changes) -> None:
    """A value that is left empty is no value."""
    _not_looked_at(changes, lambda whose, name, text: not text)


def _is_negative(text: str) -> bool:
    return _is_quantity(text) and quantity.parse(text) < 0


@seeds("CPU-CONFIG-012")
def only_reserved_cpus_must_not_be_negative(changes: Changes) -> None:
    """The sign matters where CPUs are counted."""
    _not_looked_at(changes, lambda whose, name, text: name != "cpu" and _is_negative(text))


@seeds("CPU-CONFIG-012")
def negative_reservations_are_subtracted(changes: Changes) -> None:
    """Only the sum must not be negative."""

    def cpus_of(original: Any, amounts: Any, whose: str) -> Any:
        text = amounts.get("cpu", "")
        if not _is_negative(text):
            return original(amounts, whose)
        others = {name: value for name, value in amounts.items() if name != "cpu"}
        return original(others, whose) + quantity.parse(text)

    def summed(original: Any, *args: Any, **named: Any) -> Any:
        total = original(*args, **named)
        if total < 0:
            raise ConfigError("the CPU reservation is negative")
        return total

    changes.around(reservation, "cpus_of", cpus_of)
    changes.around(reservation, "reserved_cpus", summed)


# Which resources can be reserved


@seeds("CPU-CONFIG-013")
def huge_pages_can_be_reserved(changes: Changes) -> None:
    """Whatever the Memory Manager knows can be reserved."""
    _not_looked_at(changes, lambda whose, name, text: name.startswith("hugepages-"))


@seeds("CPU-CONFIG-013")
def anything_can_be_reserved_for_the_system(changes: Changes) -> None:
    """The resources are checked for kubeReserved alone."""
    _not_looked_at(
        changes,
        lambda whose, name, text: whose == "system" and name not in reservation.RESERVABLE,
    )


@seeds("CPU-CONFIG-013")
def devices_can_be_reserved(changes: Changes) -> None:
    """Names with a domain are somebody else's, and passed over."""
    _not_looked_at(changes, lambda whose, name, text: "/" in name)


@seeds("CPU-CONFIG-013")
def storage_can_be_reserved_by_its_short_name(changes: Changes) -> None:
    """Storage is storage, ephemeral or not."""
    _not_looked_at(changes, lambda whose, name, text: name == "storage")


# The reconcile period


def _other_durations(changes: Changes, takes: Callable[[Any, Any], bool]) -> None:
    """Lets more be a duration, where the configuration and the value are such that it `takes`."""

    def duration(original: Any, given: Any, name: str, default: str) -> Any:
        if name == "cpuManagerReconcilePeriod" and takes(given, given.get(name)):
            return default
        return original(given, name, default)

    changes.around(fields, "duration", duration)


@seeds("CPU-CONFIG-014")
def reconcile_period_may_be_in_days(changes: Changes) -> None:
    """After hours come days."""
    _other_durations(changes, lambda given, value: bool(re.fullmatch("[0-9]+d", str(value))))


@seeds("CPU-CONFIG-014")
def reconcile_period_may_have_a_space(changes: Changes) -> None:
    """A number and its unit are two words."""
    _other_durations(changes, lambda given, value: bool(re.fullmatch("[0-9]+ +[smh]", str(value))))


@seeds("CPU-CONFIG-014")
def reconcile_period_is_read_under_static_alone(changes: Changes) -> None:
    """The none policy has no reconcile loop, so its period does not matter."""
    _other_durations(changes, lambda given, value: given.get("cpuManagerPolicy") != "static")


@seeds("CPU-CONFIG-014")
def empty_reconcile_period_is_the_default(changes: Changes) -> None:
    """A period that is empty is absent."""
    _other_durations(changes, lambda given, value: value == "")


# The forms of a quantity


def _no_amount_of_cpus(changes: Changes, form: str) -> None:
    """Lets reserved CPUs not be written in a form, given as a regular expression."""

    def cpus_of(original: Any, amounts: Any, whose: str) -> Any:
        text = amounts.get("cpu", "")
        if re.fullmatch(form, text):
            raise ConfigError(
                f'--{whose}-reserved value failed to parse: failed to parse quantity "{text}" for '
                '"cpu" resource: quantities must match the regular expression '
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            )
        return original(amounts, whose)

    changes.around(reservation, "cpus_of", cpus_of)


@seeds("CPU-CONFIG-015")
def reserved_cpus_have_no_exponent(changes: Changes) -> None:
    """A quantity is a number and a suffix."""
    _no_amount_of_cpus(changes, ".*[eE][+-]?[0-9]+")


@seeds("CPU-CONFIG-015")
def reserved_cpus_have_no_large_exponent(changes: Changes) -> None:
    """The exponent begins with a small letter, and a large one is the suffix for exa."""
    _no_amount_of_cpus(changes, ".*E[+-]?[0-9]+")


@seeds("CPU-CONFIG-015")
def reserved_cpus_begin_with_a_digit(changes: Changes) -> None:
    """A decimal point has digits on both sides, and there is no sign."""
    _no_amount_of_cpus(changes, r"[.+].*|[0-9]+\.[^0-9]*")


@seeds("CPU-CONFIG-015")
def reserved_cpus_are_counted_in_thousandths_at_most(changes: Changes) -> None:
    """Nothing is finer than a thousandth of a CPU."""
    _no_amount_of_cpus(changes, ".*[nu]")


@seeds("CPU-CONFIG-015")
def decimal_reservations_are_cut_off(changes: Changes) -> None:
    """What stands behind a decimal point is lost on the way to an integer."""

    def whole(text: Any) -> Any:
        return text.partition(".")[0] if re.fullmatch(r"[1-9][0-9]*\.[0-9]+", text) else text

    changes.around(
        reservation,
        "cpus_of",
        lambda original, amounts, whose: original(
            {name: whole(text) if name == "cpu" else text for name, text in amounts.items()}, whose
        ),
    )
