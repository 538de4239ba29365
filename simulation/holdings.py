"""Who holds what on each NUMA node: CPUs, memory and devices by pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.simulation.reuse import reused_cpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, TypeVar

    from numaproof.reference.memory.state import Blocks
    from numaproof.reference.node import StartedNode

    Names = Mapping[str, str]
    Held = TypeVar("Held", bound=tuple[Any, ...])


class HeldCPUs(msgspec.Struct, frozen=True):
    """The exclusive CPUs of a container on a NUMA node; `container` is empty for a whole pod."""

    pod: str
    container: str
    cpus: CPUSet


class HeldMemory(msgspec.Struct, frozen=True):
    """Memory of a container; `size`, in bytes, is on the nodes of `numa` together.

    `container` is empty for a whole pod.
    """

    pod: str
    container: str
    size: int
    numa: NUMASet


class CPUHoldings(msgspec.Struct, frozen=True):
    """The CPUs of a NUMA node.

    `shared` is the node's part of the shared pool, and `free` can be assigned exclusively.
    """

    shared: CPUSet
    free: CPUSet
    reserved: CPUSet
    exclusive: tuple[HeldCPUs, ...]


class MemoryHoldings(msgspec.Struct, frozen=True):
    """Memory of one type on a NUMA node, in bytes; `reserved` is for the system."""

    type: str
    total: int
    reserved: int
    free: int
    holders: tuple[HeldMemory, ...]


class HeldDevices(msgspec.Struct, frozen=True):
    """Devices of a container."""

    pod: str
    container: str
    ids: tuple[str, ...]


class DeviceHoldings(msgspec.Struct, frozen=True):
    """The devices of one resource near a NUMA node; `free` ones are healthy."""

    resource: str
    free: tuple[str, ...]
    holders: tuple[HeldDevices, ...]


class NodeHoldings(msgspec.Struct, frozen=True):
    """What is held on a NUMA node.

    `numa` is None for devices without a NUMA node. A device near several nodes is listed on each.
    """

    numa: int | None
    cpus: CPUHoldings | None
    memory: tuple[MemoryHoldings, ...]
    devices: tuple[DeviceHoldings, ...]


def holdings(node: StartedNode, names: Names) -> tuple[NodeHoldings, ...]:
    """Returns what is held on each NUMA node; `names` are the pods' names by uid."""
    found = [
        NodeHoldings(
            number,
            _cpus(node, names, number),
            tuple(_memory(node, names, number)),
            tuple(_devices(node, names, number)),
        )
        for number in node.setup.nodes
    ]
    nowhere = tuple(_devices(node, names, None))
    return (*found, *((NodeHoldings(None, None, (), nowhere),) if nowhere else ()))


def _cpus(node: StartedNode, names: Names, number: int) -> CPUHoldings:
    local = node.setup.topology.nodes.get(number, 0)
    state, policy = node.cpus.state, node.setup.cpu
    held = [
        *((uid, "", cpus) for uid, cpus in state.pods.items()),
        *(
            (uid, name, cpus & ~_reused_mask(node, uid, name))
            for uid, name, cpus in state
            if uid not in state.pods
        ),
    ]
    return CPUHoldings(
        shared=CPUSet.from_mask(state.shared & local),
        free=CPUSet.from_mask(policy.available(state) & local if policy else 0),
        reserved=CPUSet.from_mask(policy.reserved & local if policy else 0),
        exclusive=tuple(
            HeldCPUs(names.get(uid, uid), name, CPUSet.from_mask(cpus & local))
            for uid, name, cpus in _by_arrival(node, held)
            if cpus & local
        ),
    )


def _reused_mask(node: StartedNode, uid: str, name: str) -> int:
    """Returns a mask of the CPUs that an init container left to later containers of its pod."""
    cpus = node.cpus.state.exclusive[uid]
    sets = {container: CPUSet.from_mask(mask) for container, mask in cpus.items()}
    return reused_cpus(node.pods[uid], sets).get(name, CPUSet()).mask if uid in node.pods else 0


def _memory(node: StartedNode, names: Names, number: int) -> Iterator[MemoryHoldings]:
    state = node.memory.state
    held: list[tuple[str, str, Blocks]] = [
        *((uid, "", blocks or ()) for uid, blocks in state.pods.items()),
        *(one for one in state if one[0] not in state.pods),
    ]
    tables = state.nodes[number].tables if number in state.nodes else {}
    for kind, table in sorted(tables.items()):
        if table.total:
            blocks = tuple(
                HeldMemory(names.get(uid, uid), name, one.size, NUMASet.from_mask(one.nodes))
                for uid, name, of in _by_arrival(node, held)
                for one in of
                if one.kind == kind and one.size and one.nodes >> number & 1
            )
            yield MemoryHoldings(kind, table.total, table.system, table.free, blocks)


def _devices(node: StartedNode, names: Names, number: int | None) -> Iterator[DeviceHoldings]:
    state = node.device_manager.state
    for resource, devices in sorted(state.lists.items()):

        def is_near(device: str, nodes: Mapping[str, int | None] = devices.nodes) -> bool:
            near = nodes.get(device) or 0
            return not near if number is None else bool(near >> number & 1)

        held = tuple(
            HeldDevices(names.get(uid, uid), name, ids)
            for uid, containers in _by_arrival(node, state.held_devices.items())
            for name, by_resource in containers.items()
            if (ids := tuple(sorted(filter(is_near, by_resource.get(resource, ())))))
        )
        free = tuple(sorted(filter(is_near, state.available(resource))))
        if free or held:
            yield DeviceHoldings(resource, free, held)


def _by_arrival(node: StartedNode, entries: Iterable[Held]) -> list[Held]:
    """Sorts what pods hold, given with their uids, by the order in which the pods arrived."""
    order = {uid: number for number, uid in enumerate(node.pods)}
    return sorted(entries, key=lambda entry: order.get(entry[0], len(order)))
