"""Deviations of the Device Manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.releases import between
from numaproof.reference.cadvisor.discovery import NodeOrder
from numaproof.reference.deviations.deviation import ALL, ISSUES, Defect, UndocumentedBehaviour
from numaproof.reference.devices.hints import DeviceHints
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.topology.hints import ANYWHERE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.devices.policy import Near
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import TopologyHint


class AllNodesConsidered(DeviceHints):
    """Builds hints from all nodes of the machine, which causes `ALL_NODES_FOR_DEVICES`.

    Device hints name all nodes of the machine, in the machine's order.
    """

    deviation = UndocumentedBehaviour("device-hints-name-all-nodes", between("1.30", "1.35"))

    def candidate_nodes(self, near: Iterable[int]) -> tuple[int, ...]:
        return self.nodes


class NodesByName(NodeOrder):
    """Lists NUMA nodes in cAdvisor's order, which the hints of `AllNodesConsidered` keep.

    Discovery lists NUMA nodes by directory name, so node 10 comes before node 2.
    """

    deviation = UndocumentedBehaviour("nodes-listed-by-name", ALL)

    def of(self, machine: MachineInfo) -> MachineInfo:
        return machine


class PodLevelWithoutDevices(DeviceManager):
    """Allocates no devices to pods that get CPUs and memory as a whole.

    With the PodLevelResourceManagers gate and the pod scope, a pod with pod-level resources is
    admitted without the devices that its containers request, even if none exist.
    """

    deviation = Defect(
        "pod-level-without-devices",
        between("1.36"),
        "A container gets the number of devices in its limits, whatever its QoS class.",
    )

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        """Allocates nothing."""


class AnyDeviceReused(DeviceManager):
    """Reuses devices of ended init containers on any node.

    An app container can reuse any device of its pod's completed init containers, and a device
    without a NUMA node is taken as readily as one on the affinity's nodes.
    """

    deviation = Defect(
        "init-devices-reused-without-node",
        ALL,
        "The Device Manager allocates devices on the affinity's NUMA nodes first.",
    )

    def near(self, affinity: TopologyHint) -> Near:
        return super().near(affinity)._replace(reusable=ANYWHERE)


class ReusableDevicesOutlivePod(DeviceManager):
    """Remembers devices to reuse after their pod has left.

    The hints for a pod that was refused count the devices of its init containers twice: as free
    and as reusable.
    """

    deviation = UndocumentedBehaviour("reusable-devices-outlive-pod", ALL)

    def release(self, uid: str, name: str) -> None:
        reuse = self.state.reuse
        super().release(uid, name)
        self.state = self.state.with_reuse(reuse)


class EndedInitDevicesDemanded(DeviceManager):
    """Refuses a running pod if its completed init container could not get its devices today.

    When only the kubelet restarts, it checks the devices of containers that have ended, such as
    init containers. If their plugin has not registered again yet, or they are unhealthy, the
    running pod is refused and killed.
    """

    deviation = Defect(
        "ended-init-devices-demanded",
        ALL,
        "If you restart the kubelet, Pods (and their containers) continue to run even during the "
        "restart.",
        f"{ISSUES}124345",
    )

    def runs(self, pod: Pod, container: PodContainer) -> bool:
        return super().runs(pod, container) and container.name in self.running[pod.uid]


ALL_NODES_FOR_DEVICES = Defect(
    "device-hints-over-all-nodes",
    between("1.30", "1.35"),
    "With max-allowable-numa-nodes, nodes with more than 8 NUMA nodes can run with the "
    "Topology Manager enabled.",
    f"{ISSUES}135541",
    what="Device hints are computed from all sets of the machine's nodes, so admitting a pod with "
    "devices never ends on a machine with 34 nodes.",
    answers=False,
)

VANISHED_DEVICE_PANIC = Defect(
    "hints-panic-on-vanished-device",
    between("1.34"),
    "The Topology Manager collects hints from Hint Providers.",
    what="Computing hints causes a panic if the container holds a device that its plugin no longer "
    "reports and another device of the resource has NUMA nodes.",
    answers=False,
)
