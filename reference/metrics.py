"""The names of the managers' metrics, without the prefix ``kubelet_``.

Labels follow the name as in ``name{label=value,label=value}``, sorted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

EXCLUSIVE = "cpu_manager_exclusive_cpu_allocation_count"
SHARED_POOL = "cpu_manager_shared_pool_size_millicores"
PER_NODE = "cpu_manager_allocation_per_numa"
ALIGNED = "container_aligned_compute_resources_count"
NOT_ALIGNED = "container_aligned_compute_resources_failure_count"

COUNTERS = frozenset(
    f"{counter}_{kind}_total"
    for counter in ("cpu_manager_pinning", "memory_manager_pinning", "topology_manager_admission")
    for kind in ("requests", "errors")
)
"""Every release has these."""


def keep_known(metrics: Mapping[str, int], names: Collection[str]) -> dict[str, int]:
    """Returns the metrics that a release has, sorted by name.

    Args:
        metrics: metrics by name.
        names: the names of those without labels, which are zero by default, and beginnings such as
            ``name{`` of those with labels, which are left out if they are zero.
    """
    labelled = tuple(name for name in names if "{" in name)
    found = {name: metrics.get(name, 0) for name in names if "{" not in name}
    found |= {name: value for name, value in metrics.items() if value and name.startswith(labelled)}
    return dict(sorted(found.items()))
