"""Pod-level resources: requests and limits of a pod as a whole, in ``spec.resources``.

(Kubernetes documentation, "Assign Pod-level CPU and memory resources"; KEP-2837.)
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from numaproof.reference.pods import containers, qos, quantity
from numaproof.reference.pods.containers import PodContainer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction
    from typing import Any

    from numaproof.reference.pods.qos import QoSClass

PodLevel = Literal["ignored", "QoS class", "shared pool", "shared pool alone", "budget"]
"""The effect of pod-level resources.

``ignored``: none. ``QoS class``: they decide the pod's QoS class. ``shared pool``: in addition, the
pod's containers get no exclusive CPUs and no pinned memory. ``shared pool alone``: only the latter.
``budget``: they decide the QoS class, and the managers allocate them for the containers to share.
"""

_PAGES = "hugepages-"


class PodRules:
    """The rules for reading a pod's resources."""

    @staticmethod
    def qos_class(members: tuple[PodContainer, ...]) -> QoSClass:
        return qos.class_of(members)

    @staticmethod
    def decide(pod: PodContainer) -> bool:
        """Whether pod-level resources, represented as a single container, decide the QoS class.

        Requirements: NODE-PODLEVEL-016.
        """
        return has_supported_resources(pod)

    @staticmethod
    def as_one(
        requests: Mapping[str, Any], limits: Mapping[str, Any], members: tuple[PodContainer, ...]
    ) -> PodContainer:
        """Represents the pod-level `requests` and `limits` as a single container.

        Fills in defaults as the API server does when a pod is created. Containers already have
        their own defaults at that time.

        Requirements: NODE-PODLEVEL-017, NODE-PODLEVEL-018.
        """
        if not requests and not limits:
            return PodContainer("", requests, limits)
        limits = {**limits, **missing_pages(requests, limits, members)}
        requests = {**limits, **requested_together(members), **requests}
        for resource in filter(is_supported, requests):
            if (
                resource not in limits
                and members
                and all(resource in one.limits for one in members)
            ):
                together = _together(members, partial(_limit, resource))
                limits[resource] = max(together, requests[resource], key=quantity.parse)
        return PodContainer("", requests, limits)


def is_supported(resource: str) -> bool:
    """Whether a resource can be requested at pod level."""
    return resource in qos.RESOURCES or resource.startswith(_PAGES)


def has_supported_resources(pod: PodContainer) -> bool:
    """Whether pod-level resources, as a single container, include a supported resource."""
    return any(map(is_supported, (*pod.requests, *pod.limits)))


def missing_pages(
    requests: Mapping[str, Any], limits: Mapping[str, Any], members: tuple[PodContainer, ...]
) -> dict[str, str]:
    """The containers' combined limits on huge pages, for sizes that the pod does not name."""
    pages = {kind for one in members for kind in one.limits if kind.startswith(_PAGES)}
    return {
        kind: _together(members, partial(_limit, kind))
        for kind in sorted(pages - limits.keys() - requests.keys())
    }


def requested_together(members: tuple[PodContainer, ...]) -> dict[str, str]:
    """The containers' combined requests for CPU and memory, if any container has any."""
    return {
        resource: _together(members, partial(_request, resource))
        for resource in qos.RESOURCES
        if any(resource in container.requests for container in members)
    }


def _together(members: tuple[PodContainer, ...], amount: Callable[[PodContainer], Fraction]) -> str:
    """The containers' peak demand as a quantity."""
    needed = containers.peak(members, amount)
    return str(needed) if needed.denominator == 1 else f"{needed * 10**9}n"


def _request(resource: str, container: PodContainer) -> Fraction:
    return quantity.parse(container.requests.get(resource, 0))


def _limit(resource: str, container: PodContainer) -> Fraction:
    return quantity.parse(container.limits.get(resource, 0))
