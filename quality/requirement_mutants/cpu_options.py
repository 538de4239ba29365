"""Mutants of whole cores, strict reservations and incompatible options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol.sets import CPUSet
from numaproof.reference import node, startup
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu import options
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.cpu.options import (
    ACROSS_CORES,
    ACROSS_NUMA,
    BY_SOCKET,
    BY_UNCORE,
    FULL_CORES,
    STRICT,
)
from numaproof.reference.cpu.policy import (
    PolicyError,
    SMTAlignmentError,
    StaticCPUPolicy,
    not_whole_cores,
)
from numaproof.reference.cpu.state import ReusableCPUs
from numaproof.reference.cpu.topology import touching
from numaproof.reference.pods import quantity
from numaproof.reference.topology.hints import ANYWHERE
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol import messages

seeds = SubjectBugs("cpu-options")


# Whole cores


def with_options(policy: StaticCPUPolicy, **overrides: bool) -> StaticCPUPolicy:
    """Returns the policy with some options overridden."""
    wanted = replace(policy.options, **overrides)
    return replace(policy, assignment=replace(policy.assignment, options=wanted))


@shape(options, "value")
def matures(option: str, instead: Any, rule: Any, name: str) -> Any:
    """Overrides an option's maturity; None removes the option."""
    return rule(maturity=instead) if name == option else rule()


@shape(options, "parse")
def add_early(option: str, rule: Any, available: Any) -> Any:
    """Adds an alpha option to releases that don't have it."""
    return rule(available={option: "alpha", **available})


@shape(StaticCPUPolicy, "allocate")
def allocating(change: Change, rule: Any, self: Any, pod: Any, container: Any) -> Any:
    """Lets another policy allocate, which `change` returns for the policy, pod and container."""
    return rule(self=change(self, pod, container))


def is_first(pod: Any, container: Any) -> bool:
    return bool(pod.containers[0].name == container.name)


# Gates


@seeds("CPU-OPT-001").after(options, "parse")
def gate_of_alpha_options_aligns_by_socket(parsed_options: Any, gates: Any) -> Any:
    """Turns align-by-socket on with the gate for alpha options."""
    on = gates is not None and gates["CPUManagerPolicyAlphaOptions"]
    return replace(parsed_options, by_socket=parsed_options.by_socket or on)


@seeds("CPU-OPT-001", kubernetes="1.34").after(options, "parse")
def one_beta_option_turns_the_uncore_option_on(parsed_options: Any) -> Any:
    """Turns prefer-align-cpus-by-uncorecache on if another beta option is set."""
    on = parsed_options.strict and not (parsed_options.across_numa or parsed_options.across_cores)
    return replace(parsed_options, by_uncore=parsed_options.by_uncore or on)


# Whole cores


def _split_cores(changes: Changes, when: Callable[..., bool]) -> None:
    """Allocates threads of as many cores as possible if `when` is true."""

    def split(after: Any, self: Any, state: Any, pod: Any, container: Any, affinity: Any) -> Any:
        new = after.exclusive is not state.exclusive
        if not self.options.full_cores or not new or not when(pod, container, affinity):
            return after
        reusable = state.reuse.of(pod.uid)
        free = self.available(state) | reusable
        near = self.aligned_cpus(affinity)
        places = [
            (turn, not near >> cpu & 1, cpu)
            for core in self.topology.cores.values()
            for turn, cpu in enumerate(CPUSet.from_mask(core & free))
        ]
        count = after.of(pod.uid, container.name).bit_count()
        cpus = sum(1 << cpu for _, _, cpu in sorted(places)[:count])
        left = reusable | cpus if container.runs_to_completion else reusable & ~cpus
        made = state.assign(pod.uid, container.name, cpus)
        return replace(made, reuse=ReusableCPUs(pod.uid, left))

    changes.after(StaticCPUPolicy, "allocate", split)


@seeds("CPU-OPT-FULLPCPUS-002").of(
    _split_cores, lambda pod, container, affinity: container.runs_to_completion
)
def init_containers_get_threads_of_many_cores() -> None:
    """Gives init containers threads of different cores."""


@seeds("CPU-OPT-FULLPCPUS-002").of(_split_cores, lambda pod, container, affinity: container.sidecar)
def sidecars_get_threads_of_many_cores() -> None:
    """Gives sidecars threads of different cores."""


@seeds("CPU-OPT-FULLPCPUS-002").by(_split_cores)
def only_the_first_container_gets_whole_cores(pod: Any, container: Any, affinity: Any) -> Any:
    """Gives whole cores only to the first container."""
    return not is_first(pod, container)


@seeds("CPU-OPT-FULLPCPUS-002").by(_split_cores)
def app_containers_near_an_affinity_get_single_threads(
    pod: Any, container: Any, affinity: Any
) -> Any:
    """Gives app containers threads of different cores if they have an affinity."""
    return affinity.nodes != ANYWHERE and not container.init


# Cores of one socket


@shape(Assignment, "whole_cores")
def _cores_by(order: Change, rule: Any, self: Any, progress: Any) -> Any:
    """Takes whole cores in the given `order` if full-pcpus-only is on."""
    if not self.options.full_cores:
        return rule()
    cores = self.free_cores(progress.free)
    return progress.take_units(order(self.topology, cores, progress.remaining_count))


@seeds("CPU-OPT-FULLPCPUS-012").by(_cores_by)
def whole_cores_come_from_the_sockets_in_turn(
    topology: Any, cores: Any, _remaining_count: int
) -> list[int]:
    """Takes whole cores from the sockets in turn."""
    seen: dict[int, int] = {}
    ranks: dict[int, int] = {}
    for core in cores:
        socket = touching(topology.sockets, core)[0]
        ranks[core] = seen[socket] = seen.get(socket, -1) + 1
    return sorted(cores, key=lambda core: ranks[core])


@seeds("CPU-OPT-FULLPCPUS-012").by(_cores_by)
def the_last_whole_core_comes_from_elsewhere(
    _topology: Any, cores: Any, remaining_count: int
) -> list[int]:
    """Takes the last whole core from the end of the list."""
    count = max(1, remaining_count // cores[0].bit_count()) if cores else 0
    return [*cores[: count - 1], *cores[: count - 2 : -1]]


# Requests that aren't multiples of a core


def _skip_core_check(changes: Changes, when: Callable[..., bool]) -> None:
    """Ignores full-pcpus-only for fractions of cores if `when` is true."""

    def forgetful(policy: StaticCPUPolicy, pod: Any, container: Any) -> StaticCPUPolicy:
        count = pod.exclusive_cpus(container)
        odd = policy.options.full_cores and count % policy.assignment.cpus_per_core
        if odd and when(policy, pod, container):
            return with_options(policy, full_cores=False)
        return policy

    allocating(changes, forgetful)


@seeds("CPU-OPT-FULLPCPUS-003").of(
    _skip_core_check, lambda policy, pod, container: container.runs_to_completion
)
def init_containers_may_ask_for_parts_of_cores() -> None:
    """Doesn't check the requests of init containers."""


@seeds("CPU-OPT-FULLPCPUS-003").of(
    _skip_core_check, lambda policy, pod, container: container.sidecar
)
def sidecars_may_ask_for_parts_of_cores() -> None:
    """Doesn't check the requests of sidecars."""


@seeds("CPU-OPT-FULLPCPUS-003").by(_skip_core_check)
def later_containers_may_ask_for_parts_of_cores(policy: Any, pod: Any, container: Any) -> Any:
    """Checks only the first container's request."""
    return not is_first(pod, container)


@seeds("CPU-OPT-FULLPCPUS-003").by(_skip_core_check)
def sum_of_the_pod_must_be_whole_cores(policy: StaticCPUPolicy, pod: Any, _container: Any) -> bool:
    """Checks the sum of the pod's requests instead of each request."""
    total = sum(pod.exclusive_cpus(one) for one in pod.containers)
    return not total % policy.assignment.cpus_per_core


@seeds("CPU-OPT-FULLPCPUS-003").by(_skip_core_check)
def even_requests_pass_on_cores_of_four_threads(policy: Any, pod: Any, container: Any) -> Any:
    """Accepts even requests on cores with four threads."""
    return not pod.exclusive_cpus(container) % 2


# Siblings of reserved CPUs


@seeds("CPU-OPT-FULLPCPUS-004").replace(StaticCPUPolicy, "in_unbroken_cores")
def siblings_of_reserved_cpus_count_as_free(self: Any, state: Any, reusable: Any) -> Any:
    """Counts the siblings of reserved CPUs as free."""
    return (state.shared & ~self.reserved | reusable).bit_count()


@seeds("CPU-OPT-FULLPCPUS-004").around(StaticCPUPolicy, "in_unbroken_cores")
def siblings_of_strictly_reserved_cpus_count_as_free(
    rule: Any, self: StaticCPUPolicy, state: Any, reusable: int
) -> Any:
    """Counts the siblings of strictly reserved CPUs as free."""
    if self.options.strict:
        return (state.shared | reusable).bit_count()
    return rule()


# Machines without SMT


@seeds("CPU-OPT-FULLPCPUS-006").after(StaticCPUPolicy, "in_unbroken_cores")
def neighbours_of_reserved_cpus_are_siblings_without_smt(free: Any, self: Any, state: Any) -> Any:
    """Treats CPUs 2n and 2n+1 as siblings on machines without SMT."""
    if self.topology.most_cpus_per_core > 1:
        return free
    pairs = sum(1 << (cpu ^ 1) for cpu in CPUSet.from_mask(self.reserved))
    return free - (state.shared & pairs & ~self.reserved).bit_count()


# Readmitted pods


def _asked_again(changes: Changes, when: Callable[..., bool]) -> None:
    """Also checks alignment for a container that holds CPUs, if `when` is true."""

    def again(rule: Any, self: Any, state: Any, pod: Any, container: Any) -> Any:
        held = state.of(pod.uid, container.name)
        if held is not None and when(pod, container):
            free = self.in_unbroken_cores(state, state.reuse.of(pod.uid))
            self.check_alignment(held.bit_count(), free)
        return rule()

    changes.around(StaticCPUPolicy, "allocate", again)


@seeds("CPU-OPT-FULLPCPUS-007").of(_asked_again, lambda pod, container: container.sidecar)
def sidecars_need_free_cores_besides_their_own() -> None:
    """Requires free cores for sidecars that already hold CPUs."""


@seeds("CPU-OPT-FULLPCPUS-007").by(_asked_again)
def pods_of_several_containers_need_free_cores_again(pod: Any, container: Any) -> Any:
    """Requires free cores for all containers but the first, even if they hold CPUs."""
    return not is_first(pod, container)


# Hybrid machines


@seeds("CPU-OPT-FULLPCPUS-008")
def smallest_core_decides_on_hybrid_machines(changes: Changes) -> None:
    """Uses the size of the smallest core on hybrid machines."""

    def smallest(self: Assignment) -> int:
        return min((core.bit_count() for core in self.topology.cores.values()), default=1)

    def whole(self: Assignment) -> bool:
        return self.options.full_cores and self.topology.has_even_cores

    changes.replace(Assignment, "cpus_per_core", property(smallest))
    changes.replace(Assignment, "only_whole_cores", property(whole))


@seeds("CPU-OPT-FULLPCPUS-008")
def even_requests_end_with_a_thread_on_hybrid_machines(changes: Changes) -> None:
    """Fills up even requests with single threads on hybrid machines."""

    def whole(self: Assignment) -> bool:
        return self.options.full_cores and self.topology.has_even_cores

    changes.replace(Assignment, "only_whole_cores", property(whole))


# Containers in the shared pool


@seeds("CPU-OPT-FULLPCPUS-009").around(StaticCPUPolicy, "allocate")
def init_containers_of_the_shared_pool_need_whole_cores(
    rule: Any, self: Any, pod: Any, container: Any
) -> Any:
    """Checks fractional requests of init containers in the shared pool."""
    if self.options.full_cores and (not pod.exclusive_cpus(container)):
        amount = quantity.parse(container.requests.get("cpu", 0))
        size = self.assignment.cpus_per_core
        if amount % size and container.init:
            raise not_whole_cores(-(-amount.numerator // amount.denominator), size)
    return rule()


# Incompatible pairs


def _allow_together(changes: Changes, option: str, other: str) -> None:
    """Allows two incompatible options together."""
    pairs = tuple(pair for pair in options.INCOMPATIBLE if pair != (option, other))
    changes.replace(options, "INCOMPATIBLE", pairs)


@seeds("CPU-OPT-PAIR-001").around(options, "parse")
def options_spelled_otherwise_exclude_nothing(rule: Any, policy_options: Any) -> Any:
    """Detects incompatible options only if both are spelled ``true``."""
    spelled = {policy_options.get(FULL_CORES), policy_options.get(ACROSS_CORES)} != {"true"}
    if not spelled or FULL_CORES not in policy_options or ACROSS_CORES not in policy_options:
        return rule()
    rule(policy_options={name: text for name, text in policy_options.items() if name != FULL_CORES})
    return rule(
        policy_options={name: text for name, text in policy_options.items() if name != ACROSS_CORES}
    )


@seeds("CPU-OPT-PAIR-003").of(_allow_together, BY_UNCORE, ACROSS_CORES)
def uncore_caches_go_with_spreading_over_cores() -> None:
    """Allows prefer-align-cpus-by-uncorecache with distribute-cpus-across-cores."""


@seeds("CPU-OPT-PAIR-004").of(_allow_together, BY_UNCORE, ACROSS_NUMA)
def uncore_caches_go_with_distributing() -> None:
    """Allows prefer-align-cpus-by-uncorecache with distribute-cpus-across-numa."""


# Compatible pairs


@shape(options, "parse", Changes.after)
def _exclude(
    option: str, other: str, parsed_options: Any, policy_options: Any, available: Any, gates: Any
) -> Any:
    """Refuses two options together."""
    on = {
        name
        for name in policy_options
        if options.value(name, policy_options[name], available.get(name), gates)
    }
    if {option, other} <= on:
        raise OptionError(
            f"static policy options {option} and {other} can not be used at the same time"
        )
    return parsed_options


@seeds("CPU-OPT-PAIR-005").of(_exclude, FULL_CORES, ACROSS_NUMA)
def full_cores_exclude_distributing() -> None:
    """Refuses full-pcpus-only with distribute-cpus-across-numa."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, FULL_CORES, BY_SOCKET)
def full_cores_exclude_aligning_by_socket() -> None:
    """Refuses full-pcpus-only with align-by-socket."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, FULL_CORES, BY_UNCORE)
def full_cores_exclude_uncore_caches() -> None:
    """Refuses full-pcpus-only with prefer-align-cpus-by-uncorecache."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, FULL_CORES, STRICT)
def full_cores_exclude_a_strict_reservation() -> None:
    """Refuses full-pcpus-only with strict-cpu-reservation."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, ACROSS_NUMA, BY_SOCKET)
def distributing_excludes_aligning_by_socket() -> None:
    """Refuses distribute-cpus-across-numa with align-by-socket."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, ACROSS_NUMA, STRICT)
def distributing_excludes_a_strict_reservation() -> None:
    """Refuses distribute-cpus-across-numa with strict-cpu-reservation."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, ACROSS_CORES, BY_SOCKET)
def spreading_over_cores_excludes_aligning_by_socket() -> None:
    """Refuses distribute-cpus-across-cores with align-by-socket."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, ACROSS_CORES, STRICT)
def spreading_over_cores_excludes_a_strict_reservation() -> None:
    """Refuses distribute-cpus-across-cores with strict-cpu-reservation."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, BY_SOCKET, BY_UNCORE)
def aligning_by_socket_excludes_uncore_caches() -> None:
    """Refuses align-by-socket with prefer-align-cpus-by-uncorecache."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, BY_SOCKET, STRICT)
def aligning_by_socket_excludes_a_strict_reservation() -> None:
    """Refuses align-by-socket with strict-cpu-reservation."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, BY_UNCORE, STRICT)
def uncore_caches_exclude_a_strict_reservation() -> None:
    """Refuses prefer-align-cpus-by-uncorecache with strict-cpu-reservation."""


# Rejected pods


def _demote(changes: Changes, when: Callable[..., bool]) -> None:
    """Leaves a container in the shared pool instead of rejecting its pod, if `when` is true."""

    def allocate(rule: Any, self: Any, state: Any, pod: Any, container: Any) -> Any:
        try:
            return rule()
        except SMTAlignmentError:
            if when(self, pod, container):
                return state
            raise

    changes.around(StaticCPUPolicy, "allocate", allocate)


@seeds("CPU-OPT-FULLPCPUS-005").of(_demote, lambda policy, pod, container: container.sidecar)
def sidecars_without_cores_run_on_the_shared_pool() -> None:
    """Runs sidecars on the shared pool instead of rejecting their pod."""


@seeds("CPU-OPT-FULLPCPUS-005").by(_demote)
def containers_short_of_cores_run_on_the_shared_pool(policy: Any, pod: Any, container: Any) -> bool:
    """Runs containers on the shared pool if no whole cores are left."""
    return not pod.exclusive_cpus(container) % policy.assignment.cpus_per_core


# Availability


@seeds("CPU-OPT-STRICT-001", kubernetes="1.31").of(add_early, options.STRICT)
def strict_reservation_comes_a_release_early() -> None:
    """Adds strict-cpu-reservation one release early."""


@seeds("CPU-OPT-STRICT-001", kubernetes="1.32").of(matures, options.STRICT, "beta")
def strict_reservation_begins_as_beta() -> None:
    """Adds strict-cpu-reservation as beta."""


@seeds("CPU-OPT-STRICT-001", kubernetes="1.33").of(matures, options.STRICT, "alpha")
def strict_reservation_stays_alpha() -> None:
    """Keeps strict-cpu-reservation alpha after it became beta."""


@seeds("CPU-OPT-STRICT-001", kubernetes="1.34").of(matures, options.STRICT, "stable")
def strict_reservation_is_stable_a_release_early() -> None:
    """Makes strict-cpu-reservation stable one release early."""


@seeds("CPU-OPT-STRICT-001").of(matures, options.STRICT, "beta")
def strict_reservation_stays_beta() -> None:
    """Keeps strict-cpu-reservation beta after it became stable."""


# Containers on reserved CPUs


def _on_reserved(changes: Changes, when: Callable[[Any, Any, int], bool]) -> None:
    """Also lets containers of the shared pool run on reserved CPUs if `when` is true."""

    def reserved(self: node.StartedNode) -> CPUSet:
        cpu = self.setup.cpu
        return CPUSet.from_mask(cpu.reserved if cpu and cpu.options.strict else 0)

    def widen_containers(
        self: node.StartedNode, uid: str, containers: messages.Containers
    ) -> messages.Containers:
        pod = self.pods[uid]
        shared = self.cpus.state.shared
        return {
            name: msgspec.structs.replace(one, cpus=one.cpus | reserved(self))
            if not one.exclusive and when(pod, pod.container(name), shared)
            else one
            for name, one in containers.items()
        }

    def admitted(answer: Any, self: node.StartedNode, args: Any) -> Any:
        uid = self.read_pod(args.pod).uid
        return msgspec.structs.replace(
            answer, containers=widen_containers(self, uid, answer.containers)
        )

    def state_answer(answer: Any, self: node.StartedNode) -> Any:
        pods = {uid: widen_containers(self, uid, held) for uid, held in answer.pods.items()}
        return msgspec.structs.replace(answer, pods=pods)

    def widen_update(self: node.StartedNode, update: messages.CPUUpdate) -> messages.CPUUpdate:
        state, pod = self.cpus.state, self.pods[update.uid]
        if state.of(update.uid, update.container) is not None:
            return update
        if not when(pod, pod.container(update.container), state.shared):
            return update
        return msgspec.structs.replace(update, cpus=update.cpus | reserved(self))

    def reconcile_answer(answer: Any, self: node.StartedNode) -> Any:
        updates = tuple(widen_update(self, one) for one in answer.updates)
        return msgspec.structs.replace(answer, updates=updates)

    changes.after(node.StartedNode, "admit", admitted)
    changes.after(node.StartedNode, "state", state_answer)
    changes.after(node.StartedNode, "reconcile", reconcile_answer)


@seeds("CPU-OPT-STRICT-002")
def fractions_of_guaranteed_pods_run_on_strictly_reserved_cpus(changes: Changes) -> None:
    """Runs Guaranteed pods' containers with fractional requests on reserved CPUs."""
    _on_reserved(changes, lambda pod, container, shared: pod.qos == "Guaranteed")


@seeds("CPU-OPT-STRICT-002").of(_on_reserved, lambda pod, container, shared: container.init)
def init_containers_run_on_strictly_reserved_cpus() -> None:
    """Runs init containers on reserved CPUs."""


@seeds("CPU-OPT-STRICT-002").of(_on_reserved, lambda pod, container, shared: not shared)
def reserved_cpus_stand_in_for_an_empty_shared_pool() -> None:
    """Runs containers on reserved CPUs when the shared pool is empty."""


@seeds("CPU-OPT-STRICT-002").around(node.StartedNode, "remove_stale_state")
def strictly_reserved_cpus_join_the_pool_after_a_removal(
    rule: Any, self: node.StartedNode, when: Any
) -> None:
    """Adds reserved CPUs to the shared pool when a pod is removed."""
    held = tuple(self.cpus.state)
    rule()
    cpu = self.setup.cpu
    released = when == "now" and len(tuple(self.cpus.state)) < len(held)
    if cpu and cpu.options.strict and released:
        state = self.cpus.state
        self.cpus.state = replace(state, shared=state.shared | cpu.reserved)


# The initial shared pool


@seeds("CPU-OPT-STRICT-003").after(StaticCPUPolicy, "restore")
def fresh_shared_pool_lacks_siblings_of_reserved_cpus(
    restored_state: Any, self: Any, state: Any
) -> Any:
    """Removes the siblings of reserved CPUs from the initial shared pool."""
    if not self.options.strict or state.shared or state.exclusive:
        return restored_state
    return replace(restored_state, shared=self.topology.cpus & ~self.broken_cores)


# CPUs reserved by quantity


@shape(startup, "make_cpu_policy", Changes.after)
def _by_amount(when: Callable[[Any], bool], policy: Any, config: Any) -> Any:
    """Turns strict-cpu-reservation off for reserved quantities if `when` is true."""
    if policy is None or config.named_cpus or not when(config):
        return policy
    return with_options(policy, strict=False)


@seeds("CPU-OPT-STRICT-004").of(_by_amount, lambda config: "cpu" not in config.system_reserved)
def amounts_of_kube_reserved_alone_are_not_strict() -> None:
    """Applies strict-cpu-reservation only if systemReserved has CPUs."""


@seeds("CPU-OPT-STRICT-004").of(_by_amount, lambda config: "cpu" not in config.kube_reserved)
def amounts_of_system_reserved_alone_are_not_strict() -> None:
    """Applies strict-cpu-reservation only if kubeReserved has CPUs."""


# Checkpoints


@shape(StaticCPUPolicy, "restore")
def _reserved_in_pool(change: Change, rule: Any, self: Any, state: Any) -> Any:
    """Lets `change` edit a checkpoint with reserved CPUs in the pool before it is checked."""
    if self.options.strict and state.shared & self.reserved:
        state = change(self, state)
    return rule(state=state)


def _taken_out(policy: StaticCPUPolicy, state: Any) -> Any:
    return replace(state, shared=state.shared & ~policy.reserved)


@seeds("CPU-OPT-STRICT-005").by(_reserved_in_pool)
def checkpoint_with_some_reserved_cpus_is_accepted(policy: StaticCPUPolicy, state: Any) -> Any:
    """Accepts a checkpoint with some but not all reserved CPUs in the pool."""
    return state if not policy.reserved & ~state.shared else _taken_out(policy, state)


@seeds("CPU-OPT-STRICT-005").by(_reserved_in_pool)
def all_reserved_cpus_are_blamed_on_the_checkpoint(policy: StaticCPUPolicy, state: Any) -> Any:
    """Reports all reserved CPUs instead of those found in the pool."""
    reserved, shared = CPUSet.from_mask(policy.reserved), CPUSet.from_mask(state.shared)
    raise PolicyError(
        f'some of strictly reserved cpus: "{reserved}" are present in defaultCpuSet: "{shared}"'
    )


@seeds("CPU-OPT-STRICT-006").around(StaticCPUPolicy, "is_used_up")
def strict_pool_used_up_by_several_containers_is_damage(rule: Any, state: Any, cpus: int) -> bool:
    """Reports an empty strict pool as damage unless one container holds all CPUs."""
    return rule() and any(own == cpus for _, _, own in state)
