"""Budgets: the resources of a pod as a whole, which its containers divide or share.

(Alpha feature gate ``PodLevelResourceManagers`` with the ``pod`` scope; KEP-5526.)
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from numaproof.reference.errors import AdmissionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.reference.pods.containers import PodContainer

    Amounts = Mapping[str, int]


class EmptySharedPoolError(AdmissionError):
    """No resources are left for containers without any of their own; the text is the kubelet's."""

    def __init__(self, message: str) -> None:
        super().__init__("EmptyPodSharedPoolError", message)


_ALSO_CALLED = {"cpu": ("cpus", "cpus")}
"""The kubelet's words for a resource that containers lack, and for one that is used up."""


def check(whole: Amounts, parts: Iterable[tuple[PodContainer, Amounts]]) -> None:
    """Checks that every container without its own part of the budget has something left to use.

    `whole` is the budget by resource. `parts` are the containers in starting order, each with its
    part, which may be empty.

    Raises:
        EmptySharedPoolError: nothing is left for a container.

    Requirements: NODE-PODLEVEL-010, NODE-PODLEVEL-011.
    """
    used: Counter[str] = Counter()
    shared = False
    for container, part in parts:
        if container.runs_to_completion:
            spent = _find_exhausted(whole, used)
            if spent and not part:
                lacking, _ = _ALSO_CALLED.get(spent, (spent, ""))
                raise EmptySharedPoolError(
                    f"pod rejected, pod has shared init containers but no {lacking} available for "
                    "them"
                )
            continue
        shared = shared or not part
        used.update(part)
    spent = _find_exhausted(whole, used)
    if shared and spent:
        _, nothing = _ALSO_CALLED.get(spent, ("", "memory"))
        raise EmptySharedPoolError(
            f"pod rejected, sum of exclusive container {spent} requests equals pod budget, leaving "
            f"no {nothing} for shared containers"
        )


def _find_exhausted(whole: Amounts, used_amounts: Amounts) -> str | None:
    return next((one for one in whole if used_amounts[one] >= whole[one]), None)
