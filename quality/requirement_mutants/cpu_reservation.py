"""Mutants of reserved CPUs."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference import startup
from numaproof.reference.config import fields, reservation
from numaproof.reference.config.configuration import Config
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.options import StaticOptions
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.topology import union
from numaproof.reference.pods import quantity
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

seeds = SubjectBugs("cpu-reservation")


# Allocatable CPUs


@seeds("CPU-RESERVE-001")
def the_lowest_cpu_is_kept_back_too(changes: Changes) -> None:
    """Never allocates CPU 0, whichever CPUs are reserved."""
    changes.replace(
        StaticCPUPolicy,
        "allocatable",
        property(lambda self: self.topology.cpus & ~self.reserved & ~1),
    )
    changes.around(StaticCPUPolicy, "available", lambda rule: rule() & ~1)


# Nothing reserved


class _WrittenZero(Fraction):
    """A reservation of zero that counts as true."""

    def __bool__(self) -> bool:
        return True


@shape(startup, "make_cpu_policy")
def _reservation_of(change: Change, rule: Any, config: Any, reserved: Any) -> Any:
    """Lets `change` override the reserved CPUs."""
    return rule(reserved=change(config, reserved))


@seeds("CPU-RESERVE-003").by(_reservation_of)
def a_reservation_of_memory_counts_as_configured(config: Any, reserved: Fraction) -> Fraction:
    """Accepts a reservation of memory alone."""
    anything = {**config.kube_reserved, **config.system_reserved}
    if reserved or not anything or "cpu" in anything:
        return reserved
    return _WrittenZero(0)


# By name


@shape(startup, "make_static")
def _change_reservation(
    change: Change, rule: Any, topology: Any, options: Any, count: int, named_cpus: int
) -> Any:
    """Lets `change` override the number and names of reserved CPUs."""
    count, named_cpus = change(topology, options, count, named_cpus)
    return rule(count=count, named_cpus=named_cpus)


@seeds("CPU-RESERVE-016").around(reservation, "reserved_cpus")
def overridden_quantities_must_be_valid(rule: Any, config: Any) -> Any:
    """Validates quantities that reservedSystemCPUs overrides."""
    reservation.cpus_of(config.kube_reserved, "kube")
    reservation.cpus_of(config.system_reserved, "system")
    return rule()


# More than available


@seeds("CPU-RESERVE-010").by(_change_reservation)
def reserving_twice_the_cores_is_possible_everywhere(
    topology: Any, parsed_options: Any, count: int, named_cpus: int
) -> Any:
    """Limits reservations of up to two CPUs per core to the number of CPUs."""
    return (
        min(count, topology.cpus.bit_count()) if count <= 2 * len(topology.cores) else count,
        named_cpus,
    )


# Thousandths


def _round_reservations(
    changes: Changes,
    each: Callable[[Fraction], Fraction],
    total: Callable[[Fraction], Fraction] = Fraction,
) -> None:
    """Rounds each amount with `each`, and their sum with `total`."""

    def reserved_cpus(rule: Any, round_reservation: Any) -> Any:
        found = rule(round_reservation=Fraction)
        exactly = round_reservation(_FINE) == _FINE
        return found if exactly else total(found)

    changes.around(reservation, "cpus_of", lambda rule: each(rule()))
    changes.around(reservation, "reserved_cpus", reserved_cpus)


_FINE = Fraction(1, 10**5)
"""A fraction that disappears if amounts are rounded."""


@seeds("CPU-RESERVE-014").of(
    _round_reservations, lambda amount: Fraction(math.floor(amount * 1000), 1000)
)
def reservations_are_cut_to_thousandths() -> None:
    """Truncates reservations to thousandths."""


@seeds("CPU-RESERVE-015").around(Config, "in_force")
def the_effective_configuration_keeps_both_quantities(rule: Any, self: Any) -> Any:
    """Shows the quantities as they were configured."""
    return rule(self=replace(self, named_cpus=CPUSet())) | {"reservedSystemCPUs": self.named_text}


# Which CPUs are reserved


def _reserving(changes: Changes, choose: Callable[[Any, Any, int, Any], int | None]) -> None:
    """Lets `choose` select the CPUs reserved by quantity; None keeps the original choice."""

    def make(
        rule: Any, topology: Any, options: Any, count: int, named_cpus: int, rules: Any
    ) -> Any:
        if not named_cpus and count <= topology.cpus.bit_count():
            named_cpus = choose(topology, options, count, rules) or 0
        return rule(named_cpus=named_cpus)

    changes.around(startup, "make_static", make)


def _first(cpus: Iterable[int], count: int) -> int:
    return CPUSet(list(cpus)[:count]).mask


def _without_options(changes: Changes, choose: Callable[[Any, int], int | None]) -> None:
    _reserving(
        changes,
        lambda topology, parsed_options, count, rules: (
            choose(topology, count) if parsed_options == StaticOptions() else None
        ),
    )


@seeds("CPU-RESERVE-012").by(_without_options)
def reservation_goes_by_core_id_on_uneven_machines(topology: Any, count: int) -> int:
    """Reserves cores in ascending order of core ids."""
    whole, left = 0, count
    for core in topology.cores.values():
        if core.bit_count() <= left:
            whole, left = whole | core, left - core.bit_count()
    return whole | _first(CPUSet.from_mask(topology.cpus & ~whole), left)


def _reserving_without(changes: Changes, **options: bool) -> None:
    """Reserves CPUs as if these options were off."""

    def choose(topology: Any, parsed_options: Any, count: int, rules: Any) -> int | None:
        left = replace(parsed_options, **options)
        if left == parsed_options:
            return None
        mask: int = rules.without_reservation(topology, left).assignment.take(topology.cpus, count)
        return mask

    _reserving(changes, choose)


@seeds("CPU-RESERVE-012").of(_reserving_without, across_numa=False)
def reservation_is_not_distributed_across_numa() -> None:
    """Doesn't distribute reserved CPUs across NUMA nodes."""


@seeds("CPU-RESERVE-012").of(_reserving_without, across_cores=False)
def reservation_is_not_distributed_across_cores() -> None:
    """Doesn't distribute reserved CPUs across cores."""


@seeds("CPU-RESERVE-012").of(_reserving_without, by_uncore=False)
def reservation_is_not_aligned_to_uncore_caches() -> None:
    """Doesn't align reserved CPUs to uncore caches."""


# Allocated reserved CPUs


def _without_reservation(policy: Any) -> Any:
    return replace(policy, reserved=0, broken_cores=0)


@shape(StaticCPUPolicy, "allocate")
def _reserved_for_some(serves: Change, rule: Any, self: Any, pod: Any, container: Any) -> Any:
    """Also allocates reserved CPUs if `serves` is true for the policy, pod and container."""
    policy = _without_reservation(self) if serves(self, pod, container) else self
    return rule(self=policy)


@seeds("CPU-RESERVE-008").of(
    _reserved_for_some, lambda policy, pod, container: container.runs_to_completion
)
def reserved_cpus_serve_init_containers() -> None:
    """Allocates reserved CPUs to init containers."""


@seeds("CPU-RESERVE-008").of(_reserved_for_some, lambda policy, pod, container: container.sidecar)
def reserved_cpus_serve_sidecars() -> None:
    """Allocates reserved CPUs to sidecars."""


@seeds("CPU-RESERVE-008")
def reserved_cpus_are_free_after_a_removal(changes: Changes) -> None:
    """Allocates reserved CPUs after a container released its CPUs."""
    forgotten: list[bool] = []

    def release(rule: Any, self: Any, uid: str, name: str) -> None:
        own = self.state.of(uid, name)
        rule()
        self.has_freed = own is not None

    def allocate(rule: Any, self: Any) -> None:
        forgotten[:] = [getattr(self, "has_freed", False)]
        rule()

    changes.around(CPUManager, "release", release)
    changes.around(CPUManager, "allocate", allocate)
    _reserved_for_some(changes, lambda policy, pod, container: any(forgotten))


@seeds("CPU-RESERVE-008")
def reserved_siblings_complete_a_core(changes: Changes) -> None:
    """Includes reserved CPUs when looking for whole cores."""

    def available(free: Any, self: Any, state: Any) -> Any:
        if not self.options.full_cores:
            return free
        whole = union(core for core in self.topology.cores.values() if core & ~self.reserved)
        return self.topology.complete_cores(state.shared & whole)

    changes.after(StaticCPUPolicy, "available", available)
    changes.around(
        StaticCPUPolicy,
        "in_unbroken_cores",
        lambda rule, self, state, reusable: (
            (self.available(state) | reusable).bit_count() if self.options.full_cores else rule()
        ),
    )


@seeds("CPU-RESERVE-008")
def reserved_cpus_are_handed_out_after_a_restart(changes: Changes) -> None:
    """Allocates reserved CPUs after a restart."""

    def start_cpus(manager: Any) -> Any:
        manager.was_restored = any(True for _ in manager.state)
        return manager

    after_restart: list[bool] = []

    def allocate(rule: Any, self: Any) -> None:
        after_restart[:] = [getattr(self, "was_restored", False)]
        rule()

    changes.after(startup, "start_cpus", start_cpus)
    changes.around(CPUManager, "allocate", allocate)
    _reserved_for_some(changes, lambda policy, pod, container: any(after_restart))


@seeds("CPU-RESERVE-013").after(StaticCPUPolicy, "available")
def a_core_is_free_with_the_average_of_free_threads(free: Any, self: Any, state: Any) -> Any:
    """Treats a core with the average number of free threads as free, despite reserved threads."""
    topology = self.topology
    if topology.has_even_cores:
        return free
    least = topology.cpus_per_core
    by_average = union(
        core for core in topology.cores.values() if (core & free).bit_count() >= least
    )
    return free | by_average & self.reserved & state.shared


# Reserved CPUs outside the shared pool


@seeds("CPU-RESERVE-009").after(startup, "make_static")
def cpus_reserved_by_name_leave_the_shared_pool(policy: Any, options: Any, named_cpus: int) -> Any:
    """Always reserves named CPUs strictly."""
    if not bool(named_cpus):
        return policy
    options = replace(options, strict=True)
    assignment = replace(policy.assignment, options=options)
    return replace(policy, assignment=assignment)


# Malformed and negative quantities


@shape(reservation, "cpus_of")
def _ignore_amounts(ignores: Change, rule: Any, amounts: Any, whose: Any) -> Any:
    """Ignores amounts for which `ignores` is true, given their owner, resource and text."""
    return rule(
        amounts={name: text for name, text in amounts.items() if not ignores(whose, name, text)}
    )


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        return False
    return True


@seeds("CPU-CONFIG-011").by(_ignore_amounts)
def storage_and_pids_are_not_parsed(whose: str, name: str, text: str) -> Any:
    """Ignores malformed quantities of storage and process ids."""
    return name in ("ephemeral-storage", "pid") and not _is_quantity(text)


@seeds("CPU-CONFIG-011").by(_ignore_amounts)
def malformed_reserved_memory_counts_as_nothing(whose: str, name: str, text: str) -> Any:
    """Ignores malformed quantities of memory."""
    return name == "memory" and not _is_quantity(text)


@seeds("CPU-CONFIG-011").of(_ignore_amounts, lambda whose, name, text: not text)
def empty_reserved_quantities_count_as_nothing() -> None:
    """Ignores empty quantities."""


def _is_negative(text: str) -> bool:
    return _is_quantity(text) and quantity.parse(text) < 0


@seeds("CPU-CONFIG-012").by(_ignore_amounts)
def only_reserved_cpus_must_not_be_negative(whose: str, name: str, text: str) -> Any:
    """Accepts negative quantities of anything but CPUs."""
    return name != "cpu" and _is_negative(text)


@seeds("CPU-CONFIG-012")
def negative_reservations_are_subtracted(changes: Changes) -> None:
    """Accepts negative CPU quantities if the sum isn't negative."""

    def cpus_of(rule: Any, amounts: Any) -> Any:
        text = amounts.get("cpu", "")
        if not _is_negative(text):
            return rule()
        others = {name: value for name, value in amounts.items() if name != "cpu"}
        return rule(amounts=others) + quantity.parse(text)

    def check_total(total: Any) -> Any:
        if total < 0:
            raise ConfigError("the CPU reservation is negative")
        return total

    changes.around(reservation, "cpus_of", cpus_of)
    changes.after(reservation, "reserved_cpus", check_total)


# Reservable resources


@seeds("CPU-CONFIG-013").of(
    _ignore_amounts, lambda whose, name, text: name.startswith("hugepages-")
)
def huge_pages_can_be_reserved() -> None:
    """Accepts reservations of huge pages."""


@seeds("CPU-CONFIG-013").by(_ignore_amounts)
def anything_can_be_reserved_for_the_system(whose: str, name: str, text: str) -> Any:
    """Accepts any resource in systemReserved."""
    return whose == "system" and name not in reservation.RESERVABLE


@seeds("CPU-CONFIG-013").of(_ignore_amounts, lambda whose, name, text: "/" in name)
def devices_can_be_reserved() -> None:
    """Accepts reservations of devices."""


@seeds("CPU-CONFIG-013").of(_ignore_amounts, lambda whose, name, text: name == "storage")
def storage_can_be_reserved_by_its_short_name() -> None:
    """Accepts storage instead of ephemeral-storage."""


# The reconcile period


@shape(fields, "decode")
def _other_durations(takes: Change, rule: Any, kubelet_config: Any) -> Any:
    """Ignores a reconcile period if `takes` is true for the configuration and the value."""
    name = "cpuManagerReconcilePeriod"
    if name in kubelet_config and takes(kubelet_config, kubelet_config[name]):
        return rule(
            kubelet_config={each: one for each, one in kubelet_config.items() if each != name}
        )
    return rule()


@seeds("CPU-CONFIG-014").by(_other_durations)
def reconcile_period_may_be_in_days(kubelet_config: Any, value: Any) -> Any:
    """Accepts a reconcile period in days."""
    return bool(re.fullmatch("[0-9]+d", str(value)))


@seeds("CPU-CONFIG-014").by(_other_durations)
def reconcile_period_may_have_a_space(kubelet_config: Any, value: Any) -> Any:
    """Accepts a reconcile period with a space before the unit."""
    return bool(re.fullmatch("[0-9]+ +[smh]", str(value)))


@seeds("CPU-CONFIG-014").by(_other_durations)
def reconcile_period_is_read_under_static_alone(kubelet_config: Any, value: Any) -> Any:
    """Validates the reconcile period only under the static policy."""
    return kubelet_config.get("cpuManagerPolicy") != "static"


@seeds("CPU-CONFIG-014").of(_other_durations, lambda kubelet_config, value: value == "")
def empty_reconcile_period_is_the_default() -> None:
    """Treats an empty reconcile period as the default."""


# Formats of quantities


@shape(reservation, "cpus_of")
def _no_amount_of_cpus(form: str, rule: Any, amounts: Any, whose: str) -> Any:
    """Refuses CPU quantities that match the regular expression `form`."""
    text = amounts.get("cpu", "")
    if re.fullmatch(form, text):
        raise ConfigError(
            f'--{whose}-reserved value failed to parse: failed to parse quantity "{text}" for '
            '"cpu" resource: quantities must match the regular expression '
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return rule()


@seeds("CPU-CONFIG-015").of(_no_amount_of_cpus, ".*[eE][+-]?[0-9]+")
def reserved_cpus_have_no_exponent() -> None:
    """Refuses exponents."""


@seeds("CPU-CONFIG-015").of(_no_amount_of_cpus, ".*E[+-]?[0-9]+")
def reserved_cpus_have_no_large_exponent() -> None:
    """Refuses exponents with a capital E."""


@seeds("CPU-CONFIG-015").of(_no_amount_of_cpus, r"[.+].*|[0-9]+\.[^0-9]*")
def reserved_cpus_begin_with_a_digit() -> None:
    """Refuses signs, and decimal points without digits on both sides."""


@seeds("CPU-CONFIG-015").of(_no_amount_of_cpus, ".*[nu]")
def reserved_cpus_are_counted_in_thousandths_at_most() -> None:
    """Refuses units smaller than a thousandth."""


@seeds("CPU-CONFIG-015")
def decimal_reservations_are_cut_off(changes: Changes) -> None:
    """Truncates decimal quantities to integers."""

    def whole(text: Any) -> Any:
        return text.partition(".")[0] if re.fullmatch(r"[1-9][0-9]*\.[0-9]+", text) else text

    changes.around(
        reservation,
        "cpus_of",
        lambda rule, amounts: rule(
            amounts={name: whole(text) if name == "cpu" else text for name, text in amounts.items()}
        ),
    )
