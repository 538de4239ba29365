"""The choices of another implementation, which the reference makes as well where they are open.

Several CPUs, NUMA nodes or devices can be equally good for a container, and any CPUs can be
reserved for an amount. The documents don't say which to take; the reference takes the ones in
`Choices` if they are as good as its own. A refusal doesn't show the choices before it, so these can
also be explored: `Decisions` selects one of the equally good options each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.errors import AdmissionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numaproof.protocol.messages import Container, Containers

T = TypeVar("T")

MAX_OPTIONS = 32
"""The maximum number of options to consider for each choice."""


class Decisions:
    """Makes the choices of one admission by number, and records how many options each one had.

    Args:
        numbers: which option to take for each choice, from 0.
        rest: which option to take for the choices after these; the last one if there are fewer.
    """

    def __init__(self, numbers: tuple[int, ...] = (), rest: int = 0) -> None:
        self._numbers = numbers
        self._rest = rest
        self.sizes: list[int] = []

    def begin(self) -> None:
        """Forgets the choices recorded so far."""
        self.sizes = []

    def pick(self, own: T, others: Iterable[T]) -> T:
        """Returns one of the options: the reference's `own`, or one of the others."""
        options = [*dict.fromkeys((own, *islice(others, MAX_OPTIONS)))]
        if len(options) == 1:
            return own
        place = len(self.sizes)
        number = self._numbers[place] if place < len(self._numbers) else self._rest
        self.sizes.append(len(options))
        return options[min(number, len(options) - 1)]


@dataclass(frozen=True, slots=True)
class PodChoices:
    """The choices for a pod, by container: masks of CPUs and NUMA nodes, and ids of devices."""

    affinity: Mapping[str, int] = field(default_factory=dict)
    cpus: Mapping[str, int] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    devices: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices to make.

    Attributes:
        reserved: the CPUs to reserve for an amount, lowest first if they are too many.
        pods: the resources to allocate, by pod uid.
        only_devices: whether to ignore everything but the devices in `pods`, and to let `decisions`
            choose only devices.
        decisions: makes the choices that `pods` doesn't have.
        refused: the reason for which to refuse the pod after all; None if the reference decides.
    """

    reserved: CPUSet = field(default_factory=CPUSet)
    pods: Mapping[str, Containers] = field(default_factory=dict)
    only_devices: bool = False
    decisions: Decisions | None = None
    refused: str | None = None

    def check_refusal(self) -> None:
        """Refuses the pod if that is one of the choices.

        Raises:
            AdmissionError: the pod is to be refused.
        """
        if self.refused is not None:
            raise AdmissionError(self.refused, "the choices that led to the refusal are unknown")

    @property
    def reserved_cpus(self) -> int:
        return 0 if self.only_devices else self.reserved.mask

    def of_pod(self, uid: str) -> PodChoices:
        containers = self.pods.get(uid)
        if containers is None:
            return PodChoices()
        devices = {name: one.devices or {} for name, one in containers.items()}
        if self.only_devices:
            return PodChoices(devices=devices)

        def masks(of: Callable[[Container], int]) -> dict[str, int]:
            return {name: of(one) for name, one in containers.items()}

        return PodChoices(masks(_affinity), masks(_cpus), masks(_memory), devices)


NO_CHOICES = Choices()


def _affinity(container: Container) -> int:
    numa = container.affinity.numa
    return 0 if numa is None else numa.mask


def _cpus(container: Container) -> int:
    return container.exclusive.mask


def _memory(container: Container) -> int:
    return NUMASet.union(block.numa for block in container.memory).mask
