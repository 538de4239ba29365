"""The kubelet's configuration, decoded, validated and completed with defaults.

Fields that the resource managers do not use are ignored. (Kubernetes documentation,
"KubeletConfiguration v1beta1".)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numaproof.reference.config import cpulist, eviction, fields, gates, validation
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.golang import durations

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numaproof.protocol.sets import CPUSet
    from numaproof.reference.config.fields import MemoryReservations

    EnabledGates = Callable[[Mapping[str, Any]], Mapping[str, bool]]
    """Returns the feature gates by name, like `gates.enabled_gates`."""

__all__ = ["Config", "ConfigError", "load"]


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration, completed with defaults. Some values are validated later.

    `kube_reserved` and `system_reserved` map resource names to quantities. `named_cpus` and
    `named_text` are the CPUs and the text of ``reservedSystemCPUs``. `reserved_memory` contains
    pairs of a node and its quantities by memory type; `eviction_hard` maps signals to thresholds.
    Options are None if their field is missing. `reconcile_period` is a duration in Go's format;
    `cfs_quota` means that CPU limits are enforced. `has_system_reserved` is whether
    ``systemReserved`` is set, even if it is empty. `pods_per_core` is 0 if it doesn't limit
    `max_pods`.
    """

    cpu_policy: str
    cpu_options: Mapping[str, str] | None
    memory_policy: str
    topology_policy: str
    topology_scope: str
    topology_options: Mapping[str, str] | None
    kube_reserved: Mapping[str, str]
    system_reserved: Mapping[str, str]
    has_system_reserved: bool
    named_cpus: CPUSet
    named_text: str
    reserved_memory: MemoryReservations
    eviction_hard: Mapping[str, str]
    reconcile_period: str
    cfs_quota: bool
    max_pods: int
    pods_per_core: int
    gates: Mapping[str, bool] = field(repr=False)

    def reservations(self) -> tuple[dict[str, str], dict[str, str]]:
        """Returns the quantities reserved for Kubernetes and for the system.

        ``reservedSystemCPUs`` replaces the CPUs of both.

        Requirements: CPU-CONFIG-010.
        """
        kube, system = dict(self.kube_reserved), dict(self.system_reserved)
        if self.named_cpus:
            kube.pop("cpu", None)
            system["cpu"] = str(len(self.named_cpus))
        return kube, system

    def in_force(self) -> dict[str, str | bool | dict[str, str]]:
        """Returns the effective configuration with the fields of a ``KubeletConfiguration``.

        Omits empty maps and strings, as kubelets do.

        Requirements: CPU-RECONCILE-003, CPU-RECONCILE-010, CPU-RESERVE-015.
        """
        kube, system = self.reservations()
        fields: dict[str, str | bool | dict[str, str]] = {
            "cpuManagerPolicy": self.cpu_policy,
            "cpuManagerPolicyOptions": dict(self.cpu_options or {}),
            "cpuManagerReconcilePeriod": self.reconcile_period,
            "memoryManagerPolicy": self.memory_policy,
            "topologyManagerPolicy": self.topology_policy,
            "topologyManagerScope": self.topology_scope,
            "topologyManagerPolicyOptions": dict(self.topology_options or {}),
            "reservedSystemCPUs": self.named_text,
            "kubeReserved": kube,
            "systemReserved": system if self.has_system_reserved else {},
            "evictionHard": dict(self.eviction_hard),
            "cpuCFSQuota": self.cfs_quota,
        }
        return {name: value for name, value in fields.items() if value not in ("", {})}


def load(
    kubelet_config: Mapping[str, Any],
    enabled_gates: EnabledGates,
    unknown: Collection[str] = (),
    flags: Mapping[str, Any] = MappingProxyType({}),
) -> Config:
    """Loads a configuration; `enabled_gates` computes its feature gates.

    `unknown` fields do not exist in the release and are ignored. `flags` are fields that the
    command line sets; they override the configuration, except that feature gates are merged.

    Raises:
        ConfigError: a value has the wrong type, or the kubelet's validation rejects it.

    Requirements: CPU-CONFIG-008, CPU-CONFIG-020, CPU-GATE-011, CPU-GATE-014, CPU-HINT-014,
    CPU-NONE-001, CPU-RESERVE-015, MEM-CONFIG-007, MEM-CONFIG-008, MEM-NONE-002, TOPO-ERROR-009,
    TOPO-POLICY-001, TOPO-SCOPE-001.
    """
    if "featureGates" in flags:
        _check_gates(flags, enabled_gates)
    decoded = fields.decode(
        {name: one for name, one in kubelet_config.items() if name not in unknown}
    )
    # Gates are set together with the defaults, before validation.
    on = enabled_gates(decoded)
    if "featureGates" in flags:
        both = {**(decoded["featureGates"] or {}), **flags["featureGates"]}
        on = _check_gates({"featureGates": both}, enabled_gates)
    filled = {**_with_defaults(decoded), **flags}
    problems = [
        *validation.pod_count_problems(filled["maxPods"], filled["podsPerCore"]),
        *validation.topology_problems(
            filled["topologyManagerPolicy"], filled["topologyManagerScope"]
        ),
        *validation.reserved_cpus_problems(kubelet_config, filled["reservedSystemCPUs"]),
        *validation.memory_problems(filled["reservedMemory"]),
    ]
    if problems:
        text = ", ".join(f"invalid configuration: {problem}" for problem in problems)
        raise ConfigError(
            "failed to validate kubelet configuration, error: "
            + (f"[{text}]" if len(problems) > 1 else text)
        )
    named = filled["reservedSystemCPUs"]
    return Config(
        cpu_policy=filled["cpuManagerPolicy"],
        cpu_options=filled["cpuManagerPolicyOptions"],
        memory_policy=filled["memoryManagerPolicy"],
        topology_policy=filled["topologyManagerPolicy"],
        topology_scope=filled["topologyManagerScope"],
        topology_options=filled["topologyManagerPolicyOptions"],
        kube_reserved=filled["kubeReserved"],
        system_reserved=filled["systemReserved"] or {},
        has_system_reserved=filled["systemReserved"] is not None,
        named_cpus=cpulist.parse(named),
        named_text=named,
        reserved_memory=filled["reservedMemory"],
        eviction_hard=filled["evictionHard"],
        reconcile_period=filled["cpuManagerReconcilePeriod"],
        cfs_quota=filled["cpuCFSQuota"],
        max_pods=filled["maxPods"],
        pods_per_core=filled["podsPerCore"],
        gates=on,
    )


def _with_defaults(decoded_config: Mapping[str, Any]) -> Mapping[str, Any]:
    period, quota = decoded_config["cpuManagerReconcilePeriod"], decoded_config["cpuCFSQuota"]
    return {
        **decoded_config,
        **{name: decoded_config[name] or default for name, default in _POLICIES.items()},
        "kubeReserved": decoded_config["kubeReserved"] or {},
        "cpuManagerReconcilePeriod": durations.format_duration(period) if period else "10s",
        "maxPods": decoded_config["maxPods"] or 110,
        "podsPerCore": decoded_config["podsPerCore"] or 0,
        "cpuCFSQuota": True if quota is None else quota,
        "reservedMemory": fields.memory_reservations(decoded_config),
        "evictionHard": eviction.hard_thresholds(decoded_config),
    }


def _check_gates(
    decoded_config: Mapping[str, Any], enabled_gates: EnabledGates
) -> Mapping[str, bool]:
    """Returns the gates; errors are worded as for gates on the command line."""
    try:
        return enabled_gates(decoded_config)
    except gates.GateError as error:
        raise ConfigError(
            f"failed to set feature gates from initial flags-based config: {error}"
        ) from None


_POLICIES = {
    "cpuManagerPolicy": "none",
    "memoryManagerPolicy": "None",
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
}
"""The defaults of fields for policies and scopes."""
