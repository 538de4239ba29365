"""A node's allocatable resources, and the check whether a pod still fits into them.

The scheduler compares a pod's requests with them before it chooses a node. The kubelet repeats this
after its managers have allocated resources. (Kubernetes documentation, "Reserve Compute Resources
for System Daemons: Node Allocatable".)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from numaproof.reference.config import eviction
from numaproof.reference.pods import containers, quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.config.configuration import Config
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod

PODS = "pods"
_CPU, _MEMORY, _PAGES = "cpu", "memory", "hugepages-"
_KIB = 1024


class Shortage(NamedTuple):
    """A resource of which a pod requests more than is left.

    Amounts are thousandths of CPUs, bytes, or pods. `others` is what all other pods request.
    """

    resource: str
    request: int
    others: int
    capacity: int

    @property
    def missing(self) -> int:
        return self.request + self.others - self.capacity

    @property
    def reason(self) -> str:
        """The reason for refusing the pod.

        Requirements: NODE-ALLOC-001, NODE-ALLOC-002, NODE-ALLOC-003, NODE-ALLOC-005.
        """
        return f"OutOf{self.resource}"

    def __str__(self) -> str:
        """The kubelet's message.

        Requirements: NODE-ALLOC-006.
        """
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.request}, "
            f"used: {self.others}, capacity: {self.capacity}"
        )


@dataclass(frozen=True, slots=True)
class Allocatable:
    """A node's allocatable resources: thousandths of CPUs, bytes, and pods, by resource name."""

    amounts: Mapping[str, int]

    def shortages(self, pod: Pod, others: Collection[Pod]) -> Iterator[Shortage]:
        """Yields what the node lacks for a pod next to the others: pods, CPUs, then memory.

        Devices are not checked: the Device Manager has already allocated them.
        """
        allowed = self.amounts[PODS]
        if len(others) >= allowed:
            yield Shortage(PODS, 1, len(others), allowed)
        for resource in (_CPU, _MEMORY, *sorted(_pages_of(pod))):
            needed = total_request(pod, resource)
            used = sum(total_request(one, resource) for one in others)
            capacity = self.amounts.get(resource, 0)
            if needed and used + needed > capacity:
                yield Shortage(resource, needed, used, capacity)


def of_node(config: Config, machine: MachineInfo, cpu_reservation: Fraction) -> Allocatable:
    """Returns what a node offers: its capacity without what is reserved, but at least 0.

    All huge pages are subtracted from the memory. `cpu_reservation` is the total CPU reservation.

    Requirements: NODE-ALLOC-001, NODE-ALLOC-002, NODE-ALLOC-003, NODE-ALLOC-004, NODE-ALLOC-005.
    """
    pages = {
        _pages(one.page_size): _KIB * one.page_size * one.num_pages
        for one in machine.hugepages or ()
    }
    reserved_memory = _total(_reserved_memory(config, machine))
    memory = max(0, math.ceil(machine.memory_capacity - reserved_memory))
    pods = config.max_pods
    if config.pods_per_core:
        pods = min(pods, config.pods_per_core * machine.num_cores)
    return Allocatable(
        {
            **pages,
            _CPU: max(0, math.ceil((machine.num_cores - cpu_reservation) * 1000)),
            _MEMORY: max(0, memory - sum(pages.values())),
            PODS: pods,
        }
    )


def excess(config: Config, machine: MachineInfo, cpu_reservation: Fraction) -> str:
    """Returns the kubelet's error if more is reserved than the machine has, or an empty string.

    `cpu_reservation` is the total CPU reservation. The quantities in the error are canonical; the
    kubelet prints their fields instead.

    Requirements: NODE-ALLOC-016.
    """
    kube, system = config.reservations()
    memory = _reserved_memory(config, machine)
    cpus = [one for one in (system.get(_CPU), kube.get(_CPU)) if one is not None]
    reserved = {_CPU: (cpu_reservation, cpus), _MEMORY: (_total(memory), memory)}
    capacity = {
        _CPU: (machine.num_cores, quantity.canonical(machine.num_cores, "decimal")),
        _MEMORY: (machine.memory_capacity, quantity.canonical(machine.memory_capacity, "binary")),
    }
    problems = [
        f'Resource "{name}" has a reservation of {_sum_text(total, amounts)} but capacity of '
        f"{capacity[name][1]}. Expected capacity >= reservation."
        for name, (total, amounts) in reserved.items()
        if total > capacity[name][0]
    ]
    return " ".join(("invalid Node Allocatable configuration.", *problems)) if problems else ""


def _reserved_memory(config: Config, machine: MachineInfo) -> list[str]:
    """The quantities of memory that are not allocatable."""
    threshold = eviction.of_memory(config.eviction_hard, machine.memory_capacity)
    amounts = (config.system_reserved.get(_MEMORY), config.kube_reserved.get(_MEMORY), threshold)
    return [one for one in amounts if one is not None]


def _total(amounts: Iterable[str]) -> Fraction:
    return sum(map(quantity.parse, amounts), Fraction())


def _sum_text(total: Fraction, amounts: Iterable[str]) -> str:
    """The sum of quantities, which has the form of the first that isn't zero."""
    first = next(one for one in amounts if quantity.parse(one))
    return quantity.canonical(total, quantity.style(first))


def _pages(size: int) -> str:
    """The resource name of huge pages; `size` is in KiB."""
    return f"{_PAGES}{quantity.canonical(size * _KIB, 'binary')}"


def total_request(pod: Pod, resource: str) -> int:
    """Returns what a pod requests at its peak, in thousandths of CPUs or in bytes, rounded up.

    Pod-level requests replace those of the containers; the pod's overhead is added to either.

    Requirements: NODE-ALLOC-007.
    """

    def of_container(container: PodContainer) -> Fraction:
        return quantity.parse(container.requests.get(resource, 0))

    if resource not in pod.totals:
        own = pod.requests.get(resource)
        peak = containers.peak(pod.containers, of_container) if own is None else quantity.parse(own)
        whole = peak + quantity.parse(pod.overhead.get(resource, 0))
        pod.totals[resource] = in_units(resource, whole)
    return pod.totals[resource]


def in_units(resource: str, amount: Fraction) -> int:
    """Returns an amount in thousandths of CPUs or in bytes, rounded up."""
    return math.ceil(amount * 1000 if resource == _CPU else amount)


def _pages_of(pod: Pod) -> set[str]:
    """The types of huge pages that a pod requests."""
    listed = (pod.requests, pod.overhead, *(one.requests for one in pod.containers))
    return {name for requests in listed for name in requests if name.startswith(_PAGES)}
