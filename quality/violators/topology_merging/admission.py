"""Violators of the requirements of the Topology Manager's policies, continued: what they keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.topology import policy as policies
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import NO_AFFINITY, TopologyHint
from numaproof.reference.topology.policy import TopologyPolicy
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("topology-merging")


# What is stored, and used


def _storing(changes: Changes, name: str, kept: Callable[..., TopologyHint]) -> None:
    """Lets `kept` say what the policy `name` keeps for a container."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        def instead(container: Any, affinity: TopologyHint) -> None:
            if policy.name == name:
                affinity = kept(container, affinity, policy)
            keep(container, affinity)

        original(policy, how, providers, pod, instead)

    changes.around(scope, "admit", admit)


def _finding(changes: Changes, name: str, found: Callable[..., TopologyHint]) -> None:
    """Lets `found` say what affinity the policy `name` finds."""

    def merge(original: Any, self: TopologyPolicy, providers: Any) -> Any:
        kept, admitted = original(self, providers)
        return (found(kept, self, providers) if self.name == name else kept), admitted

    changes.around(TopologyPolicy, "merge", merge)


@seeds("TOPO-POLICY-007")
def best_effort_keeps_all_nodes_where_none_is_preferred(changes: Changes) -> None:
    """An author falls back to the whole machine, though fewer nodes would do."""
    _finding(
        changes,
        policies.BEST_EFFORT,
        lambda kept, policy, _: (
            kept if kept.preferred else TopologyHint(policy.rules.nodes, preferred=False)
        ),
    )


@seeds("TOPO-POLICY-008")
def restricted_keeps_the_affinity_and_does_not_use_it(changes: Changes) -> None:
    """An author stores the affinity after the containers have been allocated."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        if policy is None or policy.name != policies.RESTRICTED:
            original(policy, how, providers, pod, keep)
            return
        found = None if how == "container" else scope.affinity_of(policy, providers, pod, None)
        if pod.budget is not None:
            original(policy, how, providers, pod, keep)
            return
        for container in pod.containers:
            keep(container, found or scope.affinity_of(policy, providers, pod, container))
            for provider in providers:
                provider.allocate(pod, container, NO_AFFINITY)

    changes.around(scope, "admit", admit)


@seeds("TOPO-POLICY-008")
def restricted_keeps_no_affinity_of_init_containers(changes: Changes) -> None:
    """An author stores affinities for containers that stay."""
    _storing(
        changes,
        policies.RESTRICTED,
        lambda container, affinity, _: NO_AFFINITY if container.passes else affinity,
    )


def _under(changes: Changes, name: str) -> Callable[[TopologyHint], bool]:
    """Whether the policy `name` admits now, and prefers an affinity."""
    current: list[str] = []

    def admit(original: Any, policy: Any, *rest: Any) -> None:
        current.append(policy.name if policy is not None else policies.NONE)
        original(policy, *rest)

    changes.around(scope, "admit", admit)
    return lambda affinity: current[-1:] == [name] and affinity.preferred


@seeds("TOPO-POLICY-010")
def devices_ignore_the_affinity_of_best_effort(changes: Changes) -> None:
    """An author has devices follow the affinity only where policies insist on it."""
    applies = _under(changes, policies.BEST_EFFORT)

    def allocate(
        original: Any, self: Any, pod: Any, container: Any, affinity: TopologyHint
    ) -> None:
        original(self, pod, container, NO_AFFINITY if applies(affinity) else affinity)

    changes.around(DeviceManager, "allocate", allocate)
