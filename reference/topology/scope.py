"""The Topology Manager's scopes: aligning each container, or the pod as a whole.

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
    """A hint provider; the managers in `numaproof.reference.manager` implement it."""

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        """Returns the hints by resource."""

    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        """Allocates the container's resources or raises an `AdmissionError`."""

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        """Allocates the pod-level resources or raises an `AdmissionError`."""


def admit(
    policy: TopologyPolicy | None,
    scope: str,
    providers: Sequence[Provider],
    pod: Pod,
    keep: Keep,
) -> None:
    """Allocates each container's resources in turn, aligned with the merged hints.

    With the ``pod`` scope, a pod with pod-level resources gets its resources as a whole.

    `policy` is None for the ``none`` policy, which needs no hints. `keep` receives each container's
    affinity before anything is allocated for it, so that other managers can look it up.

    Raises:
        AdmissionError: the policy does not admit the merged hint, or a provider cannot allocate
            resources.
        UnsupportedError: hints would have to name nodes with negative ids, which make kubelets
            panic and which the protocol cannot express.

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
    """Returns the affinity of a container or of the pod as a whole.

    Raises:
        AdmissionError: the policy does not admit the merged hint.

    Requirements: MEM-HINT-009, TOPO-ERROR-001, TOPO-POLICY-015, TOPO-SCOPE-004.
    """
    hints = [provider.hints(pod, container) for provider in providers]
    affinity, admitted = policy.merge(hints, None if container is None else container.name)
    if not admitted:
        message = "Resources cannot be allocated with Topology locality"
        if pod.budget is not None:
            asked = "under pod-scope" if container is None else "with a container-level"
            message = (
                f"Pod Scope pod with pod-level resources failed admission {asked} topology manager"
            )
        raise AdmissionError("TopologyAffinityError", message)
    return affinity
