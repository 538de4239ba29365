"""Bugs in discovery: hardware that is missed or counted twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference import implementation
from numaproof.reference.cadvisor import caches, cpus, discovery
from numaproof.reference.cadvisor.sysfs import CPUS, DiscoveryError, SysTree, UnreadablePathError
from quality.seeding import Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.machine import MachineInfo

seeds = SubjectBugs("discovery")


def _nodes(info: MachineInfo, **fields: Any) -> MachineInfo:
    nodes = tuple(msgspec.structs.replace(one, **fields) for one in info.topology or ())
    return msgspec.structs.replace(info, topology=nodes)


@seeds("DISCOVERY-021").after(implementation, "discover")
def discovery_drops_nodes_without_cpus(info: MachineInfo) -> Any:
    return msgspec.structs.replace(
        info, topology=tuple(one for one in info.topology or () if one.cores)
    )


@seeds("DISCOVERY-017").after(implementation, "discover")
def discovery_counts_memory_twice(info: MachineInfo) -> Any:
    return msgspec.structs.replace(info, memory_capacity=2 * info.memory_capacity)


@seeds("DISCOVERY-019").after(implementation, "discover", lambda info: _nodes(info, hugepages=()))
def discovery_finds_no_huge_pages() -> None: ...


@seeds("DISCOVERY-020").after(implementation, "discover", lambda info: _nodes(info, distances=()))
def discovery_finds_no_distances() -> None: ...


@seeds("DISCOVERY-022", "#135541").after(implementation, "discover")
def discovery_numbers_nodes_by_their_places(info: MachineInfo) -> MachineInfo:
    nodes = tuple(
        msgspec.structs.replace(one, node_id=place) for place, one in enumerate(info.topology or ())
    )
    return msgspec.structs.replace(info, topology=nodes or None)


def without_uncore_caches(info: MachineInfo) -> MachineInfo:
    """Returns the machine with its uncore caches removed."""
    nodes = tuple(
        msgspec.structs.replace(
            one,
            cores=one.cores
            and tuple(msgspec.structs.replace(core, uncore_caches=None) for core in one.cores),
        )
        for one in info.topology or ()
    )
    return msgspec.structs.replace(info, topology=nodes or None)


@seeds("DISCOVERY-010", "#131610").after(implementation, "discover", without_uncore_caches)
def discovery_finds_no_uncore_caches() -> None: ...


@seeds("DISCOVERY-003", "#53323", "cadvisor #2798").around(discovery, "cores_of")
def discovery_takes_equal_core_ids_for_one_core(rule: Any) -> list[cpus.CoreThreads]:
    found: dict[int, cpus.CoreThreads] = {}
    for core in rule():
        first = found.get(core.core_id)
        found[core.core_id] = core if first is None else first._replace(cpus=first.cpus + core.cpus)
    return list(found.values())


# CPUs and their ids


@seeds("DISCOVERY-014").after(implementation, "discover")
def discovery_counts_cores_for_cpus(info: MachineInfo) -> Any:
    return msgspec.structs.replace(
        info, num_cores=sum(len(one.cores or ()) for one in info.topology or ())
    )


@seeds("DISCOVERY-015").after(implementation, "discover")
def discovery_counts_every_cpu_as_a_physical_core(info: MachineInfo) -> Any:
    return msgspec.structs.replace(info, num_physical_cores=info.num_cores)


@seeds("DISCOVERY-005", "#124066")
def discovery_takes_offline_cpus_for_online(changes: Changes) -> None:
    changes.replace(cpus.OnlineCPUs, "__contains__", lambda self, cpu: True)
    changes.around(cpus, "topology_id", lambda rule: 0 if (found := rule()) is None else found)


@seeds("DISCOVERY-006").around(SysTree, "read_trimmed")
def discovery_finds_no_cpu_online_without_the_list(rule: Any, path: str) -> str:
    try:
        return str(rule())
    except UnreadablePathError as error:
        # Treat a missing list like an unreadable one.
        error.missing = error.missing and path != f"{CPUS}/online"
        raise


@shape(discovery, "cores_of")
def _cores(change: Callable[[cpus.CoreThreads, int], cpus.CoreThreads], rule: Any) -> Any:
    """Lets `change` replace each core of a node, given its index."""
    return [change(core, place) for place, core in enumerate(rule())]


@seeds("DISCOVERY-002", "#140495").of(_cores, lambda core, place: core._replace(core_id=place))
def discovery_numbers_cores_by_their_places() -> None: ...


@seeds("DISCOVERY-002").of(_cores, lambda core, _: core._replace(package_id=core.package_id % 16))
def discovery_cuts_package_ids_short() -> None: ...


# Caches


@seeds("DISCOVERY-008", "cadvisor #2456").after(caches, "caches_of_cpu")
def discovery_needs_caches(cpu_caches: Any, cpu: int) -> Any:
    if not cpu_caches:
        raise DiscoveryError(f"no caches of CPU {cpu}")
    return cpu_caches


@seeds("DISCOVERY-010").after(discovery, "caches_of")
def discovery_takes_the_caches_of_a_node_for_uncore_ones(
    node_caches: caches.NodeCaches,
) -> caches.NodeCaches:
    return node_caches._replace(
        node=(), uncore=tuple(node_caches.node + own for own in node_caches.uncore)
    )


@seeds("DISCOVERY-011").after(discovery, "caches_of")
def discovery_takes_shared_caches_for_those_of_a_core(
    node_caches: caches.NodeCaches, tree: Any, cores: Any
) -> Any:
    read = caches.read_until_unreadable(tree, cores)
    low = tuple(tuple(one.cache for one in each if one.cache.level <= 2) for each in read)  # noqa: PLR2004 - level 2
    return node_caches._replace(core=low)


@seeds("DISCOVERY-011").around(discovery, "caches_of")
def discovery_finds_no_caches_of_cores(rule: Any, cores: Any) -> Any:
    return rule()._replace(core=tuple(() for _ in cores))
