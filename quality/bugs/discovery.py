"""Bugs of discovery: what of a machine is not seen, or seen twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference import implementation
from numaproof.reference.cadvisor import caches, cpus, discovery
from numaproof.reference.cadvisor.sysfs import CPUS, DiscoveryError, SysTree, UnreadablePathError
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.machine import MachineInfo

seeds = SubjectBugs("discovery")


def _changed(changes: Changes, change: Callable[[MachineInfo], MachineInfo]) -> None:
    changes.around(implementation, "discover", lambda original, *args: change(original(*args)))


def _nodes(info: MachineInfo, **fields: Any) -> MachineInfo:
    nodes = tuple(msgspec.structs.replace(one, **fields) for one in info.topology or ())
    return msgspec.structs.replace(info, topology=nodes)


@seeds("DISCOVERY-021")
def discovery_drops_nodes_without_cpus(changes: Changes) -> None:
    _changed(
        changes,
        lambda info: msgspec.structs.replace(
            info, topology=tuple(one for one in info.topology or () if one.cores)
        ),
    )


@seeds("DISCOVERY-017")
def discovery_counts_memory_twice(changes: Changes) -> None:
    _changed(
        changes,
        lambda info: msgspec.structs.replace(info, memory_capacity=2 * info.memory_capacity),
    )


@seeds("DISCOVERY-019")
def discovery_finds_no_huge_pages(changes: Changes) -> None:
    _changed(changes, lambda info: _nodes(info, hugepages=()))


@seeds("DISCOVERY-020")
def discovery_finds_no_distances(changes: Changes) -> None:
    _changed(changes, lambda info: _nodes(info, distances=()))


@seeds("DISCOVERY-022", "#135541")
def discovery_numbers_nodes_by_their_places(changes: Changes) -> None:
    def numbered(info: MachineInfo) -> MachineInfo:
        nodes = tuple(
            msgspec.structs.replace(one, node_id=place)
            for place, one in enumerate(info.topology or ())
        )
        return msgspec.structs.replace(info, topology=nodes or None)

    _changed(changes, numbered)


@seeds("DISCOVERY-010", "#131610")
def discovery_finds_no_uncore_caches(changes: Changes) -> None:
    def bare(info: MachineInfo) -> MachineInfo:
        nodes = tuple(
            msgspec.structs.replace(
                one,
                cores=one.cores
                and tuple(msgspec.structs.replace(core, uncore_caches=None) for core in one.cores),
            )
            for one in info.topology or ()
        )
        return msgspec.structs.replace(info, topology=nodes or None)

    _changed(changes, bare)


@seeds("DISCOVERY-003", "#53323", "cadvisor #2798")
def discovery_takes_equal_core_ids_for_one_core(changes: Changes) -> None:
    def joined(original: Any, *args: Any) -> list[cpus.CoreThreads]:
        found: dict[int, cpus.CoreThreads] = {}
        for core in original(*args):
            first = found.get(core.core_id)
            found[core.core_id] = (
                core if first is None else first._replace(cpus=first.cpus + core.cpus)
            )
        return list(found.values())

    changes.around(discovery, "cores_of", joined)


# CPUs and their numbers


@seeds("DISCOVERY-014")
def discovery_counts_cores_for_cpus(changes: Changes) -> None:
    _changed(
        changes,
        lambda info: msgspec.structs.replace(
            info, num_cores=sum(len(one.cores or ()) for one in info.topology or ())
        ),
    )


@seeds("DISCOVERY-015")
def discovery_counts_every_cpu_as_a_physical_core(changes: Changes) -> None:
    _changed(changes, lambda info: msgspec.structs.replace(info, num_physical_cores=info.num_cores))


@seeds("DISCOVERY-005", "#124066")
def discovery_takes_offline_cpus_for_online(changes: Changes) -> None:
    changes.replace(cpus.OnlineCPUs, "__contains__", lambda self, cpu: True)
    changes.around(
        cpus,
        "topology_id",
        lambda original, tree, path, name: (
            0 if (found := original(tree, path, name)) is None else found
        ),
    )


@seeds("DISCOVERY-006")
def discovery_finds_no_cpu_online_without_the_list(changes: Changes) -> None:
    def strict(original: Any, self: SysTree, path: str) -> str:
        try:
            return str(original(self, path))
        except UnreadablePathError as error:
            # That there is no list counts as one that cannot be read.
            error.missing = error.missing and path != f"{CPUS}/online"
            raise

    changes.around(SysTree, "read_trimmed", strict)


def _cores(changes: Changes, change: Callable[[cpus.CoreThreads, int], cpus.CoreThreads]) -> None:
    """Changes the cores of each node; the number is a core's place there."""
    changes.around(
        discovery,
        "cores_of",
        lambda original, *args: [change(core, place) for place, core in enumerate(original(*args))],
    )


@seeds("DISCOVERY-002", "#140495")
def discovery_numbers_cores_by_their_places(changes: Changes) -> None:
    _cores(changes, lambda core, place: core._replace(core_id=place))


@seeds("DISCOVERY-002")
def discovery_cuts_package_ids_short(changes: Changes) -> None:
    _cores(changes, lambda core, _: core._replace(package_id=core.package_id % 16))


# Caches


@seeds("DISCOVERY-008", "cadvisor #2456")
def discovery_needs_caches(changes: Changes) -> None:
    def strict(original: Any, tree: SysTree, cpu: int) -> Any:
        found = original(tree, cpu)
        if not found:
            raise DiscoveryError(f"no caches of CPU {cpu}")
        return found

    changes.around(caches, "caches_of_cpu", strict)


@seeds("DISCOVERY-010")
def discovery_takes_the_caches_of_a_node_for_uncore_ones(changes: Changes) -> None:
    def uncore(original: Any, *args: Any) -> caches.NodeCaches:
        found: caches.NodeCaches = original(*args)
        return found._replace(node=(), uncore=tuple(found.node + own for own in found.uncore))

    changes.around(discovery, "caches_of", uncore)


@seeds("DISCOVERY-011")
def discovery_takes_shared_caches_for_those_of_a_core(changes: Changes) -> None:
    def own(original: Any, tree: SysTree, cores: Any) -> caches.NodeCaches:
        found: caches.NodeCaches = original(tree, cores)
        read = caches.read_until_unreadable(tree, cores)
        low = tuple(tuple(one.cache for one in each if one.cache.level <= 2) for each in read)  # noqa: PLR2004 - level 2
        return found._replace(core=low)

    changes.around(discovery, "caches_of", own)


@seeds("DISCOVERY-011")
def discovery_finds_no_caches_of_cores(changes: Changes) -> None:
    changes.around(
        discovery,
        "caches_of",
        lambda original, tree, cores: original(tree, cores)._replace(core=tuple(() for _ in cores)),
    )
