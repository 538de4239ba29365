"""Deviations of the CPU Manager's static policy."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from numaproof.protocol.releases import between
from numaproof.reference.config.reservation import ReservationRounding
from numaproof.reference.cpu.gauges import CPUGauges, by_node, exclusive_cpus
from numaproof.reference.cpu.policy import StaticCPUPolicy, not_whole_cores
from numaproof.reference.cpu.topology import union
from numaproof.reference.deviations.deviation import (
    ALL,
    AT_ONCE,
    ISSUES,
    RESTARTS,
    Defect,
    UndocumentedBehaviour,
)
from numaproof.reference.metrics import EXCLUSIVE, PER_NODE, SHARED_POOL

if TYPE_CHECKING:
    from numaproof.reference.cpu.state import CPUState
    from numaproof.reference.topology.hints import Demand


class ReservedInThousandths(ReservationRounding):
    """Rounds reservations to thousandths of a CPU.

    The amounts in kubeReserved and systemReserved are rounded up to millionths and then to the
    nearest thousandth before they are added.

    Requirements: CPU-RESERVE-014.
    """

    deviation = UndocumentedBehaviour("reservations-in-thousandths", between("1.37"))

    def of(self, amount: Fraction) -> Fraction:
        return Fraction((math.ceil(amount * 10**6) + 500) // 1000, 1000)


class OwnPodRefused(StaticCPUPolicy):
    """Requires free cores even for a container that already has its own.

    After a restart, a pod that already has its CPUs is readmitted only if as many other CPUs are
    free.
    """

    deviation = Defect(
        "full-pcpus-only-refuses-own-pod",
        between("1.30", "1.36"),
        "With the option enabled, the pod will be admitted by the kubelet only if the CPU request "
        "of all its containers can be fulfilled by allocating full physical cores.",
        f"{ISSUES}129078",
    )

    def revalidate(self, state: CPUState, count: int, reusable: int) -> None:
        self.check_alignment(count, self.in_unbroken_cores(state, reusable))


class ShortageMisreported(StaticCPUPolicy):
    """Reports the wrong reason if no core is free.

    If no physical core is free, the refusal says that the request is not a multiple of the number
    of CPUs per core, even if it is.
    """

    deviation = UndocumentedBehaviour(
        "full-pcpus-only-shortage-misreported", between("1.30", "1.31")
    )

    def check_alignment(self, count: int, free: int) -> None:
        super().check_alignment(count, free or count)
        if self.options.full_cores and count > free == 0:
            raise not_whole_cores(count, self.assignment.cpus_per_core)


class InitCPUsNotReused(StaticCPUPolicy):
    """Does not prefer the CPUs of ended init containers to free CPUs.

    An app container does not get the CPUs of completed init containers before other free CPUs, so
    the pod can hold more CPUs than it ever needs at one time.
    """

    deviation = Defect("init-cpus-not-reused", ALL, AT_ONCE, f"{ISSUES}112228")

    def reusable_first(self, reusable: int, available: int, count: int) -> int:
        return 0


class InitCPUsBind(StaticCPUPolicy):
    """Keeps an app container on the nodes of its pod's init containers.

    An app container must use the nodes with the CPUs of its pod's init containers, and is refused
    if it fits only on other nodes.
    """

    deviation = Defect(
        "init-cpus-bind-later-containers",
        ALL,
        "In scope container there is no notion of grouping the containers to a specific set of "
        "NUMA nodes; the Topology Manager aligns each container by itself.",
        f"{ISSUES}94220",
    )

    def must_reuse(self, near: Demand) -> bool:
        return True


class ReusableCPUsCountedTwice(StaticCPUPolicy):
    """Double-counts CPUs that are both free and reusable.

    After a pod is removed or refused, its init containers' CPUs are free but stay reusable for it
    until another pod is admitted. If a pod with the same UID arrives first, these CPUs count twice,
    and its hints include nodes with too few CPUs.
    """

    deviation = Defect(
        "reusable-cpus-counted-twice",
        ALL,
        "The CPU Manager suggests NUMA nodes that have enough free CPUs.",
    )

    def countable(self, available: int, reusable: int) -> int:
        return available.bit_count() + reusable.bit_count()


class StrictEmptyPoolRefused(StaticCPUPolicy):
    """Refuses to start with an empty shared pool.

    With strict-cpu-reservation, once exclusive CPUs have used up the shared pool, the kubelet
    refuses to restart because the default set is empty.
    """

    deviation = Defect(
        "strict-reservation-empty-pool-refused", between("1.32"), RESTARTS, f"{ISSUES}141196"
    )

    def is_used_up(self, state: CPUState, cpus: int) -> bool:
        return False


class DriftingGauges(CPUGauges):
    """Adds up changes instead of counting the CPUs.

    CPUs that an app container takes over from an init container are counted twice, even after the
    pod is gone: too many are exclusive, and the shared pool is too small. A NUMA node whose last
    exclusive CPU is released keeps its count.
    """

    deviation = Defect(
        "cpu-metrics-drift",
        between("1.32"),
        "The total number of CPUs exclusively allocated to containers running on this node.",
        f"{ISSUES}141262",
    )

    def __init__(self, policy: StaticCPUPolicy, state: CPUState) -> None:
        super().__init__(policy, state)
        self.excess, self.repeated_cpus = self.counted_twice(state), 0
        self.counts: dict[int, int] = {}
        self._count_nodes(state)

    def counted_twice(self, state: CPUState) -> int:
        """The number of CPUs that a start counts too many."""
        del state
        return 0

    def note_change(self, before: CPUState, after: CPUState, uid: str, cpus: int) -> None:
        """Counts taken-over CPUs again; a whole pod's CPUs are not on its node yet."""
        if uid in after.pods:
            if cpus:
                self._count_nodes(before)
            return
        self.repeated_cpus += (cpus & union(before.exclusive.get(uid, {}).values())).bit_count()
        self._count_nodes(after)

    def _count_nodes(self, state: CPUState) -> None:
        on_nodes = self.on_nodes(union(cpus for _, _, cpus in state))
        self.counts |= {node: count for node, count in on_nodes.items() if count}

    def adopt(self, other: CPUGauges) -> None:
        if isinstance(other, DriftingGauges):
            self.excess, self.repeated_cpus = other.excess, other.repeated_cpus
            self.counts = dict(other.counts)

    def read(self, state: CPUState) -> dict[str, int]:
        found = super().read(state)
        kept = {name: value for name, value in found.items() if not name.startswith(PER_NODE)}
        kept[EXCLUSIVE] += self.excess + self.repeated_cpus
        kept[SHARED_POOL] -= 1000 * self.repeated_cpus
        return kept | by_node(self.counts)


class RestoredEntriesAddedUp(DriftingGauges):
    """Counts CPUs that two containers share twice after a restart as well."""

    deviation = UndocumentedBehaviour("", between("1.32", "1.32"))  # type: ignore[assignment]

    def counted_twice(self, state: CPUState) -> int:
        together = sum(cpus.bit_count() for _, _, cpus in state)
        return together - exclusive_cpus(state).bit_count()
