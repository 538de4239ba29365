"""Bugs of what is read before any manager is made: configuration, gates, quantities, QoS."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numaproof.protocol.releases import NEWEST
from numaproof.reference.config import configuration, eviction, gates, reservation, validation
from numaproof.reference.deviations import releases
from numaproof.reference.pods import manifest, qos, quantity
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.pods.containers import PodContainer

seeds = SubjectBugs("configuration")


# Reservations


def _reserving(
    changes: Changes, change: Callable[[configuration.Config], configuration.Config]
) -> None:
    """Lets the CPUs be reserved that another configuration would reserve."""
    changes.around(
        reservation,
        "reserved_cpus",
        lambda original, given, online, **how: original(change(given), online, **how),
    )


@seeds("CPU-RESERVE-004")
def a_fraction_of_a_cpu_is_not_reserved(changes: Changes) -> None:
    changes.around(
        reservation,
        "reserved_cpus",
        lambda original, *args, **how: Fraction(math.floor(original(*args, **how))),
    )


@seeds("CPU-RESERVE-006")
def the_cpus_of_kube_reserved_do_not_count(changes: Changes) -> None:
    _reserving(changes, lambda given: dataclasses.replace(given, kube_reserved={}))


@seeds("CPU-RESERVE-006")
def the_cpus_of_system_reserved_do_not_count(changes: Changes) -> None:
    _reserving(changes, lambda given: dataclasses.replace(given, system_reserved={}))


@seeds("CPU-RESERVE-011", "CPU-RESERVE-007")
def named_cpus_are_counted_by_the_amounts(changes: Changes) -> None:
    def by_amount(original: Any, given: configuration.Config, online: Any, **how: Any) -> Fraction:
        amount: Fraction = original(given, online, **how)
        if not given.named_cpus:
            return amount
        rest: Fraction = original(
            dataclasses.replace(given, named_cpus=type(given.named_cpus)()), online, **how
        )
        return rest or amount

    changes.around(reservation, "reserved_cpus", by_amount)


@seeds("MEM-RESERVE-005", "#109766")
def the_eviction_threshold_is_not_reserved(changes: Changes) -> None:
    changes.replace(eviction, "of_memory", lambda thresholds, capacity: None)


@seeds("MEM-RESERVE-006")
def the_default_eviction_threshold_always_counts(changes: Changes) -> None:
    changes.around(
        eviction,
        "configured",
        lambda original, given: {**eviction.DEFAULTS, **original(given)},
    )


@seeds("MEM-CONFIG-004", "MEM-CONFIG-005", "MEM-CONFIG-006")
def reserved_memory_is_not_validated(changes: Changes) -> None:
    changes.replace(validation, "memory_problems", lambda reservations: ())


# Names and gates


def _gates(changes: Changes, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Changes what a configuration says of feature gates."""

    def other(original: Any, given: Any, known: Any) -> Any:
        wanted = given.get("featureGates")
        if not isinstance(wanted, dict):
            return original(given, known)
        return original({**given, "featureGates": change(wanted)}, known)

    changes.around(gates, "enabled", other)


@seeds("CPU-GATE-010", "CPU-GATE-008")
def a_gate_that_nobody_knows_is_passed_over(changes: Changes) -> None:
    def lenient(original: Any, given: Any, known: Any) -> Any:
        wanted = given.get("featureGates")
        if not isinstance(wanted, dict):
            return original(given, known)
        left = {name: on for name, on in wanted.items() if name in known}
        return original({**given, "featureGates": left}, known)

    changes.around(gates, "enabled", lenient)


@seeds("CPU-GATE-009")
def a_locked_gate_can_be_set(changes: Changes) -> None:
    def unlocked(original: Any, given: Any, known: Any) -> Any:
        loose = {name: dataclasses.replace(gate, locked=False) for name, gate in known.items()}
        return original(given, loose)

    changes.around(gates, "enabled", unlocked)


@seeds("CPU-GATE-011")
def a_gate_stands_without_those_it_needs(changes: Changes) -> None:
    changes.replace(gates, "dependency_problems", lambda enabled, known: ())


@seeds("CPU-GATE-004")
def a_gate_that_is_turned_on_stays_off(changes: Changes) -> None:
    _gates(changes, lambda wanted: {name: on for name, on in wanted.items() if not on})


@seeds("CPU-CONFIG-009")
def named_cpus_may_stand_beside_a_cgroup(changes: Changes) -> None:
    changes.around(
        validation,
        "named_problems",
        lambda original, given, named: original({}, named),
    )


@seeds("CPU-GATE-003", kubernetes="1.33")
def an_older_release_has_the_options_of_the_newest(changes: Changes) -> None:
    newest = releases.TABLE[NEWEST]
    changes.around(
        releases,
        "release",
        lambda original, *args, **named: dataclasses.replace(
            original(*args, **named), cpu_options=newest.cpu_options
        ),
    )


# Quantities


@seeds("CPU-CONFIG-015", "MEM-STATIC-006")
def binary_suffixes_are_read_as_decimal_ones(changes: Changes) -> None:
    changes.around(quantity, "parse", lambda original, text: original(str(text).replace("i", "")))


@seeds("CPU-STATIC-005", "CPU-STATIC-001")
def fractions_round_down_to_exclusive_cpus(changes: Changes) -> None:
    changes.replace(quantity, "whole_cpus", lambda text: math.floor(quantity.parse(text)))


# Quality of service


@seeds("CPU-STATIC-001", "CPU-STATIC-016")
def init_containers_do_not_count_for_the_class(changes: Changes) -> None:
    def of_apps(original: Any, containers: tuple[PodContainer, ...]) -> Any:
        apps = tuple(container for container in containers if not container.init)
        return original(apps or containers)

    changes.around(qos, "class_of", of_apps)


@seeds("CPU-STATIC-001", "MEM-STATIC-002")
def cpus_alone_make_a_pod_guaranteed(changes: Changes) -> None:
    changes.replace(qos, "RESOURCES", ("cpu",))


@seeds("CPU-STATIC-002")
def a_limit_makes_no_request(changes: Changes) -> None:
    def written(original: Any, item: Any, where: str, *, init: bool) -> PodContainer:
        found: PodContainer = original(item, where, init=init)
        own = (item.get("resources") or {}).get("requests") or {}
        return dataclasses.replace(found, requests=own)

    changes.around(manifest, "read_container", written)
