"""The choices that may have led to a refusal.

An implementation that refuses a pod doesn't say which of several equally good nodes it had chosen
for the pod's containers, although another choice may have left room for all of them. One that
refuses a restart doesn't say which CPUs it would have reserved.
"""

from __future__ import annotations

from itertools import chain, combinations, islice, product
from typing import TYPE_CHECKING

from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.choices import Choices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.machine import MachineInfo

MAX_TRIED = 64
"""The maximum number of choices for a pod. Each is tried by repeating the whole session."""

_MAX_NODES = 8


def of_pod(pod: messages.Pod, machine: MachineInfo | None) -> Iterator[Choices]:
    """Yields choices of one or two nodes for each container, up to `MAX_TRIED`.

    The same choice for all containers comes first. `machine` is None if it was discovered; its
    nodes are then assumed to be the first ones.
    """
    ids = [node.node_id for node in (machine.topology or ())] if machine else [*range(_MAX_NODES)]
    nodes = [one for one in ids[:_MAX_NODES] if one >= 0]
    sets = [NUMASet(some) for size in (1, 2) for some in combinations(nodes, size)]
    spec = pod["spec"]
    both = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    names = [one["name"] for one in both if one.get("resources")]
    alike = ((some,) * len(names) for some in sets)
    for chosen in islice(chain(alike, product(sets, repeat=len(names))), MAX_TRIED):
        placed = {name: _on(some) for name, some in zip(names, chosen, strict=True)}
        yield Choices(pods={pod["metadata"]["uid"]: placed})


def of_start(state: messages.State) -> Iterator[Choices]:
    """Yields reservations of CPUs that were shared, and of CPUs that were exclusive.

    `state` is the last state before the start.
    """
    yield Choices(state.shared)
    exclusive = CPUSet.union(
        one.exclusive for containers in state.pods.values() for one in containers.values()
    )
    for count in range(min(len(state.shared) + 1, MAX_TRIED)):
        yield Choices(exclusive | state.shared.first(count))


def _on(nodes: NUMASet) -> messages.Container:
    """A container with an affinity and memory on these nodes."""
    affinity = messages.Hint(nodes, preferred=True)
    memory = (messages.MemoryBlock(nodes, "memory", 0),)
    return messages.Container(CPUSet(), CPUSet(), memory, affinity)
