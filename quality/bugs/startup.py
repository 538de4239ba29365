"""Bugs in configuration, refused starts and the none policy."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numaproof.protocol.releases import NEWEST
from numaproof.protocol.sets import CPUSet
from numaproof.reference import startup
from numaproof.reference.config import (
    configuration,
    cpulist,
    eviction,
    fields,
    gates,
    reservation,
    validation,
)
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu import options as cpu_options
from numaproof.reference.cpu import policy as cpu_policies
from numaproof.reference.cpu.options import StaticOptions
from numaproof.reference.deviations import releases
from numaproof.reference.errors import StartError
from numaproof.reference.golang import durations
from numaproof.reference.memory import policy as memory_policies
from numaproof.reference.memory import reservation as memory_reservation
from numaproof.reference.pods import manifest, qos, quantity
from numaproof.reference.topology import options as topology_options
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.config.configuration import Config
    from numaproof.reference.pods.containers import PodContainer

seeds = SubjectBugs("configuration")


# Reservations


@shape(reservation, "reserved_cpus")
def _reserving(change: Change, rule: Any, config: Any) -> Any:
    """Lets `change` replace the configuration that determines the reserved CPUs."""
    return rule(config=change(config))


@seeds("CPU-RESERVE-004").around(reservation, "reserved_cpus")
def a_fraction_of_a_cpu_is_not_reserved(rule: Any) -> Any:
    return Fraction(math.floor(rule()))


@seeds("CPU-RESERVE-006").of(_reserving, lambda config: replace(config, kube_reserved={}))
def the_cpus_of_kube_reserved_do_not_count() -> None: ...


@seeds("CPU-RESERVE-006").of(_reserving, lambda config: replace(config, system_reserved={}))
def the_cpus_of_system_reserved_do_not_count() -> None: ...


@seeds("CPU-RESERVE-011", "CPU-RESERVE-007").around(reservation, "reserved_cpus")
def named_cpus_are_counted_by_the_amounts(rule: Any, config: configuration.Config) -> Fraction:
    amount: Fraction = rule()
    if not config.named_cpus:
        return amount
    rest: Fraction = rule(config=replace(config, named_cpus=type(config.named_cpus)()))
    return rest or amount


@seeds("MEM-RESERVE-005", "#109766").replace(eviction, "of_memory")
def the_eviction_threshold_is_not_reserved(thresholds: Any, capacity: Any) -> Any:
    return None


@seeds("MEM-RESERVE-006").around(eviction, "hard_thresholds")
def the_default_eviction_threshold_always_counts(rule: Any) -> Any:
    return {**eviction.DEFAULTS, **rule()}


@seeds("MEM-CONFIG-004", "MEM-CONFIG-005", "MEM-CONFIG-006").replace(validation, "memory_problems")
def reserved_memory_is_not_validated(reservations: Any) -> Any:
    return ()


# Names and gates


@seeds("CPU-GATE-010", "CPU-GATE-008").around(gates, "enabled_gates")
def a_gate_that_nobody_knows_is_passed_over(
    rule: Any, decoded_config: Any, known_gates: Any
) -> Any:
    wanted = decoded_config.get("featureGates")
    if not isinstance(wanted, dict):
        return rule()
    left = {name: on for name, on in wanted.items() if name in known_gates}
    return rule(decoded_config={**decoded_config, "featureGates": left})


@seeds("CPU-GATE-009").around(gates, "enabled_gates")
def a_locked_gate_can_be_set(rule: Any, known_gates: Any) -> Any:
    loose = {name: replace(gate, is_locked=False) for name, gate in known_gates.items()}
    return rule(known_gates=loose)


@seeds("CPU-GATE-011").replace(gates, "dependency_problems", lambda enabled_gates, known_gates: ())
def a_gate_stands_without_those_it_needs() -> None: ...


@seeds("CPU-GATE-004").around(gates, "enabled_gates")
def a_gate_that_is_turned_on_stays_off(rule: Any, decoded_config: Any) -> Any:
    wanted = decoded_config.get("featureGates")
    if not isinstance(wanted, dict):
        return rule()
    return rule(
        decoded_config={
            **decoded_config,
            "featureGates": {name: on for name, on in wanted.items() if not on},
        }
    )


@seeds("CPU-CONFIG-009").around(
    validation, "reserved_cpus_problems", lambda rule: rule(kubelet_config={})
)
def named_cpus_may_stand_beside_a_cgroup() -> None: ...


@seeds("CPU-GATE-003", kubernetes="1.33")
def an_older_release_has_the_options_of_the_newest(changes: Changes) -> None:
    newest = releases.TABLE[NEWEST]
    changes.around(
        releases, "release", lambda rule: replace(rule(), cpu_options=newest.cpu_options)
    )


# Quantities


@seeds("CPU-CONFIG-015", "MEM-STATIC-006").around(quantity, "parse")
def binary_suffixes_are_read_as_decimal_ones(rule: Any, text: Any) -> Any:
    return rule(text=str(text).replace("i", ""))


@seeds("CPU-STATIC-005", "CPU-STATIC-001").replace(quantity, "whole_cpus")
def fractions_round_down_to_exclusive_cpus(text: Any) -> Any:
    return math.floor(quantity.parse(text))


# Quality of service


@seeds("CPU-STATIC-001", "CPU-STATIC-016").around(qos, "class_of")
def init_containers_do_not_count_for_the_class(rule: Any, containers: Any) -> Any:
    apps = tuple(container for container in containers if not container.init)
    return rule(containers=apps or containers)


@seeds("CPU-STATIC-001", "MEM-STATIC-002").replace(qos, "RESOURCES", ("cpu",))
def cpus_alone_make_a_pod_guaranteed() -> None: ...


@seeds("CPU-STATIC-002").after(manifest, "read_container")
def a_limit_makes_no_request(container: PodContainer, item: Any) -> PodContainer:
    own = (item.get("resources") or {}).get("requests") or {}
    return replace(container, requests=own)


seeds.about("refusals")


# Policy names


@seeds("CPU-CONFIG-002").after(configuration, "load")
def an_unknown_cpu_policy_stands_for_none(config: configuration.Config) -> configuration.Config:
    name = config.cpu_policy if config.cpu_policy == "static" else "none"
    return replace(config, cpu_policy=name)


@seeds("MEM-CONFIG-001", "MEM-CONFIG-003").after(configuration, "load")
def an_unknown_memory_policy_stands_for_none(config: configuration.Config) -> configuration.Config:
    name = config.memory_policy if config.memory_policy == "Static" else "None"
    return replace(config, memory_policy=name)


@seeds("TOPO-ERROR-002", "TOPO-ERROR-003").replace(validation, "topology_problems")
def topology_policies_and_scopes_are_not_looked_up(policy: Any, scope: Any) -> Any:
    return ()


@seeds("TOPO-ORDER-001").around(startup, "make_topology_policy")
def the_cpu_manager_is_made_before_the_topology_manager(
    rule: Any, config: configuration.Config, release: Any
) -> Any:
    try:
        return rule()
    except StartError:
        if config.cpu_policy not in ("none", "static"):
            raise StartError("cpu", f'unknown policy: "{config.cpu_policy}"') from None
        try:
            cpu_options.parse(config.cpu_options or {}, release.cpu_options, config.gates)
        except OptionError as error:
            raise StartError("cpu", f"new static policy error: {error}") from None
        raise


# Options


@seeds("CPU-CONFIG-004", "CPU-ERROR-006").around(cpu_options, "parse")
def an_unknown_cpu_option_is_passed_over(rule: Any, policy_options: Any, available: Any) -> Any:
    return rule(
        policy_options={name: text for name, text in policy_options.items() if name in available}
    )


@seeds("TOPO-ERROR-004").around(topology_options, "parse")
def an_unknown_topology_option_is_passed_over(
    rule: Any, policy_options: Any, available: Any
) -> Any:
    return rule(
        policy_options={name: text for name, text in policy_options.items() if name in available}
    )


@seeds("CPU-CONFIG-005", "TOPO-ERROR-006")
def an_option_that_is_no_boolean_is_off(changes: Changes) -> None:
    for owner in (cpu_options, topology_options):
        changes.replace(owner, "boolean", lambda name, text: text.lower() in ("1", "t", "true"))


@seeds("TOPO-ERROR-008").around(topology_options, "read_most_nodes")
def a_limit_of_nodes_that_is_no_number_is_passed_over(rule: Any, text: str) -> int:
    if text.lstrip("+-").isdecimal():
        return int(rule())
    return topology_options.DEFAULT_MAX_ALLOWABLE_NUMA_NODES


@seeds("TOPO-ERROR-009", kubernetes="1.35").around(startup, "make_topology_policy")
def the_gate_of_topology_options_matters_with_a_policy_alone(rule: Any, config: Any) -> Any:
    return rule() if config.topology_policy != "none" else None


@seeds("CPU-CONFIG-003", "CPU-ERROR-006").after(configuration, "load")
def policy_none_takes_options(config: configuration.Config) -> configuration.Config:
    return replace(config, cpu_options={}) if config.cpu_policy == "none" else config


@seeds("CPU-GATE-001").around(cpu_options, "value")
def beta_options_are_closed_by_default(rule: Any, maturity: Any) -> Any:
    return rule(maturity="alpha" if maturity == "beta" else maturity)


@seeds("CPU-GATE-005", "CPU-OPT-FULLPCPUS-001").around(cpu_options, "value")
def stable_options_need_a_gate(rule: Any, maturity: Any) -> Any:
    return rule(maturity="beta" if maturity == "stable" else maturity)


# Values


@seeds("TOPO-ERROR-006").around(fields, "decode")
def numbers_and_booleans_are_texts(rule: Any, kubelet_config: Mapping[str, Any]) -> Any:
    def as_text(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: as_text(entry) for key, entry in value.items()}
        return str(value) if isinstance(value, bool | int) else value

    texts = {name for name, kind in fields.DECODED.items() if kind.go.endswith("string")}
    return rule(
        kubelet_config={
            name: as_text(one) if name in texts else one for name, one in kubelet_config.items()
        }
    )


@seeds("CPU-CONFIG-014").around(fields, "decode")
def the_reconcile_period_is_not_read(rule: Any, kubelet_config: Mapping[str, Any]) -> Any:
    return rule(
        kubelet_config={
            name: one for name, one in kubelet_config.items() if name != "cpuManagerReconcilePeriod"
        }
    )


@seeds("CPU-CONFIG-014").around(durations, "nanoseconds")
def the_reconcile_period_has_one_unit(rule: Any, text: str) -> Any:
    if not re.fullmatch(r"[0-9]+(ns|us|ms|s|m|h)", text):
        raise durations.DurationError(f'time: invalid duration "{text}"')
    return rule()


@seeds("CPU-CONFIG-008").around(cpulist, "parse")
def a_list_of_cpus_that_cannot_be_read_names_none(rule: Any) -> Any:
    try:
        return rule()
    except cpulist.CPUListError:
        return CPUSet()


@seeds("CPU-CONFIG-010", "#124066").around(reservation, "reserved_cpus")
def cpus_that_are_not_there_can_be_reserved(rule: Any, config: Any, online: CPUSet) -> Fraction:
    named = CPUSet.from_mask(config.named_cpus.mask & online.mask)
    amount: Fraction = rule(config=replace(config, named_cpus=named))
    return amount


def _reservable(changes: Changes, takes: Callable[[Fraction], bool]) -> None:
    """Ignores reserved amounts unless `takes` is true."""

    def cpus_of(rule: Any, amounts: Mapping[str, str]) -> Any:
        return rule(amounts={name: text for name, text in amounts.items() if good(text)})

    def good(text: str) -> bool:
        try:
            return takes(quantity.parse(text))
        except quantity.QuantityError:
            return takes(Fraction(-1))

    changes.around(reservation, "cpus_of", cpus_of)


@seeds("CPU-CONFIG-011", "CPU-CONFIG-012", "MEM-CONFIG-010").by(_reservable)
def a_reservation_that_cannot_be_is_passed_over(amount: Fraction) -> Any:
    return amount >= 0


@seeds("CPU-CONFIG-013").replace(reservation, "RESERVABLE", ("cpu", "memory"))
def only_cpus_and_memory_can_be_reserved() -> None: ...


@seeds("MEM-CONFIG-002").around(fields, "decode")
def reserved_memory_that_cannot_be_read_is_none(rule: Any, kubelet_config: Any) -> Any:
    try:
        return rule()
    except configuration.ConfigError:
        return rule(kubelet_config={**kubelet_config, "reservedMemory": None})


@seeds("MEM-CONFIG-011")
def eviction_thresholds_that_cannot_be_are_passed_over(changes: Changes) -> None:
    def good(signal: str, text: str) -> bool:
        try:
            eviction.check({signal: text})
        except eviction.ThresholdError:
            return False
        return True

    changes.around(
        eviction,
        "hard_thresholds",
        lambda rule: {signal: text for signal, text in rule().items() if good(signal, text)},
    )


# Reservations


@seeds("CPU-RESERVE-002").around(reservation, "reserved_cpus", lambda rule: rule() or Fraction(1))
def static_starts_without_a_reservation() -> None: ...


@seeds("CPU-RESERVE-007").around(startup, "make_static", lambda rule: rule(named_cpus=0))
def named_cpus_are_only_counted() -> None: ...


seeds.about("none")


@seeds("CPU-NONE-001").after(fields, "decode")
def static_is_the_default(decoded_config: Any) -> Any:
    return {**decoded_config, "cpuManagerPolicy": decoded_config["cpuManagerPolicy"] or "static"}


@seeds("CPU-NONE-002").after(startup, "make_cpu_policy")
def policy_none_pins_cpus(
    cpu_policy: cpu_policies.StaticCPUPolicy | None, topology: Any
) -> cpu_policies.StaticCPUPolicy | None:
    return cpu_policy or cpu_policies.make_static(topology, StaticOptions(), 1, 0)


@seeds("CPU-NONE-004").around(startup, "make_cpu_policy")
def policy_none_needs_a_reservation(rule: Any, config: Any) -> cpu_policies.StaticCPUPolicy | None:
    as_static = replace(config, cpu_policy="static", cpu_options={})
    rule(config=as_static)
    found: cpu_policies.StaticCPUPolicy | None = rule()
    return found


@seeds("CPU-CONFIG-001", "CPU-RESERVE-008")
def reserved_cpus_are_told_as_allocatable(changes: Changes) -> None:
    changes.replace(
        cpu_policies.StaticCPUPolicy, "allocatable", property(lambda self: self.topology.cpus)
    )


@seeds("MEM-NONE-001", "MEM-NONE-002").after(startup, "make_memory_policy")
def policy_none_pins_memory(memory_policy: Any, machine: MachineInfo) -> Any:
    return memory_policy or memory_policies.make_static(machine, {})


@seeds("MEM-NONE-003").around(startup, "make_memory_policy")
def policy_none_reads_reserved_memory(rule: Any, config: Config, machine: MachineInfo) -> Any:
    try:
        memory_reservation.by_node(config, machine)
    except memory_reservation.ReservationError as error:
        raise StartError("memory", str(error)) from None
    return rule()


# The effective configuration


@seeds("CPU-RECONCILE-003").around(configuration.Config, "in_force")
def defaults_are_reported_as_the_effective_configuration(rule: Any, self: Any) -> Any:
    return rule() | {"cpuManagerPolicy": "none", "cpuManagerReconcilePeriod": "10s"}
