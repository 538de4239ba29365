"""The quality-of-service (QoS) class of a pod.

(Kubernetes documentation, "Pod Quality of Service Classes".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from numaproof.reference.pods.containers import PodContainer

QoSClass = Literal["Guaranteed", "Burstable", "BestEffort"]

RESOURCES = ("cpu", "memory")
"""The resources that decide the QoS class."""


def class_of(containers: tuple[PodContainer, ...]) -> QoSClass:
    """Returns the QoS class of a pod with these containers.

    Guaranteed: every container has CPU and memory limits, and requests equal to them. BestEffort:
    no container has CPU or memory requests or limits. Burstable: all other pods.

    Requirements: CPU-STATIC-016, CPU-STATIC-026, MEM-INIT-006.
    """
    asked = [
        (_amount(container.requests, resource), _amount(container.limits, resource))
        for container in containers
        for resource in RESOURCES
    ]
    if not any(amount for amounts in asked for amount in amounts):
        return "BestEffort"
    whole = all(requested == limited != 0 for requested, limited in asked)
    return "Guaranteed" if whole else "Burstable"


def _amount(quantities: Mapping[str, Any], resource: str) -> Fraction:
    return quantity.parse(quantities.get(resource, 0))
