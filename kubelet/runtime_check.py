"""Compares the configuration of the runtime's containers with their allocations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.kubelet import device_access
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from numaproof.kubelet.protobuf import Message
    from numaproof.kubelet.runtime import Container as RuntimeContainer
    from numaproof.protocol import messages


def disagreements(
    running: Iterable[RuntimeContainer],
    pods: Mapping[str, messages.Containers],
    prepared_files: AbstractSet[str] = frozenset(),
) -> Iterator[str]:
    """Yields how the runtime's containers differ from their allocations, as sentences.

    A container must be created with its CPUs, so that it never runs elsewhere until the next pass
    of the reconcile loop. Containers in the shared pool follow it at the next pass only, so it only
    matters that they are created with CPUs.

    Requirements: NODE-RUNTIME-001.

    Args:
        running: the runtime's containers.
        pods: by uid: the pod's containers.
        prepared_files: the files of the devices that plugins were asked to prepare.
    """
    for one in running:
        uid, name = one.place
        own = pods.get(uid, {}).get(name)
        if own is None:
            continue
        if one.resources_at_creation is not None:
            yield from _differences(f"created {uid}/{name} with", one.resources_at_creation, own)
        if one.resources != one.resources_at_creation:
            yield from _differences(f"updated {uid}/{name} to", one.resources, own)
        if own.devices is not None:
            yield from _device_differences(one, own.devices, prepared_files)


def _device_differences(
    container: RuntimeContainer,
    devices: Mapping[str, tuple[str, ...]],
    prepared_files: AbstractSet[str],
) -> Iterator[str]:
    place = "/".join(container.place)
    files = {
        device_access.device_file(resource, name)
        for resource, names in devices.items()
        for name in names
    }
    for kind, told in device_access.by_kind(container.config):
        if told != files:
            yield f"the runtime got {kind} {_join(told)} for {place}, which has {_join(files)}"
    missing = files - prepared_files
    if missing and container.resources_at_creation is not None:
        yield f"no plugin was asked to prepare {_join(missing)} before {place} was created"


def _differences(what: str, resources: Message, own: messages.Container) -> Iterator[str]:
    cpus = CPUSet.parse(resources.get("cpuset_cpus", ""))
    nodes = NUMASet(CPUSet.parse(resources.get("cpuset_mems", "")))
    pinned = NUMASet.union(block.numa for block in own.memory)
    if own.exclusive and cpus != own.exclusive:
        yield f"the runtime {what} CPUs {cpus or 'unset'}, but it has CPUs {own.exclusive}"
    if own.cpus and not own.exclusive and not cpus:
        yield f"the runtime {what} CPUs unset, but it runs on the shared pool"
    if pinned and nodes != pinned:
        yield f"the runtime {what} memory nodes {nodes}, but its memory is on {pinned}"


def _join(files: set[str]) -> str:
    return ", ".join(sorted(files)) or "none"
