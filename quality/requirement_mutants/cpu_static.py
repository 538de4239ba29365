"""Mutants of exclusive CPUs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import node, startup
from numaproof.reference.cpu import assignment, hints
from numaproof.reference.cpu.assignment import Assignment, NotEnoughCPUsError, PartialAssignment
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState, ReusableCPUs
from numaproof.reference.cpu.topology import CPUTopology, union
from numaproof.reference.deviations import assignment as deviations
from numaproof.reference.deviations.assignment import FreeCoreByAverage
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import qos, quantity
from numaproof.reference.pods.pod import Pod
from numaproof.reference.pods.pod_level import PodRules
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.reference.pods.containers import PodContainer

seeds = SubjectBugs("cpu-static")


# CPU-STATIC-016 and -026: the QoS class


@shape(qos, "class_of")
def _members(change: Change, rule: Any, containers: tuple[PodContainer, ...]) -> Any:
    """Lets `change` select the containers that determine a pod's class."""
    return rule(containers=containers if len(containers) == 1 else change(containers))


def _with_init_resources(changes: Changes, some: dict[str, str]) -> None:
    """Assumes these requests and limits for every init container."""
    _members(
        changes,
        lambda containers: tuple(
            replace(one, requests={**one.requests, **some}, limits={**one.limits, **some})
            if one.init
            else one
            for one in containers
        ),
    )


@seeds("CPU-STATIC-016").of(_with_init_resources, {"memory": "1Mi"})
def the_memory_of_init_containers_does_not_decide_the_class() -> None:
    """Ignores the memory of init containers when computing the class."""


@seeds("CPU-STATIC-016").of(_with_init_resources, {"cpu": "1"})
def the_cpu_of_init_containers_does_not_decide_the_class() -> None:
    """Ignores the CPUs of init containers when computing the class."""


@seeds("CPU-STATIC-016").by(_members)
def sidecars_do_not_decide_the_class(containers: tuple[PodContainer, ...]) -> Any:
    """Ignores sidecars when computing the class."""
    return tuple(one for one in containers if not one.sidecar)


@seeds("CPU-STATIC-016").by(_members)
def init_containers_that_ask_for_nothing_do_not_decide_the_class(containers: Any) -> Any:
    """Ignores init containers without resources when computing the class."""
    return tuple(one for one in containers if not one.init or one.requests or one.limits)


def _by_sum(changes: Changes, resource: str) -> None:
    """Compares the sums of a resource's requests and limits."""

    def amount(quantities: Any) -> Any:
        return quantity.parse(quantities.get(resource, 0))

    def class_of(rule: Any, members: tuple[PodContainer, ...]) -> Any:
        if not all(amount(one.limits) for one in members):
            return rule()
        asked = sum(amount(one.requests) for one in members)
        if asked != sum(amount(one.limits) for one in members):
            return rule()
        alike = [
            replace(one, requests={**one.requests, resource: one.limits[resource]})
            for one in members
        ]
        return rule(members=tuple(alike))

    changes.around(PodRules, "qos_class", class_of)


@seeds("CPU-STATIC-026").of(_by_sum, "memory")
def the_sum_of_the_memory_decides_the_class() -> None:
    """Compares the sums of memory requests and limits."""


# CPU-STATIC-017: pod-level resources


def _pods(changes: Changes, change: Callable[[Any, Pod, Any], Pod]) -> None:
    """Lets `change` replace a pod, given a function that reads manifests."""
    for reader in (node, startup):
        changes.around(
            reader,
            "read_pod",
            lambda rule, manifest, *rest: change(
                lambda other: rule(other, *rest), rule(manifest, *rest), manifest
            ),
        )


@seeds("CPU-STATIC-017").by(_pods)
def pod_level_memory_alone_does_not_keep_containers_unpinned(
    _read: Any, pod: Pod, manifest: Any
) -> Pod:
    """Keeps containers unpinned only if the pod has pod-level CPUs."""
    own = manifest["spec"].get("resources") or {}
    named = {**(own.get("requests") or {}), **(own.get("limits") or {})}
    return pod if "cpu" in named else replace(pod, shared_pool=False)


@seeds("CPU-STATIC-017").around(Pod, "exclusive_cpus")
def init_containers_of_pods_with_resources_are_pinned(rule: Any, self: Pod, container: Any) -> Any:
    """Pins the init containers of pods with pod-level resources."""
    if self.shared_pool and container.init:
        return rule(self=replace(self, shared_pool=False))
    return rule()


# CPU-STATIC-024: the class in the status


def _trust_status_class(changes: Changes, trusts: Callable[[str, str], bool]) -> None:
    """Uses the class in the status only if `trusts` is true for it and the computed class."""

    def read_pod(read: Any, pod: Pod, manifest: Any) -> Pod:
        own = read({**manifest, "status": {}})
        return pod if trusts(pod.qos, own.qos) else own

    _pods(changes, read_pod)


def _rank(qos_class: str) -> int:
    return {"Guaranteed": 2, "Burstable": 1}.get(qos_class, 0)


@seeds("CPU-STATIC-024").of(
    _trust_status_class, lambda status_class, own: _rank(status_class) <= _rank(own)
)
def a_class_in_the_status_only_lowers() -> None:
    """Ignores a class in the status that is higher than the computed one."""


# CPU-STATIC-023: cores of different sizes


def _free_cores(changes: Changes, size: Callable[[CPUTopology], int]) -> None:
    """Treats a core as free if it has `size` free CPUs."""

    def free_cores(rule: Any, self: Any, free: int) -> Any:
        cores, wanted = self.topology.cores, size(self.topology)
        found = rule(self, free)
        if self.topology.has_even_cores:
            return found
        partly = [
            core for core in cores.values() if core & ~free and (core & free).bit_count() == wanted
        ]
        return [*partly, *(core for core in found if core not in partly)]

    for owner in (Assignment, FreeCoreByAverage):
        changes.around(owner, "free_cores", free_cores)


@seeds("CPU-STATIC-023").by(_free_cores)
def a_core_is_free_by_the_size_of_the_smallest(topology: CPUTopology) -> Any:
    """Treats a core as free if it has as many free CPUs as the smallest core."""
    return min(map(int.bit_count, topology.cores.values()))


@seeds("CPU-STATIC-023").by(_free_cores)
def a_core_is_free_by_the_size_of_the_first(topology: CPUTopology) -> Any:
    """Treats a core as free if it has as many free CPUs as the first core."""
    return next(iter(topology.cores.values())).bit_count()


@seeds("CPU-STATIC-023").around(CPUTopology, "complete_cores")
def cores_with_an_offline_thread_are_never_whole(rule: Any, self: Any, cpus: Any) -> Any:
    """Never treats a core with an offline thread as whole."""
    return rule(
        cpus=cpus
        & union(core for core in self.cores.values() if core.bit_count() == self.most_cpus_per_core)
    )


# Eligibility


def _requested_amount(container: PodContainer, of: str = "cpu") -> Any:
    return quantity.parse(container.requests.get(of, 0))


def _whole(container: PodContainer) -> int:
    return quantity.whole_cpus(container.requests.get("cpu", 0)) or 0


def _is_judged(pod: Pod, container: PodContainer) -> bool:
    """Returns whether only the container's own request decides."""
    return pod.qos == "Guaranteed" and not pod.shared_pool and not pod.shares_budget(container)


# CPU-STATIC-001: containers with exclusive CPUs


@seeds("CPU-STATIC-001").after(Pod, "exclusive_cpus")
def sidecars_are_guaranteed_by_themselves(count: int, self: Pod, container: PodContainer) -> int:
    """Decides by the QoS class that a sidecar would have alone."""
    if count or not container.sidecar or self.shared_pool or self.budget is not None:
        return count
    return _whole(container) if qos.class_of((container,)) == "Guaranteed" else 0


@seeds("CPU-STATIC-001").after(Pod, "exclusive_cpus")
def fractional_init_containers_are_rounded_up(
    count: int, self: Pod, container: PodContainer
) -> Any:
    """Rounds fractional requests of init containers up."""
    if container.runs_to_completion and not count and _is_judged(self, container):
        return math.ceil(_requested_amount(container))
    return count


# CPU-STATIC-002: number of CPUs


@seeds("CPU-STATIC-002").around(StaticCPUPolicy, "allocate")
def an_app_container_keeps_all_that_its_init_containers_had(
    rule: Any, state: Any, pod: Pod, container: PodContainer
) -> Any:
    """Gives the app container all CPUs of the init containers, even if it requests fewer."""
    left = state.reuse.of(pod.uid)
    fresh = state.of(pod.uid, container.name) is None
    state = rule()
    own = state.of(pod.uid, container.name)
    if fresh and own and left and container is pod.containers[-1] and not container.init:
        state = state.assign(pod.uid, container.name, own | left)
        state = replace(state, reuse=ReusableCPUs(pod.uid, 0))
    return state


@seeds("CPU-STATIC-002").around(Pod, "exclusive_cpus")
def init_containers_get_what_all_app_containers_need(rule: Any, self: Pod, container: Any) -> Any:
    """Gives an init container as many CPUs as all app containers together."""
    due = rule()
    if not due or not container.runs_to_completion or self.budget is not None:
        return due
    return max(due, sum(rule(container=one) for one in self.containers if not one.init))


# CPU-STATIC-003: exclusive use


@seeds("CPU-STATIC-003").after(StartedNode, "remove")
def the_pool_is_counted_without_sidecars_after_a_removal(answer: Any, self: Any, args: Any) -> Any:
    """Returns the CPUs of sidecars to the shared pool when another pod leaves."""
    static, state = self.setup.cpu, self.cpus.state
    if args.container is None and static is not None:
        held = union(state.pods.values())
        for pod in self.pods.values():
            for one in pod.containers:
                held |= 0 if one.sidecar else state.of(pod.uid, one.name) or 0
        free = static.allocatable if static.options.strict else static.topology.cpus
        self.cpus.state = replace(state, shared=free & ~held)
        self.save()
    return answer


@seeds("CPU-STATIC-003").around(CPUState, "allowed_cpus")
def the_other_containers_of_a_pinned_pod_run_anywhere(
    rule: Any, self: CPUState, uid: str, container: str
) -> Any:
    """Lets the other containers of a pod with exclusive CPUs run on all CPUs."""
    if self.of(uid, container) is None and uid in self.exclusive:
        return self.all_cpus()
    return rule()


@seeds("CPU-STATIC-003")
def what_app_containers_leave_of_an_init_container_is_free(changes: Changes) -> None:
    """Returns an init container's spare CPUs to the shared pool before it ends."""

    def admit(rule: Any, self: Any, args: Any) -> Any:
        uid = args.pod.get("metadata", {}).get("uid")
        again = uid in self.pods
        answer = rule()
        own = {name: self.cpus.state.of(uid, name) or 0 for name in answer.containers}
        pod = self.pods[uid]
        kept = union(own[one.name] for one in pod.containers if not one.runs_to_completion)
        if not again and uid not in self.cpus.state.pods and union(own.values()) & ~kept:
            shared = self.cpus.state.shared | (union(own.values()) & ~kept)
            self.cpus.state = replace(self.cpus.state, shared=shared)
            self.save()
        return answer

    def restore(rule: Any, state: CPUState) -> Any:
        held = union(cpus for _, _, cpus in state)
        if not state.shared & held:
            return rule()
        rule(state=replace(state, shared=state.shared & ~held))
        return state

    changes.around(StartedNode, "admit", admit)
    changes.around(StaticCPUPolicy, "restore", restore)


# CPU-STATIC-004: each container separately


@seeds("CPU-STATIC-004").after(Pod, "exclusive_cpus")
def app_containers_are_pinned_if_their_sum_is_whole(count: int, self: Pod, container: Any) -> int:
    """Pins containers with fractional requests if the pod's total is a whole number."""
    apps = [one for one in self.containers if not one.init]
    asked = sum(_requested_amount(one) for one in apps)
    if container not in apps or not _is_judged(self, container) or asked.denominator != 1:
        return count
    return int(_requested_amount(container))


# CPU-STATIC-006 and -007: assigned CPUs never change


def _move(started_node: Any, uid: str) -> None:
    """Reallocates the CPUs of a pod's only container if there is no topology policy."""
    static, state = started_node.setup.cpu, started_node.cpus.state
    held = state.exclusive.get(uid, {})
    if static is None or started_node.setup.topology_policy or len(held) != 1 or uid in state.pods:
        return
    name, own = next(iter(held.items()))
    chosen = static.assignment.take(static.available(state) | own, own.bit_count())
    started_node.cpus.state = state.release(uid, name).assign(uid, name, chosen)
    started_node.save()


@seeds("CPU-STATIC-006").after(StartedNode, "remove")
def a_removal_lets_the_last_pod_move_up(answer: Any, self: Any, args: Any) -> Any:
    """Moves the last pod when another one is removed."""
    if args.container is None and self.pods:
        _move(self, next(reversed(self.pods)))
    return answer


@seeds("CPU-STATIC-006").around(StartedNode, "reconcile")
def a_reconcile_pass_chooses_better_cpus(rule: Any, self: Any) -> Any:
    """Moves the first pod during a reconcile pass."""
    if self.pods:
        _move(self, next(iter(self.pods)))
    return rule()


@seeds("CPU-STATIC-006").after(StartedNode, "remove")
def an_app_container_moves_when_its_init_container_is_gone(
    answer: Any, self: Any, args: Any
) -> Any:
    """Reallocates an app container's CPUs when its init container ends."""
    if (
        args.container is not None
        and self.pods[args.uid].container(args.container).runs_to_completion
    ):
        _move(self, args.uid)
    return answer


@seeds("CPU-STATIC-007")
def a_container_that_comes_back_shares_out_the_cpus_of_its_pod(changes: Changes) -> None:
    """Redistributes the CPUs of two containers when one of them is readmitted."""

    def admit(rule: Any, self: Any, args: Any) -> Any:
        self.cpus.again = args.pod.get("metadata", {}).get("uid") in self.pods
        return rule()

    def allocate(rule: Any, self: Any, pod: Pod, container: PodContainer) -> Any:
        before = self.state
        rule()
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


# Packing


def _cores_in_order(changes: Changes, change: Callable[[CPUTopology, int, list[int]], Any]) -> None:
    """Lets `change` reorder the cores."""
    for user in (assignment, deviations):
        changes.around(
            user,
            "cores_in_order",
            lambda rule, topology, free: change(topology, free, rule(topology, free)),
        )


def _place(groups: Mapping[int, int], cpus: int) -> int:
    """Returns the first group that contains any of the CPUs."""
    return next(mask for mask in groups.values() if mask & cpus)


# CPU-STATIC-008 and -012: nodes and sockets


@seeds("CPU-STATIC-008").around(Assignment, "whole_sockets")
def sockets_of_several_nodes_are_passed_over(rule: Any, self: Any, progress: Any) -> Any:
    """Doesn't take whole sockets that have several NUMA nodes."""
    return rule() if self.topology.sockets_within_nodes else progress


@seeds("CPU-STATIC-008")
def one_whole_socket_is_taken_at_most(changes: Changes) -> None:
    """Takes at most one whole socket."""

    def take_one_socket(rule: Any, self: Any, progress: PartialAssignment) -> Any:
        if len(self.topology.nodes) != len(self.topology.sockets):
            return rule()
        fitting = [
            cpus
            for cpus in self.free_sockets(progress.free)
            if cpus.bit_count() <= progress.remaining_count
        ]
        return progress.take_units(fitting[:1])

    changes.around(
        Assignment,
        "whole_nodes",
        lambda rule, self, progress: (
            progress if len(self.topology.nodes) == len(self.topology.sockets) else rule()
        ),
    )
    changes.around(Assignment, "whole_sockets", take_one_socket)


@seeds("CPU-STATIC-008")
def only_multiples_of_a_socket_get_whole_sockets(changes: Changes) -> None:
    """Takes whole sockets only for multiples of a socket."""

    def multiples(rule: Any, self: Any, progress: PartialAssignment) -> Any:
        size = max(cpus.bit_count() for cpus in self.topology.sockets.values())
        odd = progress.remaining_count % size and len(self.topology.nodes) == len(
            self.topology.sockets
        )
        return progress if odd else rule()

    changes.around(Assignment, "whole_nodes", multiples)
    changes.around(Assignment, "whole_sockets", multiples)


@seeds("CPU-STATIC-012").around(Assignment, "whole_nodes")
def the_sockets_of_a_node_come_before_the_node(rule: Any, self: Any, progress: Any) -> Any:
    """Takes whole sockets before whole nodes on every machine."""
    if self.topology.sockets_within_nodes:
        progress = self.whole_sockets(progress)
    return rule(progress=progress)


# CPU-STATIC-009 and -010: cores and threads


def _threads(
    changes: Changes, order: Callable[[CPUTopology, int, list[int]], list[int]], *, last: bool
) -> None:
    """Takes single CPUs by core in the given `order`, the `last` thread first if true."""

    def threads_by_core(self: Any, progress: PartialAssignment) -> PartialAssignment:
        free = progress.free
        cores = assignment.cores_in_order(self.topology, free)
        for core in order(self.topology, free, cores):
            left = self.topology.cores[core] & free
            while left and progress.remaining_count > 0:
                taken = 1 << (left.bit_length() - 1) if last else left & -left
                progress, left = progress.take(taken), left & ~taken
        return progress

    changes.replace(Assignment, "threads_by_core", threads_by_core)


@seeds("CPU-STATIC-010").by(_threads, last=False)
def single_cpus_ignore_how_full_their_core_is(topology: Any, free: int, cores: Any) -> list[int]:
    """Ignores how many CPUs of a core are free."""
    sockets = assignment.sockets_in_order(topology, free)
    place = {topology.sockets[socket]: rank for rank, socket in enumerate(sockets)}
    masks = topology.cores
    return sorted(cores, key=lambda core: (place[_place(topology.sockets, masks[core])], core))


# CPU-STATIC-011 and -022: few NUMA nodes


@seeds("CPU-STATIC-011").by(_cores_in_order)
def the_nodes_of_a_socket_are_filled_at_once(topology: Any, _free: int, cores: Any) -> Any:
    """Takes cores from all NUMA nodes of a socket in turn."""
    if topology.sockets_within_nodes:
        return cores
    sockets, nodes = topology.sockets, topology.nodes
    order = list(dict.fromkeys(_place(sockets, topology.cores[core]) for core in cores))
    turns: dict[int, int] = {}
    keys = {}
    for core in cores:
        home = _place(nodes, topology.cores[core])
        turns[home] = turns.get(home, -1) + 1
        keys[core] = order.index(_place(sockets, topology.cores[core])), turns[home]
    return sorted(cores, key=keys.__getitem__)


@seeds("CPU-STATIC-022").around(Assignment, "pack")
def a_request_beyond_a_node_takes_from_every_node(
    rule: Any, self: Any, available: int, count: int
) -> Any:
    """Distributes requests that don't fit on a single NUMA node over all nodes."""
    parts = [cpus & available for cpus in self.topology.nodes.values() if cpus & available]
    most = max((part.bit_count() for part in parts), default=0)
    if not most < count <= sum(part.bit_count() for part in parts):
        return rule()
    taken = 0
    for place, part in enumerate(parts):
        share = -(-(count - taken.bit_count()) // (len(parts) - place))
        taken |= rule(available=part, count=min(share, part.bit_count()))
    left = available & ~taken
    return taken | rule(available=left, count=count - taken.bit_count())


@seeds("CPU-STATIC-022").of(_cores_in_order, lambda topology, free, cores: sorted(cores))
def cores_are_taken_by_their_numbers() -> None:
    """Takes cores in ascending order, regardless of their node."""


# CPU-STATIC-013: partially used cores


@seeds("CPU-STATIC-013").around(StaticCPUPolicy, "available")
def the_rest_of_a_split_core_stays_idle(rule: Any, self: Any, state: Any) -> Any:
    """Never shares a core between containers."""
    used = union(cpus for _, _, cpus in state)
    return rule() & ~self.topology.whole_cores(used)


# CPU-STATIC-014 and -015: insufficient CPUs


@seeds("CPU-STATIC-014").around(StaticCPUPolicy, "allocate")
def init_containers_without_room_stay_in_the_shared_pool(
    rule: Any, state: Any, container: Any
) -> Any:
    """Runs init containers on the shared pool if there are too few CPUs."""
    try:
        return rule()
    except NotEnoughCPUsError:
        if not container.init:
            raise
        return state


@seeds("CPU-STATIC-015").around(hints, "for_container")
def all_free_cpus_at_once_fit_nowhere(
    rule: Any, policy: Any, state: Any, pod: Pod, container: PodContainer
) -> Any:
    """Reports a request for all free CPUs as unsatisfiable."""
    fresh = state.of(pod.uid, container.name) is None and not state.reuse.of(pod.uid)
    count = pod.exclusive_cpus(container)
    if count and fresh and count == policy.available(state).bit_count():
        return hints.UNSATISFIABLE
    return rule()
