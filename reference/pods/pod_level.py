"""Pod-level resources: what a pod requests as a whole, in ``spec.resources``.

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
"""What pod-level resources do.

``ignored``: nothing. ``QoS class``: they decide the pod's QoS class. ``shared pool``: besides, they
keep its containers off exclusive CPUs and pinned memory. ``shared pool alone``: they do only that.
``budget``: they decide the class, and are what the managers allocate, for the containers to share.
"""

_PAGES = "hugepages-"


class PodRules:
    """How the resources of a pod are read."""

    @staticmethod
    def qos_class(members: tuple[PodContainer, ...]) -> QoSClass:
        """The QoS class of a pod with these containers."""
        return qos.class_of(members)

    @staticmethod
    def decide(pod: PodContainer) -> bool:
        """Whether pod-level resources, as those of a single container, decide the QoS class.

        Requirements: NODE-PODLEVEL-016.
        """
        return has_supported_resources(pod)

    @staticmethod
    def as_one(
        requests: Mapping[str, Any], limits: Mapping[str, Any], members: tuple[PodContainer, ...]
    ) -> PodContainer:
        """The pod's own `requests` and `limits` as those of a single container.

        What is left out is filled in as the API server does it when a pod is created. Containers
        have their own defaults by then.

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
    """Whether pods can have the resource as a whole."""
    return resource in qos.RESOURCES or resource.startswith(_PAGES)


def has_supported_resources(pod: PodContainer) -> bool:
    """Whether pod-level resources, as those of a single container, name one that pods may have."""
    return any(map(is_supported, (*pod.requests, *pod.limits)))


def missing_pages(
    requests: Mapping[str, Any], limits: Mapping[str, Any], members: tuple[PodContainer, ...]
) -> dict[str, str]:
    """The huge pages that containers limit together, of sizes that the pod does not name."""
    pages = {kind for one in members for kind in one.limits if kind.startswith(_PAGES)}
    return {
        kind: _together(members, partial(_limit, kind))
        for kind in sorted(pages - limits.keys() - requests.keys())
    }


def requested_together(members: tuple[PodContainer, ...]) -> dict[str, str]:
    """The CPUs and the memory that containers request together, where any requests them."""
    return {
        resource: _together(members, partial(_request, resource))
        for resource in qos.RESOURCES
        if any(resource in container.requests for container in members)
    }


def _together(members: tuple[PodContainer, ...], amount: Callable[[PodContainer], Fraction]) -> str:
    """The most that containers need at any one time, as a quantity."""
    needed = containers.peak(members, amount)
    return str(needed) if needed.denominator == 1 else f"{needed * 10**9}n"


def _request(resource: str, container: PodContainer) -> Fraction:
    return quantity.parse(container.requests.get(resource, 0))


def _limit(resource: str, container: PodContainer) -> Fraction:
    return quantity.parse(container.limits.get(resource, 0))
