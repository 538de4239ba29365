"""Preemption: the pods that a critical pod evicts if the node has no room for it.

The scheduler preempts pods as well, before it binds a pod; this is the kubelet's own preemption.
(Kubernetes documentation, "Guaranteed Scheduling For Critical Add-On Pods".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.capacity.allocatable import PODS, total_request
from numaproof.reference.errors import AdmissionError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numaproof.reference.capacity.allocatable import Shortage
    from numaproof.reference.pods.pod import Pod

    Amounts = Mapping[str, int]

REASON = "Preempting"
MESSAGE = "Preempted in order to admit critical pod"
"""The reason and the message in the status of an evicted pod."""

_SYSTEM_CRITICAL = 2_000_000_000
"""The lowest priority of critical pods."""

_CLASSES = ("BestEffort", "Burstable", "Guaranteed")


class Preemption:
    """The choice of pods to evict.

    Where several pods are equally suitable, the kubelet evicts an arbitrary one; here, it is the
    one that arrived first.
    """

    def victims(
        self, pod: Pod, others: Iterable[Pod], shortages: Iterable[Shortage]
    ) -> tuple[Pod, ...]:
        """Returns the pods to evict for a critical pod, in order.

        As few Guaranteed pods as possible are evicted, then as few Burstable, then BestEffort ones.

        Raises:
            AdmissionError: evicting every pod that may be evicted would not be enough.

        Requirements: NODE-ALLOC-010, NODE-ALLOC-011.
        """
        missing = {one.resource: one.missing for one in shortages}
        lesser = [one for one in others if may_preempt(pod, one)]
        best_effort, burstable, guaranteed = (
            [one for one in lesser if one.qos == name] for name in _CLASSES
        )
        if lacking := self._left(missing, lesser):
            raise _nothing_to_reclaim(lacking)
        guaranteed = self.fewest(guaranteed, self._left(missing, [*best_effort, *burstable]))
        burstable = self.fewest(burstable, self._left(missing, [*best_effort, *guaranteed]))
        best_effort = self.fewest(best_effort, self._left(missing, [*burstable, *guaranteed]))
        return (*best_effort, *burstable, *guaranteed)

    def fewest(self, pods: Sequence[Pod], needs: Amounts) -> list[Pod]:
        """Returns few pods that together request these amounts.

        Each time, takes the pod that leaves the least, then the one that requests the least memory,
        then the fewest CPUs.

        Requirements: NODE-ALLOC-012.
        """
        left, chosen = list(pods), []
        while needs:
            remaining = needs
            left.sort(key=lambda pod: (self.distance(pod, remaining), *self.size(pod)))
            chosen.append(left.pop(0))
            needs = self._left(needs, chosen[-1:])
        return chosen

    def distance(self, pod: Pod, needs: Amounts) -> float:
        """The share of what is needed that a pod would leave, squared, summed over resources."""
        left = ((amount, amount - self.request(pod, name)) for name, amount in needs.items())
        return sum((rest / amount) ** 2 for amount, rest in left if rest > 0)

    def size(self, pod: Pod) -> tuple[int, int]:
        """Returns the memory and the CPUs that a pod requests."""
        return self.request(pod, "memory"), self.request(pod, "cpu")

    def _left(self, needs: Amounts, pods: Collection[Pod]) -> dict[str, int]:
        """What is still needed after the pods are evicted."""
        left = {
            name: amount - sum(self.request(one, name) for one in pods)
            for name, amount in needs.items()
        }
        return {name: amount for name, amount in left.items() if amount > 0}

    def request(self, pod: Pod, resource: str) -> int:
        """Returns what evicting a pod makes available of a resource."""
        return 1 if resource == PODS else total_request(pod, resource)


def is_critical(pod: Pod) -> bool:
    """Whether a pod may evict others.

    Requirements: NODE-ALLOC-009, NODE-ALLOC-017.
    """
    return pod.is_static or (pod.priority is not None and pod.priority >= _SYSTEM_CRITICAL)


def may_preempt(pod: Pod, other: Pod) -> bool:
    """Whether a critical pod may evict another: one that is not critical, or less so.

    Requirements: NODE-ALLOC-009, NODE-ALLOC-010, NODE-ALLOC-011, NODE-ALLOC-017.
    """
    if not is_critical(other):
        return True
    if pod.priority is None or other.priority is None:
        return False
    return pod.priority > other.priority


def _nothing_to_reclaim(lacking: Amounts) -> AdmissionError:
    listed = "".join(f"(res: {name}, q: {amount}), " for name, amount in lacking.items())
    return AdmissionError(
        "UnexpectedAdmissionError",
        "Unexpected error while attempting to recover from admission failure: preemption: error "
        "finding a set of pods to preempt: no set of running pods found to reclaim resources: "
        f"[{listed}]",
    )
