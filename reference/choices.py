"""The choices of another implementation, which the reference makes as well where they are open.

Several CPUs, NUMA nodes or devices can be equally good for a container, and any CPUs can be
reserved for an amount. The documents don't say which to take; the reference takes the ones in
`Choices` if they are as good as its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.protocol.messages import Container, Containers


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
        only_devices: whether to ignore everything but the devices in `pods`.
    """

    reserved: CPUSet = field(default_factory=CPUSet)
    pods: Mapping[str, Containers] = field(default_factory=dict)
    only_devices: bool = False

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
