"""Deviations of discovery."""

from __future__ import annotations

from numaproof.reference.cadvisor.cpus import CoreIdentity
from numaproof.reference.deviations.deviation import ALL, Defect


class CoresByIds(CoreIdentity):
    """Joins CPUs with equal core ids into one core, even if the kernel says that they are not.

    cAdvisor takes core ids as unique within a package and a NUMA node. On arm64 machines with a
    device tree, they restart in every cluster; on some Opterons, in every die. Cores of different
    clusters or dies then count as threads of one core.
    """

    deviation = Defect(
        "cores-with-equal-ids-joined",
        ALL,
        "core_cpus_list: human-readable list of CPUs within the same core.",
    )

    by_siblings = False
