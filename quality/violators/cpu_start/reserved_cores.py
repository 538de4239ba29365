"""Violators of which CPUs are reserved, and of what becomes of them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference import startup
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.options import StaticOptions
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.topology import union
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

seeds = SubjectBugs("cpu-start")


# Which CPUs are reserved


def _reserving(changes: Changes, chosen: Callable[[Any, Any, int, Any], int | None]) -> None:
    """Lets CPUs reserved by amount be `chosen` otherwise; None leaves the choice as it is."""

    def make(original: Any, topology: Any, given: Any, count: int, named: int, rules: Any) -> Any:
        if not named and count <= topology.cpus.bit_count():
            named = chosen(topology, given, count, rules) or 0
        return original(topology, given, count, named, rules)

    changes.around(startup, "make_static", make)


def _first(cpus: Iterable[int], count: int) -> int:
    return CPUSet(list(cpus)[:count]).mask


def _without_options(changes: Changes, chosen: Callable[[Any, int], int | None]) -> None:
    _reserving(
        changes,
        lambda topology, given, count, rules: (
            chosen(topology, count) if given == StaticOptions() else None
        ),
    )


@seeds("CPU-RESERVE-012")
def reservation_goes_by_core_id_on_uneven_machines(changes: Changes) -> None:
    """The documents' ascending order of core ids is taken at its word everywhere."""

    def chosen(topology: Any, count: int) -> int:
        whole, left = 0, count
        for core in topology.cores.values():
            if core.bit_count() <= left:
                whole, left = whole | core, left - core.bit_count()
        return whole | _first(CPUSet.from_mask(topology.cpus & ~whole), left)

    _without_options(changes, chosen)


def _reserving_without(changes: Changes, **options: bool) -> None:
    """Lets CPUs be reserved as if these options were off."""

    def chosen(topology: Any, given: Any, count: int, rules: Any) -> int | None:
        left = dataclasses.replace(given, **options)
        if left == given:
            return None
        mask: int = rules.bare(topology, left).assignment.take(topology.cpus, count)
        return mask

    _reserving(changes, chosen)


@seeds("CPU-RESERVE-012")
def reservation_is_not_distributed_across_numa(changes: Changes) -> None:
    """The option is about containers, so the reservation stays packed."""
    _reserving_without(changes, across_numa=False)


@seeds("CPU-RESERVE-012")
def reservation_is_not_distributed_across_cores(changes: Changes) -> None:
    """The option is about containers, so the reservation takes whole cores."""
    _reserving_without(changes, across_cores=False)


@seeds("CPU-RESERVE-012")
def reservation_is_not_aligned_to_uncore_caches(changes: Changes) -> None:
    """The option is about containers, so the reservation does without caches."""
    _reserving_without(changes, by_uncore=False)


# Reserved CPUs that are handed out


def _unreserved(policy: Any) -> Any:
    return dataclasses.replace(policy, reserved=0, broken=0)


def _reserved_for_some(changes: Changes, serves: Callable[[Any, Any, Any], bool]) -> None:
    """Lets containers have reserved CPUs, where the policy, pod and container `serves` that."""

    def allocate(original: Any, self: Any, state: Any, pod: Any, *rest: Any) -> Any:
        policy = _unreserved(self) if serves(self, pod, rest[0]) else self
        return original(policy, state, pod, *rest)

    changes.around(StaticCPUPolicy, "allocate", allocate)


@seeds("CPU-RESERVE-008")
def reserved_cpus_serve_init_containers(changes: Changes) -> None:
    """An init container ends soon, and the system can wait for it."""
    _reserved_for_some(changes, lambda policy, pod, container: container.passes)


@seeds("CPU-RESERVE-008")
def reserved_cpus_serve_sidecars(changes: Changes) -> None:
    """A sidecar is a helper, and helpers run beside the system."""
    _reserved_for_some(changes, lambda policy, pod, container: container.sidecar)


@seeds("CPU-RESERVE-008")
def reserved_cpus_are_free_after_a_removal(changes: Changes) -> None:
    """What is free is counted anew when CPUs come back, and the reservation is forgotten."""
    forgotten: list[bool] = []

    def release(original: Any, self: Any, uid: str, name: str) -> None:
        own = self.state.of(uid, name)
        original(self, uid, name)
        self.has_freed = own is not None

    def allocate(original: Any, self: Any, *args: Any) -> None:
        forgotten[:] = [getattr(self, "has_freed", False)]
        original(self, *args)

    changes.around(CPUManager, "release", release)
    changes.around(CPUManager, "allocate", allocate)
    _reserved_for_some(changes, lambda policy, pod, container: any(forgotten))


@seeds("CPU-RESERVE-008")
def reserved_siblings_complete_a_core(changes: Changes) -> None:
    """With full-pcpus-only, a core counts as whole if all of it is in the shared pool."""

    def available(original: Any, self: Any, state: Any) -> Any:
        free = original(self, state)
        if not self.options.full_cores:
            return free
        whole = union(core for core in self.topology.cores.values() if core & ~self.reserved)
        return self.topology.complete_cores(state.shared & whole)

    changes.around(StaticCPUPolicy, "available", available)
    changes.around(
        StaticCPUPolicy,
        "in_unbroken_cores",
        lambda original, self, state, reusable: (
            (self.available(state) | reusable).bit_count()
            if self.options.full_cores
            else original(self, state, reusable)
        ),
    )


@seeds("CPU-RESERVE-008")
def reserved_cpus_are_handed_out_after_a_restart(changes: Changes) -> None:
    """What the checkpoint says to be shared is free, whatever is reserved."""

    def restored(original: Any, setup: Any, release: Any, state_dir: Any, *rest: Any) -> Any:
        manager = original(setup, release, state_dir, *rest)
        manager.restored = any(True for _ in manager.state)
        return manager

    after_restart: list[bool] = []

    def allocate(original: Any, self: Any, *args: Any) -> None:
        after_restart[:] = [getattr(self, "restored", False)]
        original(self, *args)

    changes.around(startup, "start_cpus", restored)
    changes.around(CPUManager, "allocate", allocate)
    _reserved_for_some(changes, lambda policy, pod, container: any(after_restart))


@seeds("CPU-RESERVE-013")
def a_core_is_free_with_the_average_of_free_threads(changes: Changes) -> None:
    """A core with as many free threads as cores have on average is free as a whole."""

    def available(original: Any, self: Any, state: Any) -> Any:
        free = original(self, state)
        topology = self.topology
        if topology.has_even_cores:
            return free
        least = topology.cpus_per_core
        by_average = union(
            core for core in topology.cores.values() if (core & free).bit_count() >= least
        )
        return free | by_average & self.reserved & state.shared

    changes.around(StaticCPUPolicy, "available", available)


# Reserved CPUs that leave the shared pool


def _strict_where(changes: Changes, strict: Callable[[int], bool]) -> None:
    """Lets the reservation be strict, depending on the CPUs reserved by name."""

    def make(original: Any, topology: Any, given: Any, count: int, named: int, rules: Any) -> Any:
        policy = original(topology, given, count, named, rules)
        if not strict(named):
            return policy
        options = dataclasses.replace(given, strict=True)
        assignment = dataclasses.replace(policy.assignment, options=options)
        return dataclasses.replace(policy, assignment=assignment)

    changes.around(startup, "make_static", make)


@seeds("CPU-RESERVE-009")
def cpus_reserved_by_name_leave_the_shared_pool(changes: Changes) -> None:
    """Whoever names CPUs wants to have them for the system alone."""
    _strict_where(changes, bool)
