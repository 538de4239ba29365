"""Pods as the managers read them: containers, their kinds, QoS class and CPU requests.

(Kubernetes documentation, "Configure Quality of Service for Pods" and "Sidecar Containers".)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

QoSClass = Literal["Guaranteed", "Burstable", "BestEffort"]

PodLevel = Literal["ignored", "QoS class", "shared pool", "shared pool alone", "budget"]
"""What resources of the pod as a whole do: nothing; they make its QoS class; they also keep its
containers off exclusive CPUs and pinned memory; they do that and make no class; or they make the
class and are what the managers give the pod, to be shared by its containers."""

_COMPUTE = ("cpu", "memory")
_PAGES = "hugepages-"


class PodError(ValueError):
    """A manifest that is not a pod; the text names the field."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod; `sidecar` marks a restartable init container.

    `requests` and `limits` are quantities by resource name.
    """

    name: str
    requests: Mapping[str, Any]
    limits: Mapping[str, Any]
    init: bool = False
    sidecar: bool = False

    @property
    def passes(self) -> bool:
        """Whether it ends before the pod's app containers start."""
        return self.init and not self.sidecar


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod: its containers in starting order, init containers first, and its QoS class.

    `shared_pool` keeps all its containers in the shared pool, whatever they ask for. `budget` is
    what the pod asks for as a whole, by resource name, where the managers serve such pods.
    """

    uid: str
    containers: tuple[Container, ...]
    qos: QoSClass
    shared_pool: bool = False
    budget: Mapping[str, Any] | None = None

    def container(self, name: str) -> Container:
        """The container of this name.

        Raises:
            PodError: the pod has none.
        """
        for container in self.containers:
            if container.name == name:
                return container
        raise PodError(f"pod {self.uid!r} has no container {name!r}")

    def exclusive_cpus(self, container: Container) -> int:
        """How many exclusive CPUs the container is due; 0 for the shared pool.

        Only containers of Guaranteed pods with a whole number of CPUs have exclusive ones
        (Kubernetes documentation, "Static policy").
        """
        if self.qos != "Guaranteed" or self.shared_pool or self.shares_budget(container):
            return 0
        return quantity.whole_cpus(container.requests.get("cpu", 0)) or 0

    def exclusive_cpus_at_once(self) -> int:
        """How many exclusive CPUs the pod needs at the moment when it needs most.

        With a budget those are the whole CPUs of the budget.
        """
        if self.budget is None:
            return at_once(self.containers, self.exclusive_cpus)
        if self.qos != "Guaranteed":
            return 0
        return quantity.whole_cpus(self.budget.get("cpu", 0)) or 0

    def shares_budget(self, container: Container) -> bool:
        """Whether the container lives on what others leave of the pod's budget.

        A part of its own have those that would be Guaranteed by themselves (Kubernetes 1.36).
        """
        return self.budget is not None and qos_class((container,)) != "Guaranteed"


Amount = TypeVar("Amount", int, Fraction)


def at_once(containers: tuple[Container, ...], amount: Callable[[Container], Amount]) -> Amount:
    """What containers need together at the moment when they need most.

    Sidecars run beside all that starts after them; other init containers run alone.
    (Kubernetes documentation, "Resource sharing within containers".)
    """
    zero = amount(_NOBODY)
    sidecars = starting = running = zero
    for container in containers:
        needed = amount(container)
        if container.sidecar:
            sidecars += needed
        elif container.init:
            starting = max(starting, sidecars + needed)
        else:
            running += needed
    return max(starting, sidecars + running)


_NOBODY = Container("", {}, {})


def parse(manifest: Mapping[str, Any], pod_level: PodLevel = "ignored") -> Pod:
    """The pod that a v1.Pod manifest describes; `pod_level` is what its own resources do.

    Raises:
        PodError: a field that the managers need is missing or of a wrong type.
    """
    uid = _mapping(manifest.get("metadata"), "metadata").get("uid")
    if not isinstance(uid, str) or not uid:
        raise PodError("metadata.uid must be a text that is not empty")
    spec = _mapping(manifest.get("spec"), "spec")
    containers = tuple(
        _container(item, f"spec.{key}[{number}]", init=key == "initContainers")
        for key in ("initContainers", "containers")
        for number, item in enumerate(spec.get(key) or ())
    )
    status = _mapping(manifest.get("status") or {}, "status")
    own = None if pod_level == "ignored" else spec.get("resources")
    as_one = None if own is None else _as_one(own, containers)
    of_class = containers
    if as_one is not None and pod_level != "shared pool alone":
        of_class = (as_one,)
    return Pod(
        uid,
        containers,
        status.get("qosClass") or qos_class(of_class),
        shared_pool=pod_level.startswith("shared pool") and as_one is not None and _asks(as_one),
        budget=as_one.requests
        if pod_level == "budget" and as_one is not None and _asks(as_one)
        else None,
    )


def _asks(pod: Container) -> bool:
    """Whether a pod's own resources name one that pods can have."""
    return any(
        resource in _COMPUTE or resource.startswith(_PAGES)
        for resource in (*pod.requests, *pod.limits)
    )


def _as_one(own: Any, containers: tuple[Container, ...]) -> Container:
    """The resources of the pod as a whole, as those of a single container."""
    resources = _mapping(own, "spec.resources")
    limits = dict(_quantities(resources.get("limits"), "spec.resources.limits"))
    requests = _quantities(resources.get("requests"), "spec.resources.requests")
    if limits or requests:
        pages = {kind for one in containers for kind in one.limits if kind.startswith(_PAGES)}
        for resource in sorted(pages - limits.keys() - requests.keys()):
            limits[resource] = _together(containers, partial(_limited, resource))
    asked = dict(limits)
    for resource in _COMPUTE if limits else ():
        # Where containers ask for a resource, the pod asks for what they need together.
        if any(resource in container.requests for container in containers):
            asked[resource] = _together(containers, partial(_requested, resource))
    return Container("", {**asked, **requests}, limits)


def _together(containers: tuple[Container, ...], amount: Callable[[Container], Fraction]) -> str:
    """What containers need at once, as a quantity."""
    needed = at_once(containers, amount)
    return str(needed) if needed.denominator == 1 else f"{needed * 10**9}n"


def _container(item: Any, where: str, *, init: bool) -> Container:
    fields = _mapping(item, where)
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise PodError(f"{where}.name must be a text that is not empty")
    resources = _mapping(fields.get("resources") or {}, f"{where}.resources")
    limits = _quantities(resources.get("limits"), f"{where}.resources.limits")
    requests = _quantities(resources.get("requests"), f"{where}.resources.requests")
    return Container(
        name=name,
        # The API server sets a missing request to the limit.
        requests={**limits, **requests},
        limits=limits,
        init=init,
        sidecar=init and fields.get("restartPolicy") == "Always",
    )


def _requested(resource: str, container: Container) -> Fraction:
    return quantity.parse(container.requests.get(resource, 0))


def _limited(resource: str, container: Container) -> Fraction:
    return quantity.parse(container.limits.get(resource, 0))


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise PodError(f"{where} must be an object")
    return value


def _quantities(value: Any, where: str) -> Mapping[str, Any]:
    found = _mapping(value or {}, where)
    for resource, text in found.items():
        try:
            quantity.parse(text)
        except (quantity.QuantityError, TypeError) as error:
            raise PodError(f"{where}.{resource}: {error}") from None
    return found


def qos_class(containers: tuple[Container, ...]) -> QoSClass:
    """The QoS class from the containers' CPU and memory.

    Guaranteed: every container limits both and requests as much; BestEffort: none requests or
    limits either; Burstable: all others.
    """
    requests: dict[str, Fraction] = {}
    limits: dict[str, Fraction] = {}
    everywhere = True
    for container in containers:
        for resource in _COMPUTE:
            requested = quantity.parse(container.requests.get(resource, 0))
            limited = quantity.parse(container.limits.get(resource, 0))
            if requested:
                _add(requests, resource, requested)
            if limited:
                _add(limits, resource, limited)
            everywhere = everywhere and bool(limited)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if everywhere and requests == limits else "Burstable"


def _add(sums: dict[str, Fraction], resource: str, amount: Fraction) -> None:
    sums[resource] = sums[resource] + amount if resource in sums else amount
