"""Violators of reserved CPUs."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference import startup
from numaproof.reference.config import fields, reservation
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


# What is left to hand out


@seeds("CPU-RESERVE-001")
def the_lowest_cpu_is_kept_back_too(changes: Changes) -> None:
    """The kernel needs the first CPU, whichever CPUs are reserved."""
    changes.replace(
        StaticCPUPolicy,
        "allocatable",
        property(lambda self: self.topology.cpus & ~self.reserved & ~1),
    )
    changes.around(StaticCPUPolicy, "available", lambda rule: rule() & ~1)


# Nothing reserved


class _WrittenZero(Fraction):
    """A reservation of zero that passes for one."""

    def __bool__(self) -> bool:
        return True


@shape(startup, "make_cpu_policy")
def _reservation_of(change: Change, rule: Any, config: Any, reserved: Any) -> Any:
    """Lets the CPU Manager be made with another reservation than the configuration's."""
    return rule(reserved=change(config, reserved))


@seeds("CPU-RESERVE-003").by(_reservation_of)
def a_reservation_of_memory_counts_as_configured(config: Any, reserved: Fraction) -> Fraction:
    """It is asked whether anything is reserved, not whether CPUs are."""
    anything = {**config.kube_reserved, **config.system_reserved}
    if reserved or not anything or "cpu" in anything:
        return reserved
    return _WrittenZero(0)


# By name


@shape(startup, "make_static")
def _change_reservation(
    change: Change, rule: Any, topology: Any, options: Any, count: int, named_cpus: int
) -> Any:
    """Lets the policy be made for another number of CPUs, and others by name."""
    count, named_cpus = change(topology, options, count, named_cpus)
    return rule(count=count, named_cpus=named_cpus)


@seeds("CPU-RESERVE-011").around(reservation, "reserved_cpus")
def overridden_quantities_must_be_valid(rule: Any, config: Any) -> Any:
    """Everything that is written down is parsed, also what is overridden."""
    reservation.cpus_of(config.kube_reserved, "kube")
    reservation.cpus_of(config.system_reserved, "system")
    return rule()


# More than there are


@seeds("CPU-RESERVE-010").by(_change_reservation)
def reserving_twice_the_cores_is_possible_everywhere(
    topology: Any, parsed_options: Any, count: int, named_cpus: int
) -> Any:
    """Two threads a core are assumed, where a machine may have one."""
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
    """Lets `each` amount be rounded otherwise, and then the `total`."""

    def reserved_cpus(rule: Any, round_reservation: Any) -> Any:
        found = rule(round_reservation=Fraction)
        exactly = round_reservation(_FINE) == _FINE
        return found if exactly else total(found)

    changes.around(reservation, "cpus_of", lambda rule: each(rule()))
    changes.around(reservation, "reserved_cpus", reserved_cpus)


_FINE = Fraction(1, 10**5)
"""An amount that counts only where amounts count exactly."""


@seeds("CPU-RESERVE-014").of(
    _round_reservations, lambda amount: Fraction(math.floor(amount * 1000), 1000)
)
def reservations_are_cut_to_thousandths() -> None:
    """What is finer than a thousandth is cut off."""


# Which CPUs are reserved


def _reserving(changes: Changes, choose: Callable[[Any, Any, int, Any], int | None]) -> None:
    """Lets CPUs reserved by amount be `choose` otherwise; None leaves the choice as it is."""

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
    """The documents' ascending order of core ids is taken at its word everywhere."""
    whole, left = 0, count
    for core in topology.cores.values():
        if core.bit_count() <= left:
            whole, left = whole | core, left - core.bit_count()
    return whole | _first(CPUSet.from_mask(topology.cpus & ~whole), left)


def _reserving_without(changes: Changes, **options: bool) -> None:
    """Lets CPUs be reserved as if these options were off."""

    def choose(topology: Any, parsed_options: Any, count: int, rules: Any) -> int | None:
        left = replace(parsed_options, **options)
        if left == parsed_options:
            return None
        mask: int = rules.without_reservation(topology, left).assignment.take(topology.cpus, count)
        return mask

    _reserving(changes, choose)


@seeds("CPU-RESERVE-012").of(_reserving_without, across_numa=False)
def reservation_is_not_distributed_across_numa() -> None:
    """The option is about containers, so the reservation stays packed."""


@seeds("CPU-RESERVE-012").of(_reserving_without, across_cores=False)
def reservation_is_not_distributed_across_cores() -> None:
    """The option is about containers, so the reservation takes whole cores."""


@seeds("CPU-RESERVE-012").of(_reserving_without, by_uncore=False)
def reservation_is_not_aligned_to_uncore_caches() -> None:
    """The option is about containers, so the reservation does without caches."""


# Reserved CPUs that are handed out


def _without_reservation(policy: Any) -> Any:
    return replace(policy, reserved=0, broken_cores=0)


@shape(StaticCPUPolicy, "allocate")
def _reserved_for_some(serves: Change, rule: Any, self: Any, pod: Any, container: Any) -> Any:
    """Lets containers have reserved CPUs, where the policy, pod and container `serves` that."""
    policy = _without_reservation(self) if serves(self, pod, container) else self
    return rule(self=policy)


@seeds("CPU-RESERVE-008").of(
    _reserved_for_some, lambda policy, pod, container: container.runs_to_completion
)
def reserved_cpus_serve_init_containers() -> None:
    """An init container ends soon, and the system can wait for it."""


@seeds("CPU-RESERVE-008").of(_reserved_for_some, lambda policy, pod, container: container.sidecar)
def reserved_cpus_serve_sidecars() -> None:
    """A sidecar is a helper, and helpers run beside the system."""


@seeds("CPU-RESERVE-008")
def reserved_cpus_are_free_after_a_removal(changes: Changes) -> None:
    """What is free is counted anew when CPUs come back, and the reservation is forgotten."""
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
    """With full-pcpus-only, a core counts as whole if all of it is in the shared pool."""

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
    """What the checkpoint says to be shared is free, whatever is reserved."""

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
    """A core with as many free threads as cores have on average is free as a whole."""
    topology = self.topology
    if topology.has_even_cores:
        return free
    least = topology.cpus_per_core
    by_average = union(
        core for core in topology.cores.values() if (core & free).bit_count() >= least
    )
    return free | by_average & self.reserved & state.shared


# Reserved CPUs that leave the shared pool


@seeds("CPU-RESERVE-009").after(startup, "make_static")
def cpus_reserved_by_name_leave_the_shared_pool(policy: Any, options: Any, named_cpus: int) -> Any:
    """Whoever names CPUs wants to have them for the system alone."""
    if not bool(named_cpus):
        return policy
    options = replace(options, strict=True)
    assignment = replace(policy.assignment, options=options)
    return replace(policy, assignment=assignment)


# Values that are no quantities, or negative


@shape(reservation, "cpus_of")
def _ignore_amounts(ignores: Change, rule: Any, amounts: Any, whose: Any) -> Any:
    """Lets amounts be `ignores`, by whose they are, resource and text."""
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
    """Only the reserved CPUs and the reserved memory are read at all."""
    return name in ("ephemeral-storage", "pid") and not _is_quantity(text)


@seeds("CPU-CONFIG-011").by(_ignore_amounts)
def malformed_reserved_memory_counts_as_nothing(whose: str, name: str, text: str) -> Any:
    """The CPU Manager reads the CPUs alone, and the Memory Manager is off."""
    return name == "memory" and not _is_quantity(text)


@seeds("CPU-CONFIG-011").of(_ignore_amounts, lambda whose, name, text: not text)
def empty_reserved_quantities_count_as_nothing() -> None:
    """A value that is left empty is no value."""


def _is_negative(text: str) -> bool:
    return _is_quantity(text) and quantity.parse(text) < 0


@seeds("CPU-CONFIG-012").by(_ignore_amounts)
def only_reserved_cpus_must_not_be_negative(whose: str, name: str, text: str) -> Any:
    """The sign matters where CPUs are counted."""
    return name != "cpu" and _is_negative(text)


@seeds("CPU-CONFIG-012")
def negative_reservations_are_subtracted(changes: Changes) -> None:
    """Only the sum must not be negative."""

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


# Which resources can be reserved


@seeds("CPU-CONFIG-013").of(
    _ignore_amounts, lambda whose, name, text: name.startswith("hugepages-")
)
def huge_pages_can_be_reserved() -> None:
    """Whatever the Memory Manager knows can be reserved."""


@seeds("CPU-CONFIG-013").by(_ignore_amounts)
def anything_can_be_reserved_for_the_system(whose: str, name: str, text: str) -> Any:
    """The resources are checked for kubeReserved alone."""
    return whose == "system" and name not in reservation.RESERVABLE


@seeds("CPU-CONFIG-013").of(_ignore_amounts, lambda whose, name, text: "/" in name)
def devices_can_be_reserved() -> None:
    """Names with a domain are somebody else's, and passed over."""


@seeds("CPU-CONFIG-013").of(_ignore_amounts, lambda whose, name, text: name == "storage")
def storage_can_be_reserved_by_its_short_name() -> None:
    """Storage is storage, ephemeral or not."""


# The reconcile period


@shape(fields, "decode")
def _other_durations(takes: Change, rule: Any, kubelet_config: Any) -> Any:
    """Lets more be a duration, where the configuration and the value are such that it `takes`."""
    name = "cpuManagerReconcilePeriod"
    if name in kubelet_config and takes(kubelet_config, kubelet_config[name]):
        return rule(
            kubelet_config={each: one for each, one in kubelet_config.items() if each != name}
        )
    return rule()


@seeds("CPU-CONFIG-014").by(_other_durations)
def reconcile_period_may_be_in_days(kubelet_config: Any, value: Any) -> Any:
    """After hours come days."""
    return bool(re.fullmatch("[0-9]+d", str(value)))


@seeds("CPU-CONFIG-014").by(_other_durations)
def reconcile_period_may_have_a_space(kubelet_config: Any, value: Any) -> Any:
    """A number and its unit are two words."""
    return bool(re.fullmatch("[0-9]+ +[smh]", str(value)))


@seeds("CPU-CONFIG-014").by(_other_durations)
def reconcile_period_is_read_under_static_alone(kubelet_config: Any, value: Any) -> Any:
    """The none policy has no reconcile loop, so its period does not matter."""
    return kubelet_config.get("cpuManagerPolicy") != "static"


@seeds("CPU-CONFIG-014").of(_other_durations, lambda kubelet_config, value: value == "")
def empty_reconcile_period_is_the_default() -> None:
    """A period that is empty is absent."""


# The forms of a quantity


@shape(reservation, "cpus_of")
def _no_amount_of_cpus(form: str, rule: Any, amounts: Any, whose: str) -> Any:
    """Lets reserved CPUs not be written in a form, given as a regular expression."""
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
    """A quantity is a number and a suffix."""


@seeds("CPU-CONFIG-015").of(_no_amount_of_cpus, ".*E[+-]?[0-9]+")
def reserved_cpus_have_no_large_exponent() -> None:
    """The exponent begins with a small letter, and a large one is the suffix for exa."""


@seeds("CPU-CONFIG-015").of(_no_amount_of_cpus, r"[.+].*|[0-9]+\.[^0-9]*")
def reserved_cpus_begin_with_a_digit() -> None:
    """A decimal point has digits on both sides, and there is no sign."""


@seeds("CPU-CONFIG-015").of(_no_amount_of_cpus, ".*[nu]")
def reserved_cpus_are_counted_in_thousandths_at_most() -> None:
    """Nothing is finer than a thousandth of a CPU."""


@seeds("CPU-CONFIG-015")
def decimal_reservations_are_cut_off(changes: Changes) -> None:
    """What stands behind a decimal point is lost on the way to an integer."""

    def whole(text: Any) -> Any:
        return text.partition(".")[0] if re.fullmatch(r"[1-9][0-9]*\.[0-9]+", text) else text

    changes.around(
        reservation,
        "cpus_of",
        lambda rule, amounts: rule(
            amounts={name: whole(text) if name == "cpu" else text for name, text in amounts.items()}
        ),
    )
