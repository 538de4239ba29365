"""The kubelet's validation of a configuration, with one message per problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.config import cpulist
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.reference.config.fields import MemoryReservations

TOPOLOGY_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
_SCOPES = ("container", "pod")


def pod_count_problems(max_pods: int, pods_per_core: int) -> Iterator[str]:
    """Yields problems with the limits on the number of pods."""
    for name, flag, number in (
        ("maxPods", "max-pods", max_pods),
        ("podsPerCore", "pods-per-core", pods_per_core),
    ):
        if number < 0:
            yield f"{name} (--{flag}) {number} must not be a negative number"


def topology_problems(policy: str, scope: str) -> Iterator[str]:
    """Yields problems with the Topology Manager's policy and scope.

    Requirements: TOPO-ERROR-002, TOPO-ERROR-003, TOPO-SCOPE-009.
    """
    if policy not in TOPOLOGY_POLICIES:
        known = " ".join(f'"{name}"' for name in TOPOLOGY_POLICIES)
        yield (
            f'topologyManagerPolicy (--topology-manager-policy) "{policy}" must be one of: '
            f"[{known}]"
        )
    if scope not in _SCOPES:
        yield (
            f'topologyManagerScope (--topology-manager-scope) "{scope}" must be one of: '
            '"container", or "pod"'
        )


def reserved_cpus_problems(kubelet_config: Mapping[str, Any], named_text: str) -> Iterator[str]:
    """Yields problems with ``reservedSystemCPUs``, whose value is `named_text`.

    Requirements: CPU-CONFIG-008, CPU-CONFIG-009.
    """
    if not named_text:
        return
    if kubelet_config.get("systemReservedCgroup") or kubelet_config.get("kubeReservedCgroup"):
        yield (
            "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup "
            "(--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)"
        )
    try:
        cpulist.parse(named_text)
    except cpulist.CPUListError as error:
        yield f"unable to parse reservedSystemCPUs (--reserved-cpus) {named_text}, error: {error}"


def memory_problems(reservations: MemoryReservations) -> Iterator[str]:
    """Yields problems with ``reservedMemory``.

    Requirements: MEM-CONFIG-004, MEM-CONFIG-005, MEM-CONFIG-006.
    """
    seen: set[tuple[int, str]] = set()
    for node, limits in reservations:
        for kind, amount in sorted(limits.items()):
            place = f'NUMA node {node} and resource "{kind}"'
            if kind != "memory" and not kind.startswith("hugepages-"):
                yield (
                    f'the limit type "{kind}" for NUMA node {node} is not supported, only '
                    "[memory hugepages-<HugePageSize>] is accepted"
                )
            if quantity.parse(amount) == 0:
                yield f"reserved memory may not be zero for {place}"
            if (node, kind) in seen:
                yield f"the reserved memory has a duplicate value for {place}"
            seen.add((node, kind))
