"""Deviations in what the kubelet makes of the whole node's resources."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from numaproof.protocol.releases import between
from numaproof.reference.capacity.allocatable import PODS, in_units
from numaproof.reference.capacity.preemption import Preemption
from numaproof.reference.deviations.deviation import UndocumentedBehaviour
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from numaproof.reference.pods.pod import Pod


class PreemptionMiscounts(Preemption):
    """Counts neither sidecars nor pod-level resources of pods that may be evicted.

    Evicting a pod is taken to free the larger of two amounts: the sum of its app containers'
    requests, and its largest init container's request. A critical pod may therefore evict more pods
    than it has to, or be refused although evicting a pod would make enough room.
    """

    deviation = UndocumentedBehaviour("preemption-miscounts-requests", between("1.30", "1.33"))

    def request(self, pod: Pod, resource: str) -> int:
        if resource == PODS:
            return 1
        apps = [one for one in pod.containers if not one.init]
        inits = [one for one in pod.containers if one.init]
        amounts = [quantity.parse(one.requests.get(resource, 0)) for one in inits]
        together = sum((quantity.parse(one.requests.get(resource, 0)) for one in apps), Fraction())
        own = max(together, *amounts, Fraction())
        return in_units(resource, own + quantity.parse(pod.overhead.get(resource, 0)))
