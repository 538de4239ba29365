"""Mutants of updates to the container runtime, CFS quotas and removed pods."""

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
    """Lets `change` replace the updates of a reconcile pass.

    `change` is called with the node, the CPUs in the runtime before, and the updates.
    """
    before = dict(self.runtime_cpus)
    answer = rule()
    if not self.setup.cpu:
        return answer
    return messages.Reconciled(tuple(change(self, before, answer.updates)))


def _skipping(changes: Changes, skips: Callable[[Any, Any, int, int | None], bool]) -> None:
    """Permanently omits updates for which `skips` is true.

    `skips` is called with the pod, the container, its CPUs and those in the last update (or None).
    """

    def change(node: Any, before: dict[_Place, int], updates: tuple[Any, ...]) -> Iterable[Any]:
        for update in updates:
            pod = node.pods[update.uid]
            container = pod.container(update.container)
            last = before.get((update.uid, update.container))
            if not skips(pod, container, update.cpus.mask, last):
                yield update

    _passing(changes, change)


# Updated containers


def _is_exclusive(node: Any, uid: str, name: str) -> bool:
    return node.cpus.state.of(uid, name) is not None


@seeds("CPU-RECONCILE-001").of(_skipping, lambda pod, container, cpus, last: container.sidecar)
def sidecars_are_not_reconciled() -> None:
    """Doesn't update sidecars."""


@seeds("CPU-RECONCILE-001")
def init_containers_are_not_reconciled(changes: Changes) -> None:
    """Doesn't update init containers."""
    _skipping(changes, lambda pod, container, cpus, last: container.runs_to_completion)


@seeds("CPU-RECONCILE-001").by(_passing)
def guaranteed_pods_on_the_pool_are_not_reconciled(node: Any, before: Any, updates: Any) -> Any:
    """Doesn't update Guaranteed pods on the shared pool."""
    return (
        each
        for each in updates
        if node.pods[each.uid].qos != "Guaranteed" or _is_exclusive(node, each.uid, each.container)
    )


@seeds("CPU-RECONCILE-004").by(_skipping)
def fractional_containers_are_told_once(pod: Any, container: Any, cpus: int, last: Any) -> Any:
    """Updates Guaranteed pods' containers with fractional requests only once."""
    return pod.qos == "Guaranteed" and last is not None


@seeds("CPU-RECONCILE-004").by(_skipping)
def sidecars_are_told_once(pod: Any, container: Any, cpus: int, last: int | None) -> Any:
    """Updates sidecars only once."""
    return container.init and last is not None


# Repeated updates


def _told_besides(changes: Changes, cpus: Callable[..., int | None]) -> None:
    """Also updates containers for which `cpus` returns a CPU set.

    `cpus` is called with the node, the CPUs in the runtime before, the container and the updates.
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
    """Updates all containers of a pod if one of them changes."""
    known = at in before and any(each.uid == at[0] for each in updates)
    return node.runtime_cpus.get(at) if known else None


# After a restart


@seeds("CPU-RECONCILE-007").after(startup, "start")
def restored_sidecars_are_not_told_again(node: Any) -> Any:
    """Doesn't update sidecars after a restart."""
    for pod in node.pods.values():
        for container in pod.containers:
            place = (pod.uid, container.name)
            if node.setup.cpu and container.init:
                node.runtime_cpus[place] = node.cpus.state.allowed_cpus(*place)
    return node


# Empty sets


@seeds("CPU-RECONCILE-008").by(_told_besides)
def empty_cpu_sets_are_told(node: Any, before: Any, at: Any, updates: Any) -> Any:
    """Updates containers to an empty CPU set."""
    if node.cpus.state.allowed_cpus(*at) or at in node.ended_containers:
        return None
    node.runtime_cpus[at] = 0
    return 0 if before.get(at) != 0 else None


# Removed pods


def _kept_by(changes: Changes, keeps: Callable[[Any, Any, Any], bool]) -> None:
    """Loses the CPUs of a removed pod's containers if `keeps` is true.

    `keeps` is called with the node, the pod and the container.
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
    """Doesn't release the CPUs of pods admitted before the last restart."""

    def start(node: Any) -> Any:
        node.from_before = frozenset(node.pods)
        return node

    changes.after(startup, "start", start)
    _kept_by(changes, lambda node, pod, container: pod.uid in node.from_before)


# Containers that end before their pod


@shape(StartedNode, "remove", Changes.after)
def _container_removed(after: Change, answer: Any, self: Any, args: Any) -> Any:
    """Calls `after` with the node, pod and container name after a container is removed."""
    if args.container is not None and self.setup.cpu:
        after(self, self.pods[args.uid], args.container)
        self.save()
    return answer


@seeds("CPU-REMOVE-002")
def an_init_container_takes_reused_cpus_along(changes: Changes) -> None:
    """Returns all CPUs of an ended container to the shared pool, even reused ones."""
    own: list[int] = []

    def release(rule: Any, self: Any, uid: str, name: str) -> None:
        own[:] = [self.state.of(uid, name) or 0]
        rule()

    def after(node: Any, _pod: Any, _name: str) -> None:
        state = node.cpus.state
        node.cpus.state = replace(state, shared=state.shared | own[-1])

    changes.around(CPUManager, "release", release)
    _container_removed(changes, after)


# When CPUs are released


def _late(changes: Changes, operation: str, occasion: str) -> None:
    """Skips releasing CPUs before an operation, so stale pods keep them for longer."""

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
    """Doesn't release the CPUs of removed pods before computing hints."""


@seeds("CPU-REMOVE-003").of(_late, "admit", "admission")
def pods_are_admitted_before_cpus_are_reclaimed() -> None:
    """Doesn't release the CPUs of removed pods before an admission."""


@seeds("CPU-REMOVE-003").of(_late, "reconcile", "reconcile")
def containers_are_reconciled_before_cpus_are_reclaimed() -> None:
    """Doesn't release the CPUs of removed pods before a reconcile pass."""


@seeds("CPU-REMOVE-003").of(_late, "state", "now")
def the_state_is_reported_before_cpus_are_reclaimed() -> None:
    """Doesn't release the CPUs of removed pods before reporting the state."""


# Rejected pods


@shape(StartedNode, "admit")
def _lost_by_refusal(loses: Change, rule: Any, self: Any, args: Any) -> Any:
    """Loses CPUs of rejected pods if `loses` is true.

    `loses` is called with the pod, the container and the error.
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
    """Loses the CPUs of a rejected pod's init containers."""
    _lost_by_refusal(changes, lambda pod, container, error: container.runs_to_completion)


@seeds("CPU-REMOVE-004").of(_lost_by_refusal, lambda pod, container, error: "memory" in str(error))
def pods_refused_for_their_memory_lose_their_cpus() -> None:
    """Loses the CPUs of pods rejected for their memory."""


@seeds("CPU-REMOVE-004").by(_lost_by_refusal)
def pods_refused_for_their_topology_lose_their_cpus(pod: Any, container: Any, error: Any) -> Any:
    """Loses the CPUs of pods rejected with TopologyAffinityError."""
    return error.reason == "TopologyAffinityError"


# Removed pods without exclusive CPUs


@shape(StartedNode, "remove")
def _pool_after(pool: Change, rule: Any, self: Any, args: Any, *, alone: bool = False) -> Any:
    """Replaces the shared pool when a pod, or a container `alone`, leaves it.

    `pool` is called with the policy and all exclusive CPUs.
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
    """Sets the shared pool to all CPUs when a container leaves the pool."""
    return policy.topology.cpus


@seeds("CPU-REMOVE-005").of(_pool_after, lambda policy, own: policy.topology.cpus & ~own)
def a_shared_pod_leaves_reserved_cpus_in_the_pool() -> None:
    """Adds reserved CPUs to the shared pool when a pod leaves the pool."""


# CFS quota


def _change_limits(changes: Changes, concerns: Callable[..., bool], *, is_limited: bool) -> None:
    """Overrides whether a container has a quota, if `concerns` is true."""

    def limits(rule: Any, self: Any, pod: Any, container: Any, cpus: Any) -> bool:
        if concerns(self, pod, container, cpus):
            return is_limited
        answer: bool = rule()
        return answer

    changes.around(Quotas, "limits", limits)


def _has_limit(pod: Any, container: Any) -> bool:
    return bool(pod.cpu_limit(container))


# Enforced limits


@seeds("CPU-NONE-003").by(_change_limits, is_limited=False)
def quota_limits_guaranteed_pods_alone(_: Any, pod: Any, *__: Any) -> Any:
    """Sets quotas only for Guaranteed pods."""
    return pod.qos != "Guaranteed"


@seeds("CPU-NONE-003").by(_change_limits, is_limited=False)
def quota_limits_burstable_pods_alone(_: Any, pod: Any, __: Any, cpus: Any) -> Any:
    """Sets no quotas for shared containers of Guaranteed pods."""
    return pod.qos == "Guaranteed" and not cpus


@seeds("CPU-NONE-003").by(_change_limits, is_limited=False)
def quota_passes_init_containers_over(_: Any, __: Any, container: Any, ___: Any) -> Any:
    """Sets no quotas for init containers."""
    return container.runs_to_completion


@seeds("CPU-NONE-003").by(_change_limits, is_limited=False)
def quota_passes_sidecars_over(_: Any, __: Any, container: Any, ___: Any) -> Any:
    """Sets no quotas for sidecars."""
    return container.sidecar


@seeds("CPU-NONE-003").by(_change_limits, is_limited=False)
def quota_limits_whole_cpus_alone(_: Any, pod: Any, container: Any, __: Any) -> Any:
    """Sets quotas only for limits of whole CPUs."""
    return pod.cpu_limit(container).denominator != 1


@seeds("CPU-NONE-003").by(_change_limits, is_limited=True)
def quota_limits_to_requests(self: Any, pod: Any, container: Any, _: Any) -> Any:
    """Sets a quota equal to the request for containers without a limit."""
    return (
        self.is_enforced
        and not _has_limit(pod, container)
        and bool(quantity.parse(container.requests.get("cpu", 0)))
    )


@seeds("CPU-NONE-003").by(_change_limits, is_limited=True)
def quota_cannot_be_switched_off(self: Any, pod: Any, container: Any, _: Any) -> Any:
    """Ignores ``cpuCFSQuota``."""
    return not self.is_enforced and _has_limit(pod, container)


@seeds("CPU-NONE-003")
def quota_comes_with_the_static_policy(changes: Changes) -> None:
    """Sets quotas only under the static policy."""
    static: list[bool] = []

    def start(node: Any) -> Any:
        static[:] = [node.setup.cpu is not None]
        return node

    changes.after(startup, "start", start)
    _change_limits(changes, lambda *_: static == [False], is_limited=False)


# Exempt containers


@seeds("CPU-STATIC-020").by(_change_limits, is_limited=True)
def quota_limits_exclusive_cpus_too(self: Any, pod: Any, container: Any, cpus: Any) -> Any:
    """Sets quotas for containers with exclusive CPUs."""
    return self.is_enforced and bool(cpus) and _has_limit(pod, container)


@seeds("CPU-STATIC-020").by(_change_limits, is_limited=True)
def quota_limits_init_containers_with_exclusive_cpus(
    self: Any, _: Any, container: Any, cpus: Any
) -> Any:
    """Sets quotas for init containers with exclusive CPUs."""
    return self.is_enforced and bool(cpus) and container.runs_to_completion


@seeds("CPU-STATIC-020").by(_change_limits, is_limited=True)
def quota_limits_sidecars_with_exclusive_cpus(self: Any, _: Any, container: Any, cpus: Any) -> Any:
    """Sets quotas for sidecars with exclusive CPUs."""
    return self.is_enforced and bool(cpus) and container.sidecar


@seeds("CPU-STATIC-020")
def quota_comes_back_with_a_restart(changes: Changes) -> None:
    """Sets quotas for containers with exclusive CPUs after a restart."""
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
    """Turns the gate off by default."""
    return self.is_enforced and bool(cpus) and _has_limit(pod, container)


@seeds("CPU-GATE-012", kubernetes="1.36").by(_change_limits, is_limited=False)
def quota_gate_is_not_read(_: Any, __: Any, ___: Any, cpus: Any) -> Any:
    """Ignores the gate."""
    return bool(cpus)


@seeds("CPU-GATE-012").by(_change_limits, is_limited=False)
def quota_gate_frees_whole_pods(self: Any, pod: Any, *_: Any) -> Any:
    """Sets no quotas for any container of a Guaranteed pod."""
    return self.spares_exclusive and pod.qos == "Guaranteed"
