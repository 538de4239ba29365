"""Deviations of the CPU Manager's static policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.releases import between
from numaproof.reference.cpu.policy import StaticCPUPolicy, not_whole_cores
from numaproof.reference.deviations.deviation import (
    ALL,
    AT_ONCE,
    ISSUES,
    RESTARTS,
    Defect,
    UndocumentedBehaviour,
)

if TYPE_CHECKING:
    from numaproof.reference.cpu.state import CPUState
    from numaproof.reference.topology.hints import Demand


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
