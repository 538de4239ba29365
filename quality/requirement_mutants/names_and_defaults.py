"""Mutants that lose defaults, read names loosely, or read flags differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.config import configuration, flags, gates, validation
from numaproof.reference.errors import StartError
from quality.seeding import Change, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

seeds = SubjectBugs("configuration")


# Feature gates


@seeds("CPU-GATE-001").around(gates, "enabled_gates")
def one_gate_turns_the_others_off(rule: Any, decoded_config: Any, known_gates: Any) -> Any:
    """Turns all gates off that aren't set if any gate is."""
    found = rule()
    wanted = decoded_config.get("featureGates")
    if not wanted:
        return found
    kept = {name for name, gate in known_gates.items() if name in wanted or gate.is_locked}
    return {name: on and name in kept for name, on in found.items()}


@shape(gates, "enabled_gates")
def _setting(change: Change, rule: Any, decoded_config: Any) -> Any:
    """Lets `change` replace the gates that a configuration sets."""
    wanted = decoded_config.get("featureGates")
    return (
        rule(decoded_config={**decoded_config, "featureGates": change(wanted)})
        if wanted
        else rule()
    )


def _without(*names: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda wanted: {name: on for name, on in wanted.items() if name not in names}


@seeds("CPU-GATE-004").of(_setting, _without("AllAlpha"))
def all_alpha_changes_nothing() -> None:
    """Ignores AllAlpha."""


@seeds("CPU-GATE-002").of(_setting, _without("AllBeta"))
def all_beta_changes_nothing() -> None:
    """Ignores AllBeta."""


@seeds("CPU-GATE-004").by(_setting)
def all_alpha_overrides_single_gates(wanted: Any) -> Any:
    """Lets AllAlpha override gates that are set by name."""
    return {"AllAlpha": wanted["AllAlpha"]} if "AllAlpha" in wanted else wanted


@seeds("CPU-GATE-001").by(_setting)
def all_beta_overrides_single_gates(wanted: Any) -> Any:
    """Lets AllBeta override gates that are set by name."""
    return {"AllBeta": wanted["AllBeta"]} if "AllBeta" in wanted else wanted


@seeds("CPU-GATE-005").by(_setting)
def all_alpha_turns_beta_gates_on(wanted: Any) -> Any:
    """Lets AllAlpha change beta gates as well."""
    return {"AllBeta": wanted["AllAlpha"], **wanted} if "AllAlpha" in wanted else wanted


# Flags


@shape(flags, "read")
def _line(change: Callable[[str], str], rule: Any, command_line: Any) -> Any:
    """Lets `change` replace each argument of the command line."""
    return rule(command_line=tuple(map(change, command_line)))


def _cut(*names: str) -> Callable[[str], str]:
    prefixes = tuple(f"--{name}=" for name in names)
    return lambda one: one.partition(",")[0] if one.startswith(prefixes) else one


@seeds("CPU-CONFIG-017").of(_line, _cut("reserved-cpus"))
def reserved_cpus_end_at_a_comma() -> None:
    """Reads --reserved-cpus up to the first comma."""


@seeds("CPU-CONFIG-018").of(_line, _cut("kube-reserved", "system-reserved"))
def reservations_end_at_a_comma() -> None:
    """Reads --kube-reserved and --system-reserved up to the first comma."""


@seeds("CPU-CONFIG-020").of(_line, _cut("feature-gates"))
def feature_gates_end_at_a_comma() -> None:
    """Reads --feature-gates up to the first comma."""


@seeds("CPU-CONFIG-020").of(_line, _cut("topology-manager-policy-options"))
def topology_options_end_at_a_comma() -> None:
    """Reads --topology-manager-policy-options up to the first comma."""


@seeds("CPU-CONFIG-020").of(_line, _cut("eviction-hard"))
def eviction_thresholds_end_at_a_comma() -> None:
    """Reads --eviction-hard up to the first comma."""


@seeds("CPU-CONFIG-020").of(_line, _cut("reserved-memory"))
def reserved_memory_ends_at_a_comma() -> None:
    """Reads --reserved-memory up to the first comma."""


_MAPS = (
    "kubeReserved",
    "systemReserved",
    "evictionHard",
    "cpuManagerPolicyOptions",
    "topologyManagerPolicyOptions",
)


@shape(configuration, "load")
def _add(field: str, rule: Any, kubelet_config: Any, flags: Any) -> Any:
    """Adds a flag's pairs to the configuration's instead of replacing them."""
    both = {**(kubelet_config.get(field) or {}), **(flags.get(field) or {})}
    return rule(flags={**flags, field: both} if field in flags else flags)


for _field in _MAPS:
    seeds.add(
        f"{_field.lower()}-flags-are-added",
        f"Adds the pairs of the flag for {_field} to those of the configuration.",
        "CPU-CONFIG-020",
        "admission",
        _add,
        _field,
    )


@seeds("CPU-CONFIG-020").around(configuration, "load")
def reserved_memory_flags_are_added(rule: Any, kubelet_config: Any, flags: Any) -> Any:
    """Adds the nodes of --reserved-memory to the configuration's reservedMemory."""
    own = tuple(
        (one.get("numaNode", 0), one.get("limits") or {})
        for one in kubelet_config.get("reservedMemory") or ()
    )
    if "reservedMemory" not in flags:
        return rule()
    return rule(flags={**flags, "reservedMemory": (*own, *flags["reservedMemory"])})


@seeds("CPU-CONFIG-020").around(configuration, "load")
def reserved_cpus_of_the_flag_are_added(rule: Any, kubelet_config: Any, flags: Any) -> Any:
    """Reserves the CPUs of --reserved-cpus in addition to reservedSystemCPUs."""
    name = "reservedSystemCPUs"
    both = ",".join(filter(None, (kubelet_config.get(name), flags.get(name))))
    return rule(flags={**flags, name: both} if name in flags else flags)


@seeds("CPU-CONFIG-020").around(configuration, "load")
def gates_of_the_command_line_replace_all(rule: Any, kubelet_config: Any, flags: Any) -> Any:
    """Lets --feature-gates replace the configuration's gates instead of adding to them."""
    if "featureGates" not in flags:
        return rule()
    return rule(kubelet_config={**kubelet_config, "featureGates": flags["featureGates"]})


# Names of policies


@shape(configuration, "load")
def _read_name(field: str, change: Callable[[str], str], rule: Any, kubelet_config: Any) -> Any:
    """Lets `change` replace the name of a policy or scope."""
    text = kubelet_config.get(field)
    name = change(text) if isinstance(text, str) else text
    return rule(kubelet_config={**kubelet_config, field: name})


_REQUIREMENTS = {
    "cpuManagerPolicy": "CPU-CONFIG-002",
    "memoryManagerPolicy": "MEM-CONFIG-001",
    "topologyManagerPolicy": "TOPO-ERROR-002",
    "topologyManagerScope": "TOPO-ERROR-003",
}


def _known(*names: str) -> Callable[[str], str]:
    by_lower = {name.lower(): name for name in names}
    return lambda text: by_lower.get(text.lower(), text)


_IN_ANY_CASE: Mapping[str, Callable[[str], str]] = {
    "cpuManagerPolicy": _known("none", "static"),
    "memoryManagerPolicy": _known("None", "Static"),
    "topologyManagerPolicy": _known(*validation.TOPOLOGY_POLICIES),
    "topologyManagerScope": _known("container", "pod"),
}

for _field, _requirement in _REQUIREMENTS.items():
    _name = _field.lower()
    seeds.add(
        f"{_name}-is-trimmed",
        f"Ignores white space around {_field}.",
        _requirement,
        "admission",
        _read_name,
        _field,
        str.strip,
    )
    seeds.add(
        f"{_name}-has-any-case",
        f"Ignores the case of {_field}.",
        _requirement,
        "admission",
        _read_name,
        _field,
        _IN_ANY_CASE[_field],
    )


def _nameless(rule: Any, config: Any) -> Any:
    try:
        return rule()
    except StartError as error:
        text = str(error)
        for name in (config.cpu_policy, config.memory_policy):
            text = text.replace(f'"{name}"', '""')
        raise StartError(error.stage, text) from None


@seeds("CPU-CONFIG-002", level="kubelet").around(startup, "make_cpu_policy", _nameless)
def the_cpu_policy_is_not_named() -> None:
    """Refuses an unknown CPU Manager policy without its name."""


@seeds("MEM-CONFIG-001", level="kubelet").around(startup, "make_memory_policy", _nameless)
def the_memory_policy_is_not_named() -> None:
    """Refuses an unknown Memory Manager policy without its name."""


# Defaults of fields


@seeds("MEM-RESERVE-006").around(configuration, "load")
def one_threshold_keeps_the_default_of_memory(rule: Any, kubelet_config: Any) -> Any:
    """Keeps the default threshold of memory if only other signals are set."""
    given = kubelet_config.get("evictionHard")
    if not given or "memory.available" in given:
        return rule()
    return rule(
        kubelet_config={**kubelet_config, "evictionHard": {"memory.available": "100Mi", **given}}
    )
