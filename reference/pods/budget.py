"""Budgets: what a pod has as a whole, for some containers to have parts of and others to share.

(Kubernetes 1.36, alpha feature gate ``PodLevelResourceManagers`` with scope pod; KEP-5526.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.reference.pods.containers import Container

    Amounts = Mapping[str, int]


class EmptySharedPoolError(Exception):
    """Nothing is left for containers without a part; the text is the kubelet's."""


_ALSO_CALLED = {"cpu": ("cpus", "cpus")}
"""A resource that containers lack, and what is left for them, as the kubelet calls them."""


def check(whole: Amounts, parts: Iterable[tuple[Container, Amounts]]) -> None:
    """Checks that something is left for every container that has no part of its own.

    `whole` is the budget by resource; `parts` are the containers in starting order, each with its
    part, which is empty where it has none.

    Raises:
        EmptySharedPoolError: nothing is left for one.
    """
    used = dict.fromkeys(whole, 0)
    shared = False
    for container, part in parts:
        if container.passes:
            spent = _spent(whole, used)
            if spent and not part:
                lacking, _ = _ALSO_CALLED.get(spent, (spent, ""))
                raise EmptySharedPoolError(
                    f"pod rejected, pod has shared init containers but no {lacking} available for "
                    "them"
                )
            continue
        shared = shared or not part
        for resource, amount in part.items():
            used[resource] = used.get(resource, 0) + amount
    spent = _spent(whole, used)
    if shared and spent:
        _, nothing = _ALSO_CALLED.get(spent, ("", "memory"))
        raise EmptySharedPoolError(
            f"pod rejected, sum of exclusive container {spent} requests equals pod budget, leaving "
            f"no {nothing} for shared containers"
        )


def _spent(whole: Amounts, used: Amounts) -> str | None:
    """The first resource that is used up, None where there is something of each."""
    return next((one for one in whole if used[one] >= whole[one]), None)
