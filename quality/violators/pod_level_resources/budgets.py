"""Violators of pods that get CPUs and memory as a whole, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.memory import hints as memory_hints
from numaproof.reference.memory import requests
from numaproof.reference.pods import budget
from numaproof.reference.pods.pod import Pod
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("pod-level-resources")


# Parts of the budget


def _sharing(changes: Changes, when: Callable[[Any], bool]) -> None:
    """Lets these containers of a pod with a budget have no part of their own."""
    changes.around(
        Pod,
        "shares_budget",
        lambda original, self, container: (
            original(self, container) or (self.budget is not None and when(container))
        ),
    )


@seeds("NODE-PODLEVEL-008")
def sidecars_have_no_exclusive_part_of_a_budget(changes: Changes) -> None:
    """A plausible author gives parts to app and init containers alone."""
    _sharing(changes, lambda container: container.sidecar)


@seeds("NODE-PODLEVEL-008")
def init_containers_have_no_exclusive_part_of_a_budget(changes: Changes) -> None:
    """A plausible author lets every init container use the whole."""
    _sharing(changes, lambda container: container.passes)


def _shared_out(changes: Changes, change: Callable[[Any, Any, Any], Any]) -> None:
    """Lets `change` share out CPUs otherwise: state, pod, and the containers without a part."""

    def share_out(original: Any, self: StaticCPUPolicy, state: Any, pod: Any) -> Any:
        after = original(self, state, pod)
        if pod.exclusive_cpus_at_once() == 0:
            return after
        others = [one for one in pod.containers if not pod.exclusive_cpus(one)]
        return change(after, pod, others)

    changes.around(StaticCPUPolicy, "share_out", share_out)


@seeds("NODE-PODLEVEL-008")
def containers_without_a_part_run_on_all_cpus_of_the_budget(changes: Changes) -> None:
    """A plausible author does not take the parts out of what the others share."""

    def change(state: Any, pod: Any, others: Any) -> Any:
        for container in others:
            state = state.share(pod.uid, container.name, state.pods[pod.uid])
        return state

    _shared_out(changes, change)


@seeds("NODE-PODLEVEL-009")
def pods_get_the_memory_of_their_containers_instead_of_their_request(changes: Changes) -> None:
    """A plausible author gives CPUs as a whole, and memory by container."""

    def at_once(original: Any, pod: Any) -> Any:
        whole = original(pod)
        if pod.budget is None or any(not requests.part(pod, one) for one in pod.containers):
            return whole
        return original(dataclasses.replace(pod, budget=None)) or whole

    changes.around(requests, "at_once", at_once)


def _checked(changes: Changes, change: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    """Lets other budgets and parts be checked than there are."""
    changes.around(
        budget, "check", lambda original, whole, parts: original(*change(whole, list(parts)))
    )


@seeds("NODE-PODLEVEL-010")
def init_containers_without_a_part_need_what_app_containers_leave(changes: Changes) -> None:
    """A plausible author refuses a pod whose app containers leave an init container nothing."""

    def change(whole: Any, parts: Any) -> Any:
        return whole, [
            (dataclasses.replace(one, init=False) if one.passes and not part else one, part)
            for one, part in parts
        ]

    _checked(changes, change)


@seeds("NODE-PODLEVEL-011")
def memory_that_is_used_up_by_parts_refuses_no_pod(changes: Changes) -> None:
    """A plausible author checks CPUs alone."""
    _checked(changes, lambda whole, parts: (whole if "cpu" in whole else {}, parts))


# Hints, and scope container


@seeds("NODE-PODLEVEL-012")
def memory_hints_of_a_budget_are_for_the_sum_of_its_containers(changes: Changes) -> None:
    """A plausible author changes the CPU Manager's hints and forgets the Memory Manager's."""

    def for_pod(original: Any, policy: Any, state: Any, pod: Any) -> Any:
        found = original(policy, state, pod)
        if pod.budget is None or policy.keeps(state, pod) or not all(found.values()):
            return found
        return original(policy, state, dataclasses.replace(pod, budget=None))

    changes.around(memory_hints, "for_pod", for_pod)


def _in_scope_container(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets the CPU Manager allocate for a container by itself as if its pod were this one."""
    changes.around(
        StaticCPUPolicy,
        "allocate",
        lambda original, self, state, pod, container, affinity: original(
            self,
            state,
            pod if pod.budget is None else change(pod, container),
            container,
            affinity,
        ),
    )


@seeds("NODE-PODLEVEL-013")
def scope_container_keeps_sidecars_of_budgets_in_the_pool(changes: Changes) -> None:
    """A plausible author serves app containers by themselves, and init containers that end."""
    _in_scope_container(
        changes,
        lambda pod, container: dataclasses.replace(pod, shared_pool=container.sidecar),
    )
