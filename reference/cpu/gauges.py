"""The gauges of the CPU Manager: how many CPUs are exclusive, where, and how many are left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.cpu.topology import union
from numaproof.reference.metrics import EXCLUSIVE, PER_NODE, SHARED_POOL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.cpu.policy import StaticCPUPolicy
    from numaproof.reference.cpu.state import CPUState


class CPUGauges:
    """The gauges of a static policy, read from its state.

    CPU sets are bit masks.
    """

    def __init__(self, policy: StaticCPUPolicy, state: CPUState) -> None:
        self.policy = policy
        del state

    def note_change(self, before: CPUState, after: CPUState, uid: str, cpus: int) -> None:
        """Notes that a pod got or released CPUs; a release has none in `cpus`."""

    def adopt(self, other: CPUGauges) -> None:
        """Takes over what the gauges of another node have noted."""

    def read(self, state: CPUState) -> dict[str, int]:
        """Returns the gauges: numbers of CPUs, and the shared pool in thousandths.

        Requirements: NODE-METRIC-001, NODE-METRIC-002, NODE-METRIC-003.
        """
        exclusive = exclusive_cpus(state)
        free = (state.shared & ~self.policy.reserved).bit_count()
        return {
            EXCLUSIVE: exclusive.bit_count(),
            SHARED_POOL: 1000 * free,
            **by_node(self.on_nodes(exclusive)),
        }

    def on_nodes(self, cpus: int) -> dict[int, int]:
        """The number of these CPUs on each node."""
        return {node: (own & cpus).bit_count() for node, own in self.policy.topology.nodes.items()}


def exclusive_cpus(state: CPUState) -> int:
    """The CPUs of all containers, and of pods as a whole."""
    return union(cpus for _, _, cpus in state) | union(state.pods.values())


def by_node(counts: Mapping[int, int]) -> dict[str, int]:
    """The metric of each node."""
    return {f"{PER_NODE}{{numa_node={node}}}": count for node, count in counts.items()}
