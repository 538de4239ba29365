"""The Device Manager: the plugins' devices, their holders, and the checkpoint file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from numaproof.reference.devices import policy
from numaproof.reference.devices.policy import Near, Preferences
from numaproof.reference.devices.state import DeviceState
from numaproof.reference.manager import Manager, unexpected_admission_error

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numaproof.protocol.messages import DeviceResource
    from numaproof.reference.choices import Decisions
    from numaproof.reference.devices.hints import DeviceHints
    from numaproof.reference.devices.policy import PreferredDevices
    from numaproof.reference.manager import StateFile
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources, TopologyHint


class DeviceManager(Manager[DeviceState]):
    """The Device Manager.

    `first_choice` has, by container and resource, the devices to prefer among equally good ones;
    `decisions`, if any, choose instead.
    `running` has the names of the containers that ran when the kubelet restarted, by pod uid,
    until all pods are known.
    """

    def __init__(
        self, hints: DeviceHints, state: DeviceState, file: StateFile[DeviceState]
    ) -> None:
        super().__init__(state, file)
        self._hints = hints
        self.has_plugins = False
        self.first_choice: Mapping[str, PreferredDevices] = {}
        self.decisions: Decisions | None = None
        self.running: Mapping[str, Collection[str]] = {}
        self._state_to_save = state

    def resume(self, running: Mapping[str, Collection[str]]) -> None:
        """Continues after a restart that `running` containers survived."""
        self.running = running
        self.has_plugins = self.has_plugins or not self._is_idle

    def report(self, lists: tuple[DeviceResource, ...]) -> None:
        self.state = self._state_to_save = self.state.report(lists)
        self.has_plugins = self.has_plugins or bool(lists)

    def serves(self, pod: Pod) -> bool:
        """Whether a container requests a device plugin's resource, even with an amount of 0."""
        return any(policy.requested_devices(self.state, container) for container in pod.containers)

    def held_devices(self, uid: str, name: str) -> dict[str, tuple[str, ...]] | None:
        """The container's devices by resource, or None on a node without device plugins."""
        if not self.has_plugins:
            return None
        return {resource: tuple(sorted(ids)) for resource, ids in self.state.of(uid, name).items()}

    @property
    def _is_idle(self) -> bool:
        return not self.state.lists and not self.state.allocated_devices

    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        if self._is_idle:
            return {}
        if container is None:
            return self._hints.for_pod(self.state, pod)
        return self._hints.for_container(self.state, pod, container)

    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        if self._is_idle:
            return
        first_choice = self.first_choice.get(container.name, {})
        before = self.state.of(pod.uid, container.name)
        try:
            if self.runs(pod, container):
                self.state = policy.keep(self.state, pod, container)
            else:
                near, preferences = self.near(affinity), Preferences(first_choice, self.decisions)
                self.state = policy.allocate(self.state, pod, container, near, preferences)
        except policy.DeviceError as error:
            self.state = error.state
            raise unexpected_admission_error(error) from None
        if self.state.of(pod.uid, container.name) != before:
            self._state_to_save = self.state

    def runs(self, pod: Pod, container: PodContainer) -> bool:  # noqa: ARG002 - for overrides
        """Whether a container of a running pod runs or has completed, and so needs no devices.

        Requirements: NODE-RESTART-003, NODE-RESTART-006.
        """
        return pod.uid in self.running

    def near(self, affinity: TopologyHint) -> Near:
        """The nodes on which to allocate devices: the same for reusable and for free devices."""
        return Near(affinity.nodes, affinity.nodes)

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        """Allocates each container's devices; a pod as a whole has none.

        Requirements: DEV-ALLOCATE-003.
        """
        for container in pod.containers:
            self.allocate(pod, container, affinity)

    def adopt(self, other: Self) -> None:
        super().adopt(other)
        self.has_plugins, self._state_to_save = other.has_plugins, other._state_to_save

    def end(self, uid: str, name: str) -> None:
        """Does nothing, because a container keeps its devices until its pod leaves the node.

        Requirements: DEV-REMOVE-002.
        """

    def save(self) -> None:
        """Writes the state of the last report or allocation; releases are not written."""
        self._write(self._state_to_save)
