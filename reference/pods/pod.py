"""A pod as the managers see it: its containers, QoS class and exclusive CPUs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numaproof.reference.pods import containers, qos, quantity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.qos import QoSClass


class PodError(ValueError):
    """A manifest is not a pod, or a pod lacks a requested part, which the text names."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod: its containers in starting order, init containers first, and its QoS class.

    If `shared_pool` is true, all containers run in the shared pool, whatever they request. `budget`
    has the pod-level requests by resource name, or is None if the managers do not support them.
    `limits` and `requests` are the pod-level limits and requests, `overhead` is what running the
    pod takes in addition. `priority` is None if the pod has none; `is_static` is true if the pod
    comes from a file on the node. `totals` remembers what the pod requests of each resource,
    because every admission adds up the requests of all pods.
    """

    uid: str
    containers: tuple[PodContainer, ...]
    qos: QoSClass
    shared_pool: bool = False
    budget: Mapping[str, Any] | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, Any] = field(default_factory=dict)
    overhead: Mapping[str, Any] = field(default_factory=dict)
    priority: int | None = None
    is_static: bool = False
    totals: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def container(self, name: str) -> PodContainer:
        """Returns the container called `name`.

        Raises:
            PodError: the pod has no such container.
        """
        for container in self.containers:
            if container.name == name:
                return container
        raise PodError(f"pod {self.uid!r} has no container {name!r}")

    def exclusive_cpus(self, container: PodContainer) -> int:
        """Returns the container's number of exclusive CPUs, or 0 if it runs in the shared pool.

        Only containers of Guaranteed pods that request a whole number of CPUs get exclusive CPUs
        (Kubernetes documentation, "Static policy").

        Requirements: CPU-POOL-003, CPU-POOL-004, CPU-STATIC-001, CPU-STATIC-002, CPU-STATIC-004.
        """
        if self.qos != "Guaranteed" or self.shared_pool or self.shares_budget(container):
            return 0
        return quantity.whole_cpus(container.requests.get("cpu", 0)) or 0

    def peak_exclusive_cpus(self) -> int:
        """Returns the highest number of exclusive CPUs that the pod needs at any one time.

        If the pod has a budget, this is the budget's number of CPUs, if that is a whole number.

        Requirements: CPU-HINT-012, CPU-HINT-013, NODE-PODLEVEL-012.
        """
        if self.budget is None:
            return containers.peak(self.containers, self.exclusive_cpus)
        if self.qos != "Guaranteed":
            return 0
        return quantity.whole_cpus(self.budget.get("cpu", 0)) or 0

    def shares_budget(self, container: PodContainer) -> bool:
        """Whether the container shares the rest of the pod's budget with other containers.

        Containers that would be Guaranteed on their own get their own part instead.

        Requirements: NODE-PODLEVEL-013.
        """
        return self.budget is not None and qos.class_of((container,)) != "Guaranteed"

    def cpu_limit(self, container: PodContainer) -> Fraction:
        """Returns the container's CPU limit, or 0 if it has none.

        The pod-level limit applies to containers without a limit of their own.
        """
        own = quantity.parse(container.limits.get("cpu", 0))
        return own or quantity.parse(self.limits.get("cpu", 0))
