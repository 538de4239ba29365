"""Quality of service: the QoS class of a pod.

(Kubernetes documentation, "Pod Quality of Service Classes".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from fractions import Fraction

    from numaproof.reference.pods.containers import Container

QoSClass = Literal["Guaranteed", "Burstable", "BestEffort"]

RESOURCES = ("cpu", "memory")
"""The resources that decide the class."""


def class_of(containers: tuple[Container, ...]) -> QoSClass:
    """The QoS class of a pod with these containers.

    Guaranteed: every container limits CPU and memory, and requests exactly as much. BestEffort: no
    container requests or limits either. Burstable: any other pod.

    Requirements: CPU-STATIC-016, MEM-INIT-006.
    """
    requests: dict[str, Fraction] = {}
    limits: dict[str, Fraction] = {}
    everywhere = True
    for container in containers:
        for resource in RESOURCES:
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
