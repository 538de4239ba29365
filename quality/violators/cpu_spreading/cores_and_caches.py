"""Violators of ``distribute-cpus-across-cores`` and ``prefer-align-cpus-by-uncorecache``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference import operations
from numaproof.reference.cpu import options
from numaproof.reference.cpu import topology as cpu_topology
from numaproof.reference.cpu.assignment import (
    Assignment,
    NotEnoughCPUsError,
    PartialAssignment,
)
from quality.seeding import Changes, SubjectBugs
from quality.violators.cpu_options.whole_cores import (
    allocating,
    comes_early,
    matures,
    with_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.cpu.topology import CPUTopology, Groups
    from numaproof.reference.pods.containers import PodContainer

seeds = SubjectBugs("cpu-spreading")


def _without(changes: Changes, which: Callable[[PodContainer], bool], **options_off: bool) -> None:
    """Allocates for these containers as if the options were off."""
    allocating(
        changes,
        lambda policy, pod, container: (
            with_options(policy, **options_off) if which(container) else policy
        ),
    )


# distribute-cpus-across-cores


@seeds("CPU-OPT-DISTCORES-001", kubernetes="1.30")
def spreading_over_cores_comes_a_release_early(changes: Changes) -> None:
    """Its author has all alpha options in every release."""
    comes_early(changes, options.ACROSS_CORES)


@seeds("CPU-OPT-DISTCORES-001", kubernetes="1.31")
def spreading_over_cores_comes_a_release_late(changes: Changes) -> None:
    """Its author misses the first release that has it."""
    matures(changes, options.ACROSS_CORES, None)


@seeds("CPU-OPT-DISTCORES-001")
def spreading_over_cores_is_visible_by_default(changes: Changes) -> None:
    """Its author takes an option that has been there for years for a beta one."""
    matures(changes, options.ACROSS_CORES, "beta")


def _not_spread(changes: Changes, when: Callable[[Assignment, int, int], bool]) -> None:
    """Packs cores although they are to be spread over, if `when` says so."""

    def pack(original: Any, self: Any, available: int, count: int, beside: int = 0) -> Any:
        if self.options.across_cores and when(self, available, count):
            packed = dataclasses.replace(self.options, across_cores=False)
            self = dataclasses.replace(self, options=packed)
        return original(self, available, count, beside)

    changes.around(Assignment, "pack", pack)


@seeds("CPU-OPT-DISTCORES-002")
def cores_are_spread_over_while_none_is_in_use(changes: Changes) -> None:
    """Its author tries it on an idle node."""

    def in_use(self: Assignment, available: int, _count: int) -> bool:
        used = self.topology.cpus & ~available
        return used.bit_count() > self.topology.cpus_per_core

    _not_spread(changes, in_use)


@seeds("CPU-OPT-DISTCORES-002")
def init_containers_fill_cores(changes: Changes) -> None:
    """Its author has app containers in mind, whose caches matter."""
    _without(changes, lambda container: container.passes, across_cores=False)


@seeds("CPU-OPT-DISTCORES-002")
def sidecars_fill_cores(changes: Changes) -> None:
    """Its author keeps helpers together, away from the app."""
    _without(changes, lambda container: container.sidecar, across_cores=False)


def _short_of_cores(changes: Changes, cores: Callable[[Assignment, int], int]) -> None:
    """Refuses a request for more CPUs than there are cores that count."""

    def pack(original: Any, self: Any, available: int, count: int, beside: int = 0) -> Any:
        if self.options.across_cores and count > cores(self, available):
            raise NotEnoughCPUsError(count, available.bit_count())
        return original(self, available, count, beside)

    changes.around(Assignment, "pack", pack)


@seeds("CPU-OPT-DISTCORES-003")
def request_for_more_cpus_than_cores_is_refused(changes: Changes) -> None:
    """Its author gives each CPU a core of its own, or nothing."""
    _short_of_cores(
        changes,
        lambda self, available: sum(1 for core in self.topology.cores.values() if core & available),
    )


# Availability of prefer-align-cpus-by-uncorecache


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.31")
def uncore_option_comes_a_release_early(changes: Changes) -> None:
    """Its author has all alpha options in every release."""
    comes_early(changes, options.BY_UNCORE)


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.32")
def uncore_option_comes_a_release_late(changes: Changes) -> None:
    """Its author misses the first release that has it."""
    matures(changes, options.BY_UNCORE, None)


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.33")
def uncore_option_is_beta_a_release_early(changes: Changes) -> None:
    """Its author has it mature together with strict-cpu-reservation."""
    matures(changes, options.BY_UNCORE, "beta")


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.34")
def uncore_option_is_beta_a_release_late(changes: Changes) -> None:
    """Its author misses that the option became beta."""
    matures(changes, options.BY_UNCORE, "alpha")


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.35")
def uncore_option_is_stable_a_release_early(changes: Changes) -> None:
    """Its author has it stable together with strict-cpu-reservation."""
    matures(changes, options.BY_UNCORE, "stable")


@seeds("CPU-OPT-UNCORE-001")
def uncore_option_stays_beta(changes: Changes) -> None:
    """Its author goes by the documents, which call it beta."""
    matures(changes, options.BY_UNCORE, "beta")


# One uncore cache


def _among_caches(
    changes: Changes, fits: Callable[[Assignment, PartialAssignment, int], bool]
) -> None:
    """Looks for the CPUs in those uncore caches alone of which `fits` says so."""

    def caches(original: Any, self: Any, progress: PartialAssignment) -> Any:
        seen = 0
        for cache in self.topology.uncores.values():
            if fits(self, progress, cache):
                seen |= cache & progress.free
        found = original(self, progress._replace(free=seen))
        return found._replace(free=progress.free & ~found.taken)

    changes.around(Assignment, "uncore_caches", caches)


@seeds("CPU-OPT-UNCORE-002")
def only_idle_uncore_caches_are_shared(changes: Changes) -> None:
    """Its author aligns to caches that nobody else uses."""
    _among_caches(changes, lambda self, progress, cache: not cache & ~progress.free)


@seeds("CPU-OPT-UNCORE-002")
def uncore_cache_with_just_enough_cpus_is_passed_over(changes: Changes) -> None:
    """Its author wants more free CPUs than are asked for."""

    def roomy(_self: Assignment, progress: PartialAssignment, cache: int) -> bool:
        return (cache & progress.free).bit_count() != progress.wanted or not cache & ~progress.free

    _among_caches(changes, roomy)


@seeds("CPU-OPT-UNCORE-002")
def only_the_fullest_uncore_cache_is_looked_at(changes: Changes) -> None:
    """Its author tries the best fit by free CPUs, and gives up if it is too small."""

    def fullest(self: Assignment, progress: PartialAssignment, cache: int) -> bool:
        if progress.wanted >= self.topology.cpus_per_uncore:
            return True
        first, *_ = self.caches_in_order(progress.free)
        return self.topology.uncores[first] == cache

    _among_caches(changes, fullest)


@seeds("CPU-OPT-UNCORE-002")
def init_containers_are_not_kept_to_an_uncore_cache(changes: Changes) -> None:
    """Its author aligns what runs for long."""
    _without(changes, lambda container: container.passes, by_uncore=False)


@seeds("CPU-OPT-UNCORE-002")
def sidecars_are_not_kept_to_an_uncore_cache(changes: Changes) -> None:
    """Its author aligns app containers."""
    _without(changes, lambda container: container.sidecar, by_uncore=False)


# Several uncore caches


def _beside_caches(changes: Changes, when: Callable[[Assignment, PartialAssignment], bool]) -> None:
    """Does not look at uncore caches, if `when` says so."""

    def caches(original: Any, self: Any, progress: PartialAssignment) -> Any:
        return progress if when(self, progress) else original(self, progress)

    changes.around(Assignment, "uncore_caches", caches)


@seeds("CPU-OPT-UNCORE-003")
def rest_beside_whole_uncore_caches_is_packed(changes: Changes) -> None:
    """Its author takes whole caches, and has the default pack what is left."""

    def caches(original: Any, self: Any, progress: PartialAssignment) -> Any:
        size = self.topology.cpus_per_uncore
        if progress.wanted <= size:
            return original(self, progress)
        order = self.caches_in_order(progress.free)
        groups = self.topology.uncores
        whole = [groups[cache] for cache in order if not groups[cache] & ~progress.free]
        return progress.take_units(whole)

    changes.around(Assignment, "uncore_caches", caches)


# Requests that cannot be aligned


def _refused_unaligned(
    changes: Changes, when: Callable[[Assignment, PartialAssignment], bool]
) -> None:
    """Refuses what uncore caches leave to be packed, if `when` says so of the request."""

    def caches(original: Any, self: Any, progress: PartialAssignment) -> Any:
        found = original(self, progress)
        if found.wanted > 0 and when(self, progress):
            raise NotEnoughCPUsError(progress.wanted, progress.free.bit_count())
        return found

    changes.around(Assignment, "uncore_caches", caches)


@seeds("CPU-OPT-UNCORE-004")
def requests_that_fit_no_uncore_cache_any_more_are_refused(changes: Changes) -> None:
    """Its author waits until a cache has room again."""
    _refused_unaligned(
        changes, lambda self, progress: progress.wanted <= self.topology.cpus_per_uncore
    )


@seeds("CPU-OPT-UNCORE-004")
def large_requests_that_uncore_caches_cannot_meet_are_refused(changes: Changes) -> None:
    """Its author wants whole caches and one part of a cache, or nothing."""
    _refused_unaligned(
        changes, lambda self, progress: progress.wanted > self.topology.cpus_per_uncore
    )


# Odd requests, and half-used cores


@seeds("CPU-OPT-UNCORE-005")
def odd_requests_are_not_kept_to_an_uncore_cache(changes: Changes) -> None:
    """Its author counts cores, and half a core is none."""
    _beside_caches(
        changes,
        lambda self, progress: bool(progress.wanted % self.topology.cpus_per_core),
    )


@seeds("CPU-OPT-UNCORE-005")
def odd_requests_need_room_for_a_whole_core_more(changes: Changes) -> None:
    """Its author rounds up to cores to see which cache has room."""

    def roomy(self: Assignment, progress: PartialAssignment, cache: int) -> bool:
        size, wanted = self.topology.cpus_per_core, progress.wanted
        if wanted % size == 0 or wanted >= self.topology.cpus_per_uncore:
            return True
        return (cache & progress.free).bit_count() >= -(-wanted // size) * size

    _among_caches(changes, roomy)


@seeds("CPU-OPT-UNCORE-006")
def half_used_cores_do_not_count_as_room_in_an_uncore_cache(changes: Changes) -> None:
    """Its author counts the cores of a cache that are free."""

    def whole(self: Assignment, progress: PartialAssignment, cache: int) -> bool:
        free = self.topology.complete_cores(cache & progress.free).bit_count()
        return progress.wanted >= self.topology.cpus_per_uncore or free >= progress.wanted

    _among_caches(changes, whole)


# Machines without uncore caches


def _instead(changes: Changes, groups: Callable[[CPUTopology], Groups]) -> None:
    """Takes other groups for uncore caches where discovery reports none."""

    def derived(original: Any, machine: Any) -> Any:
        found = original(machine)
        cores = [core for one in machine.topology or () for core in one.cores or ()]
        if any(core.uncore_caches for core in cores):
            return found
        return dataclasses.replace(found, uncores=groups(found))

    changes.around(cpu_topology, "derive", derived)
    changes.around(operations, "derive", derived)


@seeds("CPU-OPT-UNCORE-007")
def numa_nodes_stand_in_for_uncore_caches(changes: Changes) -> None:
    """Its author takes the next larger unit for one cache."""
    _instead(changes, lambda topology: topology.nodes)


@seeds("CPU-OPT-UNCORE-007")
def machine_without_uncore_caches_has_one(changes: Changes) -> None:
    """Its author reads a cache id of 0 where there is none."""
    _instead(changes, lambda topology: {0: topology.cpus})


@seeds("CPU-OPT-UNCORE-007")
def cores_stand_in_for_uncore_caches(changes: Changes) -> None:
    """Its author takes the cache of a core where none is shared."""
    _instead(changes, lambda topology: topology.cores)
