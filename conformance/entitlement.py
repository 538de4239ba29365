"""What the documents entitle a container to, counted from manifest and configuration alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference.kubernetes import pods, quantity
from numaproof.reference.kubernetes.releases import release

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.protocol import messages
    from numaproof.reference.kubernetes.pods import PodLevel


def is_static(config: messages.KubeletConfiguration) -> bool:
    """Whether the CPU Manager's policy is static."""
    return config.get("cpuManagerPolicy") == "static"


def options(config: messages.KubeletConfiguration) -> dict[str, str]:
    """The CPU Manager's policy options."""
    return config.get("cpuManagerPolicyOptions") or {}


def reserved_cpus(config: messages.KubeletConfiguration) -> CPUSet | None:
    """The CPUs that are reserved by name; None where a quantity is reserved.

    (Reserve Compute Resources, "Explicitly Reserved CPU List".)
    """
    named = config.get("reservedSystemCPUs")
    return CPUSet.parse(named) if named else None


def reserved_count(config: messages.KubeletConfiguration) -> int:
    """How many CPUs are reserved: as many as are named, else the quantities' sum, rounded up."""
    named = reserved_cpus(config)
    if named is not None:
        return len(named)
    amounts = (config.get(key) or {} for key in ("kubeReserved", "systemReserved"))
    return math.ceil(sum(quantity.parse(amount.get("cpu", 0)) for amount in amounts))


def exclusive_counts(pod: messages.Pod, level: PodLevel = "shared pool") -> dict[str, int]:
    """How many exclusive CPUs each container of a pod is due under policy static, by name.

    Zero for all but containers of Guaranteed pods with a whole number of CPUs. `level` is what
    the pod's own resources do. (Node Resource Managers, "Static policy"; Kubernetes 1.34 for
    pod-level resources.)
    """
    parsed = pods.parse(pod, level)
    return {container.name: parsed.exclusive_cpus(container) for container in parsed.containers}


def pod_level(config: messages.KubeletConfiguration, kubernetes: str) -> PodLevel:
    """What the resources of a pod as a whole do in a release with this configuration."""
    known = release(kubernetes)
    gate, given = known.gates["PodLevelResources"], config.get("featureGates") or {}
    of_all = given.get(f"All{gate.maturity.capitalize()}", gate.default)
    on = given.get("PodLevelResources", of_all)
    return known.under(given).pod_level if on else known.pod_level_without_gate


def has_budget(
    pod: messages.Pod, config: messages.KubeletConfiguration, level: PodLevel = "shared pool"
) -> bool:
    """Whether a pod is given CPUs and memory as a whole, for its containers to share.

    (Kubernetes 1.36, gate PodLevelResourceManagers with scope pod.)
    """
    as_one = config.get("topologyManagerScope") == "pod" and topology_policy(config) != "none"
    return as_one and pods.parse(pod, level).budget is not None


def keeps_memory(config: messages.KubeletConfiguration) -> bool:
    """Whether the Memory Manager's policy is Static."""
    return config.get("memoryManagerPolicy") == "Static"


Amounts = dict[str, int]
"""Bytes by memory type, those of zero left out."""


def pinned_memory(pod: messages.Pod, level: PodLevel = "shared pool") -> dict[str, Amounts]:
    """The memory that each container of a pod is due under policy Static, by name.

    None for all but containers of Guaranteed pods (Node Resource Managers, "Memory management
    policies").
    """
    parsed = pods.parse(pod, level)
    served = parsed.qos == "Guaranteed" and not parsed.shared_pool
    return {
        container.name: _memory(container.requests)
        if served and not parsed.shares_budget(container)
        else {}
        for container in parsed.containers
    }


def _memory(requests: Mapping[str, Any]) -> Amounts:
    found = {
        kind: quantity.exact(text)
        for kind, text in requests.items()
        if kind == "memory" or kind.startswith("hugepages-")
    }
    return {kind: size for kind, size in found.items() if size}


def reserved_memory(config: messages.KubeletConfiguration) -> dict[int, Amounts]:
    """The bytes that ``reservedMemory`` names, by node and memory type."""
    found: dict[int, Amounts] = {}
    for entry in config.get("reservedMemory") or ():
        limits = entry.get("limits") or {}
        found[entry.get("numaNode", 0)] = {
            kind: quantity.exact(text) or 0 for kind, text in limits.items()
        }
    return found


def device_counts(pod: messages.Pod, resources: Iterable[str]) -> dict[str, dict[str, int]]:
    """How many devices of each of `resources` each container of a pod asks for, by name."""
    return {
        container.name: {
            resource: quantity.value(container.limits[resource])
            for resource in resources
            if resource in container.limits
        }
        for container in pods.parse(pod).containers
    }


def topology_policy(config: messages.KubeletConfiguration) -> str:
    """The Topology Manager's policy."""
    policy: str = config.get("topologyManagerPolicy") or "none"
    return policy
