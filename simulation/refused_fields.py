"""Which field a kubelet's refusal is about, how to fix it, and where it is documented.

A kubelet's message names a flag, an option, a signal, or nothing at all. This table matches the
messages to fields; `cure` changes a configuration to get past one error, so that the next shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.machine import MachineInfo

Path = tuple[str | int, ...]
ConfigFields = dict[str, Any]

_NODE_ALLOCATABLE = "Reserve Compute Resources for System Daemons"
_CPU = "Control CPU Management Policies on the Node"
_MEMORY = "Control Memory Management Policies on a Node"
_TOPOLOGY = "Control Topology Management Policies on a node"
_REFERENCE = "Kubelet Configuration (v1beta1)"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a message of the kubelet is about.

    `path` may refer to groups of the pattern as ``{name}``; if the configuration does not have that
    field, one of `others` is meant. `section` is the page of the Kubernetes documentation. Without
    a `cure` the field itself is removed.
    """

    pattern: str
    path: tuple[str, ...]
    fix: str
    section: str
    cure: Callable[[ConfigFields, MachineInfo], ConfigFields] | None = None
    others: tuple[Path, ...] = ()


def _with_reserved_cpu(config: ConfigFields, machine: MachineInfo) -> ConfigFields:
    cpus = sorted(
        cpu
        for node in machine.topology or ()
        for core in node.cores or ()
        for cpu in core.thread_ids or ()
    )
    return {**config, "reservedSystemCPUs": str(cpus[0])} if cpus else config


def _with_reserved_memory(config: ConfigFields, machine: MachineInfo) -> ConfigFields:
    """The configuration with a memory reservation that adds up, without huge pages."""
    nodes = sorted(node.node_id for node in machine.topology or ())
    amounts = {nodes[0] if nodes else 0: 100 << 20}
    for entry in config.get("reservedMemory") or []:
        named, limits = (entry or {}).get("numaNode") or 0, (entry or {}).get("limits") or {}
        if named in nodes and limits.get("memory") is not None:
            amounts[named] = max(quantity.value(limits["memory"]), 1 << 20)
    kept = [{"numaNode": node, "limits": {"memory": str(size)}} for node, size in amounts.items()]
    without = {**config, "reservedMemory": kept, "evictionHard": {"nodefs.available": "10%"}}
    for name in ("kubeReserved", "systemReserved"):
        given = config.get(name) or {}
        without[name] = {key: text for key, text in given.items() if key != "memory"}
    without["systemReserved"]["memory"] = str(sum(amounts.values()))
    return without


RULES = (
    Rule(
        r'^--(?P<whose>kube|system)-reserved value .*"(?P<resource>[^"]*)" resource',
        ("{whose}Reserved", "{resource}"),
        "set a non-negative quantity of cpu, memory, ephemeral-storage or pid",
        _NODE_ALLOCATABLE,
    ),
    Rule(
        r"reserved-cpus: .* is not a subset of online-cpus",
        ("reservedSystemCPUs",),
        "list only CPUs that are online",
        _NODE_ALLOCATABLE,
    ),
    Rule(
        r"^can't use reservedSystemCPUs",
        ("reservedSystemCPUs",),
        "remove it, or systemReservedCgroup and kubeReservedCgroup",
        _NODE_ALLOCATABLE,
    ),
    Rule(
        r"^unable to parse reservedSystemCPUs",
        ("reservedSystemCPUs",),
        "use a CPU list such as 0-1,8",
        _NODE_ALLOCATABLE,
    ),
    Rule(
        r"^unsupported eviction signal (?P<signal>.*)$",
        ("evictionHard", "{signal}"),
        "use one of the documented signals",
        "Node-pressure Eviction",
    ),
    Rule(
        r"^eviction (?:percentage )?threshold (?P<signal>\S+) must be",
        ("evictionHard", "{signal}"),
        "set a quantity greater than 0, or a percentage from 0% to 100%",
        "Node-pressure Eviction",
    ),
    Rule(
        r"^topologyManagerPolicy ",
        ("topologyManagerPolicy",),
        "use one of the policies listed",
        _TOPOLOGY,
    ),
    Rule(
        r"^topologyManagerScope ",
        ("topologyManagerScope",),
        "set it to container or pod",
        _TOPOLOGY,
    ),
    Rule(
        r"^(?:unknown Topology Manager Policy option: |.*policy option to integer |"
        r'the minimum value of |topology manager policy .*option )"(?P<option>[^"]*)"',
        ("topologyManagerPolicyOptions", "{option}"),
        "remove the option, or set a valid value and enable its feature gate",
        _TOPOLOGY,
    ),
    Rule(
        r"^topology manager policy options .* require feature gates",
        ("topologyManagerPolicyOptions",),
        "enable the feature gate TopologyManagerPolicyOptions",
        _TOPOLOGY,
    ),
    Rule(
        r"^unsupported on machines with more than \d+ NUMA Nodes",
        ("topologyManagerPolicy",),
        "set the option max-allowable-numa-nodes, or use policy none",
        _TOPOLOGY,
    ),
    Rule(
        r"NUMA distances",
        ("topologyManagerPolicyOptions", "prefer-closest-numa-nodes"),
        "remove the option: this machine reports no NUMA distances",
        _TOPOLOGY,
    ),
    Rule(
        r"unable to determine reserved CPU resources for static policy",
        ("cpuManagerPolicy",),
        "reserve CPU: set reservedSystemCPUs, or cpu in kubeReserved or systemReserved",
        _CPU,
        _with_reserved_cpu,
    ),
    Rule(
        r"unable to reserve the required amount of CPUs",
        ("kubeReserved", "cpu"),
        "reserve fewer CPUs than the machine has",
        _NODE_ALLOCATABLE,
        _with_reserved_cpu,
        (("systemReserved", "cpu"),),
    ),
    Rule(
        r"None policy: received unsupported options",
        ("cpuManagerPolicyOptions",),
        "remove the options, or set cpuManagerPolicy: static",
        _CPU,
    ),
    Rule(
        r"(?:unknown CPU Manager Policy option: |Options not enabled, but option |"
        r'bad value for option )"(?P<option>[^"]*)"',
        ("cpuManagerPolicyOptions", "{option}"),
        "remove the option, or set it to true or false and enable its feature gate",
        _CPU,
    ),
    Rule(
        r"static policy options (?P<option>\S+) and \S+ can not be used at the same time",
        ("cpuManagerPolicyOptions", "{option}"),
        "remove one of the two options",
        _CPU,
    ),
    Rule(
        r"align-by-socket policy option$|^.*Align by socket is not compatible",
        ("cpuManagerPolicyOptions", "align-by-socket"),
        "remove the option",
        _CPU,
    ),
    Rule(
        r"stage cpu: unknown policy",
        ("cpuManagerPolicy",),
        "set it to none or static",
        _CPU,
    ),
    Rule(
        r"stage memory: unknown policy",
        ("memoryManagerPolicy",),
        "set it to None or Static",
        _MEMORY,
    ),
    Rule(
        r"memory configuration references a NUMA node",
        ("reservedMemory",),
        "list only NUMA nodes that the machine has",
        _MEMORY,
        _with_reserved_memory,
    ),
    Rule(
        r"^the total amount|should specify the system reserved memory|variable of type Quantity",
        ("reservedMemory",),
        (
            "make the memory of all nodes add up to memory in kubeReserved and systemReserved plus "
            "the hard eviction threshold memory.available (100Mi unless evictionHard is set); huge "
            "pages cannot be reserved"
        ),
        _MEMORY,
        _with_reserved_memory,
        (("memoryManagerPolicy",),),
    ),
    Rule(
        r"reserved memory may not be zero|the reserved memory has a duplicate|^the limit type ",
        ("reservedMemory",),
        "reserve memory or hugepages-<size> at most once per NUMA node, each greater than 0",
        _MEMORY,
        _with_reserved_memory,
    ),
    Rule(
        r"^unrecognized feature gate: (?P<gate>\S+)$|^cannot set feature gate (?P<locked>\S+) to",
        ("featureGates", "{gate}{locked}"),
        "remove the gate",
        "Feature Gates",
    ),
    Rule(
        r"^\[?(?P<gate>\S+) is enabled, but depends on features that are disabled",
        ("featureGates", "{gate}"),
        "enable the gates it depends on, or disable it",
        "Feature Gates",
    ),
    Rule(
        r"Go struct field KubeletConfiguration\.(?P<field>\w+) of type",
        ("{field}",),
        "use a value of the right type; a number may need quotes",
        _REFERENCE,
    ),
    Rule(
        r"Go struct field MemoryReservation\.(?P<field>\w+)",
        ("reservedMemory",),
        "write numaNode as a number and limits as a mapping",
        _REFERENCE,
    ),
    Rule(r" duration ", ("cpuManagerReconcilePeriod",), "use a duration such as 10s", _REFERENCE),
)


UNKNOWN = Rule("", (), "change or remove it", "")
"""For messages that match no rule."""


def rule_for(stage: str, message: str) -> tuple[Rule, Path] | None:
    """The rule that matches the message, and the path of the field; None if no rule matches."""
    for text in (message, f"stage {stage}: {message}"):
        for rule in RULES:
            found = re.search(rule.pattern, text)
            if found:
                groups = {name: part or "" for name, part in found.groupdict().items()}
                return rule, tuple(step.format(**groups) for step in rule.path)
    return None
