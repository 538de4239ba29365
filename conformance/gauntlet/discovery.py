"""Bugs of discovery: what of a machine is not seen, or seen twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.gauntlet.seeding import Changes, Seeds
from numaproof.reference import node

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
