"""What the documents entitle a container to, counted from manifest and configuration alone."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet, ListFormatError
from numaproof.reference.departures.releases import release
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.protocol import messages
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.pods.pod_level import PodLevel


def is_static(config: messages.KubeletConfiguration) -> bool:
    """Whether the CPU Manager's policy is static."""
    return config.get("cpuManagerPolicy") == "static"


_TRUE = ("true", "True", "TRUE", "t", "T", "1")
"""How a policy option may be written that is on."""


def options(config: messages.KubeletConfiguration) -> frozenset[str]:
    """The CPU Manager's policy options that are on, by name."""
    return switched_on(config.get("cpuManagerPolicyOptions") or {})


def switched_on(given: Mapping[str, str]) -> frozenset[str]:
    """The options whose value says that they are on."""
    return frozenset(name for name, value in given.items() if value in _TRUE)


def reserved_cpus(config: messages.KubeletConfiguration) -> CPUSet | None:
    """The CPUs that are reserved by name; None where a quantity is reserved, or nothing is named.

    (Reserve Compute Resources, "Explicitly Reserved CPU List".)
    """
    named = config.get("reservedSystemCPUs")
    try:
        return CPUSet.parse(named) if named else None
    except (ListFormatError, TypeError):
        return None


def reserved_count(config: messages.KubeletConfiguration) -> int:
    """How many CPUs are reserved: as many as are named, else the quantities' sum, rounded up."""
    named = reserved_cpus(config)
    if named is not None:
        return len(named)
    amounts = (_entries(config.get(key)) for key in ("kubeReserved", "systemReserved"))
    return math.ceil(sum(_amount(amount.get("cpu", 0)) for amount in amounts))


# What no kubelet takes counts as nothing, so that one that takes it can be judged all the same.


def _entries(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _amount(text: Any) -> Fraction:
    try:
        return quantity.parse(text)
    except quantity.QuantityError:
        return Fraction(0)


def _exact(text: Any) -> int:
    try:
        return quantity.exact(text) or 0
    except quantity.QuantityError:
        return 0


def exclusive_counts(pod: Pod) -> dict[str, int]:
    """How many exclusive CPUs each container of a pod is due under policy static, by name.

    Zero for all but containers of Guaranteed pods with a whole number of CPUs. (Node Resource
    Managers, "Static policy"; Kubernetes 1.34 for pod-level resources.)
    """
    return {container.name: pod.exclusive_cpus(container) for container in pod.containers}


def pod_level(config: messages.KubeletConfiguration, kubernetes: str) -> PodLevel:
    """What the resources of a pod as a whole do in a release with this configuration."""
    known = release(kubernetes)
    gate, given = known.gates["PodLevelResources"], config.get("featureGates") or {}
    of_all = given.get(f"All{gate.maturity.capitalize()}", gate.default)
    on = given.get("PodLevelResources", of_all)
    return known.under(given).pod_level if on else known.pod_level_without_gate


def has_budget(pod: Pod, config: messages.KubeletConfiguration) -> bool:
    """Whether a pod is given CPUs and memory as a whole, for its containers to share.

    (Kubernetes 1.36, gate PodLevelResourceManagers with scope pod.)
    """
    as_one = config.get("topologyManagerScope") == "pod" and topology_policy(config) != "none"
    return as_one and pod.budget is not None


def keeps_memory(config: messages.KubeletConfiguration) -> bool:
    """Whether the Memory Manager's policy is Static."""
    return config.get("memoryManagerPolicy") == "Static"


Amounts = dict[str, int]
"""Bytes by memory type, those of zero left out."""


def pinned_memory(pod: Pod) -> dict[str, Amounts]:
    """The memory that each container of a pod is due under policy Static, by name.

    None for all but containers of Guaranteed pods (Node Resource Managers, "Memory management
    policies").
    """
    served = pod.qos == "Guaranteed" and not pod.shared_pool
    return {
        container.name: _memory(container.requests)
        if served and not pod.shares_budget(container)
        else {}
        for container in pod.containers
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
    given = config.get("reservedMemory")
    for entry in map(_entries, given if isinstance(given, list) else ()):
        limits = _entries(entry.get("limits"))
        found[entry.get("numaNode", 0)] = {kind: _exact(text) for kind, text in limits.items()}
    return found


def device_counts(pod: Pod, resources: Iterable[str]) -> dict[str, dict[str, int]]:
    """How many devices of each of `resources` each container of a pod asks for, by name."""
    return {
        container.name: {
            resource: quantity.value(container.limits[resource])
            for resource in resources
            if resource in container.limits
        }
        for container in pod.containers
    }


def topology_policy(config: messages.KubeletConfiguration) -> str:
    """The Topology Manager's policy."""
    policy: str = config.get("topologyManagerPolicy") or "none"
    return policy
