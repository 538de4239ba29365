"""What the documents entitle a container to, counted from manifest and configuration alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from numaproof.protocol.sets import CPUSet
from numaproof.reference.kubernetes import pods, quantity

if TYPE_CHECKING:
    from numaproof.protocol import messages


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


def exclusive_counts(pod: messages.Pod) -> dict[str, int]:
    """How many exclusive CPUs each container of a pod is due under policy static, by name.

    Zero for all but containers of Guaranteed pods with a whole number of CPUs, and for the
    containers of a pod that sets its resources as a whole (Node Resource Managers, "Static
    policy"; Kubernetes 1.34 for pod-level resources).
    """
    parsed = pods.parse(pod)
    whole = bool((pod["spec"].get("resources") or {}).get("requests")) or bool(
        (pod["spec"].get("resources") or {}).get("limits")
    )
    return {
        container.name: 0 if whole else parsed.exclusive_cpus(container)
        for container in parsed.containers
    }
