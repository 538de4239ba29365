"""Violators of how many CPUs are reserved."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.config import reservation
from numaproof.reference.cpu.policy import StaticCPUPolicy
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-start")


# What is left to hand out


@seeds("CPU-RESERVE-001")
def the_lowest_cpu_is_kept_back_too(changes: Changes) -> None:
    """The kernel needs the first CPU, whichever CPUs are reserved."""
    changes.replace(
        StaticCPUPolicy,
        "allocatable",
        property(lambda self: self.topology.cpus & ~self.reserved & ~1),
    )
    changes.around(
        StaticCPUPolicy, "available", lambda original, self, state: original(self, state) & ~1
    )


# Nothing reserved


class _WrittenZero(Fraction):
    """A reservation of zero that passes for one."""

    def __bool__(self) -> bool:
        return True


def _reservation_of(changes: Changes, change: Callable[[Any, Fraction], Fraction]) -> None:
    """Lets the CPU Manager be made with another reservation than the configuration's."""
    changes.around(
        startup,
        "make_cpu_policy",
        lambda original, config, topology, reserved, release: original(
            config, topology, change(config, reserved), release
        ),
    )


@seeds("CPU-RESERVE-003")
def a_reservation_of_memory_counts_as_configured(changes: Changes) -> None:
    """It is asked whether anything is reserved, not whether CPUs are."""

    def change(config: Any, reserved: Fraction) -> Fraction:
        anything = {**config.kube_reserved, **config.system_reserved}
        if reserved or not anything or "cpu" in anything:
            return reserved
        return _WrittenZero(0)

    _reservation_of(changes, change)


# How many


# By name


def _made(changes: Changes, change: Callable[[Any, Any, int, int], tuple[int, int]]) -> None:
    """Lets the policy be made for another number of CPUs, and others by name."""

    def make(original: Any, topology: Any, chosen: Any, count: int, named: int, rules: Any) -> Any:
        count, named = change(topology, chosen, count, named)
        return original(topology, chosen, count, named, rules)

    changes.around(startup, "make_static", make)


@seeds("CPU-RESERVE-011")
def overridden_quantities_must_be_valid(changes: Changes) -> None:
    """Everything that is written down is parsed, also what is overridden."""

    def reserved_cpus(original: Any, config: Any, *args: Any, **named: Any) -> Any:
        reservation.cpus_of(config.kube_reserved, "kube")
        reservation.cpus_of(config.system_reserved, "system")
        return original(config, *args, **named)

    changes.around(reservation, "reserved_cpus", reserved_cpus)


# More than there are


@seeds("CPU-RESERVE-010")
def reserving_twice_the_cores_is_possible_everywhere(changes: Changes) -> None:
    """Two threads a core are assumed, where a machine may have one."""
    _made(
        changes,
        lambda topology, chosen, count, named: (
            min(count, topology.cpus.bit_count()) if count <= 2 * len(topology.cores) else count,
            named,
        ),
    )


# Thousandths


def _rounded(
    changes: Changes,
    each: Callable[[Fraction], Fraction],
    total: Callable[[Fraction], Fraction] = Fraction,
) -> None:
    """Lets `each` amount be rounded otherwise, and then the `total`."""

    def reserved_cpus(original: Any, config: Any, online: Any, *, counted: Any) -> Any:
        found = original(config, online, counted=Fraction)
        exactly = counted(_FINE) == _FINE
        return found if exactly else total(found)

    changes.around(reservation, "cpus_of", lambda original, *args: each(original(*args)))
    changes.around(reservation, "reserved_cpus", reserved_cpus)


_FINE = Fraction(1, 10**5)
"""An amount that counts only where amounts count exactly."""


@seeds("CPU-RESERVE-014")
def reservations_are_cut_to_thousandths(changes: Changes) -> None:
    """What is finer than a thousandth is cut off."""
    _rounded(changes, lambda amount: Fraction(math.floor(amount * 1000), 1000))
