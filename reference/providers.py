"""The hint providers: the managers that hand something out, each with what it keeps.

The Topology Manager asks every provider in turn for hints, and later for the allocation. The
policies are immutable values; what changes from call to call is kept here and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from numaproof.reference.cpu import checkpoint as cpu_checkpoint
from numaproof.reference.cpu import hints as cpu_hints
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.distribution import AccountingError
from numaproof.reference.cpu.policy import SMTAlignmentError
from numaproof.reference.cpu.state import CPUState, Reuse
from numaproof.reference.devices import allocation
from numaproof.reference.devices import checkpoint as device_checkpoint
from numaproof.reference.devices import hints as device_hints
from numaproof.reference.devices.state import DeviceState
from numaproof.reference.errors import AdmissionError
from numaproof.reference.kubernetes.budget import EmptySharedPoolError
from numaproof.reference.memory import checkpoint as memory_checkpoint
from numaproof.reference.memory.requests import AllocationError
from numaproof.reference.memory.state import MemoryState
from numaproof.reference.memory.state import Reuse as MemoryReuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.protocol.messages import DeviceResource
    from numaproof.reference.devices.allocation import Favoured
    from numaproof.reference.kubernetes.pods import Container, Pod
    from numaproof.reference.plan import Plan
    from numaproof.reference.topology.hints import Resources
    from numaproof.reference.topology.policy import KeptHint


State = TypeVar("State")


class Provider(ABC, Generic[State]):
    """What the Topology Manager and the node ask of a manager; it keeps a state and its file.

    `pods` are those on the node by uid; a container of None stands for the pod as a whole.
    """

    file_name: ClassVar[str]

    def __init__(self, plan: Plan, state: State) -> None:
        """Takes the state that the checkpoint file holds."""
        self._plan = plan
        self.state = self._saved = state
        self._written = b""

    @abstractmethod
    def hints(self, pod: Pod, container: Container | None) -> Resources:
        """Where the request could be met; nothing at all is no preference."""

    @abstractmethod
    def allocate(self, pod: Pod, container: Container, affinity: KeptHint) -> None:
        """Gives the container what it is due, near the nodes of `affinity`.

        Raises:
            AdmissionError: it cannot be had.
        """

    @abstractmethod
    def allocate_pod(self, pod: Pod, affinity: KeptHint) -> None:
        """Gives the pod its budget as a whole and its containers their parts, likewise."""

    @abstractmethod
    def reclaim(self, pods: Mapping[str, Pod]) -> None:
        """Takes back what containers hold that no pod on the node has."""

    @abstractmethod
    def end(self, uid: str, name: str) -> None:
        """Takes back what a container that has ended need not keep."""

    @abstractmethod
    def dump(self) -> bytes:
        """The content of the checkpoint file."""

    def save(self) -> None:
        """Writes the checkpoint if anything changed since it was last written.

        The kubelet writes it at every change; between two calls nobody can tell.
        """
        if self.kept is self._saved:
            return
        content = self.dump()
        if content != self._written:
            self._plan.write(self.file_name, content)
            self._written = content
        self._saved = self.kept

    @property
    def kept(self) -> State:
        """The state that the checkpoint file is to hold."""
        return self.state


class Entries(Protocol):
    """A state that has something for each container, by pod uid and container name."""

    def __iter__(self) -> Iterator[tuple[str, str, Any]]:
        """Every entry."""

    def release(self, uid: str, name: str) -> Self:
        """The state without the container's entry."""


EntriesT = TypeVar("EntriesT", bound=Entries)


class ContainerProvider(Provider[EntriesT]):
    """A manager whose containers give back what they hold as soon as they end."""

    def reclaim(self, pods: Mapping[str, Pod]) -> None:
        """Takes back what containers hold that no pod on the node has."""
        for uid, name, _ in tuple(self.state):
            pod = pods.get(uid)
            if pod is None or all(container.name != name for container in pod.containers):
                self.end(uid, name)

    def end(self, uid: str, name: str) -> None:
        """Takes back all that the container holds."""
        self.state = self.state.release(uid, name)


def unexpected(error: Exception) -> AdmissionError:
    """The refusal of a pod for which an allocation failed."""
    return AdmissionError(
        "UnexpectedAdmissionError", f"Allocate failed due to {error}, which is unexpected"
    )


class CPUManager(ContainerProvider[CPUState]):
    """The CPU Manager with its state."""

    file_name = cpu_checkpoint.FILE_NAME

    def __init__(self, plan: Plan, state: CPUState) -> None:
        """Takes the state as the start restored and wrote it."""
        super().__init__(plan, state)
        self._policy = plan.cpu
        self.reuse = Reuse()

    def hints(self, pod: Pod, container: Container | None) -> Resources:
        """Where the request could be met."""
        if self._policy is None:
            return {}
        if container is None:
            return cpu_hints.for_pod(self._policy, self.state, self.reuse, pod)
        return cpu_hints.for_container(self._policy, self.state, self.reuse, pod, container)

    def allocate(self, pod: Pod, container: Container, affinity: KeptHint) -> None:
        """Gives the container its exclusive CPUs."""
        if self._policy is None:
            return
        try:
            self.state, self.reuse = self._policy.allocate(
                self.state, self.reuse, pod, container, affinity.numa
            )
        except SMTAlignmentError as error:
            raise AdmissionError("SMTAlignmentError", str(error)) from None
        except (NotEnoughCPUsError, AccountingError) as error:
            raise unexpected(error) from None

    def allocate_pod(self, pod: Pod, affinity: KeptHint) -> None:
        """Gives the pod CPUs as a whole; it has them even where they cannot be shared out."""
        if self._policy is None:
            return
        try:
            self.state = self._policy.allocate_pod(self.state, pod, affinity.numa)
            self.state = self._policy.share_out(self.state, pod)
        except EmptySharedPoolError as error:
            raise AdmissionError("EmptyPodSharedPoolError", str(error)) from None
        except SMTAlignmentError as error:
            raise AdmissionError("SMTAlignmentError", str(error)) from None
        except (NotEnoughCPUsError, AccountingError) as error:
            raise unexpected(error) from None

    def dump(self) -> bytes:
        """The content of ``cpu_manager_state``."""
        return self._plan.cpu_file(self.state)


class DeviceManager(Provider[DeviceState]):
    """The Device Manager with its state.

    `favoured` are devices by container and resource that it takes before others that would do
    as well.
    """

    file_name = device_checkpoint.FILE_NAME

    def __init__(self, plan: Plan, state: DeviceState) -> None:
        """Takes the state that the checkpoint holds, before any plugin reports."""
        super().__init__(plan, state)
        self.has_plugins = False
        self.favoured: Mapping[str, Favoured] = {}
        self._kept = state

    def report(self, lists: tuple[DeviceResource, ...]) -> None:
        """Takes what device plugins report."""
        self.state = self._kept = self.state.report(lists)
        self.has_plugins = self.has_plugins or bool(lists)

    def serves(self, pod: Pod) -> bool:
        """Whether a container asks for devices of a plugin, be it none of them."""
        return any(allocation.requested(self.state, container) for container in pod.containers)

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
        favoured = self.favoured.get(container.name, {})
        before = self.state.of(pod.uid, container.name)
        try:
            self.state = allocation.allocate(self.state, pod, container, affinity.numa, favoured)
        except allocation.DeviceError as error:
            self.state = error.state
            raise unexpected(error) from None
        if self.state.of(pod.uid, container.name) != before:
            self._kept = self.state

    def allocate_pod(self, pod: Pod, affinity: KeptHint) -> None:
        """Gives nothing: the Device Manager does not serve pods as a whole."""

    def reclaim(self, pods: Mapping[str, Pod]) -> None:
        """Takes back the devices of pods that are not on the node."""
        self.state = self.state.reclaim(pods.keys())

    def end(self, uid: str, name: str) -> None:
        """Leaves the container its devices: they stay until its pod goes."""

    @property
    def kept(self) -> DeviceState:
        """The state as of the last report or allocation: taking back is not written by itself."""
        return self._kept

    def dump(self) -> bytes:
        """The content of the Device Manager's own checkpoint."""
        return device_checkpoint.dump(self._kept)


class MemoryManager(ContainerProvider[MemoryState]):
    """The Memory Manager with its state."""

    file_name = memory_checkpoint.FILE_NAME

    def __init__(self, plan: Plan, state: MemoryState) -> None:
        """Takes the state as the start restored and wrote it."""
        super().__init__(plan, state)
        self._policy = plan.memory
        self.reuse = MemoryReuse()

    def hints(self, pod: Pod, container: Container | None) -> Resources:
        """Where the request could be met."""
        if self._policy is None:
            return {}
        if container is None:
            return self._policy.hints_for_pod(self.state, self.reuse, pod)
        return self._policy.hints_for_container(self.state, self.reuse, pod, container)

    def allocate(self, pod: Pod, container: Container, affinity: KeptHint) -> None:
        """Gives the container its memory."""
        if self._policy is None:
            return
        try:
            self.state, self.reuse = self._policy.allocate(
                self.state, self.reuse, pod, container, affinity
            )
        except AllocationError as error:
            raise unexpected(error) from None

    def allocate_pod(self, pod: Pod, affinity: KeptHint) -> None:
        """Gives the pod its memory, and its containers their parts of it."""
        if self._policy is None:
            return
        try:
            self.state = self._policy.allocate_pod(self.state, self.reuse, pod, affinity)
        except EmptySharedPoolError as error:
            raise AdmissionError("EmptyPodSharedPoolError", str(error)) from None
        except AllocationError as error:
            raise unexpected(error) from None

    def dump(self) -> bytes:
        """The content of ``memory_manager_state``."""
        return self._plan.memory_file(self.state)
