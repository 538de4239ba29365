"""Violators of what the Topology Manager refuses, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.config import configuration, validation
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.errors import AdmissionError, StartError
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.topology import options as topology_options
from numaproof.reference.topology import policy as policies
from numaproof.reference.topology import scope
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("topology-errors")

_POLICIES = (policies.NONE, policies.BEST_EFFORT, policies.RESTRICTED, policies.SINGLE_NUMA_NODE)


def _reading(changes: Changes, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Lets the configuration be read as `change` says."""
    changes.around(
        configuration,
        "load",
        lambda original, given, *rest: original(change(dict(given)), *rest),
    )


# Rejected pods


def _rejecting(changes: Changes, change: Callable[..., tuple[str, str] | None]) -> None:
    """Lets `change` say the reason and the message of a pod rejected for its affinity."""

    def affinity_of(original: Any, policy: Any, providers: Any, pod: Any, container: Any) -> Any:
        try:
            return original(policy, providers, pod, container)
        except AdmissionError as error:
            changed = change(error, policy, pod, container)
            if changed is None:
                raise
            raise AdmissionError(*changed) from None

    changes.around(scope, "affinity_of", affinity_of)


@seeds("TOPO-ERROR-001")
def init_containers_without_affinity_are_unexpected(changes: Changes) -> None:
    """An author rejects init containers by the general reason, as if an allocation had failed."""
    _rejecting(
        changes,
        lambda error, policy, pod, container: (
            ("UnexpectedAdmissionError", str(error))
            if container is not None and container.init
            else None
        ),
    )


@seeds("TOPO-ERROR-001")
def pods_with_resources_of_their_own_are_rejected_in_the_same_words(changes: Changes) -> None:
    """An author has one message for containers and for pods, with resources of their own or not."""
    _rejecting(
        changes,
        lambda error, policy, pod, container: (
            (error.reason, "Resources cannot be allocated with Topology locality")
            if pod.budget is not None
            else None
        ),
    )


_UNEXPECTED = "UnexpectedAdmissionError"


def _failing(changes: Changes, manager: type[Any], change: Callable[[Any], Any]) -> None:
    """Lets a manager's failure under best-effort have the reason that `change` gives it."""
    current: list[str] = []

    def admit(original: Any, policy: Any, *rest: Any) -> None:
        current.append(policy.name if policy is not None else policies.NONE)
        original(policy, *rest)

    def allocate(original: Any, *args: Any) -> None:
        try:
            original(*args)
        except AdmissionError as error:
            if current[-1:] != [policies.BEST_EFFORT] or error.reason != _UNEXPECTED:
                raise
            raise change(error) from None

    changes.around(scope, "admit", admit)
    changes.around(manager, "allocate", allocate)


@seeds("TOPO-ERROR-012")
def too_few_cpus_are_an_affinity_error_under_best_effort(changes: Changes) -> None:
    """An author blames the Topology Manager for whatever it let pass."""
    _failing(changes, CPUManager, lambda error: AdmissionError("TopologyAffinityError", str(error)))


@seeds("TOPO-ERROR-012")
def too_little_memory_is_out_of_memory_under_best_effort(changes: Changes) -> None:
    """An author names the resource in the reason, as the scheduler's check on the node does."""
    _failing(changes, MemoryManager, lambda error: AdmissionError("OutOfmemory", str(error)))


@seeds("TOPO-ERROR-012")
def too_few_devices_are_out_of_devices_under_best_effort(changes: Changes) -> None:
    """An author has a reason of its own for device plugins."""
    _failing(changes, DeviceManager, lambda error: AdmissionError("OutOfdevices", str(error)))


@seeds("TOPO-ERROR-012")
def the_message_of_the_failed_manager_is_lost(changes: Changes) -> None:
    """An author keeps the reason under best-effort, and puts a sentence of its own behind it."""
    for manager in (CPUManager, DeviceManager, MemoryManager):
        _failing(
            changes,
            manager,
            lambda error: AdmissionError(error.reason, "Allocate failed, which is unexpected"),
        )


# Policies and scopes


def _scoping(changes: Changes, lenient: tuple[str, ...]) -> None:
    """Lets any scope stand for container under these policies."""

    def known(given: dict[str, Any]) -> dict[str, Any]:
        value = given.get("topologyManagerScope")
        policy = given.get("topologyManagerPolicy") or policies.NONE
        if isinstance(value, str) and value not in ("container", "pod") and policy in lenient:
            del given["topologyManagerScope"]
        return given

    _reading(changes, known)


@seeds("TOPO-ERROR-003")
def best_effort_takes_any_scope(changes: Changes) -> None:
    """An author checks the scope where a pod may be rejected."""
    _scoping(changes, (policies.BEST_EFFORT,))


@seeds("TOPO-ERROR-002")
def policies_are_known_by_how_they_begin(changes: Changes) -> None:
    """An author looks for the beginning of a name, as command lines let one shorten it."""

    def problems(original: Any, policy: str, named: str) -> Any:
        whole = [one for one in _POLICIES if policy and one.startswith(policy)]
        return original(whole[0] if len(whole) == 1 else policy, named)

    def loaded(original: Any, given: Any, *rest: Any) -> Any:
        config = original(given, *rest)
        whole = [one for one in _POLICIES if one.startswith(config.topology_policy)]
        return dataclasses.replace(config, topology_policy=whole[0])

    changes.around(validation, "topology_problems", problems)
    changes.around(configuration, "load", loaded)


# Options


def _passing_over(changes: Changes, over: Callable[[str, dict[str, str], Any], bool]) -> None:
    """Lets unknown options be passed over for which `over` is true."""

    def parse(original: Any, given: Any, available: Any, *rest: Any) -> Any:
        known = {
            name: value
            for name, value in given.items()
            if name in available or not over(name, dict(given), available)
        }
        return original(known, available, *rest)

    changes.around(topology_options, "parse", parse)


@seeds("TOPO-ERROR-004")
def unknown_options_that_are_off_are_passed_over(changes: Changes) -> None:
    """An author looks only at options that are turned on."""
    _passing_over(changes, lambda name, given, available: given[name] == "false")


@seeds("TOPO-ERROR-004")
def unknown_options_are_passed_over_beside_known_ones(changes: Changes) -> None:
    """An author stops at the first option that is known."""
    _passing_over(changes, lambda name, given, available: any(one in available for one in given))


def _checking(changes: Changes, check: Callable[[Any, Any], None]) -> None:
    """Lets `check` look at the options under policy none, too."""

    def make(original: Any, config: Any, machine: Any, release: Any) -> Any:
        made = original(config, machine, release)
        if config.topology_policy == policies.NONE:
            try:
                check(config, release)
            except OptionError as error:
                raise StartError("topology", str(error)) from None
        return made

    changes.around(startup, "make_topology_policy", make)


@seeds("TOPO-ERROR-005")
def the_none_policy_checks_the_gates_of_options(changes: Changes) -> None:
    """An author looks at feature gates first, whatever the policy."""

    def check(config: Any, release: Any) -> None:
        for name in sorted(config.topology_options or {}):
            if name in release.topology_options:
                topology_options.check_available(name, release.topology_options, config.gates)

    _checking(changes, check)
