"""What all managers have in common: allocating, tracking holders and writing a checkpoint.

The Topology Manager asks every manager in turn for hints, and later asks it to allocate resources.
Policies are immutable values; only managers keep state between calls.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar, cast

from numaproof.reference.errors import AdmissionError, AllocationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numaproof.reference.choices import Decisions
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Resources, TopologyHint


Occasion = Literal["reconcile", "admission", "now"]
"""When stale state is removed: in a reconcile pass, before an admission, or immediately."""


class Entries(Protocol):
    """A manager's state: who holds which resources, and how to release them."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yields every holder: pod uid and container name, which is empty for a whole pod."""

    def release(self, uid: str, name: str) -> Self:
        """Returns the state with the holder's resources removed."""


State = TypeVar("State", bound=Entries)
Saved_contra = TypeVar("Saved_contra", contravariant=True)


class StateFile(Protocol[Saved_contra]):
    """A manager's checkpoint file; `numaproof.reference.checkpoints` implements it."""

    name: str

    def read(self) -> bytes | None:
        """Returns the contents, or None if the file does not exist."""

    def write(self, state: Saved_contra) -> None:
        """Writes the state."""


class Manager(ABC, Generic[State]):
    """A resource manager with its state and checkpoint file.

    A `container` of None stands for the pod as a whole.
    """

    def __init__(self, state: State, file: StateFile[State]) -> None:
        self.state = self._saved_state = state
        self.file = file
        # Reusable resources are kept only in memory.
        fields = dataclasses.fields(cast("Any", state))
        self._saved_fields = [one.name for one in fields if one.name != "reuse"]

    @abstractmethod
    def hints(self, pod: Pod, container: PodContainer | None) -> Resources:
        """Returns the hints by resource; an empty mapping means no preference."""

    @abstractmethod
    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        """Allocates the container's resources, on the nodes of `affinity` first.

        Raises:
            AdmissionError: there are too few free resources, or too few on the required nodes.
        """

    @abstractmethod
    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        """Allocates the pod-level resources and divides them among the pod's containers."""

    def remove_stale_state(self, pods: Mapping[str, Pod], when: Occasion) -> None:
        """Releases the resources of containers that are not in `pods`, the pods on the node.

        Requirements: DEV-REMOVE-003, MEM-REMOVE-003, MEM-RESTART-002.
        """
        del when
        for uid, name, *_ in tuple(self.state):
            pod = pods.get(uid)
            if pod is None or (name and all(one.name != name for one in pod.containers)):
                self.release(uid, name)

    def release(self, uid: str, name: str) -> None:
        self.state = self.state.release(uid, name)

    def end(self, uid: str, name: str) -> None:
        """Releases the resources that a container does not keep after it ends."""
        self.release(uid, name)

    def adopt(self, other: Self) -> None:
        """Takes over another manager's allocations as if this manager had made them."""
        self.state = other.state

    def save(self) -> None:
        """Writes the checkpoint if the state has changed since the last write.

        The kubelet writes it on every change, but nobody can observe that between two calls.
        """
        self._write(self.state)

    def _write(self, state: State) -> None:
        saved = self._saved_state
        if any(getattr(state, name) is not getattr(saved, name) for name in self._saved_fields):
            self.file.write(state)
        self._saved_state = state


class Policy(Protocol[State]):
    """A manager's policy; its functions return the next state."""

    def allocate(
        self, state: State, pod: Pod, container: PodContainer, affinity: TopologyHint, /
    ) -> State:
        """Allocates the container's resources."""

    def pins(self, pod: Pod, container: PodContainer, /) -> bool:
        """Whether an allocation pins resources to the container."""

    def allocate_pod(self, state: State, pod: Pod, affinity: TopologyHint, /) -> State:
        """Allocates the pod-level resources."""

    def release(self, state: State, uid: str, name: str, /) -> State:
        """Releases the container's resources."""

    def with_reservation_of(self, other: Self, /) -> Self:
        """Returns this policy with another policy's reservation."""

    def preferring(self, first_choice: Mapping[str, int], decisions: Decisions | None, /) -> Self:
        """Returns this policy with resources, by container, that come before equally good ones.

        `decisions`, if any, choose instead.
        """


PolicyT = TypeVar("PolicyT", bound=Policy[Any])


class ContainerManager(Manager[State], Generic[State, PolicyT]):
    """A manager with a policy; if that is None (``none`` or ``None``), it allocates nothing.

    `counts` are its metrics that count calls, by name. Their names begin with `metrics_prefix`.
    """

    metrics_prefix: ClassVar[str]

    def __init__(self, policy: PolicyT | None, state: State, file: StateFile[State]) -> None:
        super().__init__(state, file)
        self.policy = policy
        self.counts: Counter[str] = Counter()

    def prefer(self, first_choice: Mapping[str, int], decisions: Decisions | None) -> None:
        """Sets the resources, by container, to prefer among equally good ones."""
        if self.policy is not None:
            self.policy = self.policy.preferring(first_choice, decisions)

    @property
    def requests_metric(self) -> str:
        """The metric that counts requests to pin resources."""
        return f"{self.metrics_prefix}_pinning_requests_total"

    def allocate(self, pod: Pod, container: PodContainer, affinity: TopologyHint) -> None:
        if self.policy is not None:
            pins = self.policy.pins(pod, container)
            self._change(pins, self.policy.allocate, pod, container, affinity)

    def allocate_pod(self, pod: Pod, affinity: TopologyHint) -> None:
        if self.policy is not None:
            self._change(0, self.policy.allocate_pod, pod, affinity)

    def _change(self, requests: int, change: Callable[..., State], *args: Any) -> None:
        """Changes the state, and counts the requests to pin resources and their failure.

        Requirements: NODE-METRIC-004, NODE-METRIC-005.
        """
        self.counts[self.requests_metric] += requests
        try:
            self.state = change(self.state, *args)
        except (AdmissionError, AllocationError) as error:
            self.counts[f"{self.metrics_prefix}_pinning_errors_total"] += 1
            if isinstance(error, AdmissionError):
                raise
            raise unexpected_admission_error(error) from None

    def release(self, uid: str, name: str) -> None:
        if self.policy is not None:
            self.state = self.policy.release(self.state, uid, name)

    def adopt(self, other: Self) -> None:
        super().adopt(other)
        self.counts = Counter(other.counts)
        if self.policy is not None and other.policy is not None:
            self.policy = self.policy.with_reservation_of(other.policy)


def unexpected_admission_error(error: Exception) -> AdmissionError:
    """The refusal of a pod because an allocation failed.

    Requirements: TOPO-ERROR-012.
    """
    return AdmissionError(
        "UnexpectedAdmissionError", f"Allocate failed due to {error}, which is unexpected"
    )
