"""Violators of pods that get CPUs and memory as a whole, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.cpu import hints as cpu_hints
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.memory import requests
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.pods import budget, containers
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
def containers_without_a_part_run_in_the_pool_of_the_node(changes: Changes) -> None:
    """A plausible author serves a container without exclusive CPUs as in any other pod."""

    def change(state: Any, pod: Any, others: Any) -> Any:
        names = {container.name for container in others}
        mine = {name: cpus for name, cpus in state.exclusive[pod.uid].items() if name not in names}
        if not mine:
            return state
        return dataclasses.replace(state, exclusive={**state.exclusive, pod.uid: mine})

    _shared_out(changes, change)


@seeds("NODE-PODLEVEL-009")
def pods_get_the_cpus_of_their_containers_instead_of_their_request(changes: Changes) -> None:
    """A plausible author adds up the parts, if there are any, and gives these."""

    def at_once(original: Any, self: Pod) -> Any:
        whole = original(self)
        parts = containers.at_once(self.containers, self.exclusive_cpus)
        shared = any(not self.exclusive_cpus(one) for one in self.containers)
        return whole if self.budget is None or not parts or shared else min(parts, whole)

    changes.around(Pod, "exclusive_cpus_at_once", at_once)


@seeds("NODE-PODLEVEL-009")
def pods_get_the_memory_of_their_containers_instead_of_their_request(changes: Changes) -> None:
    """A plausible author gives CPUs as a whole, and memory by container."""

    def at_once(original: Any, pod: Any) -> Any:
        whole = original(pod)
        if pod.budget is None or any(not requests.part(pod, one) for one in pod.containers):
            return whole
        return original(dataclasses.replace(pod, budget=None)) or whole

    changes.around(requests, "at_once", at_once)


@seeds("NODE-PODLEVEL-010")
def init_containers_share_only_what_app_containers_leave(changes: Changes) -> None:
    """A plausible author has one shared part for all containers without one of their own."""

    def change(state: Any, pod: Any, others: Any) -> Any:
        left = state.pods[pod.uid]
        for container in pod.containers:
            if pod.exclusive_cpus(container) and not container.passes:
                left &= ~state.of(pod.uid, container.name)
        for container in others:
            state = state.share(pod.uid, container.name, left)
        return state

    _shared_out(changes, change)


@seeds("NODE-PODLEVEL-010")
def init_containers_use_the_parts_of_earlier_sidecars(changes: Changes) -> None:
    """A plausible author forgets that sidecars run already when an init container does."""

    def change(state: Any, pod: Any, others: Any) -> Any:
        for container in others:
            if container.passes:
                state = state.share(pod.uid, container.name, state.pods[pod.uid])
        return state

    _shared_out(changes, change)


@seeds("NODE-PODLEVEL-010")
def init_containers_leave_out_the_parts_of_later_sidecars(changes: Changes) -> None:
    """A plausible author subtracts what all sidecars of the pod have."""

    def change(state: Any, pod: Any, others: Any) -> Any:
        left = state.pods[pod.uid]
        for container in pod.containers:
            if pod.exclusive_cpus(container) and container.sidecar:
                left &= ~state.of(pod.uid, container.name)
        for container in others:
            if container.passes:
                state = state.share(pod.uid, container.name, left)
        return state

    _shared_out(changes, change)


@seeds("NODE-PODLEVEL-010")
def memory_of_init_containers_is_what_app_containers_leave(changes: Changes) -> None:
    """A plausible author has one shared part of memory for all containers without their own."""

    def shares(original: Any, pod: Any, whole: Any) -> Any:
        others = tuple(
            dataclasses.replace(one, init=False)
            if one.passes and not requests.part(pod, one)
            else one
            for one in pod.containers
        )
        return original(dataclasses.replace(pod, containers=others), whole)

    changes.around(requests, "shares", shares)


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


@seeds("NODE-PODLEVEL-011")
def cpus_that_are_used_up_by_parts_refuse_no_pod(changes: Changes) -> None:
    """A plausible author checks what is more than the budget, not what is all of it."""

    def change(whole: Any, parts: Any) -> Any:
        return {kind: size + (kind == "cpu") for kind, size in whole.items()}, parts

    _checked(changes, change)


@seeds("NODE-PODLEVEL-011")
def parts_of_sidecars_are_not_counted_against_the_budget(changes: Changes) -> None:
    """A plausible author adds up app containers only."""
    _checked(
        changes,
        lambda whole, parts: (whole, [(one, part) for one, part in parts if not one.sidecar]),
    )


# Hints, and scope container


@seeds("NODE-PODLEVEL-012")
def cpu_hints_of_a_budget_are_for_the_sum_of_its_containers(changes: Changes) -> None:
    """A plausible author makes hints as for other pods, and allocates the budget."""

    def for_pod(original: Any, policy: Any, state: Any, reuse: Any, pod: Any) -> Any:
        found = original(policy, state, reuse, pod)
        if pod.budget is None or policy.keeps(state, pod) or found == cpu_hints.UNSATISFIABLE:
            return found
        return original(policy, state, reuse, dataclasses.replace(pod, budget=None))

    changes.around(cpu_hints, "for_pod", for_pod)


@seeds("NODE-PODLEVEL-012")
def memory_hints_of_a_budget_are_for_the_sum_of_its_containers(changes: Changes) -> None:
    """A plausible author changes the CPU Manager's hints and forgets the Memory Manager's."""

    def hints_for_pod(
        original: Any, self: StaticMemoryPolicy, state: Any, reuse: Any, pod: Any
    ) -> Any:
        found = original(self, state, reuse, pod)
        if pod.budget is None or self.keeps(state, pod) or not all(found.values()):
            return found
        return original(self, state, reuse, dataclasses.replace(pod, budget=None))

    changes.around(StaticMemoryPolicy, "hints_for_pod", hints_for_pod)


@seeds("NODE-PODLEVEL-012")
def containers_without_requests_have_the_hints_of_their_pod(changes: Changes) -> None:
    """A plausible author gives a container without a part the hints of the whole."""

    def for_container(
        original: Any, policy: Any, state: Any, reuse: Any, pod: Any, container: Any
    ) -> Any:
        if pod.budget is not None and not pod.exclusive_cpus(container):
            return cpu_hints.for_pod(policy, state, reuse, pod)
        return original(policy, state, reuse, pod, container)

    changes.around(cpu_hints, "for_container", for_container)


def _in_scope_container(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets the CPU Manager allocate for a container by itself as if its pod were this one."""
    changes.around(
        StaticCPUPolicy,
        "allocate",
        lambda original, self, state, reuse, pod, container, affinity: original(
            self,
            state,
            reuse,
            pod if pod.budget is None else change(pod, container),
            container,
            affinity,
        ),
    )


@seeds("NODE-PODLEVEL-013")
def scope_container_keeps_containers_of_budgets_in_the_pool(changes: Changes) -> None:
    """A plausible author has the gate do nothing but in scope pod."""
    _in_scope_container(changes, lambda pod, _: dataclasses.replace(pod, shared_pool=True))


@seeds("NODE-PODLEVEL-013")
def scope_container_keeps_sidecars_of_budgets_in_the_pool(changes: Changes) -> None:
    """A plausible author serves app containers by themselves, and init containers that end."""
    _in_scope_container(
        changes,
        lambda pod, container: dataclasses.replace(pod, shared_pool=container.sidecar),
    )


@seeds("NODE-PODLEVEL-013")
def scope_container_gives_the_budget_to_containers_without_requests(changes: Changes) -> None:
    """A plausible author takes the pod's request for that of a container that has none."""

    def allocate(
        original: Any, self: Any, state: Any, reuse: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        if pod.budget is not None and "cpu" not in container.requests:
            given = {"cpu": pod.budget.get("cpu", "0"), "memory": "1"}
            container = dataclasses.replace(container, requests=given, limits=given)
        return original(self, state, reuse, pod, container, affinity)

    changes.around(StaticCPUPolicy, "allocate", allocate)
