"""Which field a kubelet's refusal is about, what to do, and where the documents say so.

A kubelet's text names a flag, an option, a signal or nothing at all. The table here knows the
texts; `cure` is how a configuration gets past one, so that the next shows.
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
Fields = dict[str, Any]

_NODE_ALLOCATABLE = "Reserve Compute Resources for System Daemons"
_CPU = "Control CPU Management Policies on the Node"
_MEMORY = "Control Memory Management Policies on a Node"
_TOPOLOGY = "Control Topology Management Policies on a node"
_REFERENCE = "Kubelet Configuration (v1beta1)"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a text of the kubelet is about.

    `path` may hold the names of groups of the pattern, as ``{name}``; where the configuration
    does not have it, one of `others` is meant. `section` is the page of the Kubernetes
    documentation. Without a `cure` the field itself is taken out.
    """

    pattern: str
    path: tuple[str, ...]
    mend: str
    section: str
    cure: Callable[[Fields, MachineInfo], Fields] | None = None
    others: tuple[Path, ...] = ()


def _with_reserved_cpu(config: Fields, machine: MachineInfo) -> Fields:
    cpus = sorted(
        cpu
        for node in machine.topology or ()
        for core in node.cores or ()
        for cpu in core.thread_ids or ()
    )
    return {**config, "reservedSystemCPUs": str(cpus[0])} if cpus else config


def _with_reserved_memory(config: Fields, machine: MachineInfo) -> Fields:
    """A reservation of memory that adds up, huge pages left out."""
    nodes = sorted(node.node_id for node in machine.topology or ())
    amounts = {nodes[0] if nodes else 0: 100 << 20}
    for entry in config.get("reservedMemory") or []:
        named, limits = (entry or {}).get("numaNode") or 0, (entry or {}).get("limits") or {}
        if named in nodes and "memory" in limits:
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
        "give a quantity of cpu, memory, ephemeral-storage or pid that is not negative",
        _NODE_ALLOCATABLE,
    ),
    Rule(
        r"reserved-cpus: .* is not a subset of online-cpus",
        ("reservedSystemCPUs",),
        "name only CPUs that are online",
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
        "write a list of CPUs such as 0-1,8",
        _NODE_ALLOCATABLE,
    ),
    Rule(
        r"^unsupported eviction signal (?P<signal>.*)$",
        ("evictionHard", "{signal}"),
        "use a signal that the documentation lists",
        "Node-pressure Eviction",
    ),
    Rule(
        r"^eviction (?:percentage )?threshold (?P<signal>\S+) must be",
        ("evictionHard", "{signal}"),
        "give an amount above 0, or a share from 0% to 100%",
        "Node-pressure Eviction",
    ),
    Rule(
        r"^topologyManagerPolicy ",
        ("topologyManagerPolicy",),
        "write one of the policies that are named",
        _TOPOLOGY,
    ),
    Rule(
        r"^topologyManagerScope ",
        ("topologyManagerScope",),
        "write container or pod",
        _TOPOLOGY,
    ),
    Rule(
        r"^(?:unknown Topology Manager Policy option: |.*policy option to integer |"
        r'the minimum value of |topology manager policy .*option )"(?P<option>[^"]*)"',
        ("topologyManagerPolicyOptions", "{option}"),
        "remove the option, or give a value and the feature gate that it needs",
        _TOPOLOGY,
    ),
    Rule(
        r"^topology manager policy options .* require feature gates",
        ("topologyManagerPolicyOptions",),
        "switch the feature gate TopologyManagerPolicyOptions on",
        _TOPOLOGY,
    ),
    Rule(
        r"^unsupported on machines with more than \d+ NUMA Nodes",
        ("topologyManagerPolicy",),
        "set the option max-allowable-numa-nodes, or policy none",
        _TOPOLOGY,
    ),
    Rule(
        r"NUMA distances",
        ("topologyManagerPolicyOptions", "prefer-closest-numa-nodes"),
        "remove the option: this machine tells no distances",
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
        "remove the option, or give true or false and the feature gate that it needs",
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
        "write none or static",
        _CPU,
    ),
    Rule(
        r"stage memory: unknown policy",
        ("memoryManagerPolicy",),
        "write None or Static",
        _MEMORY,
    ),
    Rule(
        r"memory configuration references a NUMA node",
        ("reservedMemory",),
        "name only NUMA nodes that the machine has",
        _MEMORY,
        _with_reserved_memory,
    ),
    Rule(
        r"^the total amount|should specify the system reserved memory|variable of type Quantity",
        ("reservedMemory",),
        (
            "make it add up, over all nodes, to memory in kubeReserved and systemReserved and the "
            "hard eviction threshold memory.available (100Mi unless evictionHard is set); huge "
            "pages cannot be reserved"
        ),
        _MEMORY,
        _with_reserved_memory,
        (("memoryManagerPolicy",),),
    ),
    Rule(
        r"reserved memory may not be zero|the reserved memory has a duplicate|^the limit type ",
        ("reservedMemory",),
        "give each NUMA node an amount above 0, once, of memory or hugepages-<size>",
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
        "switch the gates on that it needs, or it off",
        "Feature Gates",
    ),
    Rule(
        r"Go struct field KubeletConfiguration\.(?P<field>\w+) of type",
        ("{field}",),
        "give a value of the right type; a number may need quotes",
        _REFERENCE,
    ),
    Rule(
        r"Go struct field MemoryReservation\.(?P<field>\w+)",
        ("reservedMemory",),
        "write numaNode as a number and limits as a mapping",
        _REFERENCE,
    ),
    Rule(r" duration ", ("cpuManagerReconcilePeriod",), "write a time such as 10s", _REFERENCE),
)


UNKNOWN = Rule("", (), "change or remove it", "")
"""For texts that no rule knows."""


def rule_for(stage: str, message: str) -> tuple[Rule, Path] | None:
    """The rule that the text falls under, and the path of the field; None where none does."""
    for text in (message, f"stage {stage}: {message}"):
        for rule in RULES:
            found = re.search(rule.pattern, text)
            if found:
                groups = {name: part or "" for name, part in found.groupdict().items()}
                return rule, tuple(step.format(**groups) for step in rule.path)
    return None
