"""A pod as the managers see it: its containers, its QoS class, and the exclusive CPUs it is due."""

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
    """A manifest is not a pod, or a pod lacks what was asked for; the text names it."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod: its containers in starting order, init containers first, and its QoS class.

    `shared_pool` keeps all its containers in the shared pool, whatever they request. `budget` is
    what the pod requests as a whole, by resource name, where the managers serve pods as a whole.
    `limits` are those of the pod as a whole, where it has its own resources.
    """

    uid: str
    containers: tuple[PodContainer, ...]
    qos: QoSClass
    shared_pool: bool = False
    budget: Mapping[str, Any] | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)

    def container(self, name: str) -> PodContainer:
        """The container of this name.

        Raises:
            PodError: the pod has none.
        """
        for container in self.containers:
            if container.name == name:
                return container
        raise PodError(f"pod {self.uid!r} has no container {name!r}")

    def exclusive_cpus(self, container: PodContainer) -> int:
        """How many exclusive CPUs the container is due; 0 if it runs in the shared pool.

        Only containers of Guaranteed pods that request a whole number of CPUs get exclusive ones
        (Kubernetes documentation, "Static policy").

        Requirements: CPU-POOL-003, CPU-POOL-004, CPU-STATIC-001, CPU-STATIC-002, CPU-STATIC-004.
        """
        if self.qos != "Guaranteed" or self.shared_pool or self.shares_budget(container):
            return 0
        return quantity.whole_cpus(container.requests.get("cpu", 0)) or 0

    def peak_exclusive_cpus(self) -> int:
        """The most exclusive CPUs that the pod needs at any one time.

        For a pod with a budget, these are the whole CPUs of the budget.

        Requirements: CPU-HINT-012, CPU-HINT-013, NODE-PODLEVEL-012.
        """
        if self.budget is None:
            return containers.peak(self.containers, self.exclusive_cpus)
        if self.qos != "Guaranteed":
            return 0
        return quantity.whole_cpus(self.budget.get("cpu", 0)) or 0

    def shares_budget(self, container: PodContainer) -> bool:
        """Whether the container lives on what the others leave of the pod's budget.

        A container gets a part of its own if it would be Guaranteed by itself.

        Requirements: NODE-PODLEVEL-013.
        """
        return self.budget is not None and qos.class_of((container,)) != "Guaranteed"

    def cpu_limit(self, container: PodContainer) -> Fraction:
        """The CPUs that the container may use at the most; 0 if there is no limit.

        A container without a limit of its own has that of its pod.
        """
        own = quantity.parse(container.limits.get("cpu", 0))
        return own or quantity.parse(self.limits.get("cpu", 0))
