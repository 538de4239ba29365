"""Pod-level resources: what a pod requests as a whole, in ``spec.resources``.

(Kubernetes documentation, "Assign Pod-level CPU and memory resources"; KEP-2837.)
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from numaproof.reference.pods import containers, quantity
from numaproof.reference.pods.containers import Container
from numaproof.reference.pods.qos import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction
    from typing import Any

PodLevel = Literal["ignored", "QoS class", "shared pool", "shared pool alone", "budget"]
"""What pod-level resources do.

``ignored``: nothing. ``QoS class``: they decide the pod's QoS class. ``shared pool``: besides, they
keep its containers off exclusive CPUs and pinned memory. ``shared pool alone``: they do only that.
``budget``: they decide the class, and are what the managers allocate, for the containers to share.
"""

_PAGES = "hugepages-"


def asks(pod: Container) -> bool:
    """Whether pod-level resources, as those of a single container, name one that pods may have."""
    return any(
        resource in RESOURCES or resource.startswith(_PAGES)
        for resource in (*pod.requests, *pod.limits)
    )


def as_one(
    requests: Mapping[str, Any], limits: Mapping[str, Any], members: tuple[Container, ...]
) -> Container:
    """The pod's own `requests` and `limits` as those of a single container, defaults filled in."""
    limits = dict(limits)
    if limits or requests:
        pages = {kind for one in members for kind in one.limits if kind.startswith(_PAGES)}
        for resource in sorted(pages - limits.keys() - requests.keys()):
            limits[resource] = _together(members, partial(_limited, resource))
    asked = dict(limits)
    for resource in RESOURCES if limits else ():
        # Where containers request a resource, the pod requests what they need together.
        if any(resource in container.requests for container in members):
            asked[resource] = _together(members, partial(_requested, resource))
    return Container("", {**asked, **requests}, limits)


def _together(members: tuple[Container, ...], amount: Callable[[Container], Fraction]) -> str:
    """The most that containers need at any one time, as a quantity."""
    needed = containers.at_once(members, amount)
    return str(needed) if needed.denominator == 1 else f"{needed * 10**9}n"


def _requested(resource: str, container: Container) -> Fraction:
    return quantity.parse(container.requests.get(resource, 0))


def _limited(resource: str, container: Container) -> Fraction:
    return quantity.parse(container.limits.get(resource, 0))
