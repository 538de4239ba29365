"""The kubelet's configuration, decoded, validated and with its defaults filled in.

Only the fields that the resource managers read count; all others are ignored.
(Kubernetes documentation, "KubeletConfiguration v1beta1".)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numaproof.reference.config import cpulist, eviction, fields, gates, validation
from numaproof.reference.config.fields import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numaproof.protocol.sets import CPUSet
    from numaproof.reference.config.fields import MemoryReservations

    Enabled = Callable[[Mapping[str, Any]], Mapping[str, bool]]
    """Tells which feature gates a configuration has on, as `gates.enabled` does."""

__all__ = ["DECODED", "Config", "ConfigError", "load"]


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration with its defaults filled in; what is validated later is as written.

    `kube_reserved` and `system_reserved` are quantities by resource name; `named_cpus` the CPUs
    of ``reservedSystemCPUs``, empty for none; `named_text` is how it names them.
    `reserved_memory` are node and quantities by memory type, entry by entry; `eviction_hard` are
    thresholds by signal. Options are None where none are mentioned. `reconcile_period` is a
    duration as Go writes it; `cfs_quota` is whether CPU limits are enforced.
    """

    cpu_policy: str
    cpu_options: Mapping[str, str] | None
    memory_policy: str
    topology_policy: str
    topology_scope: str
    topology_options: Mapping[str, str] | None
    kube_reserved: Mapping[str, str]
    system_reserved: Mapping[str, str]
    named_cpus: CPUSet
    named_text: str
    reserved_memory: MemoryReservations
    eviction_hard: Mapping[str, str]
    reconcile_period: str
    cfs_quota: bool
    gates: Mapping[str, bool] = field(repr=False)

    def in_force(self) -> dict[str, str | bool | dict[str, str]]:
        """The configuration with its defaults, as a ``KubeletConfiguration`` has it.

        Maps and texts that are empty are left out, as a kubelet leaves them out.

        Requirements: CPU-RECONCILE-003, CPU-RECONCILE-010.
        """
        fields: dict[str, str | bool | dict[str, str]] = {
            "cpuManagerPolicy": self.cpu_policy,
            "cpuManagerPolicyOptions": dict(self.cpu_options or {}),
            "cpuManagerReconcilePeriod": self.reconcile_period,
            "memoryManagerPolicy": self.memory_policy,
            "topologyManagerPolicy": self.topology_policy,
            "topologyManagerScope": self.topology_scope,
            "topologyManagerPolicyOptions": dict(self.topology_options or {}),
            "reservedSystemCPUs": self.named_text,
            "kubeReserved": dict(self.kube_reserved),
            "systemReserved": dict(self.system_reserved),
            "evictionHard": dict(self.eviction_hard),
            "cpuCFSQuota": self.cfs_quota,
        }
        return {name: value for name, value in fields.items() if value not in ("", {})}


def load(
    given: Mapping[str, Any],
    enabled: Enabled,
    unknown: Collection[str] = (),
    flags: Mapping[str, Any] = MappingProxyType({}),
) -> Config:
    """The configuration that the fields stand for; `enabled` tells which of its gates are on.

    `unknown` are fields that the release does not have, and passes over. `flags` are fields that
    the command line sets: they count more, but for feature gates, of which both count.

    Raises:
        ConfigError: a value of the wrong type, or one that the kubelet's validation refuses.

    Requirements: CPU-CONFIG-008, CPU-CONFIG-020, CPU-GATE-011, CPU-GATE-014, CPU-HINT-014,
    CPU-NONE-001, MEM-CONFIG-007, MEM-CONFIG-008, MEM-NONE-002, TOPO-ERROR-009, TOPO-POLICY-001,
    TOPO-SCOPE-001.
    """
    if "featureGates" in flags:
        _check_gates(flags, enabled)
    given = {name: value for name, value in given.items() if name not in unknown}
    decoded: dict[str, Any] = {
        "cpuManagerReconcilePeriod": fields.duration(given, "cpuManagerReconcilePeriod", "10s"),
        "cpuCFSQuota": fields.boolean(given, "cpuCFSQuota", default=True),
        **{name: fields.text(given, name, default) for name, default in _TEXTS.items()},
        **{name: fields.texts(given, name) for name in _TEXT_MAPS},
    }
    # Gates are set while the defaults are filled in, before the validation.
    on = enabled(given)
    if "featureGates" in flags:
        both = {**(given.get("featureGates") or {}), **flags["featureGates"]}
        on = _check_gates({"featureGates": both}, enabled)
    decoded |= {
        "reservedMemory": fields.memory_reservations(given),
        "evictionHard": eviction.configured(given),
        **flags,
    }
    problems = [
        *validation.topology_problems(
            decoded["topologyManagerPolicy"], decoded["topologyManagerScope"]
        ),
        *validation.named_problems(given, decoded["reservedSystemCPUs"]),
        *validation.memory_problems(decoded["reservedMemory"]),
    ]
    if problems:
        text = ", ".join(f"invalid configuration: {problem}" for problem in problems)
        raise ConfigError(
            "failed to validate kubelet configuration, error: "
            + (f"[{text}]" if len(problems) > 1 else text)
        )
    named = decoded["reservedSystemCPUs"]
    mentioned = {name: given.get(name) is not None or name in flags for name in _TEXT_MAPS}
    return Config(
        cpu_policy=decoded["cpuManagerPolicy"],
        cpu_options=decoded[_CPU_OPTIONS] if mentioned[_CPU_OPTIONS] else None,
        memory_policy=decoded["memoryManagerPolicy"],
        topology_policy=decoded["topologyManagerPolicy"],
        topology_scope=decoded["topologyManagerScope"],
        topology_options=decoded[_TOPOLOGY_OPTIONS] if mentioned[_TOPOLOGY_OPTIONS] else None,
        kube_reserved=decoded["kubeReserved"],
        system_reserved=decoded["systemReserved"],
        named_cpus=cpulist.parse(named),
        named_text=named,
        reserved_memory=decoded["reservedMemory"],
        eviction_hard=decoded["evictionHard"],
        reconcile_period=decoded["cpuManagerReconcilePeriod"],
        cfs_quota=decoded["cpuCFSQuota"],
        gates=on,
    )


def _check_gates(given: Mapping[str, Any], enabled: Enabled) -> Mapping[str, bool]:
    """The gates that the command line sets, or that it and the configuration set together."""
    try:
        return enabled(given)
    except gates.GateError as error:
        raise ConfigError(
            f"failed to set feature gates from initial flags-based config: {error}"
        ) from None


_TEXTS = {
    "cpuManagerPolicy": "none",
    "memoryManagerPolicy": "None",
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
    "reservedSystemCPUs": "",
}
"""Fields that are texts, and their defaults."""

_CPU_OPTIONS = "cpuManagerPolicyOptions"
_TOPOLOGY_OPTIONS = "topologyManagerPolicyOptions"
_TEXT_MAPS = (_CPU_OPTIONS, _TOPOLOGY_OPTIONS, "kubeReserved", "systemReserved")

DECODED = frozenset(
    {
        "cpuManagerReconcilePeriod",
        "cpuCFSQuota",
        "featureGates",
        "reservedMemory",
        "evictionHard",
        *_TEXTS,
        *_TEXT_MAPS,
    }
)
"""The fields that are decoded here, with the kubelet's words for values of the wrong type."""
