"""The resources that the documentation entitles a container to.

They are computed from the manifest and the configuration alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.judging.pods import PodReading, PodResources, amount
from numaproof.protocol.releases import between
from numaproof.protocol.sets import CPUSet, ListFormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.protocol import messages


def is_static(config: messages.KubeletConfiguration) -> bool:
    """Whether the CPU Manager's policy is static."""
    return config.get("cpuManagerPolicy") == "static"


_ROUNDS_RESERVATIONS = between("1.37")
_HAS_MEMORY_GATE = between("1.30", "1.31")
_TRUE = ("true", "True", "TRUE", "t", "T", "1")
"""Values that enable a policy option."""


def options(config: messages.KubeletConfiguration) -> frozenset[str]:
    """The enabled CPU Manager policy options."""
    return switched_on(_entries(config.get("cpuManagerPolicyOptions")))


def switched_on(option_values: Mapping[str, str]) -> frozenset[str]:
    """The options that are enabled by their values."""
    return frozenset(name for name, value in option_values.items() if value in _TRUE)


def reserved_cpus(config: messages.KubeletConfiguration) -> CPUSet | None:
    """The CPUs in `reservedSystemCPUs`; None if it is empty or invalid.

    (Reserve Compute Resources, "Explicitly Reserved CPU List".)
    """
    named = config.get("reservedSystemCPUs")
    try:
        return CPUSet.parse(named) if named and isinstance(named, str) else None
    except ListFormatError:
        return None


def reserved_amounts(
    config: messages.KubeletConfiguration, kubernetes: str, level: messages.Level
) -> frozenset[Fraction]:
    """The acceptable numbers of reserved CPUs before rounding up: those listed, or else the sum.

    Since 1.37, the kubelet first rounds each quantity to the nearest thousandth. The documentation
    doesn't say so, so below level ``kubelet`` the exact sum is also acceptable. (CPU-RESERVE-014.)
    """
    named = reserved_cpus(config)
    if named is not None:
        return frozenset((Fraction(len(named)),))
    exact = [amount(each.get("cpu", 0)) for each in _reservations(config)]
    sums = {sum(exact, Fraction())}
    if kubernetes in _ROUNDS_RESERVATIONS:
        # The quantity is first rounded up to millionths.
        rounded = (Fraction((math.ceil(one * 10**6) + 500) // 1000, 1000) for one in exact)
        sums = {sum(rounded, Fraction())} | (set() if applies("kubelet", level) else sums)
    return frozenset(sums)


def memory_quantities(config: messages.KubeletConfiguration) -> Fraction:
    """The bytes in `kubeReserved`, `systemReserved` and the hard threshold, unless it's a share."""
    threshold = _entries(config.get("evictionHard")).get("memory.available", 0)
    amounts = [each.get("memory", 0) for each in _reservations(config)]
    if not str(threshold).endswith("%"):
        amounts.append(threshold)
    return sum(map(amount, amounts), Fraction())


def _reservations(config: messages.KubeletConfiguration) -> tuple[dict[str, Any], ...]:
    return tuple(_entries(config.get(key)) for key in ("kubeReserved", "systemReserved"))


def _entries(value: object) -> dict[str, Any]:
    # Values that no kubelet accepts count as empty, so that implementations that accept them can be
    # judged.
    return value if isinstance(value, dict) else {}


def exclusive_counts(pod: PodReading) -> dict[str, int]:
    """The exclusive CPUs that each container of a pod is due under the static policy, by name.

    Zero except for containers of Guaranteed pods with an integer CPU request. (Node Resource
    Managers, "Static policy"; Kubernetes 1.34 for pod-level resources.)
    """
    return {container.name: pod.exclusive_cpus(container) for container in pod.containers}


class _Gate(NamedTuple):
    """A feature gate's maturity and default."""

    stage: str
    on: bool


_ALPHA, _BETA, _BETA_OFF = _Gate("Alpha", on=False), _Gate("Beta", on=True), _Gate("Beta", on=False)


class _PodLevel(NamedTuple):
    """How a release treats pod-level resources, with ``PodLevelResources`` on and off."""

    gates: Mapping[str, _Gate]
    on: PodResources
    off: PodResources = PodResources()


_CLASSIFIES = _PodLevel({"PodLevelResources": _ALPHA}, PodResources(classify=True))
_UNPINS = _PodLevel({"PodLevelResources": _BETA}, PodResources(classify=True, unpin=True))
_ALWAYS_UNPINS = _PodLevel(
    {"PodLevelResources": _BETA, "PodLevelResourceManagers": _ALPHA},
    PodResources(classify=True, unpin=True),
    PodResources(unpin=True),
)
_COMPLETES = _PodLevel(
    {
        "PodLevelResources": _BETA,
        "PodLevelResourceManagers": _BETA_OFF,
        "PodLevelResourcesFixDefaulting": _BETA,
        "PodLevelResourcesFixKubeletQOSClass": _BETA,
    },
    PodResources(classify=True, unpin=True),
    PodResources(unpin=True),
)
_POD_LEVEL = {
    "1.30": _PodLevel({}, PodResources()),
    "1.31": _PodLevel({}, PodResources()),
    "1.32": _CLASSIFIES,
    "1.33": _CLASSIFIES,
    "1.34": _UNPINS,
    "1.35": _UNPINS,
    "1.36": _ALWAYS_UNPINS,
    "1.37": _COMPLETES,
}
"""How each release treats pod-level resources. (NODE-PODLEVEL-002, NODE-PODLEVEL-005,
NODE-PODLEVEL-006, NODE-PODLEVEL-016, NODE-PODLEVEL-018.)
"""


def pod_resources(config: messages.KubeletConfiguration, kubernetes: str) -> PodResources:
    """How a release treats pod-level resources under a configuration."""
    known = _POD_LEVEL[kubernetes]
    given = _entries(config.get("featureGates"))

    def on(name: str) -> bool:
        gate = known.gates.get(name)
        return gate is not None and bool(given.get(name, given.get(f"All{gate.stage}", gate.on)))

    if not on("PodLevelResources"):
        return known.off
    return replace(
        known.on,
        unpin=known.on.unpin and not on("PodLevelResourceManagers"),
        budget=on("PodLevelResourceManagers"),
        complete=on("PodLevelResourcesFixDefaulting"),
        empty_classify=not on("PodLevelResourcesFixKubeletQOSClass"),
    )


def has_budget(pod: PodReading, config: messages.KubeletConfiguration) -> bool:
    """Whether the managers allocate the pod-level CPUs and memory for the containers to share.

    (Kubernetes 1.36, the PodLevelResourceManagers gate with the pod scope.)
    """
    return _pods_as_one(config) and pod.budget is not None


def gives_budgets(config: messages.KubeletConfiguration, kubernetes: str) -> bool:
    """Whether pods can have a budget under a configuration; see `has_budget`."""
    return _pods_as_one(config) and pod_resources(config, kubernetes).budget


def _pods_as_one(config: messages.KubeletConfiguration) -> bool:
    return config.get("topologyManagerScope") == "pod" and topology_policy(config) != "none"


def keeps_memory(config: messages.KubeletConfiguration, kubernetes: str) -> bool:
    """Whether the Memory Manager is active with the Static policy. MEM-GATE-001."""
    if config.get("memoryManagerPolicy") != "Static":
        return False
    given = _entries(config.get("featureGates"))
    on = given.get("MemoryManager", given.get("AllBeta", True))
    return on is not False or kubernetes not in _HAS_MEMORY_GATE


_HAS_QUOTA_BETA = between("1.33", "1.35")


def quota_limits(config: messages.KubeletConfiguration) -> bool:
    """Whether CPU limits are enforced by CFS quota."""
    return config.get("cpuCFSQuota") is not False


def quota_spares_exclusive(config: messages.KubeletConfiguration, kubernetes: str) -> bool:
    """Whether containers with exclusive CPUs have no CFS quota. CPU-STATIC-020, CPU-GATE-012."""
    given = _entries(config.get("featureGates"))
    default = given.get("AllBeta", True) if kubernetes in _HAS_QUOTA_BETA else True
    return given.get("DisableCPUQuotaWithExclusiveCPUs", default) is not False


Amounts = dict[str, int]
"""Bytes by memory type, omitting zero amounts."""


def pinned_memory(pod: PodReading) -> dict[str, Amounts]:
    """The memory that each container of a pod is due under the Static policy, by name.

    Empty except for containers of Guaranteed pods (Node Resource Managers, "Memory management
    policies").
    """
    return {
        container.name: _memory(container.requests) if container in pod.pinned_containers else {}
        for container in pod.containers
    }


def _memory(requests: Mapping[str, Fraction]) -> Amounts:
    return {
        kind: math.ceil(size)
        for kind, size in requests.items()
        if size and (kind == "memory" or kind.startswith("hugepages-"))
    }


def reserved_memory(config: messages.KubeletConfiguration) -> dict[int, Amounts]:
    """The bytes in ``reservedMemory``, by node and memory type."""
    found: dict[int, Amounts] = {}
    given = config.get("reservedMemory")
    for entry in map(_entries, given if isinstance(given, list) else ()):
        limits = _entries(entry.get("limits"))
        found[entry.get("numaNode", 0)] = {
            kind: math.ceil(amount(text)) for kind, text in limits.items()
        }
    return found


def device_counts(pod: PodReading, resources: Iterable[str]) -> dict[str, dict[str, int]]:
    """The number of devices that each container of a pod requests, by container and resource."""
    return {
        container.name: {
            resource: math.ceil(container.limits[resource])
            for resource in resources
            if resource in container.limits
        }
        for container in pod.containers
    }


def topology_policy(config: messages.KubeletConfiguration) -> str:
    """The Topology Manager's policy."""
    policy: str = config.get("topologyManagerPolicy") or "none"
    return policy
