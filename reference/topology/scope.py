"""The Topology Manager's scopes: whether hints are asked for each container, or for the pod.

(Kubernetes documentation, "Topology manager scopes".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from numaproof.reference.errors import AdmissionError, UnsupportedError
from numaproof.reference.topology.hints import NO_AFFINITY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources, TopologyHint
    from numaproof.reference.topology.policy import TopologyPolicy

    Keep = Callable[[PodContainer, TopologyHint], None]


class Provider(Protocol):
    """What an admission asks of a manager; `numaproof.reference.manager` has them."""

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        """Where the request could be met."""

    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        """Gives the container what it is due, or raises an `AdmissionError`."""

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        """Gives the pod its budget, or raises an `AdmissionError`."""


def admit(
    policy: TopologyPolicy | None,
    scope: str,
    providers: Sequence[Provider],
    pod: Pod,
    keep: Keep,
) -> None:
    """Allocates for each container of the pod in turn, near the nodes that the hints agree on.

    In scope pod, a pod with a budget is given that as a whole.

    `policy` is None for the policy none, which asks nobody for hints. `keep` is told the affinity
    of each container before anything is allocated for it; other managers may look it up.

    Raises:
        AdmissionError: the policy does not admit the merged hint, or a provider cannot allocate.
        UnsupportedError: hints would have to name nodes with negative ids, on which kubelets panic
            and which the protocol cannot name.

    Requirements: NODE-ALIGN-001, NODE-ALIGN-002, NODE-PODLEVEL-008, NODE-PODLEVEL-009,
    TOPO-POLICY-006, TOPO-POLICY-010, TOPO-SCOPE-002, TOPO-SCOPE-005, TOPO-SCOPE-007,
    TOPO-SCOPE-008.
    """
    if policy is not None and policy.negative:
        raise UnsupportedError("hints for NUMA nodes with negative ids")
    peak = None
    if policy is not None and scope == "pod":
        peak = affinity_of(policy, providers, pod, None)
        if pod.budget is not None:
            for container in pod.containers:
                keep(container, peak)
            for provider in providers:
                provider.allocate_pod(pod, peak)
            return
    for container in pod.containers:
        affinity = NO_AFFINITY
        if policy is not None:
            affinity = peak or affinity_of(policy, providers, pod, container)
            keep(container, affinity)
        for provider in providers:
            provider.allocate(pod, container, affinity)


def affinity_of(
    policy: TopologyPolicy,
    providers: Sequence[Provider],
    pod: Pod,
    container: PodContainer | None,
) -> TopologyHint:
    """The affinity that a policy admits for a container, or for the pod as a whole.

    Raises:
        AdmissionError: it does not admit the merged hint.

    Requirements: MEM-HINT-009, TOPO-ERROR-001, TOPO-POLICY-015, TOPO-SCOPE-004.
    """
    affinity, admitted = policy.merge([provider.hints(pod, container) for provider in providers])
    if not admitted:
        message = "Resources cannot be allocated with Topology locality"
        if pod.budget is not None:
            asked = "under pod-scope" if container is None else "with a container-level"
            message = (
                f"Pod Scope pod with pod-level resources failed admission {asked} topology manager"
            )
        raise AdmissionError("TopologyAffinityError", message)
    return affinity
