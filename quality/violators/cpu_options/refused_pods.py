"""Violators of ``full-pcpus-only`` that let a pod in where it is to be refused as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.cpu.policy import SMTAlignmentError, StaticCPUPolicy
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-options")


def _demoted(changes: Changes, when: Callable[..., bool]) -> None:
    """Leaves a container without whole cores in the shared pool, if `when` says so."""

    def demoted(
        original: Any, self: Any, state: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        try:
            return original(self, state, pod, container, affinity)
        except SMTAlignmentError:
            if when(self, pod, container):
                return state
            raise

    changes.around(StaticCPUPolicy, "allocate", demoted)


@seeds("CPU-OPT-FULLPCPUS-005")
def sidecars_without_cores_run_on_the_shared_pool(changes: Changes) -> None:
    """Its author does not refuse a pod over its helpers."""
    _demoted(changes, lambda policy, pod, container: container.sidecar)


@seeds("CPU-OPT-FULLPCPUS-005")
def containers_short_of_cores_run_on_the_shared_pool(changes: Changes) -> None:
    """Its author refuses what can never be, and makes do where cores are used up."""

    def used_up(policy: StaticCPUPolicy, pod: Any, container: Any) -> bool:
        return not pod.exclusive_cpus(container) % policy.assignment.cpus_per_core

    _demoted(changes, used_up)
