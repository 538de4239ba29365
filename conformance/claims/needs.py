"""Determines the claims that a call needs, from the call itself.

Needs are named like the claims that meet them, such as ``operation hints`` or ``feature sidecars``.
There are no claims for policies and options that Kubernetes doesn't know. They need only the
feature ``configuration-validation``, because the refusal is part of the test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from numaproof.protocol import discovery, features, messages
from numaproof.protocol.machine import MachineInfo
from numaproof.reference import startup
from numaproof.reference.config import flags
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu import options as cpu_options
from numaproof.reference.deviations.releases import release
from numaproof.reference.errors import UnsupportedError
from numaproof.reference.pods import quantity
from numaproof.reference.topology import options as topology_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numaproof.protocol.messages import Args, KubeletConfiguration, Pod
    from numaproof.reference.config.gates import Gate, Maturity


CHECKPOINT_FILES = f"feature {features.CHECKPOINT_FILES}"
_VALIDATION = "feature configuration-validation"
_GATES = "feature feature-gates"


@dataclass(frozen=True, slots=True)
class PolicyField:
    """A configuration field for a policy; the first value is the default."""

    manager: str
    label: str
    policies: tuple[str, ...]


POLICY_FIELDS = {
    "cpuManagerPolicy": PolicyField("cpu", "CPU Manager policy", ("none", "static")),
    "memoryManagerPolicy": PolicyField("memory", "Memory Manager policy", ("None", "Static")),
    "topologyManagerPolicy": PolicyField(
        "topology",
        "Topology Manager policy",
        ("none", "best-effort", "restricted", "single-numa-node"),
    ),
    "topologyManagerScope": PolicyField("scope", "Topology Manager scope", ("container", "pod")),
}
"""All configuration fields for policies and scopes."""

_OPTION_GATES = {
    "cpuManagerPolicyOptions": "CPUManagerPolicy",
    "topologyManagerPolicyOptions": "TopologyManagerPolicy",
}
_POD_LEVEL_GATES = {
    "PodLevelResources": "pod-level-resources",
    "PodLevelResourceManagers": "pod-level-resource-managers",
}


@dataclass(frozen=True, slots=True)
class EarlierStart:
    """The previous start in the same state directory."""

    config: KubeletConfiguration
    machine: MachineInfo


def of_call(
    operation: str,
    args: Args,
    kubernetes: str,
    machine: MachineInfo,
    earlier: EarlierStart | None = None,
) -> Iterator[str]:
    """The claims that a call needs, the most general first.

    Args:
        operation: the operation.
        args: its arguments.
        kubernetes: the release that the implementation behaves as.
        machine: the machine, whether discovered or described.
        earlier: the previous start in the state directory; None if there was none.
    """
    yield f"operation {operation}"
    match args:
        case messages.StartArgs():
            yield from _of_start(args, kubernetes, machine, earlier)
        case messages.AdmitArgs() | messages.ResizeArgs() | messages.HintsArgs():
            yield from _of_pod(args.pod)
        case messages.DevicesArgs():
            yield from _of_devices(args.devices)
        case messages.RemoveArgs() if args.container is not None:
            yield "feature container-removal"
        case messages.AssignArgs():
            known = release(kubernetes)
            yield from _of_options("CPU Manager option", args.options, known.cpu_options)
            yield from _of_validation(cpu_options.parse, args.options, known.cpu_options)
        case messages.MergeArgs():
            known = release(kubernetes)
            yield from _of_policy("topologyManagerPolicy", args.policy)
            yield from _of_options("Topology Manager option", args.options, known.topology_options)
            yield from _of_validation(topology_options.parse, args.options, known.topology_options)


def _of_start(
    args: messages.StartArgs, kubernetes: str, machine: MachineInfo, earlier: EarlierStart | None
) -> Iterator[str]:
    config = in_force(args.config, args.flags, kubernetes)
    known = release(kubernetes)
    if args.root is not None:
        yield "operation discover"
        yield discovery.WHOLE
    if args.devices:
        yield "operation devices"
    yield from _of_devices(args.devices)
    yield from (f"feature {one}" for one in args.tell)
    parts = {
        "flags": bool(args.flags),
        "running-restart": args.running is not None,
        "node-allocatable": args.check_node,
    }
    yield from (f"feature {name}" for name, is_used in parts.items() if is_used)
    for name, policies in POLICY_FIELDS.items():
        yield from _of_policy(name, config.get(name, policies.policies[0]))
    of_cpu, of_topology = (config.get(name) for name in _OPTION_GATES)
    yield from _of_options("CPU Manager option", of_cpu, known.cpu_options)
    yield from _of_options("Topology Manager option", of_topology, known.topology_options)
    yield from _of_gates(config, known.gates)
    serves_memory = config.get("memoryManagerPolicy") == "Static" or args.check_node
    if _reserves_huge_pages(config) or (serves_memory and _has_huge_pages(machine)):
        yield "feature huge-pages"
    if _is_invalid(config, machine, kubernetes) or _reserves_parts_of_bytes(config):
        yield _VALIDATION
    if earlier is not None:
        yield "feature restart"
        if earlier != EarlierStart(config, machine):
            yield "feature reconfiguration"


def _is_invalid(config: KubeletConfiguration, machine: MachineInfo, kubernetes: str) -> bool:
    """Whether validation rejects a configuration.

    The machine matters only if the configuration lists CPUs, because the machine may lack them.
    """
    lists_cpus = bool(config.get("reservedSystemCPUs"))
    on = machine if lists_cpus else MachineInfo()
    return _is_refused(_ConfigText(repr(config), kubernetes, on, config))


@dataclass(frozen=True, slots=True)
class _ConfigText:
    """A configuration for a release and a machine, hashed by its text."""

    text: str
    kubernetes: str
    machine: MachineInfo
    config: KubeletConfiguration = field(compare=False)


# Cached, because most starts repeat a configuration and validation takes a third of a start.
@lru_cache(maxsize=4096)
def _is_refused(text: _ConfigText) -> bool:
    known = release(text.kubernetes)
    return startup.validation_error(text.config, text.machine, known) is not None


def _of_devices(devices: Sequence[messages.DeviceResource]) -> Iterator[str]:
    if any(one.preferred for one in devices):
        yield "feature preferred-devices"
    if any(one.fails for one in devices):
        yield "feature failing-plugins"


def _of_policy(name: str, policy: object) -> Iterator[str]:
    field = POLICY_FIELDS[name]
    if policy in field.policies:
        yield f"{field.label} {policy}"


def _of_options(
    label: str, options: object, known_options: Mapping[str, Maturity]
) -> Iterator[str]:
    """The known options. `options` may have any type, because cases can test malformed ones."""
    given = sorted(options.keys() & known_options.keys()) if isinstance(options, dict) else []
    yield from (f"{label} {option}" for option in given)


def _of_validation(
    parse: Callable[..., object], options: Mapping[str, str], known_options: Mapping[str, Maturity]
) -> Iterator[str]:
    """Whether options without a configuration need validation, with all gates enabled."""
    try:
        parse(options, known_options, gates=None)
    except OptionError:
        yield _VALIDATION


def _of_gates(config: KubeletConfiguration, known_gates: Mapping[str, Gate]) -> Iterator[str]:
    """Gates with their default values and gates that enable options need no claim."""
    gates = config.get("featureGates")
    if not gates:
        return
    if not isinstance(gates, dict):
        yield _GATES
        return
    opened = tuple(prefix for name, prefix in _OPTION_GATES.items() if config.get(name))
    for gate, on in sorted(gates.items()):
        if gate in known_gates and on is known_gates[gate].default:
            continue
        if on is True and gate in known_gates and gate in _POD_LEVEL_GATES:
            yield f"feature {_POD_LEVEL_GATES[gate]}"
        elif on is not True or not gate.startswith(opened or "?"):
            yield _GATES


def _reserves_huge_pages(config: KubeletConfiguration) -> bool:
    return any(map(_huge_pages, _reserved_memory(config)))


def _reserved_memory(config: KubeletConfiguration) -> Iterator[Mapping[str, Any]]:
    """The amounts by type in each well-formed entry of ``reservedMemory``."""
    reserved = config.get("reservedMemory")
    entries = reserved if isinstance(reserved, list | tuple) else ()
    limits = (one.get("limits") for one in entries if isinstance(one, dict))
    return (one for one in limits if isinstance(one, dict))


def _has_huge_pages(machine: MachineInfo) -> bool:
    """Whether huge pages take memory of the machine."""
    pools = [*(machine.hugepages or ())]
    for node in machine.topology or ():
        pools += node.hugepages or ()
    return any(pool.num_pages for pool in pools)


def _reserves_parts_of_bytes(config: KubeletConfiguration) -> bool:
    amounts = [value for limits in _reserved_memory(config) for value in limits.values()]
    for name in ("kubeReserved", "systemReserved"):
        reserved = config.get(name)
        amounts += [reserved.get("memory")] if isinstance(reserved, dict) else []
    return any(map(_is_fraction, amounts))


def _is_fraction(amount: object) -> bool:
    try:
        return quantity.parse(amount or 0).denominator > 1
    except quantity.QuantityError:
        return False


def _of_pod(pod: Pod) -> Iterator[str]:
    if messages.is_static(pod):
        yield "feature static-pods"
    spec = pod["spec"]
    inits = spec.get("initContainers") or ()
    if any(one.get("restartPolicy") != "Always" for one in inits):
        yield "feature init-containers"
    if any(one.get("restartPolicy") == "Always" for one in inits):
        yield "feature sidecars"
    if "resources" in spec:
        yield "feature pod-level-resources"
    names = {
        name
        for one in (spec, *inits, *(spec.get("containers") or ()))
        for quantities in ((one.get("resources") or {}).get(kind) for kind in _KINDS)
        for name in quantities or ()
    }
    if _huge_pages(names):
        yield "feature huge-pages"
    if any("/" in name for name in names):
        yield "operation devices"


_KINDS = ("requests", "limits")


def _huge_pages(names: Iterable[Any]) -> bool:
    return any(str(name).startswith("hugepages-") for name in names)


def in_force(
    config: KubeletConfiguration, command_line: tuple[str, ...], kubernetes: str
) -> KubeletConfiguration:
    """The configuration with the flags applied; unchanged if the flags are invalid.

    Requirements: CPU-CONFIG-016, CPU-CONFIG-017.
    """
    if not command_line:
        return config
    try:
        given = flags.read(command_line, kubernetes)
    except (ConfigError, UnsupportedError):
        return config
    if "reservedMemory" in given:
        given["reservedMemory"] = [
            {"numaNode": node, "limits": dict(limits)} for node, limits in given["reservedMemory"]
        ]
    gates = config.get("featureGates") or {}
    if "featureGates" in given and isinstance(gates, dict):
        given["featureGates"] = {**gates, **given["featureGates"]}
    return {**config, **given}
