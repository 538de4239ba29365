"""Reads pods as the documentation describes them, independently of the reference.

Sharing code with the reference would hide its mistakes from the invariants. (Kubernetes
documentation, "Configure Quality of Service for Pods", "Sidecar Containers", "Assign Pod-level CPU
and memory resources"; API conventions, "Quantity".)
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Kind = Literal["init", "sidecar", "app"]
QoSClass = Literal["Guaranteed", "Burstable", "BestEffort"]
Amounts = dict[str, Fraction]
"""Exact amounts by resource name."""

_COMPUTE = ("cpu", "memory")
_NUMBER = r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))"
_QUANTITY = re.compile(_NUMBER + r"(?:[eE](?P<exponent>[+-]?\d{1,2})|(?P<unit>[numkKMGTPE]i?))?")
_LONGEST = 500
_UNITS = {
    **{unit: Fraction(1000) ** power for power, unit in enumerate("num kMGTPE", -3)},
    **{f"{unit}i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}


def amount(text: object) -> Fraction:
    """The exact value of a quantity; zero for quantities that no kubelet accepts.

    This way, an implementation that accepts such a quantity can still be judged.
    """
    return _amount(str(text)[: _LONGEST + 1])


@lru_cache(maxsize=4096)
def _amount(text: str) -> Fraction:
    found = _QUANTITY.fullmatch(text)
    unit = _UNITS.get(found["unit"] or " ") if found else None
    if found is None or unit is None or len(found[0]) > _LONGEST:
        return Fraction(0)
    return Fraction(found["number"]) * Fraction(10) ** int(found["exponent"] or 0) * unit


@dataclass(frozen=True)
class PodResources:
    """How a node treats ``spec.resources``, the pod-level resources.

    Attributes:
        classify: they, and not the containers' resources, determine the QoS class.
        unpin: they exclude all containers of the pod from exclusive CPUs and pinned memory.
        budget: the managers allocate them for the containers to share.
        complete: if any are set, missing requests and limits are derived from the containers.
            Without `complete`, only requests are derived, and only if the pod has limits.
        empty_classify: they determine the QoS class even if they contain no relevant resource.
    """

    classify: bool = False
    unpin: bool = False
    budget: bool = False
    complete: bool = False
    empty_classify: bool = False


@dataclass(frozen=True)
class ContainerReading:
    """A container whose missing requests default to its limits, as in the API server."""

    name: str
    kind: Kind
    requests: Mapping[str, Fraction]
    limits: Mapping[str, Fraction]


@dataclass(frozen=True)
class PodReading:
    """A pod on a node.

    Attributes:
        containers: init containers and sidecars first, in starting order.
        is_unpinned: whether pod-level resources exclude the pod's containers from exclusive CPUs
            and pinned memory.
        budget: the pod-level requests if the managers allocate them, else None.
        limits: the pod-level limits if the node considers them.
    """

    containers: tuple[ContainerReading, ...]
    qos: QoSClass
    is_unpinned: bool
    budget: Mapping[str, Fraction] | None
    limits: Mapping[str, Fraction]

    @cached_property
    def pinned_containers(self) -> tuple[ContainerReading, ...]:
        """The containers to which the static policies allocate resources.

        In a Guaranteed pod, these are all containers (Node Resource Managers, "Static policy") or,
        if the pod has a budget, only those that would be Guaranteed on their own (KEP-5526).
        """
        if self.qos != "Guaranteed" or self.is_unpinned:
            return ()
        if self.budget is None:
            return self.containers
        return tuple(one for one in self.containers if qos_class([one]) == "Guaranteed")

    def exclusive_cpus(self, container: ContainerReading) -> int:
        """A container's exclusive CPUs: its CPU request if that is an integer, else 0.

        CPU requests are counted in thousandths, rounded up.
        """
        return _whole_cpus(container.requests) if container in self.pinned_containers else 0

    @cached_property
    def budget_is_exclusive(self) -> bool:
        """Whether the pod-level CPU request is an integer, which makes the CPUs exclusive."""
        return self.budget is not None and _whole_cpus(self.budget) > 0

    @cached_property
    def effective_exclusive_cpus(self) -> int:
        """The pod's peak number of exclusive CPUs."""
        return int(effective((one.kind, self.exclusive_cpus(one)) for one in self.containers))


def _whole_cpus(requests: Mapping[str, Fraction]) -> int:
    """The number of requested CPUs if it is an integer, else 0."""
    milli = math.ceil(requests.get("cpu", Fraction(0)) * 1000)
    return 0 if milli % 1000 else milli // 1000


def read(manifest: Mapping[str, Any], whole: PodResources) -> PodReading:
    """Reads a v1.Pod manifest, given the node's treatment of pod-level resources."""
    spec = manifest["spec"]
    containers = (
        *(_container(one, _kind(one)) for one in spec.get("initContainers") or ()),
        *(_container(one, "app") for one in spec.get("containers") or ()),
    )
    given = spec.get("resources")
    own = None if given is None else _of_pod(given, containers, complete=whole.complete)
    resources_set = own is not None and any(map(_is_supported, (*own.requests, *own.limits)))
    classified = whole.classify and (resources_set or whole.empty_classify)
    return PodReading(
        containers,
        (manifest.get("status") or {}).get("qosClass")
        or qos_class([own] if own is not None and classified else containers),
        is_unpinned=whole.unpin and resources_set,
        budget=own.requests if own is not None and whole.budget and resources_set else None,
        limits=own.limits if own is not None and whole.classify and resources_set else {},
    )


def qos_class(containers: Iterable[ContainerReading]) -> QoSClass:
    """The QoS class of a pod with these containers, based on their CPU and memory.

    Guaranteed if every container has equal requests and limits for both, BestEffort if no container
    has a request or limit for either, else Burstable ("Configure Quality of Service for Pods").
    """
    asked = [
        (one.requests.get(resource, Fraction(0)), one.limits.get(resource, Fraction(0)))
        for one in containers
        for resource in _COMPUTE
    ]
    if not any(request > 0 or limit > 0 for request, limit in asked):
        return "BestEffort"
    return "Guaranteed" if all(request == limit > 0 for request, limit in asked) else "Burstable"


def effective(needs: Iterable[tuple[Kind, Fraction | int]]) -> Fraction:
    """A pod's peak resource use, given the use of each container in starting order.

    Init containers run one at a time, alongside the sidecars started before them. App containers
    run together, alongside all sidecars ("Sidecar Containers", "Resource sharing within
    containers").
    """
    staying = peak = Fraction(0)
    for kind, needed in needs:
        peak = max(peak, staying + needed)
        if kind != "init":
            staying += needed
    return peak


def _kind(container: Mapping[str, Any]) -> Kind:
    return "sidecar" if container.get("restartPolicy") == "Always" else "init"


def _container(manifest: Mapping[str, Any], kind: Kind) -> ContainerReading:
    resources = manifest.get("resources") or {}
    limits = _amounts(resources.get("limits"))
    return ContainerReading(
        manifest["name"], kind, {**limits, **_amounts(resources.get("requests"))}, limits
    )


def _of_pod(
    resources: Mapping[str, Any], containers: tuple[ContainerReading, ...], *, complete: bool
) -> ContainerReading:
    """Pod-level resources as a single container that stands for the pod.

    A missing request defaults to the containers' peak request if any container requests the
    resource, else to the limit. With `complete`, a missing limit defaults to the containers' peak
    limit if all of them limit the resource, but is never less than the request. ("Assign Pod-level
    CPU and memory resources"; KEP-2837.)
    """
    limits, requests = _amounts(resources.get("limits")), _amounts(resources.get("requests"))
    together = {
        resource: effective((one.kind, one.requests.get(resource, 0)) for one in containers)
        for resource in _COMPUTE
        if (limits or (requests and complete))
        and any(resource in one.requests for one in containers)
    }
    requests = {**limits, **together, **requests}
    for resource in requests if complete and containers else ():
        if resource not in limits and all(resource in one.limits for one in containers):
            used = effective((one.kind, one.limits[resource]) for one in containers)
            limits[resource] = max(requests[resource], used)
    return ContainerReading("", "app", requests, limits)


def _is_supported(resource: str) -> bool:
    """Whether a resource can be set at pod level."""
    return resource in _COMPUTE or resource.startswith("hugepages-")


def _amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    return {resource: amount(text) for resource, text in (quantities or {}).items()}
