"""Bugs of discovery: what of a machine is not seen, or seen twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.gauntlet.seeding import Changes, Seeds
from numaproof.reference import node
from numaproof.reference.machine import cpus, discovery

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.machine import MachineInfo

seeds = Seeds("discovery")


def _changed(changes: Changes, change: Callable[[MachineInfo], MachineInfo]) -> None:
    changes.around(node, "discover", lambda original, *args: change(original(*args)))


def _nodes(info: MachineInfo, **fields: Any) -> MachineInfo:
    nodes = tuple(msgspec.structs.replace(one, **fields) for one in info.topology or ())
    return msgspec.structs.replace(info, topology=nodes)


@seeds("DISCOVERY-001")
def discovery_drops_nodes_without_cpus(changes: Changes) -> None:
    _changed(
        changes,
        lambda info: msgspec.structs.replace(
            info, topology=tuple(one for one in info.topology or () if one.cores)
        ),
    )


@seeds("DISCOVERY-001")
def discovery_counts_memory_twice(changes: Changes) -> None:
    _changed(
        changes,
        lambda info: msgspec.structs.replace(info, memory_capacity=2 * info.memory_capacity),
    )


@seeds("DISCOVERY-001")
def discovery_finds_no_huge_pages(changes: Changes) -> None:
    _changed(changes, lambda info: _nodes(info, hugepages=()))


@seeds("DISCOVERY-001")
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
