"""A kubelet's metrics are read as the protocol has them."""

from __future__ import annotations

from numaproof.kubelet import metrics
from numaproof.reference.deviations.releases import release

TEXT = """\
# HELP kubelet_cpu_manager_shared_pool_size_millicores [ALPHA] The size of the shared CPU pool.
# TYPE kubelet_cpu_manager_shared_pool_size_millicores gauge
kubelet_cpu_manager_shared_pool_size_millicores 1.4e+04
kubelet_cpu_manager_pinning_requests_total 3
kubelet_cpu_manager_allocation_per_numa{numa_node="0"} 0
kubelet_cpu_manager_allocation_per_numa{numa_node="1"} 2
kubelet_container_aligned_compute_resources_count{scope="container",boundary="numa_node"} 5
kubelet_topology_manager_admission_requests_total 4
kubelet_topology_manager_admission_duration_ms_bucket{le="+Inf"} 4
go_goroutines 123
"""
ALIGNED = "container_aligned_compute_resources_count{boundary=numa_node,scope=container}"
ZEROS = {
    "cpu_manager_pinning_errors_total": 0,
    "memory_manager_pinning_errors_total": 0,
    "memory_manager_pinning_requests_total": 0,
    "topology_manager_admission_errors_total": 0,
}


def test_only_metrics_of_the_release_are_read() -> None:
    old = {
        **ZEROS,
        "cpu_manager_pinning_requests_total": 3,
        "topology_manager_admission_requests_total": 4,
    }
    new = old | {
        "cpu_manager_shared_pool_size_millicores": 14000,
        "cpu_manager_exclusive_cpu_allocation_count": 0,
        ALIGNED: 5,
    }
    assert metrics.parse(TEXT, release("1.30").metrics) == old
    assert metrics.parse(TEXT, release("1.32").metrics) == new
    per_node = {"cpu_manager_allocation_per_numa{numa_node=1}": 2}
    assert metrics.parse(TEXT, release("1.37").metrics) == new | per_node


def test_the_drivers_own_pods_are_not_counted() -> None:
    requests = "topology_manager_admission_requests_total"
    found = {requests: 4, ALIGNED: 3, "cpu_manager_pinning_requests_total": 1}
    pins = {"cpu_manager_pinning_requests_total": 1}
    assert metrics.without_probes(found, 3, "container") == {requests: 1, **pins}
    assert metrics.without_probes(found, 2, "pod") == {requests: 2, ALIGNED: 3, **pins}
