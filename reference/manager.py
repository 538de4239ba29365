"""What every manager does: it hands something out, keeps who has it, and saves that to a file.

The Topology Manager asks every manager in turn for hints, and later for the allocation. The
policies are immutable values; what changes from call to call is kept by the managers alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from numaproof.reference.errors import AdmissionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.reference.plan import Plan
    from numaproof.reference.pods.containers import Container
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources
    from numaproof.reference.topology.policy import KeptHint


State = TypeVar("State")


class Manager(ABC, Generic[State]):
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


class ContainerManager(Manager[EntriesT]):
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
