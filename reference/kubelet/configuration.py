"""The kubelet's configuration, decoded, validated and with its defaults filled in.

Only the fields that the resource managers read count; all others are ignored.
(Kubernetes documentation, "KubeletConfiguration v1beta1".)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numaproof.reference.kubelet import cpulist, eviction, fields, gates, validation
from numaproof.reference.kubelet.fields import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numaproof.protocol.sets import CPUSet
    from numaproof.reference.kubelet.fields import MemoryReservations
    from numaproof.reference.kubelet.gates import Gate

__all__ = ["Config", "ConfigError", "load"]


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration with its defaults filled in; what is validated later is as written.

    `kube_reserved` and `system_reserved` are quantities by resource name; `named_cpus` the CPUs
    of ``reservedSystemCPUs``, empty for none; `named_text` is how it names them.
    `reserved_memory` are node and quantities by memory type, entry by entry; `eviction_hard` are
    thresholds by signal. Options are None where none are mentioned.
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
    gates: Mapping[str, bool] = field(repr=False)


def load(
    given: Mapping[str, Any], known: Mapping[str, Gate], unknown: Collection[str] = ()
) -> Config:
    """The configuration that the fields stand for; `known` are the release's feature gates.

    `unknown` are fields that the release does not have, and passes over.

    Raises:
        ConfigError: a value of the wrong type, or one that the kubelet's validation refuses.

    Requirements: CPU-HINT-014, CPU-NONE-001, MEM-CONFIG-007, MEM-CONFIG-008, MEM-NONE-002,
    TOPO-POLICY-001, TOPO-SCOPE-001.
    """
    given = {name: value for name, value in given.items() if name not in unknown}
    fields.duration(given, "cpuManagerReconcilePeriod")
    cpu_policy = fields.text(given, "cpuManagerPolicy", "none")
    memory_policy = fields.text(given, "memoryManagerPolicy", "None")
    policy = fields.text(given, "topologyManagerPolicy", "none")
    scope = fields.text(given, "topologyManagerScope", "container")
    named = fields.text(given, "reservedSystemCPUs", "")
    texts = {name: fields.texts(given, name) for name in _TEXT_MAPS}
    # Gates are set while the defaults are filled in, before the validation.
    enabled = gates.enabled(given, known)
    reservations = fields.memory_reservations(given)
    thresholds = eviction.configured(given)
    problems = [
        *validation.topology_problems(policy, scope),
        *validation.named_problems(given, named),
        *validation.memory_problems(reservations),
    ]
    if problems:
        text = ", ".join(f"invalid configuration: {problem}" for problem in problems)
        raise ConfigError(
            "failed to validate kubelet configuration, error: "
            + (f"[{text}]" if len(problems) > 1 else text)
        )
    return Config(
        cpu_policy=cpu_policy,
        cpu_options=_mentioned(given, texts, "cpuManagerPolicyOptions"),
        memory_policy=memory_policy,
        topology_policy=policy,
        topology_scope=scope,
        topology_options=_mentioned(given, texts, "topologyManagerPolicyOptions"),
        kube_reserved=texts["kubeReserved"],
        system_reserved=texts["systemReserved"],
        named_cpus=cpulist.parse(named),
        named_text=named,
        reserved_memory=reservations,
        eviction_hard=thresholds,
        gates=enabled,
    )


def _mentioned(
    given: Mapping[str, Any], texts: Mapping[str, Mapping[str, str]], name: str
) -> Mapping[str, str] | None:
    return None if given.get(name) is None else texts[name]


_TEXT_MAPS = (
    "cpuManagerPolicyOptions",
    "topologyManagerPolicyOptions",
    "kubeReserved",
    "systemReserved",
)
