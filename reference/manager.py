"""What every manager does: it allocates something, keeps who holds what, and saves that to a file.

The Topology Manager asks every manager in turn for hints, and later to allocate. Policies are
immutable values; what changes from call to call is kept by the managers alone.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar

from numaproof.reference.errors import AdmissionError, AllocationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources, TopologyHint


Occasion = Literal["reconcile", "admission", "now"]
"""When stale state is removed: in a reconcile pass, before managers are asked, or at once."""


class Entries(Protocol):
    """A state: who holds something, and what is left once somebody does not."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Every holder: pod uid and container name, empty for a pod as a whole."""

    def release(self, uid: str, name: str) -> Self:
        """The state without what the holder has."""


State = TypeVar("State", bound=Entries)
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
        self.state = self._saved_state = state
        self.file = file

    @abstractmethod
    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        """Where the request could be met, by resource; no resource at all is no preference."""

    @abstractmethod
    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        """Gives the container what it is due, on the nodes of `affinity` first.

        Raises:
            AdmissionError: there is not enough, or not where it must be.
        """

    @abstractmethod
    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        """Gives the pod its budget as a whole, and its containers their parts, likewise."""

    def remove_stale_state(self, pods: Mapping[str, Pod], when: Occasion) -> None:
        """Releases what containers of none of these pods hold; `pods` are those on the node.

        Requirements: DEV-REMOVE-003, MEM-REMOVE-003, MEM-RESTART-002.
        """
        del when
        for uid, name, *_ in tuple(self.state):
            pod = pods.get(uid)
            if pod is None or (name and all(one.name != name for one in pod.containers)):
                self.release(uid, name)

    def release(self, uid: str, name: str) -> None:
        """Takes back all that the container holds."""
        self.state = self.state.release(uid, name)

    def end(self, uid: str, name: str) -> None:
        """Takes back what a container that has ended does not keep."""
        self.release(uid, name)

    def adopt(self, other: Self) -> None:
        """Takes over what another manager has allocated, as if this one had allocated it."""
        self.state = other.state

    def save(self) -> None:
        """Writes the checkpoint if the state has changed since it was last written.

        The kubelet writes it at every change; between two calls nobody can tell.
        """
        self._write(self.state)

    def _write(self, state: State) -> None:
        if state is not self._saved_state and not _has_same_holders(state, self._saved_state):
            self.file.write(state)
        self._saved_state = state


def _has_same_holders(state: Any, other: Any) -> bool:
    """Whether nothing changed but what can be reused, which is in memory alone."""
    names = (one.name for one in dataclasses.fields(state) if one.name != "reuse")
    return all(getattr(state, name) is getattr(other, name) for name in names)


class Policy(Protocol[State]):
    """What a manager asks of its policy: the next state, given one."""

    def allocate(
        self, state: State, pod: Pod, container: PodContainer, affinity: TopologyHint, /
    ) -> State:
        """The state once the container has what it is due."""

    def allocate_pod(self, state: State, pod: Pod, affinity: TopologyHint, /) -> State:
        """The state once the pod has its budget as a whole."""

    def release(self, state: State, uid: str, name: str, /) -> State:
        """The state once the container has ended."""

    def with_reservation_of(self, other: Self, /) -> Self:
        """The same policy with what another reserves."""


PolicyT = TypeVar("PolicyT", bound=Policy[Any])


class ContainerManager(Manager[State], Generic[State, PolicyT]):
    """A manager with a policy, which is None for the policies none: these allocate nothing."""

    def __init__(self, policy: PolicyT | None, state: State, file: StateFile[State]) -> None:
        """Takes the state that the start restored from the checkpoint `file`."""
        super().__init__(state, file)
        self.policy = policy

    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        """Gives the container what it is due."""
        if self.policy is not None:
            self._change(self.policy.allocate, pod, container, affinity)

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        """Gives the pod its budget as a whole, and its containers their parts of it."""
        if self.policy is not None:
            self._change(self.policy.allocate_pod, pod, affinity)

    def _change(self, change: Callable[..., State], *args: Any) -> None:
        try:
            self.state = change(self.state, *args)
        except AllocationError as error:
            raise unexpected_admission_error(error) from None

    def release(self, uid: str, name: str) -> None:
        """Takes back all that the container holds; the policies none take nothing back."""
        if self.policy is not None:
            self.state = self.policy.release(self.state, uid, name)

    def adopt(self, other: Self) -> None:
        """Takes over what another manager has reserved and allocated."""
        super().adopt(other)
        if self.policy is not None and other.policy is not None:
            self.policy = self.policy.with_reservation_of(other.policy)


def unexpected_admission_error(error: Exception) -> AdmissionError:
    """The refusal of a pod because an allocation failed.

    Requirements: TOPO-ERROR-012.
    """
    return AdmissionError(
        "UnexpectedAdmissionError", f"Allocate failed due to {error}, which is unexpected"
    )
