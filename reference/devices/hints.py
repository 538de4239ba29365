"""The Device Manager's topology hints: the NUMA nodes that could provide devices.

(Kubernetes documentation, "Device plugin integration with the Topology Manager".)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from numaproof.reference.devices import policy
from numaproof.reference.devices.state import NONE, Devices
from numaproof.reference.pods import containers, quantity
from numaproof.reference.topology.hints import Demand, Need, Supply

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from numaproof.reference.devices.state import DeviceState
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Hints


class DeviceNeed(NamedTuple):
    """A number of devices of one resource, the devices already held, and the reusable devices."""

    resource: str
    amount: int
    held_devices: frozenset[str]
    reusable: frozenset[str] = NONE


@dataclass(frozen=True, slots=True)
class DeviceHints:
    """Computes hints on a machine with the NUMA nodes `nodes`, in the machine's order.

    Hints are by resource: None means no preference; an empty list means that the resource is
    unavailable. Stale allocations must be removed from a state first.
    """

    nodes: tuple[int, ...]

    def for_container(
        self, state: DeviceState, pod: Pod, container: PodContainer
    ) -> dict[str, Hints | None]:
        """Returns the hints for one container.

        Requirements: DEV-HINT-010, NODE-PODLEVEL-003.
        """
        found: dict[str, Hints | None] = {}
        for resource, count in policy.requested_devices(state, container).items():
            held = state.of(pod.uid, container.name).get(resource, NONE)
            reusable = state.reuse.of(pod.uid, resource)
            found[resource] = self.of_resource(state, DeviceNeed(resource, count, held, reusable))
        return found

    def for_pod(self, state: DeviceState, pod: Pod) -> dict[str, Hints | None]:
        """Returns the hints for the pod as a whole.

        The demand is the containers' combined peak. Devices that the containers already hold count
        only if their number equals the peak.

        Requirements: DEV-HINT-009.
        """
        resources = {resource for container in pod.containers for resource in container.limits}
        found: dict[str, Hints | None] = {}
        for resource in sorted(resources):
            if state.serves(resource):
                needed = containers.peak(pod.containers, partial(_limit, resource))
                count = -(-needed.numerator // needed.denominator)
                held = state.of_pod(pod.uid, resource)
                found[resource] = self.of_resource(state, DeviceNeed(resource, count, held))
        return found

    def of_resource(self, state: DeviceState, need: DeviceNeed) -> Hints | None:
        """Returns the hints for devices of one resource.

        Requirements: DEV-HINT-002, DEV-HINT-005, DEV-HINT-007, DEV-HINT-008, DEV-INIT-001.
        """
        resource, count, held, reusable = need
        devices = state.lists.get(resource, Devices())
        if not devices.has_topology:
            return None
        available = state.available(resource)
        if held:
            available, reusable = held, NONE
            if len(held) != count:
                return ()
        elif len(available | reusable) < count:
            return ()
        near = {device: mask for device, mask in devices.nodes.items() if mask is not None}
        touching = tuple(near[device] for device in sorted(reusable) if device in near)
        if not all(touching):
            # No set of nodes can include a reusable device whose topology is empty.
            return ()
        supply = Need(
            amount=count,
            free=_supplies([near[device] for device in (*available, *reusable) if device in near]),
            total=_supplies(near.values()),
        )
        return Demand(self.candidate_nodes(near.values()), (supply,), tuple(sorted(set(touching))))

    def candidate_nodes(self, near: Iterable[int]) -> tuple[int, ...]:
        """The nodes that hints may name: nodes near any device, in ascending order.

        If there are no such nodes, hints may name any node of the machine.

        Requirements: DEV-HINT-003, TOPO-OPT-011.
        """
        touched = 0
        for mask in near:
            touched |= mask
        return tuple(node for node in sorted(self.nodes) if touched >> node & 1) or self.nodes


def _limit(resource: str, container: PodContainer) -> Fraction:
    return quantity.parse(container.limits.get(resource, 0))


def _supplies(near: Iterable[int]) -> tuple[Supply, ...]:
    counts = Counter(mask for mask in near if mask)
    return tuple(Supply(mask, counts[mask]) for mask in sorted(counts))
