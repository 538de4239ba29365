"""Violators of how many CPUs are reserved."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference import startup
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.kubelet import reservation
from numaproof.reference.pods import quantity
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-start")


# What is left to hand out


@seeds("CPU-RESERVE-001")
def siblings_of_reserved_cpus_are_kept_back(changes: Changes) -> None:
    """A core that the system uses is the system's as a whole."""
    changes.replace(
        StaticCPUPolicy,
        "allocatable",
        property(lambda self: self.topology.cpus & ~self.reserved & ~self.broken),
    )
    changes.around(
        StaticCPUPolicy,
        "available",
        lambda original, self, state: original(self, state) & ~self.broken,
    )


@seeds("CPU-RESERVE-001")
def every_cpu_is_reported_as_allocatable(changes: Changes) -> None:
    """What can be allocated is asked before the reservation is known."""
    changes.replace(StaticCPUPolicy, "allocatable", property(lambda self: self.topology.cpus))


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


def _mentions_cpus(config: Any) -> bool:
    return "cpu" in {**config.kube_reserved, **config.system_reserved}


@seeds("CPU-RESERVE-002")
def a_reservation_of_zero_counts_as_configured(changes: Changes) -> None:
    """A reservation must be given, and zero is one."""
    _reservation_of(
        changes,
        lambda config, reserved: (
            _WrittenZero(0) if not reserved and _mentions_cpus(config) else reserved
        ),
    )


@seeds("CPU-RESERVE-002")
def a_reservation_of_zero_is_one_cpu(changes: Changes) -> None:
    """The reservation is rounded up to one CPU at least."""
    _reservation_of(
        changes,
        lambda config, reserved: (
            Fraction(1) if not reserved and _mentions_cpus(config) else reserved
        ),
    )


@seeds("CPU-RESERVE-003")
def one_cpu_is_reserved_where_none_is_configured(changes: Changes) -> None:
    """The static policy needs a CPU for itself, and takes the first."""
    _reservation_of(
        changes,
        lambda config, reserved: reserved if reserved or _mentions_cpus(config) else Fraction(1),
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


@seeds("CPU-RESERVE-004")
def the_reservation_is_rounded_to_the_nearest_cpu(changes: Changes) -> None:
    """A fraction of a CPU is rounded the usual way."""
    _reservation_of(
        changes,
        lambda config, reserved: (
            Fraction(max(1, math.floor(reserved + Fraction(1, 2)))) if reserved else reserved
        ),
    )


@seeds("CPU-RESERVE-004")
def each_reservation_is_rounded_up_by_itself(changes: Changes) -> None:
    """The kubelet and the system each get whole CPUs."""
    changes.around(
        reservation,
        "cpus_of",
        lambda original, *args: Fraction(math.ceil(original(*args))),
    )


@seeds("CPU-RESERVE-004")
def the_reservation_is_one_cpu_more_than_its_whole_part(changes: Changes) -> None:
    """Rounding up is to cut the fraction off and to add one."""
    _reservation_of(
        changes,
        lambda config, reserved: (
            Fraction(math.floor(reserved) + 1) if reserved and not config.named_cpus else reserved
        ),
    )


def _summed(changes: Changes, left: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    """Lets only those amounts be summed up that are `left` of kubeReserved and systemReserved."""

    def reserved_cpus(original: Any, config: Any, *args: Any, **named: Any) -> Any:
        kube, system = left(config.kube_reserved, config.system_reserved)
        config = dataclasses.replace(config, kube_reserved=kube, system_reserved=system)
        return original(config, *args, **named)

    changes.around(reservation, "reserved_cpus", reserved_cpus)


def _but_cpus(amounts: Any) -> Any:
    return {name: text for name, text in amounts.items() if name != "cpu"}


@seeds("CPU-RESERVE-006")
def system_reserved_replaces_kube_reserved(changes: Changes) -> None:
    """Two values for one reservation: the last one holds."""
    _summed(
        changes,
        lambda kube, system: (_but_cpus(kube) if "cpu" in system else kube, system),
    )


@seeds("CPU-RESERVE-006")
def system_reserved_counts_beside_kube_reserved_alone(changes: Changes) -> None:
    """The sum begins with kubeReserved, and without it there is none."""
    _summed(
        changes,
        lambda kube, system: (kube, system if "cpu" in kube else _but_cpus(system)),
    )


@seeds("CPU-RESERVE-006")
def the_larger_reservation_counts(changes: Changes) -> None:
    """Both keep CPUs free for what is no pod, so the larger one is enough."""

    def larger(kube: Any, system: Any) -> tuple[Any, Any]:
        texts = kube.get("cpu"), system.get("cpu")
        try:
            sizes = [quantity.parse(text) for text in texts if text is not None]
        except quantity.QuantityError:
            return kube, system
        if len(sizes) < len(texts) or min(sizes) < 0:
            return kube, system
        return (kube, _but_cpus(system)) if sizes[0] >= sizes[1] else (_but_cpus(kube), system)

    _summed(changes, larger)


# By name


def _made(changes: Changes, change: Callable[[Any, Any, int, int], tuple[int, int]]) -> None:
    """Lets the policy be made for another number of CPUs, and others by name."""

    def make(original: Any, topology: Any, chosen: Any, count: int, named: int, rules: Any) -> Any:
        count, named = change(topology, chosen, count, named)
        return original(topology, chosen, count, named, rules)

    changes.around(startup, "make_static", make)


@seeds("CPU-RESERVE-007")
def reserved_cpus_are_filled_up_to_whole_cores(changes: Changes) -> None:
    """Half a core is of no use to anybody else."""

    def whole(topology: Any, _chosen: Any, count: int, named: int) -> tuple[int, int]:
        cores = topology.whole_cores(named)
        return (cores.bit_count(), cores) if named else (count, named)

    _made(changes, whole)


@seeds("CPU-RESERVE-007")
def reserved_cpus_count_by_their_number(changes: Changes) -> None:
    """The names only say how many CPUs are reserved."""
    _made(changes, lambda topology, chosen, count, named: (count, 0))


@seeds("CPU-RESERVE-007")
def reserved_cpus_are_the_range_between_the_ends(changes: Changes) -> None:
    """The first and the last of the CPUs that are named enclose the reservation."""

    def enclosed(topology: Any, _chosen: Any, count: int, named: int) -> tuple[int, int]:
        if not named:
            return count, named
        span = topology.cpus & ((1 << named.bit_length()) - (named & -named))
        return span.bit_count(), span

    _made(changes, enclosed)


@seeds("CPU-RESERVE-011")
def kube_reserved_counts_beside_named_cpus(changes: Changes) -> None:
    """CPUs reserved by name are the system's, and the kubelet's come on top."""

    def reserved_cpus(original: Any, config: Any, online: Any, **named: Any) -> Any:
        total = original(config, online, **named)
        try:
            kube = quantity.parse(config.kube_reserved.get("cpu", "0"))
        except quantity.QuantityError:
            return total
        return total + max(kube, Fraction()) if config.named_cpus else total

    changes.around(reservation, "reserved_cpus", reserved_cpus)


@seeds("CPU-RESERVE-011")
def a_larger_quantity_adds_to_named_cpus(changes: Changes) -> None:
    """Where the quantities ask for more CPUs than are named, the lowest others are added."""
    sizes: list[int] = []

    def make_policy(original: Any, config: Any, *rest: Any) -> Any:
        texts = (config.kube_reserved.get("cpu", "0"), config.system_reserved.get("cpu", "0"))
        try:
            sizes.append(math.ceil(sum(map(quantity.parse, texts))))
        except quantity.QuantityError:
            sizes.append(0)
        return original(config, *rest)

    def larger(topology: Any, _chosen: Any, count: int, named: int) -> tuple[int, int]:
        missing = sizes[-1] - count
        if not named or missing < 1:
            return count, named
        named |= CPUSet(list(CPUSet.from_mask(topology.cpus & ~named))[:missing]).mask
        return named.bit_count(), named

    changes.around(startup, "make_cpu_policy", make_policy)
    _made(changes, larger)


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
def too_large_a_reservation_takes_every_cpu(changes: Changes) -> None:
    """No more CPUs can be reserved than there are, so all are."""
    _made(
        changes,
        lambda topology, chosen, count, named: (min(count, topology.cpus.bit_count()), named),
    )


@seeds("CPU-RESERVE-010")
def too_large_a_reservation_takes_no_cpu(changes: Changes) -> None:
    """The reservation fails, and nobody looks at what it gave."""
    _made(
        changes,
        lambda topology, chosen, count, named: (
            (0, 0) if count > topology.cpus.bit_count() else (count, named)
        ),
    )


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


def _nearest(amount: Fraction) -> Fraction:
    return Fraction(math.floor(amount * 1000 + Fraction(1, 2)), 1000)


@seeds("CPU-RESERVE-014")
def reservations_are_rounded_up_to_thousandths(changes: Changes) -> None:
    """A quantity is read in thousandths, which rounds up."""
    _rounded(changes, lambda amount: Fraction(math.ceil(amount * 1000), 1000))


@seeds("CPU-RESERVE-014")
def reservations_are_cut_to_thousandths(changes: Changes) -> None:
    """What is finer than a thousandth is cut off."""
    _rounded(changes, lambda amount: Fraction(math.floor(amount * 1000), 1000))


@seeds("CPU-RESERVE-014")
def reservations_are_rounded_after_they_are_added_up(changes: Changes) -> None:
    """The sum is rounded to thousandths, and not what it is the sum of."""
    _rounded(changes, Fraction, _nearest)


@seeds("CPU-RESERVE-014")
def half_a_thousandth_is_rounded_to_even(changes: Changes) -> None:
    """The language's own rounding goes to the even neighbour."""
    _rounded(changes, lambda amount: Fraction(round(amount * 1000), 1000))


@seeds("CPU-RESERVE-014")
def reservations_count_exactly(changes: Changes) -> None:
    """As it was up to 1.36."""
    _rounded(changes, Fraction)
