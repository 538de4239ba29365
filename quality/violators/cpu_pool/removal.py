"""Violators of what happens to the CPUs of pods that leave, or never come."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.cpu.topology import union
from numaproof.reference.errors import AdmissionError
from numaproof.reference.node import StartedNode
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-pool")


# Pods that are removed


def _kept_by(changes: Changes, keeps: Callable[[Any, Any, Any], bool]) -> None:
    """Lets the CPUs of some containers of a removed pod not come back.

    `keeps` is given the node, the pod and the container.
    """
    kept: set[tuple[str, str]] = set()

    def remove(original: Any, self: Any, args: Any) -> Any:
        pod = self.pods.get(args.uid)
        if pod and args.container is None:
            kept.update((pod.uid, each.name) for each in pod.containers if keeps(self, pod, each))
        return original(self, args)

    def release(original: Any, self: Any, uid: str, name: str) -> Any:
        after = original(self, uid, name)
        if after is self or (uid, name) not in kept:
            return after
        return dataclasses.replace(after, shared=self.shared)

    changes.around(StartedNode, "remove", remove)
    changes.around(CPUState, "release", release)


@seeds("CPU-REMOVE-001")
def pods_from_before_a_restart_keep_their_cpus(changes: Changes) -> None:
    """CPUs are taken back from pods that this process has admitted."""

    def start(original: Any, args: Any, *rest: Any) -> Any:
        node = original(args, *rest)
        node.from_before = frozenset(node.pods)
        return node

    changes.around(startup, "start", start)
    _kept_by(changes, lambda node, pod, container: pod.uid in node.from_before)


# Containers that end alone


def _container_removed(changes: Changes, after: Callable[[Any, Any, str], None]) -> None:
    """Does something `after` a container was removed; it is given the node and the pod, too."""

    def remove(original: Any, self: Any, args: Any) -> Any:
        answer = original(self, args)
        if args.container is not None and self.setup.cpu:
            after(self, self.pods[args.uid], args.container)
            self.save()
        return answer

    changes.around(StartedNode, "remove", remove)


@seeds("CPU-REMOVE-002")
def an_init_container_takes_reused_cpus_along(changes: Changes) -> None:
    """All CPUs of a container are shared when it ends, also those that an app container reuses."""
    own: list[int] = []

    def release(original: Any, self: Any, uid: str, name: str) -> None:
        own[:] = [self.state.of(uid, name) or 0]
        original(self, uid, name)

    def after(node: Any, _pod: Any, _name: str) -> None:
        state = node.cpus.state
        node.cpus.state = dataclasses.replace(state, shared=state.shared | own[-1])

    changes.around(CPUManager, "release", release)
    _container_removed(changes, after)


# When CPUs are taken back


def _late(changes: Changes, operation: str, occasion: str) -> None:
    """Lets an operation do without taking CPUs back first, on its occasion.

    A removal does without it, too, and a report of the state tells what it would leave: CPUs stay
    with whoever has left until another operation takes them back.
    """
    inside: list[bool] = []

    def leaving(original: Any, self: Any, args: Any) -> Any:
        before = self.cpus.state
        answer = original(self, args)
        if getattr(args, "container", None) is None:
            self.cpus.state = before
        return answer

    changes.around(StartedNode, "remove", leaving)
    if operation != "state":
        changes.around(StartedNode, "state", leaving)

    def entering(original: Any, self: Any, args: Any) -> Any:
        inside.append(True)
        try:
            return original(self, args)
        finally:
            inside.clear()

    changes.around(StartedNode, operation, entering)
    changes.around(
        StartedNode,
        "remove_stale_state",
        lambda original, self, when, *rest: (
            None if inside and when == occasion else original(self, when, *rest)
        ),
    )


@seeds("CPU-REMOVE-003")
def hints_are_given_before_cpus_are_reclaimed(changes: Changes) -> None:
    """Hints allocate nothing, so they need no tidying up."""
    _late(changes, "hints", "admission")


@seeds("CPU-REMOVE-003")
def pods_are_admitted_before_cpus_are_reclaimed(changes: Changes) -> None:
    """The reconcile loop takes CPUs back, and an admission does not wait for it."""
    _late(changes, "admit", "admission")


@seeds("CPU-REMOVE-003")
def containers_are_reconciled_before_cpus_are_reclaimed(changes: Changes) -> None:
    """The loop tells the runtime first, and tidies up at its end."""
    _late(changes, "reconcile", "reconcile")


@seeds("CPU-REMOVE-003")
def the_state_is_reported_before_cpus_are_reclaimed(changes: Changes) -> None:
    """To look at the state changes nothing."""
    _late(changes, "state", "now")


# Pods that are refused


def _lost_by_refusal(changes: Changes, loses: Callable[[Any, Any, AdmissionError], bool]) -> None:
    """Lets the CPUs of some containers of a refused pod be lost.

    `loses` is given the pod, the container and the refusal.
    """

    def admit(original: Any, self: Any, args: Any) -> Any:
        known = {uid for uid, _, _ in self.cpus.state}
        try:
            return original(self, args)
        except AdmissionError as error:
            pod, state, lost = self.read_pod(args.pod), self.cpus.state, 0
            for container in () if pod.uid in known else pod.containers:
                if loses(pod, container, error):
                    lost |= self.cpus.state.of(pod.uid, container.name) or 0
                state = state.release(pod.uid, container.name)
            self.cpus.state = dataclasses.replace(state, shared=state.shared & ~lost)
            self.save()
            raise

    changes.around(StartedNode, "admit", admit)


@seeds("CPU-REMOVE-004")
def refused_pods_lose_the_cpus_of_their_init_containers(changes: Changes) -> None:
    """Only what app containers got is given back."""
    _lost_by_refusal(changes, lambda pod, container, error: container.passes)


@seeds("CPU-REMOVE-004")
def pods_refused_for_their_memory_lose_their_cpus(changes: Changes) -> None:
    """The CPU Manager has succeeded, and learns nothing of what comes after it."""
    _lost_by_refusal(changes, lambda pod, container, error: "memory" in str(error))


@seeds("CPU-REMOVE-004")
def pods_refused_for_their_topology_lose_their_cpus(changes: Changes) -> None:
    """In scope container, the refusal of a later container leaves earlier ones served."""
    _lost_by_refusal(changes, lambda pod, container, error: error.reason == "TopologyAffinityError")


# Pods without exclusive CPUs that are removed


def _pool_after(changes: Changes, pool: Callable[[Any, int], int], *, alone: bool = False) -> None:
    """Lets the pool be another one once a pod, or a container `alone`, has left it.

    `pool` is given the policy and what is exclusive.
    """

    def remove(original: Any, self: Any, args: Any) -> Any:
        pod = self.pods.get(args.uid)
        before = self.cpus.state
        answer = original(self, args)
        if pod is None or not self.setup.cpu or (args.container is not None) is not alone:
            return answer
        names = [args.container] if alone else [each.name for each in pod.containers]
        if all(before.of(args.uid, name) is None for name in names):
            state = self.cpus.state
            own = union(cpus for _, _, cpus in state) | union(state.pods.values())
            self.cpus.state = dataclasses.replace(state, shared=pool(self.setup.cpu, own))
            self.save()
        return answer

    changes.around(StartedNode, "remove", remove)


@seeds("CPU-REMOVE-005")
def a_shared_container_leaves_every_cpu_in_the_pool(changes: Changes) -> None:
    """A container on all shared CPUs gives all CPUs back."""
    _pool_after(changes, lambda policy, own: policy.topology.cpus, alone=True)


@seeds("CPU-REMOVE-005")
def a_shared_pod_leaves_reserved_cpus_in_the_pool(changes: Changes) -> None:
    """What is not exclusive is shared, with strict-cpu-reservation, too."""
    _pool_after(changes, lambda policy, own: policy.topology.cpus & ~own)
