"""Invariants of metrics: gauges show what is assigned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.judging.invariants.view import Violation
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.judging.invariants.view import View


EXCLUSIVE = "cpu_manager_exclusive_cpu_allocation_count"
SHARED_POOL = "cpu_manager_shared_pool_size_millicores"
PER_NODE = "cpu_manager_allocation_per_numa"


def on_state(view: View) -> Iterator[Violation]:
    """The gauges of the CPU Manager agree with the state.

    Pods that hold CPUs as a whole may have some that none of their containers has.
    """
    metrics = view.state.metrics
    if metrics is None or view.budgets:
        return
    held = CPUSet.union(view.exclusive().values())
    free = view.state.shared & view.start_answer.cpus.allocatable
    expected = {
        EXCLUSIVE: ("gauge-of-exclusive-cpus", "NODE-METRIC-001", len(held)),
        SHARED_POOL: ("gauge-of-shared-pool", "NODE-METRIC-002", 1000 * len(free)),
    }
    for name, (invariant, requirement, value) in expected.items():
        if metrics.get(name, value) != value:
            message = f"{name} is {metrics[name]}, but the state has {value}"
            yield Violation(invariant, requirement, message)
    by_node = {name: value for name, value in metrics.items() if name.startswith(PER_NODE)}
    nodes = {
        f"{PER_NODE}{{numa_node={node}}}": len(cpus & held)
        for node, cpus in view.facts.nodes.items()
    }
    held_by_node = {name: count for name, count in nodes.items() if count}
    if by_node and by_node != held_by_node:
        message = f"the metrics have {by_node}, but the state has {held_by_node}"
        yield Violation("gauges-of-nodes", "NODE-METRIC-003", message)
