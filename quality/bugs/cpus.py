"""Bugs of the CPU Manager: reservation, shared pool, exclusive CPUs, reuse, reconcile."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.reference import node, startup
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
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpus")


def _with_container(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Lets the static policy allocate for another container than the one it is given."""
    changes.around(
        StaticCPUPolicy,
        "allocate",
        lambda original, self, state, pod, container, affinity: original(
            self, state, pod, change(container), affinity
        ),
    )


# Reservation


def _strict(changes: Changes, *, on: bool) -> None:
    """Lets the policy have ``strict-cpu-reservation`` on, or off, whatever is asked for."""
    changes.around(
        options,
        "parse",
        lambda original, *args: dataclasses.replace(original(*args), strict=on),
    )


@seeds("#140495", "CPU-RESERVE-008")
def reserved_cpus_are_handed_out(changes: Changes) -> None:
    changes.replace(StaticCPUPolicy, "available", lambda self, state: state.shared)


@seeds("CPU-RESERVE-005")
def reservation_takes_the_last_cores(changes: Changes) -> None:
    def backwards(
        original: Any, topology: Any, chosen: Any, count: int, named: int, rules: Any
    ) -> Any:
        highest = sorted(topology.all_cpus, reverse=True)[:count]
        return original(topology, chosen, count, named or sum(1 << cpu for cpu in highest), rules)

    changes.around(startup, "make_static", backwards)


@seeds("CPU-OPT-STRICT-002")
def strict_reservation_is_ignored(changes: Changes) -> None:
    _strict(changes, on=False)


@seeds("CPU-OPT-001")
def reservation_is_always_strict(changes: Changes) -> None:
    _strict(changes, on=True)


@seeds("#132187", "CPU-HINT-008")
def hints_count_reserved_cpus(changes: Changes) -> None:
    changes.around(
        hints,
        "generate",
        lambda original, static, available, reusable, count: original(
            static, available | static.reserved, reusable, count
        ),
    )


# Who gets exclusive CPUs


@seeds("CPU-STATIC-001")
def burstable_pods_get_exclusive_cpus(changes: Changes) -> None:
    def generous(original: Any, self: StaticCPUPolicy, state: Any, pod: Any, *rest: Any) -> Any:
        if pod.qos == "Burstable":
            pod = dataclasses.replace(pod, qos="Guaranteed")
        return original(self, state, pod, *rest)

    changes.around(StaticCPUPolicy, "allocate", generous)


@seeds("CPU-STATIC-001")
def fractions_round_up_to_exclusive_cpus(changes: Changes) -> None:
    def rounded(container: Any) -> Any:
        amount = math.ceil(quantity.parse(container.requests.get("cpu", 0)))
        return dataclasses.replace(container, requests={**container.requests, "cpu": str(amount)})

    _with_container(changes, rounded)


# The shared pool


@seeds("#81324", "CPU-REMOVE-001")
def removed_pods_keep_their_cpus(changes: Changes) -> None:
    changes.replace(CPUManager, "remove_stale_state", lambda self, pods, when: None)


@seeds("CPU-POOL-005")
def exclusive_cpus_stay_in_the_shared_pool(changes: Changes) -> None:
    changes.around(
        CPUState,
        "assign",
        lambda original, self, uid, name, own: dataclasses.replace(
            original(self, uid, name, own), shared=self.shared
        ),
    )


@seeds("#55736", "CPU-REMOVE-001")
def released_cpus_are_lost(changes: Changes) -> None:
    changes.around(
        CPUState,
        "release",
        lambda original, self, uid, name: dataclasses.replace(
            original(self, uid, name), shared=self.shared
        ),
    )


@seeds("CPU-REMOVE-004")
def a_refused_pod_stays(changes: Changes) -> None:
    changes.replace(node.StartedNode, "drop", lambda self, uid: None)


# Containers of one pod


@seeds("#105114", "#107906", "CPU-INIT-005")
def an_ended_init_container_frees_what_its_pod_still_uses(changes: Changes) -> None:
    def hasty(original: Any, self: CPUState, uid: str, name: str) -> CPUState:
        after: CPUState = original(self, uid, name)
        return dataclasses.replace(after, shared=after.shared | (self.of(uid, name) or 0))

    changes.around(CPUState, "release", hasty)


@seeds("#112228", "CPU-INIT-001")
def init_cpus_are_not_reused(changes: Changes) -> None:
    changes.replace(ReusableCPUs, "of", lambda self, uid: 0)


@seeds("#119442", "CPU-INIT-004")
def sidecar_cpus_are_reused(changes: Changes) -> None:
    _with_container(changes, lambda container: dataclasses.replace(container, sidecar=False))


@seeds("#103952", "CPU-STATIC-007")
def a_second_container_drops_the_first(changes: Changes) -> None:
    def dropping(original: Any, self: CPUState, uid: str, name: str, own: int) -> CPUState:
        after = original(self, uid, name, own)
        return CPUState(after.shared, {**after.exclusive, uid: {name: own}}, reuse=after.reuse)

    changes.around(CPUState, "assign", dropping)


# Options and layout


@seeds("CPU-OPT-FULLPCPUS-003")
def whole_cores_are_not_asked_for(changes: Changes) -> None:
    changes.replace(StaticCPUPolicy, "check_alignment", lambda self, count, free: None)


@seeds("CPU-OPT-FULLPCPUS-002")
def siblings_of_reserved_cpus_count_as_whole_cores(changes: Changes) -> None:
    changes.around(
        startup,
        "make_static",
        lambda original, *args: dataclasses.replace(original(*args), broken=0),
    )


@seeds("CPU-OPT-FULLPCPUS-003")
def misaligned_requests_have_another_reason(changes: Changes) -> None:
    def other(original: Any, *args: Any) -> None:
        try:
            original(*args)
        except AdmissionError as error:
            raise AdmissionError("UnexpectedAdmissionError", str(error)) from None

    changes.around(CPUManager, "allocate", other)


@seeds("CPU-GATE-002")
def hidden_options_are_available(changes: Changes) -> None:
    changes.around(
        options,
        "value",
        lambda original, name, text, maturity, gates: original(name, text, maturity, None),
    )


@seeds("CPU-OPT-PAIR-001", "CPU-OPT-PAIR-002")
def conflicting_options_are_accepted(changes: Changes) -> None:
    changes.replace(options, "INCOMPATIBLE", ())


@seeds("CPU-STATIC-009")
def single_threads_come_before_whole_cores(changes: Changes) -> None:
    changes.replace(Assignment, "whole_cores", lambda self, progress: progress)


@seeds("CPU-STATIC-009")
def requests_are_spread_over_cores(changes: Changes) -> None:
    changes.replace(Assignment, "whole_cores", Assignment.threads_of_other_cores)


@seeds("#131610", "CPU-OPT-UNCORE-002")
def uncore_caches_are_ignored(changes: Changes) -> None:
    changes.replace(Assignment, "uncore_caches", lambda self, progress: progress)


@seeds("PR #106599", "CPU-OPT-DISTNUMA-002")
def distribution_over_nodes_is_ignored(changes: Changes) -> None:
    changes.replace(DistributedAssignment, "sizes", lambda self, request, least: [])


@seeds("PR #139778", "CPU-OPT-ALIGNSOCKET-006")
def sockets_count_for_nothing_among_as_many_nodes(changes: Changes) -> None:
    changes.replace(FewNodesBeforeOneSocket, "is_better", DistributedAssignment.is_better)


@seeds("PR #139778", "CPU-OPT-ALIGNSOCKET-007")
def nodes_of_a_socket_share_evenly_or_not_at_all(changes: Changes) -> None:
    changes.replace(DistributedAssignment, "share", EvenSharesAlone.share)


@seeds("CPU-HINT-015", "NODE-ALIGN-002")
def the_affinity_is_ignored_by_assignment(changes: Changes) -> None:
    changes.around(
        StaticCPUPolicy,
        "allocate",
        lambda original, self, state, pod, container, affinity: original(
            self, state, pod, container, NO_AFFINITY
        ),
    )


@seeds("#114642", "CPU-OPT-ALIGNSOCKET-003")
def align_by_socket_takes_the_nodes_alone(changes: Changes) -> None:
    def narrow(original: Any, self: StaticCPUPolicy, affinity: Any) -> int:
        options = dataclasses.replace(self.options, by_socket=False)
        assignment = dataclasses.replace(self.assignment, options=options)
        return int(original(dataclasses.replace(self, assignment=assignment), affinity))

    changes.around(StaticCPUPolicy, "aligned", narrow)


# Hints


@seeds("CPU-HINT-006")
def cpu_hints_prefer_what_is_fewest_now(changes: Changes) -> None:
    def by_now(original: Any, *args: Any) -> Any:
        demand = original(*args)
        needs = tuple(dataclasses.replace(need, total=need.free) for need in demand.needs)
        return dataclasses.replace(demand, needs=needs)

    changes.around(hints, "generate", by_now)


@seeds("#94220", "#110306", "CPU-HINT-009", "CPU-INIT-008")
def cpu_hints_leave_out_what_can_be_reused(changes: Changes) -> None:
    changes.around(
        hints,
        "generate",
        lambda original, static, available, reusable, count: original(static, available, 0, count),
    )


@seeds("CPU-HINT-010")
def cpu_hints_forget_what_is_held(changes: Changes) -> None:
    def forgetful(
        original: Any,
        static: StaticCPUPolicy,
        state: CPUState,
        pod: Any,
        container: Any,
    ) -> Any:
        held = state.of(pod.uid, container.name)
        bare = state if held is None else CPUState(state.shared, {}, reuse=state.reuse)
        return original(static, bare, pod, container)

    changes.around(hints, "for_container", forgetful)


# Reconcile


@seeds("CPU-RECONCILE-005")
def reconcile_repeats_itself(changes: Changes) -> None:
    def chatty(original: Any, self: node.StartedNode, args: messages.NoArgs) -> Any:
        self.told.clear()
        return original(self, args)

    changes.around(node.StartedNode, "reconcile", chatty)


@seeds("CPU-RECONCILE-001")
def reconcile_tells_nobody(changes: Changes) -> None:
    changes.replace(node.StartedNode, "reconcile", lambda self, args: messages.Reconciled(()))


@seeds("#90303", "CPU-RECONCILE-001")
def reconcile_tells_ended_containers_too(changes: Changes) -> None:
    def loud(original: Any, self: node.StartedNode, args: messages.NoArgs) -> Any:
        ended, self.ended = self.ended, set()
        try:
            return original(self, args)
        finally:
            self.ended = ended

    changes.around(node.StartedNode, "reconcile", loud)


@seeds("CPU-RECONCILE-004")
def reconcile_tells_a_container_once(changes: Changes) -> None:
    def once(original: Any, self: node.StartedNode, args: messages.NoArgs) -> messages.Reconciled:
        told = set(self.told)
        answer: messages.Reconciled = original(self, args)
        return messages.Reconciled(
            tuple(one for one in answer.updates if (one.uid, one.container) not in told)
        )

    changes.around(node.StartedNode, "reconcile", once)


@seeds("CPU-RECONCILE-006")
def reconcile_tells_the_latest_pod_first(changes: Changes) -> None:
    def backwards(
        original: Any, self: node.StartedNode, args: messages.NoArgs
    ) -> messages.Reconciled:
        answer: messages.Reconciled = original(self, args)
        return messages.Reconciled(answer.updates[::-1])

    changes.around(node.StartedNode, "reconcile", backwards)
