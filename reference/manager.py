"""What every manager does: it allocates something, keeps who holds what, and saves that to a file.

The Topology Manager asks every manager in turn for hints, and later to allocate. Policies are
immutable values; what changes from call to call is kept by the managers alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from numaproof.reference.errors import AdmissionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources
    from numaproof.reference.topology.policy import KeptHint


State = TypeVar("State")
Saved_contra = TypeVar("Saved_contra", contravariant=True)


class StateFile(Protocol[Saved_contra]):
    """The checkpoint file of a manager; `numaproof.reference.checkpoints` has them."""

    name: str

    def read(self) -> bytes | None:
        """The content; None where there is no file."""

    def write(self, state: Saved_contra) -> None:
        """Writes the state."""


class Manager(ABC, Generic[State]):
    """What the Topology Manager and the node ask of a manager, which has a state and its file.

    A container of None stands for the pod as a whole.
    """

    def __init__(self, state: State, file: StateFile[State]) -> None:
        """Takes the state that the checkpoint `file` holds."""
        self.state = self._saved = state
        self.file = file

    @abstractmethod
    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        """Where the request could be met, by resource; no resource at all is no preference."""

    @abstractmethod
    def allocate(self, pod: Pod, container: PodContainer, affinity: KeptHint) -> None:
        """Gives the container what it is due, on the nodes of `affinity` first.

        Raises:
            AdmissionError: there is not enough, or not where it must be.
        """

    @abstractmethod
    def allocate_pod(self, pod: Pod, affinity: KeptHint) -> None:
        """Gives the pod its budget as a whole, and its containers their parts, likewise."""

    @abstractmethod
    def reclaim(self, pods: Mapping[str, Pod]) -> None:
        """Takes back what is held by containers of none of these pods, the ones on the node."""

    def prepare(self, pods: Mapping[str, Pod]) -> None:
        """Takes back what is held by containers of none of these pods, before it is asked."""
        self.reclaim(pods)

    def settle(self, pods: Mapping[str, Pod]) -> None:
        """Takes back, at once, what is held by containers of none of these pods."""
        self.reclaim(pods)

    @abstractmethod
    def end(self, uid: str, name: str) -> None:
        """Takes back what a container that has ended does not keep."""

    def adopt(self, other: Self) -> None:
        """Takes over what another manager has allocated, as if this one had allocated it."""
        self.state = other.state

    def save(self) -> None:
        """Writes the checkpoint if the state has changed since it was last written.

        The kubelet writes it at every change; between two calls nobody can tell.
        """
        self._write(self.state)

    def _write(self, state: State) -> None:
        if state is not self._saved:
            self.file.write(state)
            self._saved = state


class Entries(Protocol):
    """A state with an entry for each container, by pod uid and container name."""

    def __iter__(self) -> Iterator[tuple[str, str, Any]]:
        """Every entry."""

    def release(self, uid: str, name: str) -> Self:
        """The state without the container's entry."""


EntriesT = TypeVar("EntriesT", bound=Entries)


class ContainerManager(Manager[EntriesT]):
    """A manager whose containers give back what they hold as soon as they end."""

    def reclaim(self, pods: Mapping[str, Pod]) -> None:
        """Takes back what is held by containers of none of these pods, the ones on the node.

        Requirements: MEM-REMOVE-003, MEM-RESTART-002.
        """
        for uid, name, _ in tuple(self.state):
            pod = pods.get(uid)
            if pod is None or all(container.name != name for container in pod.containers):
                self.end(uid, name)

    def end(self, uid: str, name: str) -> None:
        """Takes back all that the container holds."""
        self.state = self.state.release(uid, name)


def unexpected(error: Exception) -> AdmissionError:
    """The refusal of a pod because an allocation failed.

    Requirements: TOPO-ERROR-012.
    """
    return AdmissionError(
        "UnexpectedAdmissionError", f"Allocate failed due to {error}, which is unexpected"
    )
