"""Violators of what the container runtime is told of CPUs and quotas, and of pods that leave."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference import startup
from numaproof.reference.config.quota import Quotas
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.cpu.topology import union
from numaproof.reference.errors import AdmissionError
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import quantity
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

seeds = SubjectBugs("runtime")


# Reconcile


_Place = tuple[str, str]


@shape(StartedNode, "reconcile")
def _passing(change: Change, rule: Any, self: Any) -> Any:
    """Lets a pass make other updates.

    `change` is given the node, what the runtime had been told before, and the updates.
    """
    before = dict(self.runtime_cpus)
    answer = rule()
    if not self.setup.cpu:
        return answer
    return messages.Reconciled(tuple(change(self, before, answer.updates)))


def _skipping(changes: Changes, skips: Callable[[Any, Any, int, int | None], bool]) -> None:
    """Lets updates be left out, for good.

    `skips` is given the pod, the container, its CPUs and those told before, None for nothing.
    """

    def change(node: Any, before: dict[_Place, int], updates: tuple[Any, ...]) -> Iterable[Any]:
        for update in updates:
            pod = node.pods[update.uid]
            container = pod.container(update.container)
            last = before.get((update.uid, update.container))
            if not skips(pod, container, update.cpus.mask, last):
                yield update

    _passing(changes, change)


# Who is told


def _is_exclusive(node: Any, uid: str, name: str) -> bool:
    return node.cpus.state.of(uid, name) is not None


@seeds("CPU-RECONCILE-001").of(_skipping, lambda pod, container, cpus, last: container.sidecar)
def sidecars_are_not_reconciled() -> None:
    """Init containers have ended when the loop comes by."""


@seeds("CPU-RECONCILE-001")
def init_containers_are_not_reconciled(changes: Changes) -> None:
    """Init containers have ended when the loop comes by."""
    _skipping(changes, lambda pod, container, cpus, last: container.runs_to_completion)


@seeds("CPU-RECONCILE-001").by(_passing)
def guaranteed_pods_on_the_pool_are_not_reconciled(node: Any, before: Any, updates: Any) -> Any:
    """Guaranteed pods have exclusive CPUs, and the others are on the pool."""
    return (
        each
        for each in updates
        if node.pods[each.uid].qos != "Guaranteed" or _is_exclusive(node, each.uid, each.container)
    )


@seeds("CPU-RECONCILE-004").by(_skipping)
def fractional_containers_are_told_once(pod: Any, container: Any, cpus: int, last: Any) -> Any:
    """The CPUs of Guaranteed pods never change."""
    return pod.qos == "Guaranteed" and last is not None


@seeds("CPU-RECONCILE-004").by(_skipping)
def sidecars_are_told_once(pod: Any, container: Any, cpus: int, last: int | None) -> Any:
    """Init containers do not live to see another pool."""
    return container.init and last is not None


# What is repeated


def _told_besides(changes: Changes, cpus: Callable[..., int | None]) -> None:
    """Lets a pass tell more containers; None for the `cpus` of those that it tells nothing.

    `cpus` is given the node, what had been told before, the container and the new updates.
    """

    def change(node: Any, before: dict[_Place, int], updates: tuple[Any, ...]) -> Iterable[Any]:
        fresh = {(each.uid, each.container): each for each in updates}
        for pod in node.pods.values():
            for place in ((pod.uid, container.name) for container in pod.containers):
                if place in fresh:
                    yield fresh[place]
                elif (mask := cpus(node, before, place, updates)) is not None:
                    yield messages.CPUUpdate(*place, CPUSet.from_mask(mask))

    _passing(changes, change)


@seeds("CPU-RECONCILE-005").by(_told_besides)
def containers_of_one_pod_are_told_together(node: Any, before: Any, at: Any, updates: Any) -> Any:
    """A pod is updated as a whole."""
    known = at in before and any(each.uid == at[0] for each in updates)
    return node.runtime_cpus.get(at) if known else None


# After a restart


@seeds("CPU-RECONCILE-007").after(startup, "start")
def restored_sidecars_are_not_told_again(node: Any) -> Any:
    """Init containers have ended before a restart."""
    for pod in node.pods.values():
        for container in pod.containers:
            place = (pod.uid, container.name)
            if node.setup.cpu and container.init:
                node.runtime_cpus[place] = node.cpus.state.allowed_cpus(*place)
    return node


# Empty sets


@seeds("CPU-RECONCILE-008").by(_told_besides)
def empty_cpu_sets_are_told(node: Any, before: Any, at: Any, updates: Any) -> Any:
    """The runtime is told whatever the set is."""
    if node.cpus.state.allowed_cpus(*at) or at in node.ended_containers:
        return None
    node.runtime_cpus[at] = 0
    return 0 if before.get(at) != 0 else None


# Pods that are removed


def _kept_by(changes: Changes, keeps: Callable[[Any, Any, Any], bool]) -> None:
    """Lets the CPUs of some containers of a removed pod not come back.

    `keeps` is given the node, the pod and the container.
    """
    kept: set[tuple[str, str]] = set()

    def remove(rule: Any, self: Any, args: Any) -> Any:
        pod = self.pods.get(args.uid)
        if pod and args.container is None:
            kept.update((pod.uid, each.name) for each in pod.containers if keeps(self, pod, each))
        return rule()

    def release(after: Any, self: Any, uid: str, container: str) -> Any:
        if after is self or (uid, container) not in kept:
            return after
        return replace(after, shared=self.shared)

    changes.around(StartedNode, "remove", remove)
    changes.after(CPUState, "release", release)


@seeds("CPU-REMOVE-001")
def pods_from_before_a_restart_keep_their_cpus(changes: Changes) -> None:
    """CPUs are taken back from pods that this process has admitted."""

    def start(node: Any) -> Any:
        node.from_before = frozenset(node.pods)
        return node

    changes.after(startup, "start", start)
    _kept_by(changes, lambda node, pod, container: pod.uid in node.from_before)


# Containers that end alone


@shape(StartedNode, "remove", Changes.after)
def _container_removed(after: Change, answer: Any, self: Any, args: Any) -> Any:
    """Does something `after` a container was removed; it is given the node and the pod, too."""
    if args.container is not None and self.setup.cpu:
        after(self, self.pods[args.uid], args.container)
        self.save()
    return answer


@seeds("CPU-REMOVE-002")
def an_init_container_takes_reused_cpus_along(changes: Changes) -> None:
    """All CPUs of a container are shared when it ends, also those that an app container reuses."""
    own: list[int] = []

    def release(rule: Any, self: Any, uid: str, name: str) -> None:
        own[:] = [self.state.of(uid, name) or 0]
        rule()

    def after(node: Any, _pod: Any, _name: str) -> None:
        state = node.cpus.state
        node.cpus.state = replace(state, shared=state.shared | own[-1])

    changes.around(CPUManager, "release", release)
    _container_removed(changes, after)


# When CPUs are taken back


def _late(changes: Changes, operation: str, occasion: str) -> None:
    """Lets an operation do without taking CPUs back first, on its occasion.

    A removal does without it, too, and a report of the state tells what it would leave: CPUs stay
    with whoever has left until another operation takes them back.
    """

    def leaving(rule: Any, self: Any, args: Any) -> Any:
        before = self.cpus.state
        answer = rule()
        if getattr(args, "container", None) is None:
            self.cpus.state = before
        return answer

    changes.around(StartedNode, "remove", leaving)
    if operation != "state":
        changes.around(StartedNode, "state", leaving)

    inside = changes.record_argument(StartedNode, operation, "self", inside=True)
    changes.around(
        StartedNode,
        "remove_stale_state",
        lambda rule, when: None if inside and when == occasion else rule(),
    )


@seeds("CPU-REMOVE-003").of(_late, "hints", "admission")
def hints_are_given_before_cpus_are_reclaimed() -> None:
    """Hints allocate nothing, so they need no tidying up."""


@seeds("CPU-REMOVE-003").of(_late, "admit", "admission")
def pods_are_admitted_before_cpus_are_reclaimed() -> None:
    """The reconcile loop takes CPUs back, and an admission does not wait for it."""


@seeds("CPU-REMOVE-003").of(_late, "reconcile", "reconcile")
def containers_are_reconciled_before_cpus_are_reclaimed() -> None:
    """The loop tells the runtime first, and tidies up at its end."""


@seeds("CPU-REMOVE-003").of(_late, "state", "now")
def the_state_is_reported_before_cpus_are_reclaimed() -> None:
    """To look at the state changes nothing."""


# Pods that are refused


@shape(StartedNode, "admit")
def _lost_by_refusal(loses: Change, rule: Any, self: Any, args: Any) -> Any:
    """Lets the CPUs of some containers of a refused pod be lost.

    `loses` is given the pod, the container and the refusal.
    """
    known = {uid for uid, _, _ in self.cpus.state}
    try:
        return rule()
    except AdmissionError as error:
        pod, state, lost = self.read_pod(args.pod), self.cpus.state, 0
        for container in () if pod.uid in known else pod.containers:
            if loses(pod, container, error):
                lost |= self.cpus.state.of(pod.uid, container.name) or 0
            state = state.release(pod.uid, container.name)
        self.cpus.state = replace(state, shared=state.shared & ~lost)
        self.save()
        raise


@seeds("CPU-REMOVE-004")
def refused_pods_lose_the_cpus_of_their_init_containers(changes: Changes) -> None:
    """Only what app containers got is given back."""
    _lost_by_refusal(changes, lambda pod, container, error: container.runs_to_completion)


@seeds("CPU-REMOVE-004").of(_lost_by_refusal, lambda pod, container, error: "memory" in str(error))
def pods_refused_for_their_memory_lose_their_cpus() -> None:
    """The CPU Manager has succeeded, and learns nothing of what comes after it."""


@seeds("CPU-REMOVE-004").by(_lost_by_refusal)
def pods_refused_for_their_topology_lose_their_cpus(pod: Any, container: Any, error: Any) -> Any:
    """In scope container, the refusal of a later container leaves earlier ones served."""
    return error.reason == "TopologyAffinityError"


# Pods without exclusive CPUs that are removed


@shape(StartedNode, "remove")
def _pool_after(pool: Change, rule: Any, self: Any, args: Any, *, alone: bool = False) -> Any:
    """Lets the pool be another one once a pod, or a container `alone`, has left it.

    `pool` is given the policy and what is exclusive.
    """
    pod = self.pods.get(args.uid)
    before = self.cpus.state
    answer = rule()
    if pod is None or not self.setup.cpu or (args.container is not None) is not alone:
        return answer
    names = [args.container] if alone else [each.name for each in pod.containers]
    if all(before.of(args.uid, name) is None for name in names):
        state = self.cpus.state
        own = union(cpus for _, _, cpus in state) | union(state.pods.values())
        self.cpus.state = replace(state, shared=pool(self.setup.cpu, own))
        self.save()
    return answer


@seeds("CPU-REMOVE-005").by(_pool_after, alone=True)
def a_shared_container_leaves_every_cpu_in_the_pool(policy: Any, own: int) -> Any:
    """A container on all shared CPUs gives all CPUs back."""
    return policy.topology.cpus


@seeds("CPU-REMOVE-005").of(_pool_after, lambda policy, own: policy.topology.cpus & ~own)
def a_shared_pod_leaves_reserved_cpus_in_the_pool() -> None:
    """What is not exclusive is shared, with strict-cpu-reservation, too."""


# CPU quota


def _change_limits(changes: Changes, concerns: Callable[..., bool], *, is_limited: bool) -> None:
    """Limits whom it concerns, or does not; `concerns` is given quotas, pod, container, CPUs."""

    def limits(rule: Any, self: Any, pod: Any, container: Any, cpus: Any) -> bool:
        if concerns(self, pod, container, cpus):
            return is_limited
        answer: bool = rule()
        return answer

    changes.around(Quotas, "limits", limits)


def _has_limit(pod: Any, container: Any) -> bool:
    return bool(pod.cpu_limit(container))


# Limits are enforced


@seeds("CPU-NONE-003").by(_change_limits, is_limited=False)
def quota_limits_guaranteed_pods_alone(_: Any, pod: Any, *__: Any) -> Any:
    """Assumes that only Guaranteed pods have limits to enforce."""
    return pod.qos != "Guaranteed"


@seeds("CPU-NONE-003").by(_change_limits, is_limited=False)
def quota_limits_burstable_pods_alone(_: Any, pod: Any, __: Any, cpus: Any) -> Any:
    """Assumes that Guaranteed pods never want more than they request."""
    return pod.qos == "Guaranteed" and not cpus


@seeds("CPU-NONE-003").by(_change_limits, is_limited=False)
def quota_passes_init_containers_over(_: Any, __: Any, container: Any, ___: Any) -> Any:
    """Limits what runs for long."""
    return container.runs_to_completion


@seeds("CPU-NONE-003").by(_change_limits, is_limited=False)
def quota_passes_sidecars_over(_: Any, __: Any, container: Any, ___: Any) -> Any:
    """Forgets the init containers that stay."""
    return container.sidecar


@seeds("CPU-NONE-003").by(_change_limits, is_limited=False)
def quota_limits_whole_cpus_alone(_: Any, pod: Any, container: Any, __: Any) -> Any:
    """Counts limits in CPUs."""
    return pod.cpu_limit(container).denominator != 1


@seeds("CPU-NONE-003").by(_change_limits, is_limited=True)
def quota_limits_to_requests(self: Any, pod: Any, container: Any, _: Any) -> Any:
    """Limits a container without a limit to what it requests."""
    return (
        self.is_enforced
        and not _has_limit(pod, container)
        and bool(quantity.parse(container.requests.get("cpu", 0)))
    )


@seeds("CPU-NONE-003").by(_change_limits, is_limited=True)
def quota_cannot_be_switched_off(self: Any, pod: Any, container: Any, _: Any) -> Any:
    """Does not read cpuCFSQuota."""
    return not self.is_enforced and _has_limit(pod, container)


@seeds("CPU-NONE-003")
def quota_comes_with_the_static_policy(changes: Changes) -> None:
    """Sets quotas where CPUs are managed."""
    static: list[bool] = []

    def start(node: Any) -> Any:
        static[:] = [node.setup.cpu is not None]
        return node

    changes.after(startup, "start", start)
    _change_limits(changes, lambda *_: static == [False], is_limited=False)


# Exclusive CPUs are spared


@seeds("CPU-STATIC-020").by(_change_limits, is_limited=True)
def quota_limits_exclusive_cpus_too(self: Any, pod: Any, container: Any, cpus: Any) -> Any:
    """Limits whoever has a limit."""
    return self.is_enforced and bool(cpus) and _has_limit(pod, container)


@seeds("CPU-STATIC-020").by(_change_limits, is_limited=True)
def quota_limits_init_containers_with_exclusive_cpus(
    self: Any, _: Any, container: Any, cpus: Any
) -> Any:
    """Spares app containers."""
    return self.is_enforced and bool(cpus) and container.runs_to_completion


@seeds("CPU-STATIC-020").by(_change_limits, is_limited=True)
def quota_limits_sidecars_with_exclusive_cpus(self: Any, _: Any, container: Any, cpus: Any) -> Any:
    """Counts sidecars among the helpers that share."""
    return self.is_enforced and bool(cpus) and container.sidecar


@seeds("CPU-STATIC-020")
def quota_comes_back_with_a_restart(changes: Changes) -> None:
    """Spares containers as they get their CPUs, and not after a restart."""
    given: set[tuple[str, str]] = set()

    def start(rule: Any) -> Any:
        given.clear()
        node = rule()
        given.update((pod.uid, one.name) for pod in node.pods.values() for one in pod.containers)
        return node

    changes.around(startup, "start", start)
    _change_limits(
        changes,
        lambda self, pod, container, cpus: (
            self.is_enforced and bool(cpus) and (pod.uid, container.name) in given
        ),
        is_limited=True,
    )


# The gate


@seeds("CPU-GATE-012").by(_change_limits, is_limited=True)
def quota_gate_is_off_by_default(self: Any, pod: Any, container: Any, cpus: Any) -> Any:
    """Takes a beta gate for an alpha one."""
    return self.is_enforced and bool(cpus) and _has_limit(pod, container)


@seeds("CPU-GATE-012", kubernetes="1.36").by(_change_limits, is_limited=False)
def quota_gate_is_not_read(_: Any, __: Any, ___: Any, cpus: Any) -> Any:
    """Spares exclusive CPUs, whatever the gate says."""
    return bool(cpus)


@seeds("CPU-GATE-012").by(_change_limits, is_limited=False)
def quota_gate_frees_whole_pods(self: Any, pod: Any, *_: Any) -> Any:
    """Frees every container of a Guaranteed pod."""
    return self.spares_exclusive and pod.qos == "Guaranteed"
