"""Finds settings that the kubelet accepts but that have no effect or are harmful on a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.inputs.plurals import format_numbers, plural
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.cpu import options as cpu_options
from numaproof.reference.cpu.topology import CPUTopology, touching
from numaproof.reference.deviations import releases
from numaproof.reference.pods import quantity
from numaproof.reference.topology import options as topology_options
from numaproof.simulation.defects import NamedDefect, named_defect
from numaproof.simulation.requests import amount

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numaproof.inputs.documents import PathTuple as Path
    from numaproof.reference.cpu.policy import StaticCPUPolicy
    from numaproof.reference.node import NodeSetup

Warning_ = tuple[tuple[str | int, ...], str, str, str]
"""The path of the field, the problem, a fix, and the page of the documentation."""

CPU = "Control CPU Management Policies on the Node"
MEMORY = "Control Memory Management Policies on a Node"
TOPOLOGY = "Control Topology Management Policies on a node"
RESERVE = "Reserve Compute Resources for System Daemons"
EVICTION = "Node-pressure Eviction"
GATES = "Feature Gates"

_MANY_NODES = 8
_LARGEST_NODE = 63
_HALF = 1 << 63


def warnings(config: dict[str, Any], kubernetes: str, setup: NodeSetup) -> Iterator[Warning_]:
    """Yields the warnings about a valid configuration of a release, field by field."""
    yield from _overridden(config)
    if setup.cpu is not None:
        yield from _reserved_cpus(config, setup.cpu)
        yield from _cpu_options(config, setup, setup.cpu)
    if setup.memory is not None:
        yield from _memory(config, setup)
    elif config.get("reservedMemory"):
        message = "has no effect without memoryManagerPolicy: Static"
        yield ("reservedMemory",), message, "remove it, or set the policy", MEMORY
    yield from _topology(config, setup)
    for one in crashes(setup):
        yield one.path, one.message, one.fix, one.section
    yield from _gates(config, kubernetes)


class Crash(msgspec.Struct, frozen=True):
    """A setting with which a named defect makes the kubelet panic or hang on this machine.

    `path` leads to the setting; the other attributes are as in a warning.
    """

    defect: NamedDefect
    path: tuple[str, ...]
    message: str
    fix: str
    section: str


def crashes(setup: NodeSetup) -> Iterator[Crash]:
    """Yields the settings with which the kubelet can panic or hang."""
    cpu, policy, nodes = setup.cpu, setup.topology_policy, setup.nodes
    if cpu and cpu.options.full_cores and cpu.options.across_numa:
        siblings = CPUSet.from_mask(cpu.broken_cores & ~cpu.reserved)
        if siblings:
            path = ("cpuManagerPolicyOptions", cpu_options.ACROSS_NUMA)
            message = (
                "can make the kubelet hang forever: reserved CPUs share a core with "
                f"{format_numbers('CPU', siblings)}, which full-pcpus-only never assigns"
            )
            fix = "reserve whole cores, or remove it"
            yield Crash(named_defect("distribute-endless-loop"), path, message, fix, CPU)
    if policy is None:
        return
    if len(nodes) > _MANY_NODES:
        path = ("topologyManagerPolicyOptions", topology_options.MAX_ALLOWABLE_NUMA_NODES)
        message = (
            f"makes the kubelet try all sets of {len(nodes)} NUMA nodes: an admission takes "
            "seconds with 12 nodes, twice as long with each additional node, and may never end"
        )
        fix = "use the none policy, or fewer NUMA nodes per socket"
        yield Crash(named_defect("merge-of-all-combinations"), path, message, fix, TOPOLOGY)
    if policy.rules.distances is not None and _has_gaps(nodes):
        path = ("topologyManagerPolicyOptions", topology_options.CLOSEST)
        message = (
            "makes the kubelet panic or compare the wrong distances: the node ids of this machine "
            "have gaps"
        )
        defect = named_defect("closest-nodes-panic-on-node-id")
        yield Crash(defect, path, message, "remove it", TOPOLOGY)
    if not all(0 <= node <= _LARGEST_NODE for node in nodes):
        message = "makes the kubelet panic on this machine: hints can hold only NUMA nodes 0 to 63"
        defect = named_defect("hints-panic-on-node-id")
        yield Crash(defect, ("topologyManagerPolicy",), message, "use the none policy", TOPOLOGY)


def _has_gaps(nodes: Collection[int]) -> bool:
    return sorted(nodes) != [*range(len(nodes))]


def _overridden(config: dict[str, Any]) -> Iterator[Warning_]:
    if config.get("reservedSystemCPUs"):
        for key in ("kubeReserved", "systemReserved"):
            if "cpu" in (config.get(key) or {}):
                message = "has no effect: reservedSystemCPUs overrides it"
                yield (key, "cpu"), message, "remove it", RESERVE
    thresholds = config.get("evictionHard")
    merged = config.get("mergeDefaultEvictionSettings")
    if isinstance(thresholds, dict) and "memory.available" not in thresholds and not merged:
        message = "replaces all defaults, including the memory.available threshold"
        fix = "add memory.available, or set mergeDefaultEvictionSettings: true"
        yield ("evictionHard",), message, fix, EVICTION


def _reservation_path(config: dict[str, Any]) -> Path:
    if config.get("reservedSystemCPUs"):
        return ("reservedSystemCPUs",)
    for key in ("kubeReserved", "systemReserved"):
        if "cpu" in (config.get(key) or {}):
            return key, "cpu"
    return ("cpuManagerPolicy",)


def _reserved_cpus(config: dict[str, Any], cpu: StaticCPUPolicy) -> Iterator[Warning_]:
    path = _reservation_path(config)
    topology = cpu.topology
    siblings = CPUSet.from_mask(cpu.broken_cores & ~cpu.reserved)
    if siblings:
        message = f"splits cores: reserved CPUs share one with {format_numbers('CPU', siblings)}"
        if cpu.options.full_cores:
            message += ", which full-pcpus-only never assigns"
        else:
            message += ", so pods with exclusive CPUs share cores with system daemons"
        whole = CPUSet.from_mask(topology.whole_cores(cpu.reserved))
        yield path, message, f"reserve whole cores, such as {whole}", CPU
    if path[-1] == "cpu":
        total = sum(
            quantity.parse((config.get(key) or {}).get("cpu", 0))
            for key in ("kubeReserved", "systemReserved")
        )
        if total != cpu.reserved.bit_count():
            message = f"is rounded up to {amount('cpu', cpu.reserved.bit_count())}"
            yield path, message, "reserve a whole number of CPUs", CPU
    nodes = touching(topology.nodes, cpu.reserved)
    if len(nodes) > 1:
        message = (
            f"takes CPUs from NUMA nodes {NUMASet(nodes)}: a pod that needs all CPUs of a node "
            "no longer fits, and the restricted policy may never admit it"
        )
        yield path, message, "reserve CPUs of a single NUMA node if it has enough", CPU
    for node in nodes:
        if not topology.nodes[node] & ~cpu.reserved:
            message = f"reserves all CPUs of NUMA node {node}: no pod can be aligned to it"
            yield path, message, "leave CPUs on each NUMA node", CPU


def _cpu_options(
    config: dict[str, Any], setup: NodeSetup, cpu: StaticCPUPolicy
) -> Iterator[Warning_]:
    topology, options = cpu.topology, cpu.options
    for name in config.get("cpuManagerPolicyOptions") or {}:
        path = ("cpuManagerPolicyOptions", name)
        reason = _void_cpu_option(name, setup, topology)
        if reason:
            yield path, f"has no effect: {reason}", "remove it", CPU
    if options.across_numa and options.by_socket and topology.socket_count > 1:
        message = "has no effect: distribute-cpus-across-numa ignores sockets"
        fix = "remove distribute-cpus-across-numa or align-by-socket"
        yield ("cpuManagerPolicyOptions", cpu_options.BY_SOCKET), message, fix, CPU


def _void_cpu_option(name: str, setup: NodeSetup, topology: CPUTopology) -> str:
    """Explains why an option has no effect here; empty if it has one."""
    given = setup.cpu
    assert given is not None
    on = {
        cpu_options.FULL_CORES: given.options.full_cores,
        cpu_options.ACROSS_NUMA: given.options.across_numa,
        cpu_options.ACROSS_CORES: given.options.across_cores,
        cpu_options.BY_SOCKET: given.options.by_socket,
        cpu_options.STRICT: given.options.strict,
        cpu_options.BY_UNCORE: given.options.by_uncore,
    }
    if not on.get(name, True):
        return "it is off by default"
    single_threaded = topology.most_cpus_per_core == 1
    single = setup.topology_policy is not None and setup.topology_policy.rules.single
    reasons = {
        cpu_options.FULL_CORES: (single_threaded, "every core has one thread"),
        cpu_options.ACROSS_CORES: (single_threaded, "every core has one thread"),
        cpu_options.ACROSS_NUMA: (
            len(topology.nodes) == 1 or single,
            "the machine has one NUMA node"
            if len(topology.nodes) == 1
            else "topologyManagerPolicy single-numa-node never distributes CPUs",
        ),
        cpu_options.BY_SOCKET: (
            setup.topology_policy is None,
            "topologyManagerPolicy is none, so nothing is aligned",
        ),
        cpu_options.BY_UNCORE: (
            len(topology.uncores) <= 1,
            "as far as the kubelet can see, all CPUs share one uncore cache",
        ),
    }
    void, reason = reasons.get(name, (False, ""))
    return reason if void else ""


def _memory(config: dict[str, Any], setup: NodeSetup) -> Iterator[Warning_]:
    assert setup.memory is not None
    places = {
        entry.get("numaNode", 0): place
        for place, entry in enumerate(config.get("reservedMemory") or [])
        if isinstance(entry, dict)
    }
    for node, memory in setup.memory.empty.items():
        table = memory.tables["memory"]
        path: Path = ("reservedMemory", places[node]) if node in places else ("reservedMemory",)
        if table.allocatable >= _HALF:
            message = (
                f"reserves more than NUMA node {node} has outside its huge pages; the kubelet then "
                "assumes that the node has almost unlimited memory"
            )
            yield path, message, "reserve less there, and more on other nodes", MEMORY
        elif table.total and not table.allocatable and table.system:
            message = f"reserves all memory of NUMA node {node}: no pod can get memory there"
            yield path, message, "reserve less there, and more on other nodes", MEMORY


def _topology(config: dict[str, Any], setup: NodeSetup) -> Iterator[Warning_]:
    given = config.get("topologyManagerPolicyOptions") or {}
    nodes = setup.nodes
    policy = setup.topology_policy
    if policy is None:
        for key in ("topologyManagerScope", "topologyManagerPolicyOptions"):
            if config.get(key):
                message = "has no effect with topologyManagerPolicy: none"
                yield (key,), message, "remove it, or set a policy", TOPOLOGY
        if len(nodes) > _MANY_NODES:
            message = (
                f"must be none on this machine with {plural(len(nodes), 'NUMA node')}, unless "
                "max-allowable-numa-nodes is set"
            )
            fix = "no action is needed if that is what you want"
            yield ("topologyManagerPolicy",), message, fix, TOPOLOGY
        return
    if setup.cpu is None and setup.memory is None:
        message = "aligns only devices: neither the CPU nor the Memory Manager is static"
        yield ("topologyManagerPolicy",), message, "set cpuManagerPolicy: static", TOPOLOGY
    if len(nodes) <= _MANY_NODES and topology_options.MAX_ALLOWABLE_NUMA_NODES in given:
        message = (
            f"has no effect: the machine has {plural(len(nodes), 'NUMA node')},"
            " and 8 are always allowed"
        )
        path = ("topologyManagerPolicyOptions", topology_options.MAX_ALLOWABLE_NUMA_NODES)
        yield path, message, "remove it", TOPOLOGY
    if topology_options.CLOSEST in given:
        yield from _closest(setup)


def _closest(setup: NodeSetup) -> Iterator[Warning_]:
    path = ("topologyManagerPolicyOptions", topology_options.CLOSEST)
    policy, nodes = setup.topology_policy, setup.nodes
    assert policy is not None
    if policy.rules.distances is None:
        reason = (
            "the single-numa-node policy uses one node"
            if policy.rules.single
            else "it is off by default"
        )
        yield path, f"has no effect: {reason}", "remove it", TOPOLOGY
    elif len(nodes) <= 2 and not _has_gaps(nodes):  # noqa: PLR2004 - two nodes are one pair
        message = f"has no effect: the machine has {plural(len(nodes), 'NUMA node')}"
        yield path, message, "remove it", TOPOLOGY


_OPENED = {
    "CPUManagerPolicyAlphaOptions": ("cpuManagerPolicyOptions", "alpha"),
    "CPUManagerPolicyBetaOptions": ("cpuManagerPolicyOptions", "beta"),
    "TopologyManagerPolicyAlphaOptions": ("topologyManagerPolicyOptions", "alpha"),
    "TopologyManagerPolicyBetaOptions": ("topologyManagerPolicyOptions", "beta"),
}


def _gates(config: dict[str, Any], version: str) -> Iterator[Warning_]:
    release = releases.release(version)
    maturities = {
        "cpuManagerPolicyOptions": release.cpu_options,
        "topologyManagerPolicyOptions": release.topology_options,
    }
    for name, on in (config.get("featureGates") or {}).items():
        gate = release.gates.get(name)
        if gate is None:
            continue
        path = ("featureGates", name)
        if gate.is_locked:
            message = f"is locked in {version}, and a kubelet that drops it will refuse to start"
            yield path, f"has no effect: it {message}", "remove it", GATES
        elif gate.default == on:
            message = f"has no effect: {str(on).lower()} is its default in {version}"
            yield path, message, "remove it", GATES
        elif name in _OPENED and on:
            field, maturity = _OPENED[name]
            known = maturities[field]
            if not any(known.get(option) == maturity for option in config.get(field) or {}):
                message = f"has no effect: {field} has no {maturity} option"
                yield path, message, "remove it", GATES
