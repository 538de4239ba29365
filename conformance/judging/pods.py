"""A pod as the documents read it, so that invariants share no mistake with what they judge.

Nothing here comes from the reference implementation. (Kubernetes documentation, "Configure
Quality of Service for Pods", "Sidecar Containers", "Assign Pod-level CPU and memory resources";
API conventions, "Quantity".)
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
    """The exact number that a quantity stands for.

    What no kubelet accepts counts as nothing, so that one that does can still be judged.
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
    """What a node makes of ``spec.resources``, the resources of the pod as a whole.

    Attributes:
        classify: they decide the QoS class instead of the containers' resources.
        unpin: they keep every container of the pod off exclusive CPUs and pinned memory.
        budget: they are what the managers allocate, for the containers to share.
        complete: where they name anything, requests and limits that are missing follow from those
            of the containers; else requests alone do, and only beside limits.
        empty_classify: they decide the QoS class even if they name nothing that counts.
    """

    classify: bool = False
    unpin: bool = False
    budget: bool = False
    complete: bool = False
    empty_classify: bool = False


@dataclass(frozen=True)
class ContainerReading:
    """A container, with requests as the API server defaults them: to the limits."""

    name: str
    kind: Kind
    requests: Mapping[str, Fraction]
    limits: Mapping[str, Fraction]


@dataclass(frozen=True)
class PodReading:
    """A pod on a node.

    Attributes:
        containers: init containers and sidecars first, in starting order.
        qos: its QoS class.
        is_unpinned: whether pod-level resources keep its containers off the managers' resources.
        budget: its pod-level requests where the managers allocate those, else None.
        limits: its pod-level limits where a node looks at them.
    """

    containers: tuple[ContainerReading, ...]
    qos: QoSClass
    is_unpinned: bool
    budget: Mapping[str, Fraction] | None
    limits: Mapping[str, Fraction]

    @cached_property
    def pinned_containers(self) -> tuple[ContainerReading, ...]:
        """The containers that the static policies serve.

        Those of a Guaranteed pod (Node Resource Managers, "Static policy"); where the pod has a
        budget, those of them that would be Guaranteed by themselves (KEP-5526).
        """
        if self.qos != "Guaranteed" or self.is_unpinned:
            return ()
        if self.budget is None:
            return self.containers
        return tuple(one for one in self.containers if qos_class([one]) == "Guaranteed")

    def exclusive_cpus(self, container: ContainerReading) -> int:
        """How many exclusive CPUs a container is due: its CPU request if that is an integer.

        An integer to the thousandth, which is as fine as CPUs are counted.
        """
        return _whole_cpus(container.requests) if container in self.pinned_containers else 0

    @cached_property
    def budget_is_exclusive(self) -> bool:
        """Whether its CPUs as a whole are exclusive: an integer of them, likewise."""
        return self.budget is not None and _whole_cpus(self.budget) > 0

    @cached_property
    def effective_exclusive_cpus(self) -> int:
        """How many exclusive CPUs the pod needs at the moment when it needs most."""
        return int(effective((one.kind, self.exclusive_cpus(one)) for one in self.containers))


def _whole_cpus(requests: Mapping[str, Fraction]) -> int:
    """The CPUs requested if they are an integer, else none."""
    milli = math.ceil(requests.get("cpu", Fraction(0)) * 1000)
    return 0 if milli % 1000 else milli // 1000


def read(manifest: Mapping[str, Any], whole: PodResources) -> PodReading:
    """The pod that a v1.Pod manifest describes, on a node that treats pod-level resources so."""
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
    """The QoS class of a pod with these containers, by their CPU and memory.

    Guaranteed if every container limits both and requests as much, BestEffort if none asks for
    either, Burstable otherwise ("Configure Quality of Service for Pods").
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
    """What a pod needs at once, from what each of its containers needs, in starting order.

    Init containers run one after another, beside the sidecars that were started before them; app
    containers run together, beside all sidecars ("Sidecar Containers", "Resource sharing within
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
    """Pod-level resources as those of one container that stands for the pod.

    A missing request is what the containers need together, if any of them requests that resource,
    and else the limit. In a complete pod a missing limit is what the containers may use together,
    if all of them limit that resource, and never less than the request. ("Assign Pod-level CPU and
    memory resources"; KEP-2837.)
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
    """Whether a pod can have the resource as a whole."""
    return resource in _COMPUTE or resource.startswith("hugepages-")


def _amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    return {resource: amount(text) for resource, text in (quantities or {}).items()}
