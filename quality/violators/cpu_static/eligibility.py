"""Violators of the requirements of the static CPU policy, each breaking one sentence."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState, ReusableCPUs
from numaproof.reference.cpu.topology import union
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import qos, quantity
from numaproof.reference.pods.pod import Pod
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.pods.containers import PodContainer

seeds = SubjectBugs("cpu-static")


def _due(changes: Changes, change: Callable[[Pod, PodContainer, int], int]) -> None:
    """Lets `change` say how many exclusive CPUs a container is due, given how many it is."""
    changes.around(
        Pod,
        "exclusive_cpus",
        lambda original, pod, container: change(pod, container, original(pod, container)),
    )


def _asked(container: PodContainer, of: str = "cpu") -> Any:
    return quantity.parse(container.requests.get(of, 0))


def _whole(container: PodContainer) -> int:
    return quantity.whole_cpus(container.requests.get("cpu", 0)) or 0


def _is_judged(pod: Pod, container: PodContainer) -> bool:
    """Whether only the container's own request decides."""
    return pod.qos == "Guaranteed" and not pod.shared_pool and not pod.shares_budget(container)


# CPU-STATIC-001: who gets exclusive CPUs


@seeds("CPU-STATIC-001")
def sidecars_are_guaranteed_by_themselves(changes: Changes) -> None:
    """Judges a sidecar by its own resources, whatever the class of its pod is."""

    def pinned(pod: Pod, container: PodContainer, due: int) -> int:
        if due or not container.sidecar or pod.shared_pool or pod.budget is not None:
            return due
        return _whole(container) if qos.class_of((container,)) == "Guaranteed" else 0

    _due(changes, pinned)


@seeds("CPU-STATIC-001")
def fractional_init_containers_are_rounded_up(changes: Changes) -> None:
    """Gives an init container whole CPUs, as it runs for a short while only."""
    _due(
        changes,
        lambda pod, container, due: (
            math.ceil(_asked(container))
            if container.passes and not due and _is_judged(pod, container)
            else due
        ),
    )


# CPU-STATIC-002: how many


@seeds("CPU-STATIC-002")
def an_app_container_keeps_all_that_its_init_containers_had(changes: Changes) -> None:
    """Reuses the CPUs of init containers as one piece, even where fewer are wanted."""

    def allocate(
        original: Any, self: Any, state: Any, pod: Pod, container: PodContainer, at: Any
    ) -> Any:
        left = state.reuse.of(pod.uid)
        fresh = state.of(pod.uid, container.name) is None
        state = original(self, state, pod, container, at)
        own = state.of(pod.uid, container.name)
        if fresh and own and left and container is pod.containers[-1] and not container.init:
            state = state.assign(pod.uid, container.name, own | left)
            state = replace(state, reuse=ReusableCPUs(pod.uid, 0))
        return state

    changes.around(StaticCPUPolicy, "allocate", allocate)


@seeds("CPU-STATIC-002")
def init_containers_get_what_all_app_containers_need(changes: Changes) -> None:
    """Gives an init container the effective request of the pod, which is there anyway."""

    def generous(original: Any, pod: Pod, container: PodContainer) -> Any:
        due = original(pod, container)
        if not due or not container.passes or pod.budget is not None:
            return due
        return max(due, sum(original(pod, one) for one in pod.containers if not one.init))

    changes.around(Pod, "exclusive_cpus", generous)


# CPU-STATIC-003: nobody else


@seeds("CPU-STATIC-003")
def the_pool_is_counted_without_sidecars_after_a_removal(changes: Changes) -> None:
    """Works the shared pool out anew when a pod leaves, and looks at the other containers alone."""

    def remove(original: Any, self: Any, args: Any) -> Any:
        done = original(self, args)
        static, state = self.setup.cpu, self.cpus.state
        if args.container is None and static is not None:
            held = union(state.pods.values())
            for pod in self.pods.values():
                for one in pod.containers:
                    held |= 0 if one.sidecar else state.of(pod.uid, one.name) or 0
            free = static.allocatable if static.options.strict else static.topology.cpus
            self.cpus.state = replace(state, shared=free & ~held)
            self.save()
        return done

    changes.around(StartedNode, "remove", remove)


@seeds("CPU-STATIC-003")
def the_other_containers_of_a_pinned_pod_run_anywhere(changes: Changes) -> None:
    """Confines pods that have no exclusive CPUs, and forgets containers beside pinned ones."""

    def where(original: Any, self: CPUState, uid: str, name: str) -> Any:
        if self.of(uid, name) is None and uid in self.exclusive:
            return self.all_cpus()
        return original(self, uid, name)

    changes.around(CPUState, "where", where)


@seeds("CPU-STATIC-003")
def what_app_containers_leave_of_an_init_container_is_free(changes: Changes) -> None:
    """Puts spare CPUs of an init container into the shared pool while it still has them."""

    def admit(original: Any, self: Any, args: Any) -> Any:
        uid = args.pod.get("metadata", {}).get("uid")
        again = uid in self.pods
        answer = original(self, args)
        own = {name: self.cpus.state.of(uid, name) or 0 for name in answer.containers}
        pod = self.pods[uid]
        kept = union(own[one.name] for one in pod.containers if not one.passes)
        if not again and uid not in self.cpus.state.pods and union(own.values()) & ~kept:
            shared = self.cpus.state.shared | (union(own.values()) & ~kept)
            self.cpus.state = replace(self.cpus.state, shared=shared)
            self.save()
        return answer

    def restore(original: Any, self: Any, state: CPUState) -> Any:
        held = union(cpus for _, _, cpus in state)
        if not state.shared & held:
            return original(self, state)
        original(self, replace(state, shared=state.shared & ~held))
        return state

    changes.around(StartedNode, "admit", admit)
    changes.around(StaticCPUPolicy, "restore", restore)


# CPU-STATIC-004: each container by itself


@seeds("CPU-STATIC-004")
def app_containers_are_pinned_if_their_sum_is_whole(changes: Changes) -> None:
    """Judges by the CPU request of the pod, and shares are rounded."""

    def by_sum(pod: Pod, container: PodContainer, due: int) -> int:
        apps = [one for one in pod.containers if not one.init]
        asked = sum(_asked(one) for one in apps)
        if container not in apps or not _is_judged(pod, container) or asked.denominator != 1:
            return due
        return int(_asked(container))

    _due(changes, by_sum)


# CPU-STATIC-005: 2, 2.0 and 2000m


# CPU-STATIC-006 and -007: what is assigned stays


def _move(started: Any, uid: str) -> None:
    """Chooses the CPUs of the only container of a pod again, where nothing has to be aligned."""
    static, state = started.setup.cpu, started.cpus.state
    held = state.exclusive.get(uid, {})
    if static is None or started.setup.topology_policy or len(held) != 1 or uid in state.pods:
        return
    name, own = next(iter(held.items()))
    chosen = static.assignment.take(static.available(state) | own, own.bit_count())
    started.cpus.state = state.release(uid, name).assign(uid, name, chosen)
    started.save()


@seeds("CPU-STATIC-006")
def a_removal_lets_the_last_pod_move_up(changes: Changes) -> None:
    """Closes the gap that a pod leaves, to keep large units free."""

    def remove(original: Any, self: Any, args: Any) -> Any:
        done = original(self, args)
        if args.container is None and self.pods:
            _move(self, next(reversed(self.pods)))
        return done

    changes.around(StartedNode, "remove", remove)


@seeds("CPU-STATIC-006")
def a_reconcile_pass_chooses_better_cpus(changes: Changes) -> None:
    """Uses the loop to place the first pod better than when it came."""

    def reconcile(original: Any, self: Any, args: Any) -> Any:
        if self.pods:
            _move(self, next(iter(self.pods)))
        return original(self, args)

    changes.around(StartedNode, "reconcile", reconcile)


@seeds("CPU-STATIC-006")
def an_app_container_moves_when_its_init_container_is_gone(changes: Changes) -> None:
    """Takes the end of an init container for the time to choose CPUs for the app container."""

    def remove(original: Any, self: Any, args: Any) -> Any:
        done = original(self, args)
        if args.container is not None and self.pods[args.uid].container(args.container).passes:
            _move(self, args.uid)
        return done

    changes.around(StartedNode, "remove", remove)


@seeds("CPU-STATIC-007")
def a_container_that_comes_back_shares_out_the_cpus_of_its_pod(changes: Changes) -> None:
    """Divides the CPUs of both containers in ascending order when one of them is served again."""

    def admit(original: Any, self: Any, args: Any) -> Any:
        self.cpus.again = args.pod.get("metadata", {}).get("uid") in self.pods
        return original(self, args)

    def allocate(original: Any, self: Any, pod: Pod, container: PodContainer, at: Any) -> Any:
        before = self.state
        original(self, pod, container, at)
        own = self.state.of(pod.uid, container.name)
        apps = [one.name for one in pod.containers if not one.init and one is not container]
        other = next((name for name in apps if before.of(pod.uid, name)), None)
        fresh = before.of(pod.uid, container.name) is None
        if other is None or own is None or not fresh or not getattr(self, "again", False):
            return
        theirs = before.of(pod.uid, other)
        both, lowest = own | theirs, 0
        for _ in range(theirs.bit_count()):
            lowest |= (both & ~lowest) & -(both & ~lowest)
        state = self.state.share(pod.uid, other, lowest)
        self.state = state.share(pod.uid, container.name, both & ~lowest)

    changes.around(StartedNode, "admit", admit)
    changes.around(CPUManager, "allocate", allocate)
