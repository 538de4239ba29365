"""Mutants that let irrelevant things decide, or ignore those that should."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import node, startup
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu import options as cpu_options
from numaproof.reference.cpu.options import (
    ACROSS_CORES,
    ACROSS_NUMA,
    BY_SOCKET,
    BY_UNCORE,
    FULL_CORES,
    STRICT,
)
from numaproof.reference.devices import policy as device_policy
from numaproof.reference.errors import AdmissionError, AllocationError
from numaproof.reference.memory import policy as memory_policies
from numaproof.reference.memory import requests
from numaproof.reference.pods import qos, quantity
from numaproof.reference.topology import options as topology_options
from quality.seeding import Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol.messages import Level

seeds = SubjectBugs("readings")


# Whose memory is pinned


@seeds("MEM-STATIC-002").replace(memory_policies, "is_served")
def memory_alone_makes_memory_pinned(pod: Any) -> bool:
    """Pins memory if memory requests equal limits, even if CPU requests don't."""
    return not pod.shared_pool and all(
        one.limits.get("memory") and one.limits["memory"] == one.requests.get("memory")
        for one in pod.containers
    )


@seeds("MEM-STATIC-001").around(requests, "container_amounts")
def memory_is_pinned_next_to_whole_cpus_alone(rule: Any, container: Any) -> Any:
    """Pins no memory for containers that request a fraction of a CPU."""
    return rule() if quantity.whole_cpus(container.requests.get("cpu", 0)) else {}


@seeds("MEM-STATIC-001").around(requests, "container_amounts")
def memory_of_sidecars_is_not_pinned(rule: Any, container: Any) -> Any:
    """Pins no memory for sidecars."""
    return {} if container.sidecar else rule()


@seeds("CPU-STATIC-001").around(qos, "class_of")
def other_resources_count_for_the_class(rule: Any, containers: Any) -> Any:
    """Makes a pod Burstable if requests and limits of ephemeral storage differ."""
    name = "ephemeral-storage"
    unequal = any(one.requests.get(name) != one.limits.get(name) for one in containers)
    return "Burstable" if unequal and rule() == "Guaranteed" else rule()


@seeds("DEV-ALLOCATE-003").around(device_policy, "allocate")
def devices_are_for_guaranteed_pods(rule: Any, state: Any, pod: Any) -> Any:
    """Allocates no devices for pods that aren't Guaranteed."""
    return rule() if pod.qos == "Guaranteed" else state


# Huge pages under the None policy


@seeds("MEM-NONE-001").around(node.StartedNode, "admit")
def huge_pages_are_missing_under_the_none_policy(rule: Any, self: Any, args: Any) -> Any:
    """Rejects Guaranteed pods with huge pages under the None policy."""
    pod = self.read_pod(args.pod)
    names = {name for one in pod.containers for name in one.requests}
    pages = any(name.startswith("hugepages-") for name in names)
    if pages and pod.qos == "Guaranteed" and self.setup.memory is None:
        raise AdmissionError("UnexpectedAdmissionError", "not enough huge pages")
    return rule()


# Amounts


@seeds("CPU-STATIC-005").around(quantity, "whole_cpus")
def only_digits_are_whole(rule: Any, text: Any) -> Any:
    """Takes amounts with a decimal point, a suffix or an exponent for fractions."""
    return rule() if re.fullmatch("[0-9]+", str(text)) else None


@seeds("CPU-STATIC-005").around(quantity, "whole_cpus")
def thousandths_are_never_whole(rule: Any, text: Any) -> Any:
    """Takes amounts in thousandths for fractions."""
    return None if str(text).endswith("m") else rule()


@seeds("CPU-STATIC-005").around(quantity, "whole_cpus")
def decimals_are_never_whole(rule: Any, text: Any) -> Any:
    """Takes amounts with a decimal point for fractions."""
    return None if "." in str(text) else rule()


@seeds("CPU-STATIC-005").around(quantity, "whole_cpus")
def exponents_are_never_whole(rule: Any, text: Any) -> Any:
    """Takes amounts with an exponent for fractions."""
    return None if "e" in str(text).lower() else rule()


@seeds("MEM-STATIC-006").around(requests, "container_amounts")
def only_binary_memory_is_pinned(rule: Any, container: Any) -> Any:
    """Rejects memory that isn't a number with a binary suffix."""
    if any(
        not re.fullmatch("[0-9]+([KMGTPE]i)?", str(text))
        for kind, text in container.requests.items()
        if kind == "memory" or kind.startswith("hugepages-")
    ):
        raise AllocationError("[memorymanager] failed to represent quantity as int64")
    return rule()


@seeds("CPU-STATIC-005", level="admission").around(qos, "class_of")
def amounts_are_compared_as_texts(rule: Any, containers: Any) -> Any:
    """Takes a pod for Burstable if equal requests and limits are written differently."""
    same = all(
        str(one.requests.get(name)) == str(one.limits.get(name))
        for one in containers
        for name in ("cpu", "memory")
    )
    return rule() if same or rule() != "Guaranteed" else "Burstable"


# Options that are off

_OFF: Mapping[str, Level] = {
    FULL_CORES: "admission",
    ACROSS_NUMA: "placement",
    ACROSS_CORES: "placement",
    BY_SOCKET: "admission",
    STRICT: "invariants",
    BY_UNCORE: "placement",
}


@shape(cpu_options, "value")
def _present(option: str, rule: Any, name: str) -> Any:
    return (rule() is not None) if name == option else rule()


for _option, _level in _OFF.items():
    seeds.add(
        f"{_option}-is-on-if-present",
        f"Turns {_option} on even if its value is false.",
        "CPU-CONFIG-007",
        _level,
        _present,
        _option,
    )


@seeds("TOPO-OPT-002").after(topology_options, "parse")
def closest_nodes_are_preferred_if_the_option_is_present(found: Any, policy_options: Any) -> Any:
    """Turns prefer-closest-numa-nodes on even if its value is false."""
    return replace(found, closest=topology_options.CLOSEST in policy_options)


@seeds("CPU-CONFIG-007", level="admission").after(cpu_options, "parse")
def options_that_are_off_conflict(found: Any, policy_options: Any) -> Any:
    """Refuses mutually exclusive options even if one of them is off."""
    for pair in cpu_options.INCOMPATIBLE:
        if {*pair} <= policy_options.keys():
            raise OptionError("static policy options can not be used together")
    return found


@seeds("CPU-CONFIG-003").around(startup, "make_cpu_policy")
def options_that_are_off_are_no_options(rule: Any, config: Any) -> Any:
    """Accepts options under the none policy if all of them are off."""
    off = all(text.lower() in ("0", "f", "false") for text in (config.cpu_options or {}).values())
    if config.cpu_policy == "none" and off:
        return rule(config=replace(config, cpu_options=None))
    return rule()


# Changes that are undone before anyone looks


@seeds("CPU-RECONCILE-005")
def a_change_that_was_undone_is_sent(changes: Changes) -> None:
    """Sends the shared pool after every change, even if it is the same again."""

    def forget(rule: Any, self: node.StartedNode, args: Any) -> Any:
        before = self.cpus.state.shared
        answer = rule()
        if self.cpus.state.shared != before:
            self.runtime_cpus = {
                place: cpus
                for place, cpus in self.runtime_cpus.items()
                if self.cpus.state.of(*place) is not None
            }
        return answer

    changes.around(node.StartedNode, "admit", forget)
    changes.around(node.StartedNode, "remove", forget)


@seeds("CPU-RECONCILE-005")
def a_refused_pod_makes_everything_be_sent(changes: Changes) -> None:
    """Sends every CPU set again after a pod has been refused."""

    def forget(rule: Any, self: node.StartedNode, args: Any) -> Any:
        try:
            return rule()
        except AdmissionError:
            self.runtime_cpus = {}
            raise

    changes.around(node.StartedNode, "admit", forget)
