"""Compares the CPUs, memory nodes and devices that the runtime got with what containers have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.kubelet.device_plugins import device_file
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.kubelet.runtime import Container as RuntimeContainer
    from numaproof.protocol import messages


def disagreements(
    running: Iterable[RuntimeContainer], pods: Mapping[str, messages.Containers]
) -> Iterator[str]:
    """Where the runtime was told otherwise, as sentences.

    Containers in the shared pool follow it at the next pass of the reconcile loop only, so their
    CPUs are not compared.

    Args:
        running: the runtime's containers.
        pods: by uid: the pod's containers.
    """
    for one in running:
        uid, name = one.place
        own = pods.get(uid, {}).get(name)
        if own is None:
            continue
        resources = one.config.get("linux", {}).get("resources", {})
        cpus = CPUSet.parse(resources.get("cpuset_cpus", ""))
        nodes = NUMASet(CPUSet.parse(resources.get("cpuset_mems", "")))
        pinned = NUMASet.union(block.numa for block in own.memory)
        if own.exclusive and cpus != own.exclusive:
            yield f"the runtime got CPUs {cpus} for {uid}/{name}, which has CPUs {own.exclusive}"
        if pinned and nodes != pinned:
            yield (
                f"the runtime got memory nodes {nodes} for {uid}/{name}, whose memory is on"
                f" {pinned}"
            )
        if own.devices is not None:
            files = {device["host_path"] for device in one.config.get("devices", [])}
            devices = {
                device_file(resource, device)
                for resource, names in own.devices.items()
                for device in names
            }
            if files != devices:
                yield (
                    f"the runtime got devices {_listed(files)} for {uid}/{name}, which has"
                    f" {_listed(devices)}"
                )


def _listed(files: set[str]) -> str:
    return ", ".join(sorted(files)) or "none"
