"""A pod's containers, and their peak demand.

(Kubernetes documentation, "Init Containers" and "Sidecar Containers".)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Amount = TypeVar("Amount", int, Fraction)


@dataclass(frozen=True, slots=True)
class PodContainer:
    """A container of a pod.

    `requests` and `limits` map resource names to quantities. A `sidecar` is an init container that
    keeps running (``restartPolicy: Always``).
    """

    name: str
    requests: Mapping[str, Any]
    limits: Mapping[str, Any]
    init: bool = False
    sidecar: bool = False

    @property
    def runs_to_completion(self) -> bool:
        """Whether this is an ordinary init container, which ends before app containers start."""
        return self.init and not self.sidecar


_NOBODY = PodContainer("", {}, {})


def peak(containers: tuple[PodContainer, ...], amount: Callable[[PodContainer], Amount]) -> Amount:
    """Returns the highest `amount` that the containers need at any one time.

    Sidecars keep running alongside everything that starts later; other init containers run one at a
    time. (Kubernetes documentation, "Resource sharing within containers".)

    Requirements: TOPO-SCOPE-003, TOPO-SCOPE-006.
    """
    zero = amount(_NOBODY)
    sidecars = starting = running = zero
    for container in containers:
        needed = amount(container)
        if container.sidecar:
            sidecars += needed
        elif container.init:
            starting = max(starting, sidecars + needed)
        else:
            running += needed
    return max(starting, sidecars + running)
