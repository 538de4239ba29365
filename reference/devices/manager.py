"""The Device Manager: the plugins' devices, who holds them, and its checkpoint file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from numaproof.reference.devices import policy
from numaproof.reference.devices.policy import Near
from numaproof.reference.devices.state import DeviceState
from numaproof.reference.manager import Manager, unexpected_admission_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol.messages import DeviceResource
    from numaproof.reference.devices.hints import DeviceHints
    from numaproof.reference.devices.policy import PreferredDevices
    from numaproof.reference.manager import StateFile
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources, TopologyHint


class DeviceManager(Manager[DeviceState]):
    """The Device Manager.

    `first_choice` are devices by container and resource that it takes before others that would do
    as well.
    """

    def __init__(
        self, hints: DeviceHints, state: DeviceState, file: StateFile[DeviceState]
    ) -> None:
        """Takes the state that the checkpoint `file` holds, before any plugin reports."""
        super().__init__(state, file)
        self._hints = hints
        self.has_plugins = False
        self.first_choice: Mapping[str, PreferredDevices] = {}
        self._state_to_save = state

    def report(self, lists: tuple[DeviceResource, ...]) -> None:
        """Takes what device plugins report."""
        self.state = self._state_to_save = self.state.report(lists)
        self.has_plugins = self.has_plugins or bool(lists)

    def serves(self, pod: Pod) -> bool:
        """Whether a container requests a resource of a device plugin, be it none of it."""
        return any(policy.requested_devices(self.state, container) for container in pod.containers)

    def held_devices(self, uid: str, name: str) -> dict[str, tuple[str, ...]] | None:
        """The container's devices by resource; None on a node without device plugins."""
        if not self.has_plugins:
            return None
        return {resource: tuple(sorted(ids)) for resource, ids in self.state.of(uid, name).items()}

    @property
    def _is_idle(self) -> bool:
        """Whether no plugin has ever reported and no container holds a device."""
        return not self.state.lists and not self.state.allocated_devices

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        """Where the request could be met."""
        if self._is_idle:
            return {}
        if container is None:
            return self._hints.for_pod(self.state, pod)
        return self._hints.for_container(self.state, pod, container)

    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        """Gives the container its devices."""
        if self._is_idle:
            return
        first_choice = self.first_choice.get(container.name, {})
        before = self.state.of(pod.uid, container.name)
        try:
            self.state = policy.allocate(
                self.state, pod, container, self.near(affinity), first_choice
            )
        except policy.DeviceError as error:
            self.state = error.state
            raise unexpected_admission_error(error) from None
        if self.state.of(pod.uid, container.name) != before:
            self._state_to_save = self.state

    def near(self, affinity: TopologyHint) -> Near:
        """Where devices should be, of the pod's ended init containers and others alike."""
        return Near(affinity.nodes, affinity.nodes)

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        """Gives each container its devices: a pod as a whole has none.

        Requirements: DEV-ALLOCATE-003.
        """
        for container in pod.containers:
            self.allocate(pod, container, affinity)

    def adopt(self, other: Self) -> None:
        """Takes over what another manager has allocated and what its plugins report."""
        super().adopt(other)
        self.has_plugins, self._state_to_save = other.has_plugins, other._state_to_save

    def end(self, uid: str, name: str) -> None:
        """Leaves the container its devices until its pod leaves the node.

        Requirements: DEV-REMOVE-002.
        """

    def save(self) -> None:
        """Writes the state as of the last report or allocation: taking back is not written."""
        self._write(self._state_to_save)
