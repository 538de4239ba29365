"""The choices that may have led to a refusal.

An implementation that refuses a pod doesn't say which of several equally good nodes and devices it
had chosen for the pod's containers, although another choice may have left room for all of them. One
that refuses a restart doesn't say which CPUs it would have reserved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.sets import CPUSet
from numaproof.reference.choices import Choices, Decisions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol import messages

MAX_TRIED = 64
"""The maximum number of choices for a pod. Each is tried by repeating the whole session."""

_ALIKE = (1, 2, 3, MAX_TRIED)
"""Numbers of an option that is taken each time; the greatest number stands for the last option."""


def of_pod(refusal: messages.AdmissionRefused, *, only_devices: bool) -> Iterator[Choices]:
    """Yields the choices for a pod: first the same option each time, then all combinations.

    If there are more than `MAX_TRIED`, nobody can tell whether the refusal is right, and the last
    choice is to refuse the pod. Each choice must be tried before the next one is requested.
    """
    for rest in _ALIKE:
        yield Choices(only_devices=only_devices, decisions=Decisions(rest=rest))
    numbers: tuple[int, ...] = ()
    for _ in range(MAX_TRIED):
        decisions = Decisions(numbers)
        yield Choices(only_devices=only_devices, decisions=decisions)
        made = [*numbers, *(0 for _ in decisions.sizes[len(numbers) :])]
        left = [n for n, size in enumerate(decisions.sizes) if made[n] + 1 < size]
        if not left:
            return
        numbers = (*made[: left[-1]], made[left[-1]] + 1)
    yield Choices(refused=refusal.reason)


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
