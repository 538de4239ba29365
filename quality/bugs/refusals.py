"""Bugs of what a start refuses: names, options and values that it takes, or takes no more."""

from __future__ import annotations

import dataclasses
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference import startup
from numaproof.reference.config import (
    configuration,
    cpulist,
    eviction,
    fields,
    reservation,
    validation,
)
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu import options as cpu_options
from numaproof.reference.errors import StartError
from numaproof.reference.golang import durations
from numaproof.reference.pods import quantity
from numaproof.reference.topology import options as topology_options
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


seeds = SubjectBugs("refusals")


# Names of policies


def _configured(
    changes: Changes, change: Callable[[configuration.Config], configuration.Config]
) -> None:
    """Starts with another configuration than the one that was read."""
    changes.around(configuration, "load", lambda original, *args: change(original(*args)))


@seeds("CPU-CONFIG-002")
def an_unknown_cpu_policy_stands_for_none(changes: Changes) -> None:
    def known(given: configuration.Config) -> configuration.Config:
        name = given.cpu_policy if given.cpu_policy == "static" else "none"
        return dataclasses.replace(given, cpu_policy=name)

    _configured(changes, known)


@seeds("MEM-CONFIG-001", "MEM-CONFIG-003")
def an_unknown_memory_policy_stands_for_none(changes: Changes) -> None:
    def known(given: configuration.Config) -> configuration.Config:
        name = given.memory_policy if given.memory_policy == "Static" else "None"
        return dataclasses.replace(given, memory_policy=name)

    _configured(changes, known)


@seeds("TOPO-ERROR-002", "TOPO-ERROR-003")
def topology_policies_and_scopes_are_not_looked_up(changes: Changes) -> None:
    changes.replace(validation, "topology_problems", lambda policy, scope: ())


@seeds("TOPO-ORDER-001")
def the_cpu_manager_is_made_before_the_topology_manager(changes: Changes) -> None:
    def late(original: Any, given: configuration.Config, machine: Any, release: Any) -> Any:
        try:
            return original(given, machine, release)
        except StartError:
            if given.cpu_policy not in ("none", "static"):
                raise StartError("cpu", f'unknown policy: "{given.cpu_policy}"') from None
            try:
                cpu_options.parse(given.cpu_options or {}, release.cpu_options, given.gates)
            except OptionError as error:
                raise StartError("cpu", f"new static policy error: {error}") from None
            raise

    changes.around(startup, "make_topology_policy", late)


# Options


@seeds("CPU-CONFIG-004", "CPU-ERROR-006")
def an_unknown_cpu_option_is_passed_over(changes: Changes) -> None:
    changes.around(
        cpu_options,
        "parse",
        lambda original, given, known, *how, **named: original(
            {name: text for name, text in given.items() if name in known}, known, *how, **named
        ),
    )


@seeds("TOPO-ERROR-004")
def an_unknown_topology_option_is_passed_over(changes: Changes) -> None:
    changes.around(
        topology_options,
        "parse",
        lambda original, given, known, *rest: original(
            {name: text for name, text in given.items() if name in known}, known, *rest
        ),
    )


@seeds("CPU-CONFIG-005", "TOPO-ERROR-006")
def an_option_that_is_no_boolean_is_off(changes: Changes) -> None:
    for owner in (cpu_options, topology_options):
        changes.replace(owner, "boolean", lambda name, text: text.lower() in ("1", "t", "true"))


@seeds("TOPO-ERROR-008")
def a_limit_of_nodes_that_is_no_number_is_passed_over(changes: Changes) -> None:
    def lenient(original: Any, text: str) -> int:
        if text.lstrip("+-").isdecimal():
            return int(original(text))
        return topology_options.MOST_NODES_BY_DEFAULT

    changes.around(topology_options, "read_most_nodes", lenient)


@seeds("TOPO-ERROR-009", kubernetes="1.35")
def the_gate_of_topology_options_matters_with_a_policy_alone(changes: Changes) -> None:
    def lenient(original: Any, given: configuration.Config, *rest: Any) -> Any:
        return original(given, *rest) if given.topology_policy != "none" else None

    changes.around(startup, "make_topology_policy", lenient)


@seeds("CPU-CONFIG-003", "CPU-ERROR-006")
def policy_none_takes_options(changes: Changes) -> None:
    def bare(given: configuration.Config) -> configuration.Config:
        return dataclasses.replace(given, cpu_options={}) if given.cpu_policy == "none" else given

    _configured(changes, bare)


@seeds("CPU-GATE-001")
def beta_options_are_closed_by_default(changes: Changes) -> None:
    def closed(original: Any, name: str, text: str, maturity: Any, gates: Any) -> Any:
        return original(name, text, "alpha" if maturity == "beta" else maturity, gates)

    changes.around(cpu_options, "value", closed)


@seeds("CPU-GATE-005", "CPU-OPT-FULLPCPUS-001")
def stable_options_need_a_gate(changes: Changes) -> None:
    def gated(original: Any, name: str, text: str, maturity: Any, gates: Any) -> Any:
        return original(name, text, "beta" if maturity == "stable" else maturity, gates)

    changes.around(cpu_options, "value", gated)


# Values


@seeds("TOPO-ERROR-006")
def numbers_and_booleans_are_texts(changes: Changes) -> None:
    def written(value: Any) -> Any:
        return value if value is None or isinstance(value, str | dict) else str(value)

    def text(original: Any, given: Mapping[str, Any], name: str, default: str) -> str:
        return str(original({name: written(given.get(name))}, name, default))

    def texts(original: Any, given: Mapping[str, Any], name: str) -> Any:
        entries = given.get(name)
        if isinstance(entries, dict):
            entries = {key: written(entry) for key, entry in entries.items()}
        return original({name: entries}, name)

    changes.around(fields, "text", text)
    changes.around(fields, "texts", texts)


@seeds("CPU-CONFIG-014")
def the_reconcile_period_is_not_read(changes: Changes) -> None:
    changes.replace(fields, "duration", lambda given, name, default: default)


@seeds("CPU-CONFIG-014")
def the_reconcile_period_has_one_unit(changes: Changes) -> None:
    def nanoseconds(original: Any, text: str) -> Any:
        if not re.fullmatch(r"[0-9]+(ns|us|ms|s|m|h)", text):
            raise durations.DurationError(f'time: invalid duration "{text}"')
        return original(text)

    changes.around(durations, "nanoseconds", nanoseconds)


@seeds("CPU-CONFIG-008")
def a_list_of_cpus_that_cannot_be_read_names_none(changes: Changes) -> None:
    def lenient(original: Any, text: str) -> Any:
        try:
            return original(text)
        except cpulist.CPUListError:
            return CPUSet()

    changes.around(cpulist, "parse", lenient)


@seeds("CPU-CONFIG-010", "#124066")
def cpus_that_are_not_there_can_be_reserved(changes: Changes) -> None:
    def there(original: Any, given: configuration.Config, online: CPUSet, **how: Any) -> Fraction:
        named = CPUSet.from_mask(given.named_cpus.mask & online.mask)
        amount: Fraction = original(dataclasses.replace(given, named_cpus=named), online, **how)
        return amount

    changes.around(reservation, "reserved_cpus", there)


def _reservable(changes: Changes, takes: Callable[[Fraction], bool]) -> None:
    """Passes over what is reserved of a resource, unless it is an amount to be taken."""

    def kept(original: Any, amounts: Mapping[str, str], whose: str) -> Any:
        return original({name: text for name, text in amounts.items() if good(text)}, whose)

    def good(text: str) -> bool:
        try:
            return takes(quantity.parse(text))
        except quantity.QuantityError:
            return takes(Fraction(-1))

    changes.around(reservation, "cpus_of", kept)


@seeds("CPU-CONFIG-011", "CPU-CONFIG-012", "MEM-CONFIG-010")
def a_reservation_that_cannot_be_is_passed_over(changes: Changes) -> None:
    _reservable(changes, lambda amount: amount >= 0)


@seeds("CPU-CONFIG-013")
def only_cpus_and_memory_can_be_reserved(changes: Changes) -> None:
    changes.replace(reservation, "RESERVABLE", ("cpu", "memory"))


@seeds("MEM-CONFIG-002")
def reserved_memory_that_cannot_be_read_is_none(changes: Changes) -> None:
    def lenient(original: Any, given: Mapping[str, Any]) -> Any:
        try:
            return original(given)
        except configuration.ConfigError:
            return ()

    changes.around(fields, "memory_reservations", lenient)


@seeds("MEM-CONFIG-011")
def eviction_thresholds_that_cannot_be_are_passed_over(changes: Changes) -> None:
    def good(signal: str, text: str) -> bool:
        try:
            eviction.check({signal: text})
        except eviction.ThresholdError:
            return False
        return True

    changes.around(
        eviction,
        "configured",
        lambda original, given: {
            signal: text for signal, text in original(given).items() if good(signal, text)
        },
    )


# Reservations


@seeds("CPU-RESERVE-002")
def static_starts_without_a_reservation(changes: Changes) -> None:
    changes.around(
        reservation,
        "reserved_cpus",
        lambda original, *args, **how: original(*args, **how) or Fraction(1),
    )


@seeds("CPU-RESERVE-007")
def named_cpus_are_only_counted(changes: Changes) -> None:
    changes.around(
        startup,
        "make_static",
        lambda original, topology, chosen, count, named, rules: original(
            topology, chosen, count, 0, rules
        ),
    )
