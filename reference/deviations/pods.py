"""Deviations in how pods' resources are read and limited."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

from numaproof.protocol.releases import between
from numaproof.reference.config.quota import Quotas
from numaproof.reference.deviations.deviation import ISSUES, Defect, UndocumentedBehaviour
from numaproof.reference.pods import quantity
from numaproof.reference.pods.containers import PodContainer
from numaproof.reference.pods.pod_level import PodRules, missing_pages, requested_together
from numaproof.reference.pods.qos import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.pods.qos import QoSClass


class ClassBySums(PodRules):
    """Compares the sum of all requests with the sum of all limits.

    A pod is Guaranteed if all of its containers have CPU and memory limits, and the totals of their
    requests equal the totals of their limits.
    """

    deviation = UndocumentedBehaviour("qos-class-by-sums", between("1.30", "1.36"))

    @staticmethod
    def qos_class(members: tuple[PodContainer, ...]) -> QoSClass:
        sums: dict[str, dict[str, Fraction]] = {"requests": {}, "limits": {}}
        everywhere = True
        for member, resource in product(members, RESOURCES):
            amounts = {"requests": member.requests, "limits": member.limits}
            for kind, quantities in amounts.items():
                amount = quantity.parse(quantities.get(resource, 0))
                if amount > 0:
                    sums[kind][resource] = sums[kind].get(resource, Fraction()) + amount
                elif kind == "limits":
                    everywhere = False
        if not sums["requests"] and not sums["limits"]:
            return "BestEffort"
        equal = sums["requests"] == sums["limits"]
        return "Guaranteed" if everywhere and equal else "Burstable"


class EmptyPodLevelDecides(PodRules):
    """Lets even empty pod-level resources decide the QoS class.

    A pod whose pod-level resources include no CPU, memory or huge pages is BestEffort, regardless
    of what its containers request.
    """

    deviation = UndocumentedBehaviour("empty-pod-level-decides-qos-class", between("1.30", "1.36"))

    @staticmethod
    def decide(pod: PodContainer) -> bool:
        return True


class DefaultsBesideLimits(PodRules):
    """Fills in only pod-level requests, and only if there are pod-level limits.

    Missing pod-level requests get defaults only if the pod has pod-level limits. Missing limits get
    no defaults.
    """

    deviation = UndocumentedBehaviour("pod-level-defaults-beside-limits", between("1.30", "1.36"))

    @staticmethod
    def as_one(
        requests: Mapping[str, Any], limits: Mapping[str, Any], members: tuple[PodContainer, ...]
    ) -> PodContainer:
        if requests or limits:
            limits = {**limits, **missing_pages(requests, limits, members)}
        if limits:
            requests = {**limits, **requested_together(members), **requests}
        return PodContainer("", requests, limits)


class QuotaDespiteExclusiveCPUs(Quotas):
    """Limits containers with exclusive CPUs like all others.

    A container with two exclusive CPUs has a CFS quota of two CPUs, and is throttled on CPUs that
    no other container can use.
    """

    deviation = Defect(
        "quota-limits-exclusive-cpus",
        between("1.30", "1.32"),
        "CFS quota is not used to bound the CPU usage of these containers as their usage is bound "
        "by the scheduling domain itself.",
        f"{ISSUES}70585",
    )

    def limits(self, pod: Pod, container: PodContainer, cpus: int | None) -> bool:
        return self.is_enforced and bool(pod.cpu_limit(container))
