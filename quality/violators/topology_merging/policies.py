"""Violators of the requirements of the Topology Manager's policies, each breaking one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.config import configuration
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.errors import AdmissionError
from numaproof.reference.topology import policy as policies
from numaproof.reference.topology import scope
from numaproof.reference.topology.options import TopologyOptions
from numaproof.reference.topology.policy import TopologyPolicy
from quality.seeding import Changes, SubjectBugs
from quality.violators.topology_merging.merging import silent

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("topology-merging")

_ANY_NUMBER = 1 << 62


def refusal() -> AdmissionError:
    """The refusal of a pod for its affinity."""
    return AdmissionError(
        "TopologyAffinityError", "Resources cannot be allocated with Topology locality"
    )


# The policy none


def _defaulting(changes: Changes, policy: Callable[[Any], str]) -> None:
    """Lets `policy` say which one a configuration has that names none."""

    def load(original: Any, given: Any, *rest: Any) -> Any:
        if not given.get("topologyManagerPolicy"):
            given = {**given, "topologyManagerPolicy": policy(given)}
        return original(given, *rest)

    changes.around(configuration, "load", load)


@seeds("TOPO-POLICY-001")
def naming_a_scope_turns_the_default_policy_into_restricted(changes: Changes) -> None:
    """An author concludes from a scope that somebody wants alignment."""
    _defaulting(
        changes,
        lambda given: policies.RESTRICTED if given.get("topologyManagerScope") else policies.NONE,
    )


def aligning_without_policy(
    changes: Changes, wanted: Callable[[Any], bool], admit: Callable[..., None]
) -> None:
    """Lets `admit` admit under policy none, given a policy none that merges and admits all.

    `wanted` says for which configurations.
    """

    def make(original: Any, config: Any, machine: Any, release: Any) -> Any:
        made = original(config, machine, release)
        nodes = machine.topology or ()
        if made is not None or not wanted(config) or any(node.node_id < 0 for node in nodes):
            return made
        options = TopologyOptions(most_nodes=_ANY_NUMBER)
        return policies.on_machine(policies.NONE, options, machine)

    def merge(original: Any, self: TopologyPolicy, providers: Any) -> Any:
        kept, admitted = original(self, providers)
        return kept, admitted or self.name == policies.NONE

    def instead(original: Any, policy: Any, *rest: Any) -> None:
        if policy is not None and policy.name == policies.NONE:
            admit(original, policy, *rest)
        else:
            original(policy, *rest)

    changes.around(startup, "make_topology_policy", make)
    changes.around(TopologyPolicy, "merge", merge)
    changes.around(scope, "admit", instead)


def place_by_hints(
    original: Any, policy: Any, _scope: str, providers: Any, pod: Any, _keep: Any
) -> None:
    """Has every container placed by its hints, and keeps no affinity."""
    original(policy, "container", providers, pod, lambda *_: None)


# What a policy admits


def _admitting(changes: Changes, name: str, admits: Callable[..., bool]) -> None:
    """Lets `admits` say what the policy `name` admits: by its answer, the providers and itself."""

    def merge(original: Any, self: TopologyPolicy, providers: Any) -> Any:
        kept, admitted = original(self, providers)
        if self.name == name:
            admitted = admits(kept, admitted, providers, self)
        return kept, admitted

    changes.around(TopologyPolicy, "merge", merge)


def _judging(changes: Changes, name: str, judge: Callable[..., Any]) -> None:
    """Lets `judge` say for which pods and containers the policy `name` rejects nothing."""

    def affinity_of(original: Any, policy: Any, providers: Any, pod: Any, container: Any) -> Any:
        try:
            return original(policy, providers, pod, container)
        except AdmissionError:
            if policy.name != name or not judge(pod, container):
                raise
            return policy.merge([provider.hints(pod, container) for provider in providers])[0]

    changes.around(scope, "affinity_of", affinity_of)


@seeds("TOPO-POLICY-002")
def best_effort_rejects_in_the_pod_scope(changes: Changes) -> None:
    """An author wrote scope pod later, and let every policy reject there."""

    def affinity_of(original: Any, policy: Any, providers: Any, pod: Any, container: Any) -> Any:
        found = original(policy, providers, pod, container)
        if container is None and not found.preferred:
            raise refusal()
        return found

    changes.around(scope, "affinity_of", affinity_of)


@seeds("TOPO-POLICY-003")
def restricted_does_not_judge_init_containers(changes: Changes) -> None:
    """An author finds that containers which end soon may run anywhere."""
    _judging(
        changes, policies.RESTRICTED, lambda _, container: container is not None and container.init
    )


@seeds("TOPO-POLICY-004")
def single_numa_node_does_not_judge_sidecars(changes: Changes) -> None:
    """An author walks through app containers and init containers that end."""
    _judging(
        changes,
        policies.SINGLE_NUMA_NODE,
        lambda _, container: container is not None and container.sidecar,
    )


@seeds("TOPO-POLICY-004")
def single_numa_node_judges_the_first_app_container_alone(changes: Changes) -> None:
    """An author checks the main container of a pod."""

    def later(pod: Any, container: Any) -> bool:
        apps = [one.name for one in pod.containers if not one.init]
        return container is not None and container.name in apps[1:]

    _judging(changes, policies.SINGLE_NUMA_NODE, later)


def _spoken(providers: Any) -> bool:
    return not all(map(silent, providers))


@seeds("TOPO-POLICY-005")
def restricted_rejects_whatever_needs_two_nodes(changes: Changes) -> None:
    """An author calls only a single node preferred."""
    _admitting(
        changes,
        policies.RESTRICTED,
        lambda kept, admitted, providers, policy: (
            admitted and (kept.nodes.bit_count() == 1 or not _spoken(providers))
        ),
    )


@seeds("TOPO-POLICY-011")
def devices_of_burstable_pods_are_not_considered(changes: Changes) -> None:
    """An author has the Device Manager speak for Guaranteed pods and BestEffort ones."""
    changes.around(
        DeviceManager,
        "hints",
        lambda original, self, pod, container: (
            {} if pod.qos == "Burstable" else original(self, pod, container)
        ),
    )


@seeds("TOPO-POLICY-011")
def restricted_rejects_pods_without_hints_in_the_pod_scope(changes: Changes) -> None:
    """An author wants an affinity for the pod, and there is nothing to derive it from."""

    def affinity_of(original: Any, policy: Any, providers: Any, pod: Any, container: Any) -> Any:
        found = original(policy, providers, pod, container)
        said = [provider.hints(pod, container) for provider in providers]
        if container is None and policy.name == policies.RESTRICTED and not _spoken(said):
            raise refusal()
        return found

    changes.around(scope, "affinity_of", affinity_of)
