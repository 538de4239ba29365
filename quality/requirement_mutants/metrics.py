"""Mutants of the managers' metrics."""

from __future__ import annotations

from typing import Any

import msgspec

from numaproof.reference.cpu.gauges import CPUGauges
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.metrics import ALIGNED, EXCLUSIVE, NOT_ALIGNED, PER_NODE, SHARED_POOL
from numaproof.reference.node import StartedNode
from quality.seeding import Change, Changes, SubjectBugs, shape

seeds = SubjectBugs("metrics")

_REQUESTS = "{}_requests_total"
_ERRORS = "{}_errors_total"


@shape(StartedNode, "state", Changes.after)
def _metrics(change: Change, state: Any) -> Any:
    """Lets `change` override metrics, if the state has any."""
    if state.metrics is None:
        return state
    return msgspec.structs.replace(state, metrics=state.metrics | change(state.metrics))


@shape(CPUGauges, "read")
def _gauges(change: Change, rule: Any, self: Any, state: Any) -> Any:
    """Lets `change` override gauges, given the policy and the state."""
    return rule() | change(self.policy, state)


# Gauges


@seeds("NODE-METRIC-001").of(
    _gauges, lambda _, state: {EXCLUSIVE: sum(map(len, state.exclusive.values()))}
)
def exclusive_gauge_counts_containers() -> None:
    """Counts containers with exclusive CPUs instead of the CPUs."""


@seeds("NODE-METRIC-001").of(
    _gauges,
    lambda policy, state: {EXCLUSIVE: (policy.topology.cpus & ~state.shared).bit_count() + 1},
)
def exclusive_gauge_includes_the_reserved_cpu() -> None:
    """Counts a reserved CPU as exclusive."""


@seeds("NODE-METRIC-001").around(StartedNode, "start_answer")
def exclusive_gauge_is_zero_after_a_restart(rule: Any, self: Any) -> Any:
    """Counts only CPUs that have been assigned since the start."""
    gauges = self.cpus.gauges
    if gauges is not None:
        restored = gauges.read(self.cpus.state)[EXCLUSIVE]
        read = gauges.read
        gauges.read = lambda state: read(state) | {EXCLUSIVE: read(state)[EXCLUSIVE] - restored}
    return rule()


@seeds("NODE-METRIC-002").of(
    _gauges, lambda _, state: {SHARED_POOL: 1000 * state.shared.bit_count()}
)
def pool_gauge_includes_reserved_cpus() -> None:
    """Includes the reserved CPUs in the size of the shared pool."""


@seeds("NODE-METRIC-002").of(
    _gauges,
    lambda policy, state: {
        SHARED_POOL: 1000 * (state.shared.bit_count() - policy.reserved.bit_count())
    },
)
def pool_gauge_subtracts_strictly_reserved_cpus_again() -> None:
    """Subtracts reserved CPUs that are not in the shared pool."""


@seeds("NODE-METRIC-002").by(_metrics)
def pool_gauge_is_in_cpus(metrics: dict[str, int]) -> dict[str, int]:
    """Reports the shared pool in CPUs instead of thousandths."""
    return {SHARED_POOL: metrics[SHARED_POOL] // 1000} if SHARED_POOL in metrics else {}


@seeds("NODE-METRIC-003").of(
    _gauges,
    lambda policy, state: {
        f"{PER_NODE}{{numa_node={node}}}": (cpus & state.shared).bit_count()
        for node, cpus in policy.topology.nodes.items()
    },
)
def node_gauges_count_shared_cpus() -> None:
    """Counts the shared CPUs of each NUMA node."""


@seeds("NODE-METRIC-003").by(_metrics)
def node_gauges_show_all_on_the_first_node(metrics: dict[str, int]) -> dict[str, int]:
    """Counts all exclusive CPUs on node 0."""
    found = {name: 0 for name in metrics if name.startswith(PER_NODE)}
    return found | {f"{PER_NODE}{{numa_node=0}}": metrics.get(EXCLUSIVE, 0)} if found else {}


# Counters


@seeds("NODE-METRIC-004").of(_metrics, lambda _: {_ERRORS.format("cpu_manager_pinning"): 0})
def failed_cpu_allocations_are_not_counted() -> None:
    """Never counts errors to pin CPUs."""


@seeds("NODE-METRIC-004").around(CPUManager, "allocate")
def shared_containers_count_as_pinned(rule: Any, self: Any) -> Any:
    """Counts requests of all containers, even of those without whole CPUs."""
    before = self.counts[self.requests_metric]
    try:
        return rule()
    finally:
        self.counts[self.requests_metric] = before + 1


@seeds("NODE-METRIC-004").around(CPUManager, "allocate")
def kept_cpus_are_not_counted(rule: Any, self: Any, pod: Any, container: Any) -> Any:
    """Counts no request of containers that have kept their CPUs after a restart."""
    keeps = self.state.of(pod.uid, container.name) is not None
    before = self.counts[self.requests_metric]
    rule()
    if keeps:
        self.counts[self.requests_metric] = before


@seeds("NODE-METRIC-005").of(_metrics, lambda _: {_ERRORS.format("memory_manager_pinning"): 0})
def failed_memory_allocations_are_not_counted() -> None:
    """Never counts errors to pin memory."""


@seeds("NODE-METRIC-005").around(MemoryManager, "allocate")
def unpinned_memory_is_counted(rule: Any, self: Any) -> Any:
    """Counts requests of all containers, even of those whose memory is not pinned."""
    before = self.counts[self.requests_metric]
    try:
        return rule()
    finally:
        self.counts[self.requests_metric] = before + 1


@seeds("NODE-METRIC-006").by(_metrics)
def refused_pods_are_no_requests(metrics: dict[str, int]) -> dict[str, int]:
    """Counts only admitted pods as requests."""
    requests, errors = (kind.format("topology_manager_admission") for kind in (_REQUESTS, _ERRORS))
    return {requests: metrics[requests] - metrics[errors]}


@seeds("NODE-METRIC-006").of(_metrics, lambda _: {_ERRORS.format("topology_manager_admission"): 0})
def refused_pods_are_no_errors() -> None:
    """Never counts errors of the Topology Manager."""


@seeds("NODE-METRIC-006").around(StartedNode, "rejected_pod_status")
def errors_under_the_none_policy_are_counted(rule: Any, self: Any) -> Any:
    """Counts refusals under the none policy as errors to align."""
    self.counts[_ERRORS.format("topology_manager_admission")] += self.setup.topology_policy is None
    return rule()


@seeds("NODE-METRIC-007").by(_metrics)
def failures_to_align_are_not_counted(metrics: dict[str, int]) -> dict[str, int]:
    """Never counts failures to align resources."""
    return {name: 0 for name in metrics if name.startswith(NOT_ALIGNED)}


@seeds("NODE-METRIC-007").by(_metrics)
def aligned_pods_are_not_counted(metrics: dict[str, int]) -> dict[str, int]:
    """Counts no pods under the pod scope."""
    return {name: 0 for name in metrics if name.startswith(ALIGNED) and "scope=pod" in name}


@seeds("NODE-METRIC-007").by(_metrics)
def aligned_cores_are_counted_under_every_option(metrics: dict[str, int]) -> dict[str, int]:
    """Counts containers with exclusive CPUs as aligned with cores, whichever option is on."""
    name = f"{ALIGNED}{{boundary=physical_cpu,scope=container}}"
    return {name: metrics[_REQUESTS.format("cpu_manager_pinning")]} if EXCLUSIVE in metrics else {}
