"""Generates kubelet configurations: policies, options, feature gates and reservations.

Most are valid. In runs that allow mistakes, about one in three is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.conformance.fuzzing.generation.machines import dense
from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu.options import (
    ACROSS_NUMA,
    BY_SOCKET,
    FULL_CORES,
    INCOMPATIBLE,
)
from numaproof.reference.topology.options import CLOSEST, MAX_ALLOWABLE_NUMA_NODES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.fuzzing.generation.choices import Choices
    from numaproof.conformance.fuzzing.generation.focus import Focus
    from numaproof.protocol.messages import KubeletConfiguration

_CONFLICTS = frozenset(map(frozenset, INCOMPATIBLE))
"""Pairs of conflicting options of the static policy."""

_MIB = 1 << 20
_EVICTION = 100 * _MIB
"""The kubelet's default memory eviction threshold."""

_BY_DEFAULT = 8
"""The maximum number of NUMA nodes that the Topology Manager accepts by default."""

_GATES = tuple(
    f"{manager}Policy{maturity}Options"
    for manager in ("CPUManager", "TopologyManager")
    for maturity in ("Alpha", "Beta")
)
_CLOSED_BY_DEFAULT = _GATES[::2]


def configuration(choices: Choices, facts: Facts, focus: Focus) -> KubeletConfiguration:
    """Generates a configuration for a machine, within the focus of the run."""
    config: dict[str, Any] = {}
    _add_gates(choices, config, focus)
    _add_topology(choices, config, facts, focus)
    _add_cpu(choices, config, facts, focus)
    if focus.memory_policies:
        policy = choices.pick(focus.memory_policies)
        if policy == "Static":
            config["memoryManagerPolicy"] = policy
            _add_memory(choices, config, facts)
    if focus.mistakes and choices.chance(3):
        choices.pick(_MISTAKES)(choices, config, facts)
    return config


def _add_gates(choices: Choices, config: dict[str, Any], focus: Focus) -> None:
    """Enables the feature gates of options, so that every release can use the options."""
    gates = dict.fromkeys(sorted(_CLOSED_BY_DEFAULT), True) if focus.cpu_options else {}
    if focus.pod_level:
        gates |= {
            name: True if name == "PodLevelResources" else on != choices.chance(3)
            for name, on in focus.pod_level_gates.items()
        }
    if focus.gates and choices.chance(2):
        gates |= {name: not choices.chance(2) for name in choices.some(_GATES, 1, 2)}
    if gates:
        config["featureGates"] = gates


def _add_cpu(choices: Choices, config: dict[str, Any], facts: Facts, focus: Focus) -> None:
    if not focus.cpu_policies:
        return
    policy = choices.pick(focus.cpu_policies)
    if policy != "none":
        config["cpuManagerPolicy"] = policy
        options = _cpu_options(choices, facts, focus)
        if not choices.chance(6):
            options = _compatible(options, facts, config.get("topologyManagerPolicy", "none"))
        if options:
            config["cpuManagerPolicyOptions"] = options
    elif focus.mistakes and focus.cpu_options and choices.chance(4):
        config["cpuManagerPolicyOptions"] = {focus.cpu_options[0]: "true"}
    _add_reserved_cpus(choices, config, facts, whole=focus.endless)


def _cpu_options(choices: Choices, facts: Facts, focus: Focus) -> dict[str, str]:
    if focus.endless:
        pair = (FULL_CORES, ACROSS_NUMA)
        others = [one for one in focus.cpu_options if one not in pair]
        chosen = choices.some(others, 0, 1)
        # With broken cores, the kubelet would never answer.
        kept = pair if len({len(core) for core in facts.cores}) == 1 else (FULL_CORES,)
        return dict.fromkeys([*kept, *chosen], "true")
    return {
        name: "false" if choices.chance(8) else "true"
        for name in choices.some(focus.cpu_options, 0, 2)
    }


def _compatible(options: dict[str, str], facts: Facts, topology_policy: str) -> dict[str, str]:
    """Drops options that conflict with other options, the machine or `topology_policy`."""
    kept: dict[str, str] = {}
    for name, value in options.items():
        pairs = (frozenset((name, other)) for other in kept)
        if any(pair in _CONFLICTS for pair in pairs):
            continue
        alone = len(facts.sockets) > len(facts.nodes) or topology_policy == "single-numa-node"
        if name != BY_SOCKET or not alone:
            kept[name] = value
    return kept


def _add_reserved_cpus(
    choices: Choices, config: dict[str, Any], facts: Facts, *, whole: bool
) -> None:
    """Reserves CPUs, or whole cores if `whole`; leaves at least one free if there are several."""
    most = max(1, len(facts.all) - 1)
    if whole:
        cores = choices.integer(1, max(1, min(2, len(facts.cores) - 1)))
        size = len(facts.cores[0])
        config["kubeReserved"] = {"cpu": str(cores * size)}
        return
    kind = choices.pick(("one", "one", "count", "names", "sum", "fraction"))
    if kind == "names":
        named = choices.some([*facts.all], 1, min(3, most))
        config["reservedSystemCPUs"] = str(CPUSet(named))
    elif kind == "count":
        config["kubeReserved"] = {"cpu": str(choices.integer(1, min(4, most)))}
    elif kind == "fraction":
        config["kubeReserved"] = {"cpu": choices.pick(("500m", "1500m") if most > 1 else ("500m",))}
    elif kind == "sum" and most > 1:
        config["kubeReserved"] = {"cpu": choices.pick(("1", "500m"))}
        config["systemReserved"] = {"cpu": choices.pick(("500m", "1"))}
    else:
        config["kubeReserved"] = {"cpu": "1"}


def _add_topology(choices: Choices, config: dict[str, Any], facts: Facts, focus: Focus) -> None:
    if focus.topology_policies:
        policy = choices.pick(focus.topology_policies)
        if policy != "none":
            config["topologyManagerPolicy"] = policy
    if focus.scopes:
        scope = choices.pick(focus.scopes)
        if scope != "container":
            config["topologyManagerScope"] = scope
    options: dict[str, str] = {}
    # The kubelet panics if node ids are not consecutive.
    if CLOSEST in focus.topology_options and dense(facts.machine):
        options[CLOSEST] = "false" if choices.chance(6) else "true"
    if MAX_ALLOWABLE_NUMA_NODES in focus.topology_options and choices.chance(3):
        options[MAX_ALLOWABLE_NUMA_NODES] = choices.pick(("8", "16", "9"))
    if len(facts.nodes) > _BY_DEFAULT and "topologyManagerPolicy" in config:
        options[MAX_ALLOWABLE_NUMA_NODES] = "16"
    if options and "topologyManagerPolicy" in config:
        config["topologyManagerPolicyOptions"] = options


def _add_memory(choices: Choices, config: dict[str, Any], facts: Facts) -> None:
    """Reserves memory by node, and the total for the whole machine."""
    nodes = [node for node in facts.machine.topology or () if node.memory]
    wanted = choices.some(nodes, 1, len(nodes) if choices.chance(3) else 1)
    entries = []
    total = 0
    for node in wanted:
        amount = choices.pick((128, 128, 256, 384)) * _MIB
        if choices.chance(8):
            amount += 4096 * choices.integer(1, 9)
        entries.append({"numaNode": node.node_id, "limits": {"memory": _text(amount)}})
        total += amount
    config["reservedMemory"] = entries
    threshold = choices.pick((None, None, 50 * _MIB))
    if threshold is not None:
        config["evictionHard"] = {"memory.available": _text(threshold)}
    rest = total - (_EVICTION if threshold is None else threshold)
    if choices.chance(4) and rest > 2 * _MIB:
        _reserve(config, "systemReserved", _MIB)
        rest -= _MIB
    _reserve(config, "kubeReserved", rest)


def _reserve(config: dict[str, Any], whose: str, amount: int) -> None:
    config[whose] = {**config.get(whose, {}), "memory": _text(amount)}


def _text(amount: int) -> str:
    return f"{amount // _MIB}Mi" if amount % _MIB == 0 else str(amount)


# Mistakes


def _too_little_cpu(_: Choices, config: dict[str, Any], __: Facts) -> None:
    config.pop("reservedSystemCPUs", None)
    config["kubeReserved"] = {**config.get("kubeReserved", {}), "cpu": "0"}
    if "systemReserved" in config:
        config["systemReserved"] = {**config["systemReserved"], "cpu": "0"}


def _too_much_cpu(_: Choices, config: dict[str, Any], facts: Facts) -> None:
    config["kubeReserved"] = {**config.get("kubeReserved", {}), "cpu": str(len(facts.all) + 1)}


def _missing_cpu(_: Choices, config: dict[str, Any], facts: Facts) -> None:
    config["reservedSystemCPUs"] = str(CPUSet([0, max(facts.all) + 1]))


def _odd_option(choices: Choices, config: dict[str, Any], _: Facts) -> None:
    key = choices.pick(("cpuManagerPolicyOptions", "topologyManagerPolicyOptions"))
    known = [*config.get(key, {})] or [FULL_CORES if key.startswith("cpu") else CLOSEST]
    config[key] = choices.pick(({"unheard-of": "true"}, {known[0]: "maybe"}, {known[0]: ""}))


def _other_sum(choices: Choices, config: dict[str, Any], _: Facts) -> None:
    _reserve(config, "kubeReserved", choices.pick((1, 4096, 77 * _MIB)))


def _reserved(entries: Sequence[dict[str, Any]], config: dict[str, Any]) -> None:
    config["reservedMemory"] = [*config.get("reservedMemory", ()), *entries]


def _no_such_node(_: Choices, config: dict[str, Any], facts: Facts) -> None:
    _reserved([{"numaNode": max(facts.nodes) + 1, "limits": {"memory": "1Mi"}}], config)


def _odd_entry(choices: Choices, config: dict[str, Any], facts: Facts) -> None:
    node = min(facts.nodes)
    limits = choices.pick(
        ({"memory": "0"}, {"hugepages-2Mi": "2Mi"}, {"memory": "1Mi"}, {"cpu": "1"})
    )
    _reserved([{"numaNode": node, "limits": limits}], config)


def _nothing_reserved(_: Choices, config: dict[str, Any], __: Facts) -> None:
    config.pop("reservedMemory", None)


def _odd_gate(choices: Choices, config: dict[str, Any], _: Facts) -> None:
    gates = choices.pick(
        (
            {"UnheardOf": True},
            {"CPUManagerPolicyOptions": False},
            {"PodLevelResources": False, "PodLevelResourceManagers": True},
        )
    )
    config["featureGates"] = {**config.get("featureGates", {}), **gates}


def _named_beside_amounts(_: Choices, config: dict[str, Any], facts: Facts) -> None:
    """Valid, because the kubelet ignores the amounts if CPUs are named."""
    config["reservedSystemCPUs"] = "0"
    config["kubeReserved"] = {**config.get("kubeReserved", {}), "cpu": str(len(facts.all) // 2)}


def _set_fields(**fields: Any) -> Callable[[Choices, dict[str, Any], Facts], None]:
    return lambda _, config, __: config.update(fields)


_MISTAKES = (
    _too_little_cpu,
    _too_much_cpu,
    _missing_cpu,
    _odd_option,
    _other_sum,
    _no_such_node,
    _odd_entry,
    _set_fields(evictionHard={"memory.available": "0"}),
    _nothing_reserved,
    _odd_gate,
    _set_fields(reservedSystemCPUs="0", systemReservedCgroup="/system.slice"),
    _named_beside_amounts,
    _set_fields(evictionHard={"nodefs.available": "5%"}),
    _set_fields(topologyManagerPolicyOptions={MAX_ALLOWABLE_NUMA_NODES: "7"}),
)
