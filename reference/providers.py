"""The hint providers: the managers that hand something out, each with what it keeps.

The Topology Manager asks every provider in turn for hints, and later for the allocation. The
policies are immutable values; what changes from call to call is kept here and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from numaproof.protocol.sets import NUMASet
from numaproof.reference.cpu import checkpoint as cpu_checkpoint
from numaproof.reference.cpu import hints as cpu_hints
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.distribution import AccountingError
from numaproof.reference.cpu.policy import SMTAlignmentError
from numaproof.reference.cpu.state import Reuse
from numaproof.reference.devices import allocation
from numaproof.reference.devices import checkpoint as device_checkpoint
from numaproof.reference.devices import hints as device_hints
from numaproof.reference.errors import AdmissionError
from numaproof.reference.memory import checkpoint as memory_checkpoint
from numaproof.reference.memory.policy import AllocationError
from numaproof.reference.memory.state import Reuse as MemoryReuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol.messages import DeviceResource
    from numaproof.reference.cpu.state import CPUState
    from numaproof.reference.devices.state import DeviceState
    from numaproof.reference.kubernetes.pods import Container, Pod
    from numaproof.reference.memory.state import MemoryState
    from numaproof.reference.plan import Plan
    from numaproof.reference.topology.hints import Resources
    from numaproof.reference.topology.policy import KeptHint


class Provider(Protocol):
    """What the Topology Manager and the node ask of a manager.

    `pods` are those on the node by uid; a container of None stands for the pod as a whole.
    """

    def hints(self, pod: Pod, container: Container | None) -> Resources:
        """Where the request could be met; nothing at all is no preference."""

    def allocate(self, pod: Pod, container: Container, affinity: KeptHint) -> None:
        """Gives the container what it is due, near the nodes of `affinity`.

        Raises:
            AdmissionError: it cannot be had.
        """

    def reclaim(self, pods: Mapping[str, Pod]) -> None:
        """Takes back what containers hold that no pod on the node has."""

    def end(self, uid: str, name: str) -> None:
        """Takes back what a container that has ended need not keep."""

    def save(self) -> None:
        """Writes the checkpoint if anything changed since it was last written.

        The kubelet writes it at every change; between two calls nobody can tell.
        """


def unexpected(error: Exception) -> AdmissionError:
    """The refusal of a pod for which an allocation failed."""
    return AdmissionError(
        "UnexpectedAdmissionError", f"Allocate failed due to {error}, which is unexpected"
    )


def _is_gone(uid: str, name: str, pods: Mapping[str, Pod]) -> bool:
    pod = pods.get(uid)
    return pod is None or all(container.name != name for container in pod.containers)


class CPUManager:
    """The CPU Manager with its state."""

    def __init__(self, plan: Plan, state: CPUState) -> None:
        """Takes the state as the start restored and wrote it."""
        self._plan = plan
        self._policy = plan.cpu
        self.state = self._saved = state
        self._reuse = Reuse()

    def hints(self, pod: Pod, container: Container | None) -> Resources:
        """Where the request could be met."""
        if self._policy is None:
            return {}
        if container is None:
            return cpu_hints.for_pod(self._policy, self.state, self._reuse, pod)
        return cpu_hints.for_container(self._policy, self.state, self._reuse, pod, container)

    def allocate(self, pod: Pod, container: Container, affinity: KeptHint) -> None:
        """Gives the container its exclusive CPUs."""
        if self._policy is None:
            return
        near = None if affinity.nodes is None else NUMASet.from_mask(affinity.nodes)
        try:
            self.state, self._reuse = self._policy.allocate(
                self.state, self._reuse, pod, container, near
            )
        except SMTAlignmentError as error:
            raise AdmissionError("SMTAlignmentError", str(error)) from None
        except (NotEnoughCPUsError, AccountingError) as error:
            raise unexpected(error) from None

    def reclaim(self, pods: Mapping[str, Pod]) -> None:
        """Takes back what containers hold that no pod on the node has."""
        for uid, name, _ in tuple(self.state):
            if _is_gone(uid, name, pods):
                self.end(uid, name)

    def end(self, uid: str, name: str) -> None:
        """Takes back the container's CPUs."""
        self.state = self.state.release(uid, name)

    def save(self) -> None:
        """Writes ``cpu_manager_state`` if it changed."""
        if self.state is not self._saved:
            content = cpu_checkpoint.dump(self.state, self._plan.cpu_policy)
            self._plan.write(cpu_checkpoint.FILE_NAME, content)
            self._saved = self.state


class DeviceManager:
    """The Device Manager with its state."""

    def __init__(self, plan: Plan, state: DeviceState) -> None:
        """Takes the state that the checkpoint holds, before any plugin reports."""
        self._plan = plan
        self.state = self._saved = state
        self.has_plugins = False

    def report(self, lists: tuple[DeviceResource, ...]) -> None:
        """Takes what device plugins report."""
        self.state = self.state.report(lists)
        self.has_plugins = self.has_plugins or bool(lists)

    def held(self, uid: str, name: str) -> dict[str, tuple[str, ...]] | None:
        """The container's devices by resource; None on a node without device plugins."""
        if not self.has_plugins:
            return None
        return {resource: tuple(sorted(ids)) for resource, ids in self.state.of(uid, name).items()}

    def hints(self, pod: Pod, container: Container | None) -> Resources:
        """Where the request could be met."""
        plan = self._plan
        if container is None:
            return device_hints.for_pod(self.state, plan.release, plan.nodes, pod)
        return device_hints.for_container(self.state, plan.release, plan.nodes, pod, container)

    def allocate(self, pod: Pod, container: Container, affinity: KeptHint) -> None:
        """Gives the container its devices."""
        near = None if affinity.nodes is None else NUMASet.from_mask(affinity.nodes)
        try:
            self.state = allocation.allocate(self.state, pod, container, near)
        except allocation.DeviceError as error:
            self.state = error.state
            raise unexpected(error) from None

    def reclaim(self, pods: Mapping[str, Pod]) -> None:
        """Takes back the devices of pods that are not on the node."""
        self.state = self.state.reclaim(pods.keys())

    def end(self, uid: str, name: str) -> None:
        """Leaves the container its devices: they stay until its pod goes."""

    def save(self) -> None:
        """Writes the checkpoint if it changed."""
        if self.state is not self._saved:
            self._plan.write(device_checkpoint.FILE_NAME, device_checkpoint.dump(self.state))
            self._saved = self.state


class MemoryManager:
    """The Memory Manager with its state."""

    def __init__(self, plan: Plan, state: MemoryState) -> None:
        """Takes the state as the start restored and wrote it."""
        self._plan = plan
        self._policy = plan.memory
        self.state = self._saved = state
        self._reuse = MemoryReuse()

    def hints(self, pod: Pod, container: Container | None) -> Resources:
        """Where the request could be met."""
        if self._policy is None:
            return {}
        if container is None:
            return self._policy.hints_for_pod(self.state, self._reuse, pod)
        return self._policy.hints_for_container(self.state, self._reuse, pod, container)

    def allocate(self, pod: Pod, container: Container, affinity: KeptHint) -> None:
        """Gives the container its memory."""
        if self._policy is None:
            return
        try:
            self.state, self._reuse = self._policy.allocate(
                self.state, self._reuse, pod, container, affinity
            )
        except AllocationError as error:
            raise unexpected(error) from None

    def reclaim(self, pods: Mapping[str, Pod]) -> None:
        """Takes back what containers hold that no pod on the node has."""
        for uid, name, _ in tuple(self.state):
            if _is_gone(uid, name, pods):
                self.end(uid, name)

    def end(self, uid: str, name: str) -> None:
        """Takes back the container's memory."""
        self.state = self.state.release(uid, name)

    def save(self) -> None:
        """Writes ``memory_manager_state`` if it changed."""
        if self.state is not self._saved:
            content = memory_checkpoint.dump(self.state, self._plan.memory_policy)
            self._plan.write(memory_checkpoint.FILE_NAME, content)
            self._saved = self.state
