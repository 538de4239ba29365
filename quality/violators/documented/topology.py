"""Violators of what the documents say of the Topology Manager and its options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.config import configuration, gates
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.errors import StartError
from numaproof.reference.pods import qos
from numaproof.reference.topology import options, scope
from numaproof.reference.topology.hints import ANYWHERE, TopologyHint
from numaproof.reference.topology.policy import TopologyPolicy
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("documented-topology")

_BETA = "TopologyManagerPolicyBetaOptions"


# Policies and scopes


def _refusing(changes: Changes, refuses: Callable[[Any], bool]) -> None:
    """Refuses to start with those configurations that a rule names."""

    def made(original: Any, config: Any, *rest: Any) -> Any:
        if refuses(config):
            raise StartError("topology", f"policy {config.topology_policy!r} is not available")
        return original(config, *rest)

    changes.around(startup, "make_topology_policy", made)


@seeds("TOPO-POLICY-012")
def policies_need_the_gate_of_beta_options(changes: Changes) -> None:
    """Has policies but none only while the gate of their options is on."""
    _refusing(changes, lambda config: config.topology_policy != "none" and not config.gates[_BETA])


@seeds("TOPO-POLICY-013")
def policy_restricted_is_not_known(changes: Changes) -> None:
    """Has the three policies of the first design."""
    _refusing(changes, lambda config: config.topology_policy == "restricted")


@seeds("TOPO-SCOPE-009")
def scope_pod_needs_a_policy(changes: Changes) -> None:
    """Refuses scope pod under policy none, where it would mean nothing."""

    def load(original: Any, *args: Any) -> Any:
        config = original(*args)
        if (config.topology_policy, config.topology_scope) == ("none", "pod"):
            raise ConfigError("scope pod needs a Topology Manager policy")
        return config

    changes.around(configuration, "load", load)


@seeds("TOPO-POLICY-014")
def single_numa_node_asks_for_the_whole_pod(changes: Changes) -> None:
    """Wants all containers of a pod on one NUMA node, whatever the scope."""

    def admit(original: Any, policy: Any, given: str, *rest: Any) -> None:
        single = policy is not None and policy.name == "single-numa-node"
        original(policy, "pod" if single else given, *rest)

    changes.around(scope, "admit", admit)


# Hints


@seeds("TOPO-POLICY-015")
def later_containers_ask_the_cpu_manager_alone(changes: Changes) -> None:
    """Asks every provider for the first container, which it takes for the main one."""

    def affinity_of(original: Any, policy: Any, providers: Any, pod: Any, container: Any) -> Any:
        later = container is not None and container is not pod.containers[0]
        return original(policy, providers[1:2] if later else providers, pod, container)

    changes.around(scope, "affinity_of", affinity_of)


@seeds("TOPO-POLICY-016")
def single_numa_node_keeps_no_affinity(changes: Changes) -> None:
    """Checks that there is a single NUMA node, and does not say which."""

    def merge(original: Any, self: Any, providers: Any) -> Any:
        kept, admitted = original(self, providers)
        if self.name == "single-numa-node":
            kept = TopologyHint(ANYWHERE, preferred=kept.preferred)
        return kept, admitted

    changes.around(TopologyPolicy, "merge", merge)


@seeds("TOPO-OPT-018")
def affinity_grows_to_all_nodes(changes: Changes) -> None:
    """Lets best-effort use all NUMA nodes, for the best balance."""

    def merge(original: Any, self: Any, providers: Any) -> Any:
        kept, admitted = original(self, providers)
        if self.name == "best-effort" and self.rules.distances is None:
            kept = TopologyHint(self.rules.nodes, preferred=kept.preferred)
        return kept, admitted

    changes.around(TopologyPolicy, "merge", merge)


# Options


def _off_by_default(changes: Changes, name: str) -> None:
    """Turns a gate off unless the configuration turns it on."""

    def enabled(original: Any, given: Any, known: Any) -> Any:
        return original(given, {**known, name: replace(known[name], default=False, locked=False)})

    changes.around(gates, "enabled", enabled)


@seeds("TOPO-OPT-013")
def topology_options_are_off_by_default(changes: Changes) -> None:
    """Leaves the gate of all options off, as when it was alpha."""
    _off_by_default(changes, "TopologyManagerPolicyOptions")


@seeds("TOPO-OPT-014", kubernetes="1.31")
def beta_topology_options_are_off_by_default(changes: Changes) -> None:
    """Leaves the gate of beta options off, as that of alpha options is."""
    _off_by_default(changes, _BETA)


@seeds("TOPO-OPT-015")
def gate_of_beta_options_lifts_the_limit_of_nodes(changes: Changes) -> None:
    """Takes the gate for the option, and allows as many NUMA nodes as there can be."""

    def parse(original: Any, given: Any, available: Any, on: Any, *rest: Any) -> Any:
        found = original(given, available, on, *rest)
        return replace(found, most_nodes=1024) if on and on[_BETA] else found

    changes.around(options, "parse", parse)


def _still_beta(changes: Changes, option: str) -> None:
    """Takes an option for beta in every release."""

    def check(original: Any, name: str, available: Any, *rest: Any) -> None:
        known = {**available, option: "beta"} if option in available else available
        original(name, known, *rest)

    changes.around(options, "check_available", check)


@seeds("TOPO-OPT-016")
def closest_nodes_stay_beta(changes: Changes) -> None:
    """Goes by the document's table of beta options."""
    _still_beta(changes, options.CLOSEST)


@seeds("TOPO-OPT-017")
def limit_of_nodes_stays_beta(changes: Changes) -> None:
    """Has not noticed that the option is stable."""
    _still_beta(changes, options.MOST_NODES)


# Examples


@seeds("TOPO-EXAMPLE-008")
def device_and_a_part_of_a_cpu_make_a_pod_burstable(changes: Changes) -> None:
    """Takes only those pods for Guaranteed that can have CPUs of their own beside a device."""

    def class_of(original: Any, containers: Any) -> Any:
        found = original(containers)
        shared = any(str(one.requests.get("cpu", 0)).endswith("m") for one in containers)
        devices = any("/" in name for one in containers for name in one.requests)
        return "Burstable" if found == "Guaranteed" and shared and devices else found

    changes.around(qos, "class_of", class_of)
