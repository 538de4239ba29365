"""Mutants that break the documentation differently from the kubelet's named defects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import operations, startup
from numaproof.reference.config import configuration, gates
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.cpu import assignment, options
from numaproof.reference.cpu.assignment import Assignment, NotEnoughCPUsError
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.cpu.topology import touching
from numaproof.reference.deviations import assignment as deviations
from numaproof.reference.errors import AdmissionError, StartError
from numaproof.reference.memory import requests
from numaproof.reference.pods import qos, quantity
from numaproof.reference.topology import options as topology_options
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import ANYWHERE, TopologyHint
from numaproof.reference.topology.policy import TopologyPolicy
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("documented")


# The static policy


@seeds("CPU-STATIC-027").around(operations, "assign")
def no_cpus_of_an_empty_set_are_too_many(rule: Any, args: Any) -> Any:
    """Rejects every request if the set of available CPUs is empty."""
    if not args.available:
        raise AdmissionError("UnexpectedAdmissionError", "no CPUs are available")
    return rule()


@seeds("CPU-STATIC-028").around(CPUState, "allowed_cpus", lambda rule, self: rule() | self.shared)
def exclusive_cpus_are_added_to_the_shared_pool() -> None:
    """Lets containers with exclusive CPUs also run on the shared pool."""


@seeds("CPU-STATIC-029")
def cores_are_taken_in_the_order_of_the_machine(changes: Changes) -> None:
    """Takes cores in ascending order, however full their node is."""
    for user in (assignment, deviations):
        changes.around(
            user, "cores_in_order", lambda rule, topology, free: sorted(rule(topology, free))
        )


@seeds("CPU-STATIC-030").around(Assignment, "pack")
def few_nodes_must_be_of_one_socket(rule: Any, self: Any, count: int) -> Any:
    """Rejects a request that would fit on a socket if its CPUs span two."""
    sockets = self.topology.sockets
    chosen = rule()
    largest = max((cpus.bit_count() for cpus in sockets.values()), default=0)
    if count <= largest and len(list(touching(sockets, chosen))) > 1:
        raise NotEnoughCPUsError(count, 0)
    return chosen


@seeds("CPU-STATIC-031")
def every_cpu_comes_from_another_core(changes: Changes) -> None:
    """Takes CPUs from different cores without distribute-cpus-across-cores."""
    changes.replace(Assignment, "whole_cores", lambda self, progress: progress)
    changes.replace(Assignment, "threads_by_core", Assignment.threads_of_other_cores)


@seeds("CPU-STATIC-032").around(options, "parse", lambda rule: replace(rule(), by_uncore=True))
def uncore_caches_are_always_preferred() -> None:
    """Always aligns to uncore caches."""


# Policy options


@seeds("CPU-OPT-FULLPCPUS-011").around(StaticCPUPolicy, "check_alignment")
def only_multiples_are_a_matter_of_alignment(rule: Any, count: Any) -> Any:
    """Checks only for multiples of a core, not for enough free cores."""
    return rule(free=count)


@seeds("CPU-OPT-STRICT-007").around(StaticCPUPolicy, "allocate")
def limits_must_fit_the_allocatable_cpus(rule: Any, self: Any, pod: Any) -> Any:
    """Rejects pods whose CPU limits exceed the allocatable CPUs."""
    limits = sum(quantity.parse(one.limits.get("cpu", 0)) for one in pod.containers)
    if limits > self.allocatable.bit_count():
        raise AdmissionError("OutOfcpu", "CPU limits beyond the allocatable CPUs")
    return rule()


# Feature gates


@shape(gates, "enabled_gates")
def _unlock_gate(
    name: str, passes: Change, rule: Any, decoded_config: Any, known_gates: Any
) -> Any:
    """Ignores a gate if `passes` is true for its value and whether the release knows it."""
    wanted = decoded_config.get("featureGates")
    if isinstance(wanted, dict) and name in wanted and passes(wanted[name], name in known_gates):
        kept = {one: on for one, on in wanted.items() if one != name}
        decoded_config = {**decoded_config, "featureGates": kept}
    return rule(decoded_config=decoded_config)


@seeds("CPU-GATE-015", kubernetes="1.31").by(_unlock_gate, "CPUManager")
def stable_gate_cpumanager_may_be_off(on: Any, is_known: Any) -> Any:
    """Ignores a stable gate that is turned off."""
    return is_known and not on


@seeds("CPU-GATE-015", kubernetes="1.31").around(gates, "enabled_gates")
def stable_gate_cpumanager_is_gone_already(rule: Any, known_gates: Any) -> Any:
    """Refuses the gate in the release that makes it stable."""
    return rule(
        known_gates={name: gate for name, gate in known_gates.items() if name != "CPUManager"}
    )


@seeds("MEM-GATE-002", kubernetes="1.33").by(_unlock_gate, "MemoryManager")
def stable_gate_memorymanager_may_be_off(on: Any, is_known: Any) -> Any:
    """Ignores a stable gate that is turned off."""
    return is_known and not on


@seeds("MEM-GATE-002", kubernetes="1.37").by(_unlock_gate, "MemoryManager")
def removed_gate_memorymanager_may_be_on(on: Any, is_known: Any) -> Any:
    """Accepts a removed gate that is turned on."""
    return on and not is_known


# Memory


@seeds("MEM-HUGE-010").after(requests, "container_amounts")
def only_the_first_container_gets_huge_pages(amounts: Any, pod: Any, container: Any) -> Any:
    """Pins huge pages only for a pod's first container."""
    if container is pod.containers[0]:
        return amounts
    return {kind: size for kind, size in amounts.items() if kind == requests.MEMORY}


@seeds("MEM-HUGE-010").after(requests, "container_amounts")
def only_one_size_of_huge_pages_is_pinned(amounts: Any) -> Any:
    """Pins only one size of huge pages for each container."""
    pages = [kind for kind in amounts if kind != requests.MEMORY][:1]
    return {kind: size for kind, size in amounts.items() if kind in (requests.MEMORY, *pages)}


@seeds("MEM-HINT-009").around(scope, "affinity_of")
def merge_goes_without_memory(rule: Any, providers: Any) -> Any:
    """Merges all hints except for the Memory Manager's."""
    return rule(providers=providers[:2])


@seeds("MEM-HINT-010").around(startup, "make_memory_policy")
def memory_is_aligned_under_every_policy(rule: Any, config: Any) -> Any:
    """Pins memory under every policy."""
    return rule(config=replace(config, memory_policy="Static"))


# Topology


_BETA = "TopologyManagerPolicyBetaOptions"


# Policies and scopes


@shape(startup, "make_topology_policy")
def _refusing(refuses: Callable[[Any], bool], rule: Any, config: Any) -> Any:
    """Refuses to start if `refuses` is true for the configuration."""
    if refuses(config):
        raise StartError("topology", f"policy {config.topology_policy!r} is not available")
    return rule()


@seeds("TOPO-POLICY-012").by(_refusing)
def policies_need_the_gate_of_beta_options(config: Any) -> Any:
    """Refuses policies other than none if the gate for beta options is off."""
    return config.topology_policy != "none" and not config.gates[_BETA]


@seeds("TOPO-POLICY-013").of(_refusing, lambda config: config.topology_policy == "restricted")
def policy_restricted_is_not_known() -> None:
    """Refuses the restricted policy."""


@seeds("TOPO-SCOPE-009").after(configuration, "load")
def scope_pod_needs_a_policy(config: Any) -> Any:
    """Refuses the pod scope under the none policy."""
    if (config.topology_policy, config.topology_scope) == ("none", "pod"):
        raise ConfigError("the pod scope needs a Topology Manager policy")
    return config


@seeds("TOPO-POLICY-014").around(scope, "admit")
def single_numa_node_asks_for_the_whole_pod(rule: Any, policy: Any, scope: str) -> None:
    """Always uses the pod scope with single-numa-node."""
    single = policy is not None and policy.name == "single-numa-node"
    rule(scope="pod" if single else scope)


# Hints


@seeds("TOPO-POLICY-015").around(scope, "affinity_of")
def later_containers_ask_the_cpu_manager_alone(
    rule: Any, providers: Any, pod: Any, container: Any
) -> Any:
    """Asks only the CPU Manager for hints after the first container."""
    later = container is not None and container is not pod.containers[0]
    return rule(providers=providers[1:2] if later else providers)


@seeds("TOPO-POLICY-016").around(TopologyPolicy, "merge")
def single_numa_node_keeps_no_affinity(rule: Any, self: Any) -> Any:
    """Admits on the basis of a single NUMA node but doesn't use it as the affinity."""
    kept, admitted = rule()
    if self.name == "single-numa-node":
        kept = TopologyHint(ANYWHERE, preferred=kept.preferred)
    return kept, admitted


@seeds("TOPO-OPT-018").around(TopologyPolicy, "merge")
def affinity_grows_to_all_nodes(rule: Any, self: Any) -> Any:
    """Widens the affinity to all NUMA nodes under the best-effort policy."""
    kept, admitted = rule()
    if self.name == "best-effort" and self.rules.distances is None:
        kept = TopologyHint(self.rules.nodes, preferred=kept.preferred)
    return kept, admitted


# Options


@shape(gates, "enabled_gates")
def _off_by_default(name: str, rule: Any, known_gates: Any) -> Any:
    """Turns a gate off by default."""
    return rule(
        known_gates={
            **known_gates,
            name: replace(known_gates[name], default=False, is_locked=False),
        }
    )


@seeds("TOPO-OPT-013").of(_off_by_default, "TopologyManagerPolicyOptions")
def topology_options_are_off_by_default() -> None:
    """Turns the gate for options off by default."""


@seeds("TOPO-OPT-014", kubernetes="1.31").of(_off_by_default, _BETA)
def beta_topology_options_are_off_by_default() -> None:
    """Turns the gate for beta options off by default."""


@seeds("TOPO-OPT-015").after(topology_options, "parse")
def gate_of_beta_options_lifts_the_limit_of_nodes(parsed_options: Any, gates: Any) -> Any:
    """Raises the limit of NUMA nodes with the gate for beta options."""
    return replace(parsed_options, most_nodes=1024) if gates and gates[_BETA] else parsed_options


@shape(topology_options, "check_available")
def _still_beta(option: str, rule: Any, available: Any) -> None:
    """Keeps an option beta in every release."""
    known = {**available, option: "beta"} if option in available else available
    rule(available=known)


@seeds("TOPO-OPT-016").of(_still_beta, topology_options.CLOSEST)
def closest_nodes_stay_beta() -> None:
    """Keeps prefer-closest-numa-nodes beta, as documented."""


@seeds("TOPO-OPT-017").of(_still_beta, topology_options.MAX_ALLOWABLE_NUMA_NODES)
def limit_of_nodes_stays_beta() -> None:
    """Keeps max-allowable-numa-nodes beta."""


# Examples


@seeds("TOPO-EXAMPLE-008").after(qos, "class_of")
def device_and_a_part_of_a_cpu_make_a_pod_burstable(qos_class: Any, containers: Any) -> Any:
    """Treats pods with devices and fractional CPUs as Burstable."""
    shared = any(str(one.requests.get("cpu", 0)).endswith("m") for one in containers)
    devices = any("/" in name for one in containers for name in one.requests)
    return "Burstable" if qos_class == "Guaranteed" and shared and devices else qos_class
