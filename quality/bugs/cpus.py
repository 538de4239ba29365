"""Bugs in the CPU Manager: reservation, shared pool, exclusive CPUs, reuse, reconcile."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.reference import node, startup
from numaproof.reference.config.quota import Quotas
from numaproof.reference.cpu import hints, options
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.cpu.distribution import DistributedAssignment
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState, ReusableCPUs
from numaproof.reference.deviations.distribution import EvenSharesAlone, FewNodesBeforeOneSocket
from numaproof.reference.errors import AdmissionError
from numaproof.reference.pods import quantity
from numaproof.reference.topology.hints import NO_AFFINITY
from quality.seeding import Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpus")


@shape(StaticCPUPolicy, "allocate")
def _with_container(change: Callable[[Any], Any], rule: Any, container: Any) -> Any:
    """Lets the static policy allocate for a different container."""
    return rule(container=change(container))


# Reservation


def _strict(changes: Changes, *, on: bool) -> None:
    """Turns ``strict-cpu-reservation`` on or off, regardless of the configuration."""
    changes.around(options, "parse", lambda rule: replace(rule(), strict=on))


@seeds("#140495", "CPU-RESERVE-008").replace(StaticCPUPolicy, "available")
def reserved_cpus_are_handed_out(self: Any, state: Any) -> Any:
    return state.shared


@seeds("CPU-RESERVE-005").around(startup, "make_static")
def reservation_takes_the_last_cores(rule: Any, topology: Any, count: int, named_cpus: int) -> Any:
    highest = sorted(topology.all_cpus, reverse=True)[:count]
    return rule(named_cpus=named_cpus or sum(1 << cpu for cpu in highest))


@seeds("CPU-OPT-STRICT-002").of(_strict, on=False)
def strict_reservation_is_ignored() -> None: ...


@seeds("CPU-OPT-001").of(_strict, on=True)
def reservation_is_always_strict() -> None: ...


@seeds("#132187", "CPU-HINT-008").around(hints, "generate")
def hints_count_reserved_cpus(rule: Any, policy: Any, available: Any) -> Any:
    return rule(available=available | policy.reserved)


# Which containers get exclusive CPUs


@seeds("CPU-STATIC-001").around(StaticCPUPolicy, "allocate")
def burstable_pods_get_exclusive_cpus(rule: Any, pod: Any) -> Any:
    if pod.qos == "Burstable":
        pod = replace(pod, qos="Guaranteed")
    return rule(pod=pod)


@seeds("CPU-STATIC-001").by(_with_container)
def fractions_round_up_to_exclusive_cpus(container: Any) -> Any:
    amount = math.ceil(quantity.parse(container.requests.get("cpu", 0)))
    return replace(container, requests={**container.requests, "cpu": str(amount)})


# The shared pool


@seeds("#81324", "CPU-REMOVE-001").replace(
    CPUManager, "remove_stale_state", lambda self, pods, when: None
)
def removed_pods_keep_their_cpus() -> None: ...


@seeds("CPU-POOL-005").around(CPUState, "assign")
def exclusive_cpus_stay_in_the_shared_pool(rule: Any, self: Any) -> Any:
    return replace(rule(), shared=self.shared)


@seeds("#55736", "CPU-REMOVE-001").around(CPUState, "release")
def released_cpus_are_lost(rule: Any, self: Any) -> Any:
    return replace(rule(), shared=self.shared)


@seeds("CPU-REMOVE-004").replace(node.StartedNode, "drop", lambda self, uid: None)
def a_refused_pod_stays() -> None: ...


# Containers of one pod


@seeds("#105114", "#107906", "CPU-INIT-005").after(CPUState, "release")
def an_ended_init_container_frees_what_its_pod_still_uses(
    after: CPUState, self: CPUState, uid: str, container: str
) -> CPUState:
    return replace(after, shared=after.shared | (self.of(uid, container) or 0))


@seeds("#112228", "CPU-INIT-001").replace(ReusableCPUs, "of", lambda self, uid: 0)
def init_cpus_are_not_reused() -> None: ...


@seeds("#119442", "CPU-INIT-004").by(_with_container)
def sidecar_cpus_are_reused(container: Any) -> Any:
    return replace(container, sidecar=False)


@seeds("#103952", "CPU-STATIC-007").after(CPUState, "assign")
def a_second_container_drops_the_first(after: Any, uid: str, container: str, cpus: int) -> CPUState:
    return CPUState(after.shared, {**after.exclusive, uid: {container: cpus}}, reuse=after.reuse)


# Options and layout


@seeds("CPU-OPT-FULLPCPUS-003").replace(StaticCPUPolicy, "check_alignment")
def whole_cores_are_not_asked_for(self: Any, count: Any, free: Any) -> Any:
    return None


@seeds("CPU-OPT-FULLPCPUS-002").around(startup, "make_static")
def siblings_of_reserved_cpus_count_as_whole_cores(rule: Any) -> Any:
    return replace(rule(), broken_cores=0)


@seeds("CPU-OPT-FULLPCPUS-003").around(CPUManager, "allocate")
def misaligned_requests_have_another_reason(rule: Any) -> None:
    try:
        rule()
    except AdmissionError as error:
        raise AdmissionError("UnexpectedAdmissionError", str(error)) from None


@seeds("CPU-GATE-002").around(options, "value", lambda rule: rule(gates=None))
def hidden_options_are_available() -> None: ...


@seeds("CPU-OPT-PAIR-001", "CPU-OPT-PAIR-002").replace(options, "INCOMPATIBLE", ())
def conflicting_options_are_accepted() -> None: ...


@seeds("CPU-STATIC-009").replace(Assignment, "whole_cores", lambda self, progress: progress)
def single_threads_come_before_whole_cores() -> None: ...


@seeds("CPU-STATIC-009")
def requests_are_spread_over_cores(changes: Changes) -> None:
    changes.replace(Assignment, "whole_cores", Assignment.threads_of_other_cores)


@seeds("#131610", "CPU-OPT-UNCORE-002").replace(Assignment, "uncore_caches")
def uncore_caches_are_ignored(self: Any, progress: Any) -> Any:
    return progress


@seeds("PR #106599", "CPU-OPT-DISTNUMA-002").replace(DistributedAssignment, "sizes")
def distribution_over_nodes_is_ignored(self: Any, request: Any, min_nodes: Any) -> Any:
    return []


@seeds("PR #139778", "CPU-OPT-ALIGNSOCKET-006")
def sockets_count_for_nothing_among_as_many_nodes(changes: Changes) -> None:
    changes.replace(FewNodesBeforeOneSocket, "is_better", DistributedAssignment.is_better)


@seeds("PR #139778", "CPU-OPT-ALIGNSOCKET-007")
def nodes_of_a_socket_share_evenly_or_not_at_all(changes: Changes) -> None:
    changes.replace(DistributedAssignment, "share", EvenSharesAlone.share)


@seeds("CPU-HINT-015", "NODE-ALIGN-002").around(StaticCPUPolicy, "allocate")
def the_affinity_is_ignored_by_assignment(rule: Any) -> Any:
    return rule(affinity=NO_AFFINITY)


@seeds("#114642", "CPU-OPT-ALIGNSOCKET-003").around(StaticCPUPolicy, "aligned_cpus")
def align_by_socket_takes_the_nodes_alone(rule: Any, self: StaticCPUPolicy) -> int:
    options = replace(self.options, by_socket=False)
    assignment = replace(self.assignment, options=options)
    return int(rule(self=replace(self, assignment=assignment)))


# Hints


@seeds("CPU-HINT-006").after(hints, "generate")
def cpu_hints_prefer_what_is_fewest_now(demand: Any) -> Any:
    needs = tuple(replace(need, total=need.free) for need in demand.needs)
    return replace(demand, needs=needs)


@seeds("#94220", "#110306", "CPU-HINT-009", "CPU-INIT-008").around(hints, "generate")
def cpu_hints_leave_out_what_can_be_reused(rule: Any) -> Any:
    return rule(reusable=0)


@seeds("CPU-HINT-010").around(hints, "for_container")
def cpu_hints_forget_what_is_held(rule: Any, state: CPUState, pod: Any, container: Any) -> Any:
    held = state.of(pod.uid, container.name)
    bare = state if held is None else CPUState(state.shared, reuse=state.reuse)
    return rule(state=bare)


# Reconcile


@seeds("CPU-RECONCILE-005").around(node.StartedNode, "reconcile")
def reconcile_repeats_itself(rule: Any, self: node.StartedNode) -> Any:
    self.runtime_cpus.clear()
    return rule()


@seeds("CPU-RECONCILE-001").replace(node.StartedNode, "reconcile")
def reconcile_tells_nobody(self: Any, args: Any) -> Any:
    return messages.Reconciled(())


@seeds("#90303", "CPU-RECONCILE-001").around(node.StartedNode, "reconcile")
def reconcile_tells_ended_containers_too(rule: Any, self: node.StartedNode) -> Any:
    ended_containers, self.ended_containers = self.ended_containers, set()
    try:
        return rule()
    finally:
        self.ended_containers = ended_containers


@seeds("CPU-RECONCILE-004").around(node.StartedNode, "reconcile")
def reconcile_tells_a_container_once(rule: Any, self: node.StartedNode) -> messages.Reconciled:
    told = set(self.runtime_cpus)
    answer: messages.Reconciled = rule()
    return messages.Reconciled(
        tuple(one for one in answer.updates if (one.uid, one.container) not in told)
    )


@seeds("CPU-RECONCILE-006").after(node.StartedNode, "reconcile")
def reconcile_tells_the_latest_pod_first(answer: messages.Reconciled) -> messages.Reconciled:
    return messages.Reconciled(answer.updates[::-1])


# CFS quota


@seeds("#70585", "CPU-STATIC-020").around(Quotas, "limits")
def exclusive_cpus_are_limited_by_a_quota(rule: Any, self: Any) -> Any:
    return rule(self=replace(self, spares_exclusive=False))


@seeds("CPU-NONE-003").replace(Quotas, "limits")
def no_container_is_limited_by_a_quota(self: Any, pod: Any, container: Any, cpus: Any) -> Any:
    return False
