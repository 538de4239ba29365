"""The kubelet's configuration: defaults, and the kubelet's own validation of it.

Only the fields that the resource managers read are looked at; all others are left alone.
(Kubernetes documentation, "KubeletConfiguration v1beta1".)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numaproof.reference.golang.cpulist import CPUListError
from numaproof.reference.golang.cpulist import parse as parse_cpus
from numaproof.reference.kubelet import eviction
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction

    from numaproof.protocol.sets import CPUSet
    from numaproof.reference.departures.releases import Release

_TOPOLOGY_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
_SCOPES = ("container", "pod")
_RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")
_DURATION = re.compile(r"[+-]?(0|([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+")
_WITHOUT_UNIT = re.compile(r"[+-]?([0-9.]+[a-zµμ]+)*[0-9.]+")


class ConfigError(Exception):
    """The kubelet does not start with this configuration; the text is the kubelet's."""


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration with the defaults filled in; what is not validated yet is as written.

    `kube_reserved` and `system_reserved` are quantities by resource name; `named_cpus` the CPUs
    of ``reservedSystemCPUs``, empty for none; `named_text` is how it names them.
    `reserved_memory` are node and quantities by memory type, entry by entry; `eviction_hard` are
    thresholds by signal.
    """

    cpu_policy: str
    cpu_options: Mapping[str, str]
    memory_policy: str
    topology_policy: str
    topology_scope: str
    topology_options: Mapping[str, str]
    kube_reserved: Mapping[str, str]
    system_reserved: Mapping[str, str]
    named_cpus: CPUSet
    named_text: str
    reserved_memory: tuple[tuple[int, Mapping[str, str]], ...]
    eviction_hard: Mapping[str, str]
    gates: Mapping[str, bool] = field(repr=False)


def load(given: Mapping[str, Any], release: Release) -> Config:
    """The configuration that the fields stand for.

    Raises:
        ConfigError: a value of a wrong type, or one that the kubelet's validation refuses.
    """
    _duration(given, "cpuManagerReconcilePeriod")
    cpu_policy = _text(given, "cpuManagerPolicy", "none")
    memory_policy = _text(given, "memoryManagerPolicy", "None")
    policy = _text(given, "topologyManagerPolicy", "none")
    scope = _text(given, "topologyManagerScope", "container")
    named = _text(given, "reservedSystemCPUs", "")
    texts = {name: _texts(given, name) for name in _TEXT_MAPS}
    # Gates are set while the defaults are filled in, before the validation.
    gates = _gates(given, release)
    reservations = _reservations(given)
    thresholds = _thresholds(given)
    problems = [
        *_topology_problems(policy, scope),
        *_named_problems(given, named),
        *_memory_problems(reservations),
    ]
    if problems:
        text = ", ".join(f"invalid configuration: {problem}" for problem in problems)
        raise ConfigError(
            "failed to validate kubelet configuration, error: "
            + (f"[{text}]" if len(problems) > 1 else text)
        )
    return Config(
        cpu_policy=cpu_policy,
        cpu_options=texts["cpuManagerPolicyOptions"],
        memory_policy=memory_policy,
        topology_policy=policy,
        topology_scope=scope,
        topology_options=texts["topologyManagerPolicyOptions"],
        kube_reserved=texts["kubeReserved"],
        system_reserved=texts["systemReserved"],
        named_cpus=parse_cpus(named),
        named_text=named,
        reserved_memory=reservations,
        eviction_hard=thresholds,
        gates=gates,
    )


def _thresholds(given: Mapping[str, Any]) -> Mapping[str, str]:
    """The hard eviction thresholds: the defaults only where none are given, unless merged."""
    merged = given.get("mergeDefaultEvictionSettings")
    if not isinstance(merged, bool | None):
        raise _wrong_type("mergeDefaultEvictionSettings", merged, "bool")
    thresholds = _texts(given, "evictionHard")
    if merged or given.get("evictionHard") is None:
        return {**eviction.DEFAULTS, **thresholds}
    return thresholds


_TEXT_MAPS = (
    "cpuManagerPolicyOptions",
    "topologyManagerPolicyOptions",
    "kubeReserved",
    "systemReserved",
)


def reserved_cpus(config: Config, online: CPUSet) -> Fraction:
    """The CPU reservation in CPUs; 0 for none.

    CPUs reserved by name stand in the place of both amounts.

    Raises:
        ConfigError: a CPU reserved by name is not online, or an amount is not one.
    """
    kube, system = dict(config.kube_reserved), dict(config.system_reserved)
    if config.named_cpus:
        if not config.named_cpus.issubset(online):
            raise ConfigError(
                f"reserved-cpus: {config.named_text} is not a subset of online-cpus: {online}"
            )
        kube.pop("cpu", None)
        system["cpu"] = str(len(config.named_cpus))
    return _reservation(kube, "kube") + _reservation(system, "system")


def check_thresholds(config: Config) -> None:
    """Checks the hard eviction thresholds, which the kubelet reads after the reservation.

    Raises:
        ConfigError: one of them cannot be.
    """
    try:
        eviction.check(config.eviction_hard)
    except eviction.ThresholdError as error:
        raise ConfigError(str(error)) from None


def _reservation(amounts: Mapping[str, str], whose: str) -> Fraction:
    problem = f"--{whose}-reserved value failed to parse: "
    for resource, text in sorted(amounts.items()):
        if resource not in _RESERVABLE:
            raise ConfigError(f'{problem}cannot reserve "{resource}" resource')
        try:
            amount = quantity.parse(text)
        except quantity.QuantityError as error:
            raise ConfigError(
                f'{problem}failed to parse quantity "{text}" for "{resource}" resource: {error}'
            ) from None
        if amount < 0:
            raise ConfigError(
                f'{problem}resource quantity for "{resource}" cannot be negative: {text}'
            )
    return quantity.parse(amounts.get("cpu", "0"))


# Decoding, with Go's texts for values of a wrong type

_GO_NAMES = {str: "string", bool: "bool", int: "number", float: "number", dict: "object"}


def _wrong_type(name: str, value: Any, wanted: str, shown: str = "") -> ConfigError:
    found = shown or _GO_NAMES.get(type(value), "array")
    struct = "MemoryReservation" if "." in name else "KubeletConfiguration"
    return ConfigError(
        f"failed to decode: json: cannot unmarshal {found} into Go struct field "
        f"{struct}.{name} of type {wanted}"
    )


def _text(given: Mapping[str, Any], name: str, default: str) -> str:
    value = given.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise _wrong_type(name, value, "string")
    return value or default


def _texts(given: Mapping[str, Any], name: str) -> Mapping[str, str]:
    value = given.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _wrong_type(name, value, "map[string]string")
    for entry in value.values():
        if not isinstance(entry, str | None):
            raise _wrong_type(name, entry, "string")
    return {key: entry or "" for key, entry in value.items()}


def _reservations(given: Mapping[str, Any]) -> tuple[tuple[int, Mapping[str, str]], ...]:
    entries = given.get("reservedMemory")
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise _wrong_type("reservedMemory", entries, "[]v1beta1.MemoryReservation")
    return tuple(_memory_reservation(entry) for entry in entries)


def _memory_reservation(entry: Any) -> tuple[int, Mapping[str, str]]:
    if not isinstance(entry, dict | None):
        raise _wrong_type("reservedMemory", entry, "v1beta1.MemoryReservation")
    place = "reservedMemory.numaNode"
    node = (entry or {}).get("numaNode", 0)
    node = 0 if node is None else node
    if isinstance(node, bool) or not isinstance(node, int | float):
        raise _wrong_type(place, node, "int32")
    if isinstance(node, float) or not -(1 << 31) <= node < 1 << 31:
        raise _wrong_type(place, node, "int32", f"number {node}")
    limits = (entry or {}).get("limits")
    if not isinstance(limits, dict | None):
        raise _wrong_type("reservedMemory.limits", limits, "v1.ResourceList")
    amounts = {
        kind: "0" if amount is None else str(amount) for kind, amount in (limits or {}).items()
    }
    for amount in amounts.values():
        try:
            quantity.parse(amount)
        except quantity.QuantityError as error:
            raise ConfigError(f"failed to decode: {error}") from None
    return node, amounts


def _duration(given: Mapping[str, Any], name: str) -> None:
    if name not in given:
        return
    value = "" if given[name] is None else given[name]
    if not isinstance(value, str):
        raise _wrong_type(name, value, "string")
    if _DURATION.fullmatch(value):
        return
    problem = "missing unit in" if _WITHOUT_UNIT.fullmatch(value) else "invalid"
    raise ConfigError(f'failed to decode: time: {problem} duration "{value}"')


def _gates(given: Mapping[str, Any], release: Release) -> Mapping[str, bool]:
    wanted = given.get("featureGates") or {}
    if not isinstance(wanted, dict):
        raise _wrong_type("featureGates", wanted, "map[string]bool")
    for name, on in sorted(wanted.items()):
        if not isinstance(on, bool):
            raise _wrong_type("featureGates", on, "bool")
        gate = release.gates.get(name)
        if gate is None and name not in ("AllAlpha", "AllBeta"):
            raise ConfigError(f"unrecognized feature gate: {name}")
        if gate and gate.locked and on != gate.default:
            raise ConfigError(
                f"cannot set feature gate {name} to {str(on).lower()}, feature is locked to "
                f"{str(gate.default).lower()}"
            )
    found = {name: gate.default for name, gate in release.gates.items()}
    for maturity in ("alpha", "beta"):
        if (on := wanted.get(f"All{maturity.capitalize()}")) is not None:
            found |= {name: on for name, gate in release.gates.items() if gate.maturity == maturity}
    found |= {name: on for name, on in wanted.items() if name in found}
    problems = list(_dependency_problems(found, release))
    if problems:
        text = ", ".join(problems)
        raise ConfigError(f"[{text}]" if len(problems) > 1 else text)
    return found


def _dependency_problems(gates: Mapping[str, bool], release: Release) -> Iterator[str]:
    """The gates that are on without those they need; the kubelet names them in any order."""
    for name, gate in release.gates.items():
        if not gate.needs or not gates[name]:
            continue
        missing = [needed for needed in gate.needs if not gates[needed]]
        if missing:
            yield (
                f"{name} is enabled, but depends on features that are disabled: "
                f"[{' '.join(missing)}]"
            )


# Validation


def _topology_problems(policy: str, scope: str) -> Iterator[str]:
    if policy not in _TOPOLOGY_POLICIES:
        known = " ".join(f'"{name}"' for name in _TOPOLOGY_POLICIES)
        yield (
            f'topologyManagerPolicy (--topology-manager-policy) "{policy}" must be one of: '
            f"[{known}]"
        )
    if scope not in _SCOPES:
        yield (
            f'topologyManagerScope (--topology-manager-scope) "{scope}" must be one of: '
            '"container", or "pod"'
        )


def _named_problems(given: Mapping[str, Any], named: str) -> Iterator[str]:
    if not named:
        return
    if given.get("systemReservedCgroup") or given.get("kubeReservedCgroup"):
        yield (
            "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup "
            "(--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)"
        )
    try:
        parse_cpus(named)
    except CPUListError as error:
        yield f"unable to parse reservedSystemCPUs (--reserved-cpus) {named}, error: {error}"


def _memory_problems(
    reservations: tuple[tuple[int, Mapping[str, str]], ...],
) -> Iterator[str]:
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
